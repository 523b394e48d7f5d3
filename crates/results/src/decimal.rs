//! Decimals of Arrow: an integer and a number of digits behind the point.

/// Digits of a decimal of 128 bits.
pub const DIGITS_MAX: u8 = 38;

/// The integer and the number of digits behind the point of `-?[0-9]*(\.[0-9]*)?`; `None`: more than 38
/// digits, or another text.
#[must_use]
pub fn parsed(text: &str) -> Option<(i128, u8)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    let scale = u8::try_from(fraction.len()).ok().filter(|scale| *scale <= DIGITS_MAX)?;
    let (is_negative, whole) = match whole.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, whole.strip_prefix('+').unwrap_or(whole)),
    };
    if whole.is_empty() && text.len() < 2 {
        return None;
    }
    let mut value: i128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        let digit = digit.is_ascii_digit().then(|| i128::from(digit - b'0'))?;
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    (digits(value) <= DIGITS_MAX).then_some((if is_negative { -value } else { value }, scale))
}

/// The number of decimal digits; 0 has none.
#[must_use]
pub fn digits(value: i128) -> u8 {
    let value = value.unsigned_abs();
    value.checked_ilog10().map_or(0, |log| u8::try_from(log).unwrap_or(u8::MAX - 1) + 1)
}

/// The integer with more digits behind the point.
#[must_use]
pub fn rescaled(value: i128, from: u8, to: u8) -> Option<i128> {
    value.checked_mul(10_i128.checked_pow(u32::from(to.checked_sub(from)?))?)
}

/// The lexical form.
#[must_use]
pub fn text(value: i128, scale: i8) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let mut digits = value.unsigned_abs().to_string();
    let Ok(scale) = usize::try_from(scale) else {
        digits.extend(std::iter::repeat_n('0', usize::from(scale.unsigned_abs())));
        return format!("{sign}{digits}");
    };
    if digits.len() <= scale {
        digits = format!("{}{digits}", "0".repeat(scale + 1 - digits.len()));
    }
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    }
}
