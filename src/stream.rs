//! Joins texts to one stream of YAML documents.

use podgraft_core::yaml::stream::is_separator;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Concatenates the texts unchanged. Between two texts, a missing line end is added, and a `---` line if the next text
/// does not begin with one.
pub fn join(texts: Vec<Vec<u8>>) -> Vec<u8> {
    let mut texts = texts.into_iter().filter(|text| !text.is_empty());
    let mut stream = texts.next().unwrap_or_default();
    for text in texts {
        // YAML readers accept a byte order mark only at the very beginning of a stream.
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
        if !stream.ends_with(b"\n") {
            let end = line_end(&stream);
            stream.extend_from_slice(end);
        }
        if begins_with_directive(text) {
            // A `%` line is a directive only after the end marker `...` of the document before it (YAML 1.2.2, chapter
            // 9).
            stream.extend_from_slice(b"...");
            stream.extend_from_slice(line_end(text));
        } else if !is_separator(text) {
            stream.extend_from_slice(b"---");
            stream.extend_from_slice(line_end(text));
        }
        stream.extend_from_slice(text);
    }
    stream
}

/// The first line end of the text; LF if there is none.
fn line_end(text: &[u8]) -> &'static [u8] {
    match memchr::memchr(b'\n', text) {
        Some(at) if text[..at].ends_with(b"\r") => b"\r\n",
        _ => b"\n",
    }
}

fn begins_with_directive(text: &[u8]) -> bool {
    let mut content = text
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty() && !line.starts_with(b"#"));
    content.next().is_some_and(|line| line.starts_with(b"%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(texts: &[&str]) -> String {
        String::from_utf8(join(
            texts.iter().map(|text| text.as_bytes().to_vec()).collect(),
        ))
        .unwrap()
    }

    #[test]
    fn texts_are_kept_apart_and_otherwise_as_they_are() {
        assert_eq!(joined(&["a: 1\n", "b: 1\n"]), "a: 1\n---\nb: 1\n");
        assert_eq!(joined(&["a: 1\n", "---\nb: 1\n"]), "a: 1\n---\nb: 1\n");
        assert_eq!(joined(&["a: 1", "{\"b\": 1}"]), "a: 1\n---\n{\"b\": 1}");
        assert_eq!(joined(&["a: 1"]), "a: 1");
        assert_eq!(joined(&["", "a: 1"]), "a: 1");
        assert_eq!(joined(&[]), "");
    }

    #[test]
    fn line_ends_are_those_of_the_text_that_they_stand_in() {
        assert_eq!(
            joined(&["a: 1\r\nb: 2", "c: 3\r\n"]),
            "a: 1\r\nb: 2\r\n---\r\nc: 3\r\n"
        );
        assert_eq!(
            joined(&["a: 1\n", "c: 3\r\n", "d: 4\n"]),
            "a: 1\n---\r\nc: 3\r\n---\nd: 4\n"
        );
    }

    #[test]
    fn marks_and_directives_stand_where_readers_take_them() {
        assert_eq!(
            joined(&["\u{feff}a: 1\n", "\u{feff}b: 1\n"]),
            "\u{feff}a: 1\n---\nb: 1\n"
        );
        assert_eq!(
            joined(&["a: 1\n", "# c\n%YAML 1.1\n---\nb: 1\n"]),
            "a: 1\n...\n# c\n%YAML 1.1\n---\nb: 1\n"
        );
    }
}
