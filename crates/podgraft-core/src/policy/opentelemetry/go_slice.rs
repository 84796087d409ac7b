//! The capacity of Go slices. The operator's result can depend on whether a list had to be reallocated to grow.

/// Allocations above this size in bytes have a malloc header.
const HEADER_FROM: usize = 512;
const HEADER: usize = 8;
/// The size classes of Go's allocator in bytes, as far as such lists need them.
const BLOCKS: &[usize] = &[
    8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352,
    384, 416, 448, 480, 512, 576, 640, 704, 768, 896, 1024, 1152, 1280, 1408, 1536, 1792, 2048,
    2304, 2688, 3072, 3200, 3456, 4096, 4864, 5120, 5376, 6144, 6528, 6784, 6912, 8192, 9472, 9728,
    10240, 10880, 12288, 13568, 14336, 16384, 18432, 19072, 20480, 21760, 24576, 27264, 28672,
    32768,
];

/// The capacity after `append` to a new length, for items of `size` bytes (`growslice` of Go's runtime).
pub(super) fn grown(size: usize, capacity: usize, length: usize) -> usize {
    if length <= capacity {
        return capacity;
    }
    let wanted = length.max(2 * capacity);
    let header = if wanted * size > HEADER_FROM {
        HEADER
    } else {
        0
    };
    let bytes = wanted * size + header;
    let block = BLOCKS.iter().find(|&&block| block >= bytes);
    block.map_or(wanted, |block| (block - header) / size)
}

/// The capacity of a slice that `encoding/json` decoded, which appends item by item.
pub(super) fn decoded(size: usize, length: usize) -> usize {
    (1..=length).fold(0, |capacity, length| grown(size, capacity, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_grows_as_in_go() {
        let of_variables = [1, 2, 3, 5, 9, 18].map(|length| decoded(40, length));
        assert_eq!(of_variables, [1, 2, 4, 8, 17, 35]);
        let of_containers = [1, 2, 3, 5, 9, 17, 34].map(|length| decoded(408, length));
        assert_eq!(of_containers, [1, 2, 4, 8, 16, 33, 66]);
        assert_eq!(grown(40, 1, 7), 7);
    }
}
