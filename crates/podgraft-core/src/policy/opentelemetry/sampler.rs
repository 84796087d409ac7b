//! Checks the argument of a sampler as the operator's validating webhook does, with numbers as Go reads them.

/// Checks the argument of a sampler. The schema has the samplers.
///
/// # Errors
/// The reason for which the webhook refuses the resource.
pub(super) fn check_argument(sampler: &str, argument: &str) -> Result<(), String> {
    match sampler {
        _ if argument.is_empty() => Ok(()),
        "traceidratio" | "parentbased_traceidratio" => check_share("sampler.argument", argument),
        "jaeger_remote" => argument.split(',').try_for_each(check_jaeger),
        _ => Ok(()),
    }
}

fn check_share(name: &str, text: &str) -> Result<(), String> {
    match parse_float(text) {
        // The webhook asks whether the number is too small or too large, and NaN is neither.
        Some(share) if share.is_nan() || (0.0..=1.0).contains(&share) => Ok(()),
        Some(_) | None => Err(format!(
            "`{name}` must be a number from 0 to 1, not `{text}`"
        )),
    }
}

fn check_jaeger(part: &str) -> Result<(), String> {
    let (key, value) = part
        .split_once('=')
        .filter(|(_, value)| !value.contains('='))
        .ok_or_else(|| format!("`sampler.argument` must have the form key=value, not `{part}`"))?;
    match key {
        "endpoint" if value.is_empty() => {
            Err("`endpoint` of `sampler.argument` is empty".to_owned())
        }
        "pollingIntervalMs" if value.parse::<i64>().is_err() => Err(format!(
            "`pollingIntervalMs` of `sampler.argument` is not a number: `{value}`"
        )),
        "initialSamplingRate" => check_share("initialSamplingRate", value),
        _ => Ok(()),
    }
}

/// A number as Go's `strconv.ParseFloat` reads it: it may be hexadecimal and have underscores between digits, and NaN
/// has no sign.
fn parse_float(text: &str) -> Option<f64> {
    let text = without_underscores(text)?;
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(&text);
    if let Some(digits) = unsigned.strip_prefix("0x").or(unsigned.strip_prefix("0X")) {
        let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
        return Some(sign * parse_hexadecimal(digits)?);
    }
    let number: f64 = text.parse().ok()?;
    (!number.is_nan() || unsigned == text).then_some(number)
}

fn without_underscores(text: &str) -> Option<String> {
    let is_hexadecimal = text.contains(['x', 'X']);
    let is_digit =
        |letter: char| letter.is_ascii_digit() || is_hexadecimal && letter.is_ascii_hexdigit();
    let parts: Vec<&str> = text.split('_').collect();
    // An underscore may also stand behind the `0x`.
    let is_between_digits = parts.windows(2).all(|pair| {
        pair[0].ends_with(|letter| is_digit(letter) || matches!(letter, 'x' | 'X'))
            && pair[1].starts_with(is_digit)
    });
    is_between_digits.then(|| parts.concat())
}

/// The number that stands behind `0x`, such as `1.8p-2`.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: Option<Vec<u32>> = whole
        .chars()
        .chain(fraction.chars())
        .map(|digit| digit.to_digit(16))
        .collect();
    let digits = digits.filter(|digits| !digits.is_empty())?;
    let amount = digits
        .iter()
        .fold(0.0, |amount, &digit| amount * 16.0 + f64::from(digit));
    let power = exponent.parse::<i128>().ok()? - 4 * fraction.len() as i128;
    let limit = i128::from(i32::MAX);
    match power.clamp(-limit, limit) {
        _ if amount == 0.0 => Some(0.0),
        power => Some(amount * f64::from(power as i32).exp2()),
    }
}
