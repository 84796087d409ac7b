//! Compares Kubernetes quantities by value: `500m` is `0.5`, `1Gi` is `1073741824`.
//! <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>

use serde_json::Value;

use crate::yaml::view::View;

/// The number of nano-units in one unit.
pub(crate) const NANO_UNITS: i128 = 1_000_000_000;

/// What Kubernetes makes of more with a binary suffix, in nano-units.
const BINARY_LIMIT: i128 = i64::MAX as i128 * NANO_UNITS;

/// What a suffix multiplies a number by.
enum Scale {
    /// A power of ten.
    Decimal(i32),
    /// A power of two.
    Binary(u32),
}

impl Scale {
    fn of(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "n" => Scale::Decimal(-9),
            "u" => Scale::Decimal(-6),
            "m" => Scale::Decimal(-3),
            "" => Scale::Decimal(0),
            "k" => Scale::Decimal(3),
            "M" => Scale::Decimal(6),
            "G" => Scale::Decimal(9),
            "T" => Scale::Decimal(12),
            "P" => Scale::Decimal(15),
            // `E` alone is the suffix exa; with digits behind it, it is a decimal exponent.
            "E" => Scale::Decimal(18),
            "Ki" => Scale::Binary(10),
            "Mi" => Scale::Binary(20),
            "Gi" => Scale::Binary(30),
            "Ti" => Scale::Binary(40),
            "Pi" => Scale::Binary(50),
            "Ei" => Scale::Binary(60),
            _ => {
                let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
                // Kubernetes reads 64 bits and keeps the lower 32.
                Scale::Decimal(exponent as i32)
            }
        })
    }
}

/// Whether two quantities have the same value, in whatever notation.
pub(crate) fn is_same(left: &Value, right: &Value) -> bool {
    let is_same_amount =
        |quantity: i128| quantity.abs() < i128::MAX && parse(right) == Some(quantity);
    left == right || parse(left).is_some_and(is_same_amount)
}

/// A quantity in nano-units; `None` if it is not a quantity. As in Kubernetes, what is smaller than a nano-unit is rounded
/// away from zero. What is too large for the type is its largest value, which is more than any machine has.
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
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, rest) = split_digits(unsigned);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    let scale = Scale::of(suffix)?;
    if whole.is_empty() && fraction.is_empty() {
        // Kubernetes misses the digits only where it computes with more than 64 bits.
        let is_zero = match scale {
            Scale::Decimal(power) => power >= -9,
            Scale::Binary(power) => power < 50,
        };
        return (is_zero && !text.is_empty()).then_some(0);
    }
    let amount = match scale {
        Scale::Decimal(power) => decimal(whole, fraction, power),
        Scale::Binary(power) => binary(whole, fraction, power).min(BINARY_LIMIT),
    };
    Some(if text.starts_with('-') {
        -amount
    } else {
        amount
    })
}

/// The digits that a text begins with, and what follows them.
fn split_digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

/// The digits of a number times a power of ten, in nano-units.
fn decimal(whole: &str, fraction: &str, power: i32) -> i128 {
    // How many digits count whole nano-units; the digits behind them are rounded up.
    let counted = whole.len() as i64 + i64::from(power) + 9;
    let taken = usize::try_from(counted).unwrap_or(0);
    let digits = whole.bytes().chain(fraction.bytes());
    let value = digits.clone().take(taken).fold(0, append_digit);
    let has_rest = digits.skip(taken).any(|digit| digit != b'0');
    let zeros = taken.saturating_sub(whole.len() + fraction.len());
    let factor = u32::try_from(zeros).ok();
    let factor = factor.and_then(|zeros| 10i128.checked_pow(zeros));
    let value = match value {
        0 => 0,
        _ => value.saturating_mul(factor.unwrap_or(i128::MAX)),
    };
    value.saturating_add(i128::from(has_rest))
}

fn append_digit(value: i128, digit: u8) -> i128 {
    value
        .saturating_mul(10)
        .saturating_add(i128::from(digit - b'0'))
}

/// The digits of a number times a power of two, in nano-units.
fn binary(whole: &str, fraction: &str, power: u32) -> i128 {
    let factor = NANO_UNITS << power;
    let whole = whole.bytes().fold(0, append_digit);
    // From the last digit on, each rounded up: that is the whole fraction rounded up.
    let fraction = fraction.bytes().rev().fold(0, |below, digit| {
        (i128::from(digit - b'0') * factor + below + 9) / 10
    });
    whole.saturating_mul(factor).saturating_add(fraction)
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
            // The exponent may be negative and have a sign.
            (json!("5e-1"), json!("500m")),
            (json!("1E+3"), json!("1k")),
            (json!(1e99), json!("1e99")),
            (json!("0.0000000001e3"), json!("100n")),
            (json!("1e-99"), json!("1n")),
            (json!("-1e-99"), json!("-1n")),
            (json!("0e99"), json!("0")),
            (json!(".5e1"), json!("5.")),
            // What has a binary suffix is capped.
            (json!("9Ei"), json!("9223372036854775807")),
            (json!("-9Ei"), json!("-9223372036854775807")),
        ] {
            assert_eq!(parse(&left), parse(&right), "{left} {right}");
            assert!(parse(&left).is_some());
        }
        for text in ["+", "-", ".", "Ki", "Ti", "n", "-.k", "e9", "E", "e-9"] {
            assert_eq!(parse(&json!(text)), Some(0), "{text}");
        }
        for text in [
            "", "x", "1Q", "1e", "1e+", "1e1k", "--1", "+-1", "1.2.3", "Pi", ".Ei", "e-10", "e",
        ] {
            assert_eq!(parse(&json!(text)), None, "{text}");
        }
    }

    #[test]
    fn quantities_beyond_the_type_are_more_than_others_and_not_the_same() {
        let (large, larger) = (json!("1e98"), json!("1e99"));
        assert!(parse(&larger) > parse(&json!("1e20")));
        assert!(parse(&json!("-1e99")) < parse(&json!("-1e20")));
        assert!(is_same(&larger, &larger) && !is_same(&large, &larger));
    }
}
