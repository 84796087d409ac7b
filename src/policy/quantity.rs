//! Compares Kubernetes quantities by value: `500m` is `0.5`, `1Gi` is `1073741824`.
//! <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>

use serde_json::Value;

use crate::yaml::view::View;

/// Suffixes and their factors in nano-units, the smallest unit of a quantity.
const SUFFIXES: &[(&str, i128)] = &[
    ("n", 1),
    ("u", 1_000),
    ("m", 1_000_000),
    ("", 1_000_000_000),
    ("k", 1_000_000_000_000),
    ("M", 1_000_000_000_000_000),
    ("G", 1_000_000_000_000_000_000),
    ("T", 1_000_000_000_000_000_000_000),
    ("P", 1_000_000_000_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000_000_000_000),
    ("Ki", 1_000_000_000 << 10),
    ("Mi", 1_000_000_000 << 20),
    ("Gi", 1_000_000_000 << 30),
    ("Ti", 1_000_000_000 << 40),
    ("Pi", 1_000_000_000 << 50),
    ("Ei", 1_000_000_000 << 60),
];

/// The number of nano-units in one unit.
pub(crate) const NANO_UNITS: i128 = 1_000_000_000;

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
        .find(|char: char| !matches!(char, '0'..='9' | '.' | '+' | '-'))
        .unwrap_or(text.len());
    // `E` alone is the suffix exa; with digits behind it, it is a decimal exponent.
    let (number, suffix) = text.split_at(digits_end);
    if let Some(exponent) = suffix
        .strip_prefix(['e', 'E'])
        .and_then(|exponent| exponent.parse::<u32>().ok())
    {
        return scaled(number, 1_000_000_000)?.checked_mul(10i128.checked_pow(exponent)?);
    }
    let factor = SUFFIXES.iter().find(|(known, _)| *known == suffix)?.1;
    scaled(number, factor)
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
        let here = i128::from(digit.to_digit(10)?).checked_mul(factor)?;
        Some((here.checked_add(below)? + 9) / 10)
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
