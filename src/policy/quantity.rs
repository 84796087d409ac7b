//! Compares Kubernetes quantities by value: `500m` is `0.5`, `1Gi` is `1073741824`.
//! <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>

use serde_json::Value;

use crate::yaml::view::View;

/// The number of nano-units in one unit.
pub(crate) const NANO_UNITS: i128 = 1_000_000_000;

/// The factor of a suffix in nano-units, the smallest unit of a quantity.
fn factor_of(suffix: &str) -> Option<i128> {
    Some(match suffix {
        "n" => 1,
        "u" => 1_000,
        "m" => 1_000_000,
        "" => NANO_UNITS,
        "k" => NANO_UNITS * 1_000,
        "M" => NANO_UNITS * 1_000_000,
        "G" => NANO_UNITS * 1_000_000_000,
        "T" => NANO_UNITS * 1_000_000_000_000,
        "P" => NANO_UNITS * 1_000_000_000_000_000,
        "E" => NANO_UNITS * 1_000_000_000_000_000_000,
        "Ki" => NANO_UNITS << 10,
        "Mi" => NANO_UNITS << 20,
        "Gi" => NANO_UNITS << 30,
        "Ti" => NANO_UNITS << 40,
        "Pi" => NANO_UNITS << 50,
        "Ei" => NANO_UNITS << 60,
        _ => return None,
    })
}

/// Whether two quantities have the same value, in whatever notation.
pub(crate) fn is_same(left: &Value, right: &Value) -> bool {
    left == right || parse(left).is_some_and(|quantity| parse(right) == Some(quantity))
}

/// A quantity in nano-units; `None` if it is not a quantity. As in Kubernetes, what is smaller than a nano-unit is rounded
/// away from zero.
pub(crate) fn parse(value: &Value) -> Option<i128> {
    of_view(&View::from(value))
}

/// [`parse`] for a borrowed value.
pub(crate) fn of_view(view: &View<'_>) -> Option<i128> {
    match view {
        View::Text(text) => of_text(text),
        View::Number(number) => of_text(&number.to_string()),
        _ => None,
    }
}

/// [`parse`] for a text.
pub(crate) fn of_text(text: &str) -> Option<i128> {
    let digits_end = text
        .bytes()
        .position(|byte| !matches!(byte, b'0'..=b'9' | b'.' | b'+' | b'-'))
        .unwrap_or(text.len());
    // `E` alone is the suffix exa; with digits behind it, it is a decimal exponent.
    let (number, suffix) = text.split_at(digits_end);
    if let Some(exponent) = suffix
        .strip_prefix(['e', 'E'])
        .and_then(|exponent| exponent.parse::<u32>().ok())
    {
        return scaled(number, NANO_UNITS)?.checked_mul(10i128.checked_pow(exponent)?);
    }
    scaled(number, factor_of(suffix)?)
}

fn scaled(number: &str, factor: i128) -> Option<i128> {
    let (sign, unsigned) = match number.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole = if whole.is_empty() {
        0
    } else {
        whole.parse::<i128>().ok()?
    };
    // From the last digit on, each rounded up: that is the whole fraction rounded up.
    let fraction = fraction.chars().rev().try_fold(0i128, |below, digit| {
        let digit_value = i128::from(digit.to_digit(10)?).checked_mul(factor)?;
        Some((digit_value.checked_add(below)? + 9) / 10)
    })?;
    Some(sign * whole.checked_mul(factor)?.checked_add(fraction)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quantities_are_compared_by_value() {
        for (left, right) in [
            (json!("500m"), json!("0.5")),
            (json!("1Gi"), json!("1073741824")),
            (json!(1), json!("1000m")),
            (json!("1e3"), json!("1k")),
            (json!("0.1Ki"), json!("102.4")),
            // What is smaller than nano is rounded away from zero.
            (json!("0.0000000001"), json!("1n")),
            (json!("1.00000000001n"), json!("2n")),
            (json!("-0.1n"), json!("-1n")),
            (json!("0.50n"), json!("1n")),
            (json!("1.000n"), json!("1n")),
        ] {
            assert_eq!(parse(&left), parse(&right), "{left} {right}");
            assert!(parse(&left).is_some());
        }
        for text in ["", "x", "1Q", "."] {
            assert_eq!(parse(&json!(text)), None, "{text}");
        }
    }
}
