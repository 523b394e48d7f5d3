//! Column types of Parquet files, and the conversion of their values to text.
//!
//! | in the file | type |
//! | --- | --- |
//! | `BOOLEAN` | boolean |
//! | integers of 8 to 32 bits, unsigned ones of 8 and 16 | int |
//! | `INT64`, unsigned of 32 bits | long |
//! | unsigned of 64 bits | biginteger |
//! | `FLOAT16`, `FLOAT`; `DOUBLE` | float; double |
//! | `DECIMAL` of any width up to [`DECIMAL_BYTES_MAX`] | decimal |
//! | `STRING`, `ENUM`, `JSON` | string |
//! | `UUID` | uuid |
//! | `DATE`; `TIME`; `TIMESTAMP`, `INT96` | date; time; datetime, with `Z` if the column is declared as UTC |
//! | a list of one of these | a list |
//!
//! All other types are rejected with their name, unless the column has no role.
//!
//! # Invariants
//! Texts are in the canonical form of their type (see `value`), and conversion is exact.

use crate::value::{Type, float_lexical};
use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::Int96;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type as Node};
use std::fmt::Write;
use vervet_model::Inline;

/// Maximum width of a Parquet decimal, in bytes: 153 digits.
const DECIMAL_BYTES_MAX: i32 = 64;
const NANOSECONDS_OF_DAY: i64 = 86_400_000_000_000;
/// Days from 1970 to 0001-01-01, and to 10000-01-01.
const DAYS: std::ops::Range<i64> = -719_162..2_932_897;
/// The Julian day number of 1970-01-01.
const JULIAN_DAY: i64 = 2_440_588;

/// A column of the file.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Field {
    pub(super) name: String,
    /// Its index among the leaf columns of the file and its content; or the name of an unsupported type.
    pub(super) content: Result<ColumnContent, String>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct ColumnContent {
    pub(super) leaf: usize,
    pub(super) is_list: bool,
    pub(super) kind: ValueKind,
}

/// The type of values, which selects their text form.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum ValueKind {
    Boolean,
    Int,
    Long,
    Unsigned32,
    Unsigned64,
    Float,
    Float16,
    Double,
    Decimal {
        scale: u32,
    },
    Text,
    /// Bytes without a declared text type.
    Bytes,
    Uuid,
    Date,
    Time(TimeEncoding),
    DateTime(TimeEncoding),
    Int96,
}

/// Time unit and zone.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct TimeEncoding {
    /// Length of the unit in nanoseconds.
    unit: i64,
    is_utc: bool,
}

impl ValueKind {
    /// The property type of the values.
    pub(super) fn to_type(self) -> Type {
        match self {
            Self::Boolean => Type::Boolean,
            Self::Int => Type::Int,
            Self::Long | Self::Unsigned32 => Type::Long,
            Self::Unsigned64 => Type::BigInteger,
            Self::Float | Self::Float16 => Type::Float,
            Self::Double => Type::Double,
            Self::Decimal { .. } => Type::Decimal,
            Self::Text | Self::Bytes => Type::String,
            Self::Uuid => Type::Uuid,
            Self::Date => Type::Date,
            Self::Time(_) => Type::Time,
            Self::DateTime(_) | Self::Int96 => Type::DateTime,
        }
    }
}

/// The fields of a file, in file order.
pub(super) fn fields(schema: &SchemaDescriptor) -> Vec<Field> {
    let mut leaf = 0;
    let nodes = schema.root_schema().get_fields();
    nodes
        .iter()
        .map(|node| {
            let first = leaf;
            leaf += leaves(node);
            let content = match element(node) {
                Ok(is_list) if leaf == first + 1 && first < schema.num_columns() => {
                    let column = schema.column(first);
                    kind(&column).map(|kind| ColumnContent { leaf: first, is_list, kind })
                }
                Ok(_) => Err("group".to_owned()),
                Err(what) => Err(what.to_owned()),
            };
            Field { name: node.name().to_owned(), content }
        })
        .collect()
}

/// Number of leaf columns below a node. The depth is limited (see `guard`).
fn leaves(node: &Node) -> usize {
    if node.is_primitive() { 1 } else { node.get_fields().iter().map(|node| leaves(node)).sum() }
}

/// Whether a field with one leaf column is a list; an error: the name of a structure that is neither a value
/// nor a list of values.
fn element(node: &Node) -> Result<bool, &'static str> {
    let info = node.get_basic_info();
    let is_repeated = |node: &Node| {
        node.get_basic_info().has_repetition() && node.get_basic_info().repetition() == Repetition::REPEATED
    };
    if node.is_primitive() {
        return Ok(is_repeated(node));
    }
    let is_list = matches!(info.logical_type_ref(), Some(LogicalType::List))
        || info.converted_type() == ConvertedType::LIST;
    let is_map = matches!(info.logical_type_ref(), Some(LogicalType::Map))
        || matches!(info.converted_type(), ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE);
    let [middle] = node.get_fields() else { return Err(if is_map { "map" } else { "struct" }) };
    if is_map {
        return Err("map");
    }
    if !is_list || is_repeated(node) || !is_repeated(middle) {
        return Err("struct");
    }
    if middle.is_primitive() {
        return Ok(true);
    }
    match middle.get_fields() {
        [value] if value.is_primitive() && !is_repeated(value) => Ok(true),
        [_] => Err("list of lists or of structs"),
        _ => Err("list of structs"),
    }
}

/// The type of the values of a column; an error: the name of an unsupported type.
fn kind(column: &ColumnDescriptor) -> Result<ValueKind, String> {
    let physical = column.physical_type();
    let length = if physical == Physical::FIXED_LEN_BYTE_ARRAY { column.type_length() } else { 0 };
    let decimal = |scale: i32| match physical {
        Physical::INT32 | Physical::INT64 | Physical::BYTE_ARRAY => u32::try_from(scale).ok(),
        Physical::FIXED_LEN_BYTE_ARRAY if (1..=DECIMAL_BYTES_MAX).contains(&length) => {
            u32::try_from(scale).ok()
        }
        _ => None,
    };
    let clock = |unit: &TimeUnit, is_utc| TimeEncoding {
        unit: match unit {
            TimeUnit::MILLIS => 1_000_000,
            TimeUnit::MICROS => 1_000,
            TimeUnit::NANOS => 1,
        },
        is_utc,
    };
    let known = match (column.logical_type_ref(), physical) {
        (Some(LogicalType::String | LogicalType::Enum | LogicalType::Json), Physical::BYTE_ARRAY) => {
            Some(ValueKind::Text)
        }
        (Some(LogicalType::Decimal(decimals)), _) => {
            decimal(decimals.scale).map(|scale| ValueKind::Decimal { scale })
        }
        (Some(LogicalType::Date), Physical::INT32) => Some(ValueKind::Date),
        (Some(LogicalType::Time(time)), Physical::INT32 | Physical::INT64) => {
            Some(ValueKind::Time(clock(&time.unit, time.is_adjusted_to_u_t_c)))
        }
        (Some(LogicalType::Timestamp(time)), Physical::INT64) => {
            Some(ValueKind::DateTime(clock(&time.unit, time.is_adjusted_to_u_t_c)))
        }
        (Some(LogicalType::Integer(integer)), Physical::INT32) => {
            Some(if integer.is_signed || integer.bit_width < 32 {
                ValueKind::Int
            } else {
                ValueKind::Unsigned32
            })
        }
        (Some(LogicalType::Integer(integer)), Physical::INT64) => {
            Some(if integer.is_signed { ValueKind::Long } else { ValueKind::Unsigned64 })
        }
        (Some(LogicalType::Uuid), Physical::FIXED_LEN_BYTE_ARRAY) if length == 16 => Some(ValueKind::Uuid),
        (Some(LogicalType::Float16), Physical::FIXED_LEN_BYTE_ARRAY) if length == 2 => {
            Some(ValueKind::Float16)
        }
        // A column with only nulls.
        (Some(LogicalType::Unknown), Physical::BYTE_ARRAY) => Some(ValueKind::Text),
        (Some(LogicalType::Unknown) | None, _) => match (column.converted_type(), physical) {
            (ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON, Physical::BYTE_ARRAY) => {
                Some(ValueKind::Text)
            }
            (ConvertedType::DECIMAL, _) => {
                decimal(column.type_scale()).map(|scale| ValueKind::Decimal { scale })
            }
            (ConvertedType::DATE, Physical::INT32) => Some(ValueKind::Date),
            (ConvertedType::TIME_MILLIS, Physical::INT32) => {
                Some(ValueKind::Time(clock(&TimeUnit::MILLIS, true)))
            }
            (ConvertedType::TIME_MICROS, Physical::INT64) => {
                Some(ValueKind::Time(clock(&TimeUnit::MICROS, true)))
            }
            (ConvertedType::TIMESTAMP_MILLIS, Physical::INT64) => {
                Some(ValueKind::DateTime(clock(&TimeUnit::MILLIS, true)))
            }
            (ConvertedType::TIMESTAMP_MICROS, Physical::INT64) => {
                Some(ValueKind::DateTime(clock(&TimeUnit::MICROS, true)))
            }
            (ConvertedType::UINT_32, Physical::INT32) => Some(ValueKind::Unsigned32),
            (ConvertedType::UINT_64, Physical::INT64) => Some(ValueKind::Unsigned64),
            (
                ConvertedType::NONE
                | ConvertedType::INT_8
                | ConvertedType::INT_16
                | ConvertedType::INT_32
                | ConvertedType::UINT_8
                | ConvertedType::UINT_16,
                Physical::INT32,
            ) => Some(ValueKind::Int),
            (ConvertedType::NONE | ConvertedType::INT_64, Physical::INT64) => Some(ValueKind::Long),
            (ConvertedType::NONE, Physical::BOOLEAN) => Some(ValueKind::Boolean),
            (ConvertedType::NONE, Physical::INT96) => Some(ValueKind::Int96),
            (ConvertedType::NONE, Physical::FLOAT) => Some(ValueKind::Float),
            (ConvertedType::NONE, Physical::DOUBLE) => Some(ValueKind::Double),
            (ConvertedType::NONE, Physical::BYTE_ARRAY) => Some(ValueKind::Bytes),
            _ => None,
        },
        _ => None,
    };
    known.ok_or_else(|| match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Decimal(_)), _) => format!("decimal of {length} bytes"),
        (Some(logical), _) => format!("{logical:?}").to_ascii_lowercase(),
        (None, ConvertedType::NONE) => format!("binary of {length} bytes"),
        (None, converted) => converted.to_string().to_ascii_lowercase(),
    })
}

/// The reason why a value has no text.
type FormatError = &'static str;
const RANGE: FormatError = "the date is not between the years 1 and 9999";
const TIME_OF_DAY: FormatError = "the time is not within a day";

/// Appends the text of an `INT32`.
pub(super) fn write_i32(value: i32, kind: ValueKind, out: &mut String) -> Result<(), FormatError> {
    match kind {
        ValueKind::Unsigned32 => put(out, format_args!("{}", value.cast_unsigned())),
        ValueKind::Decimal { .. } | ValueKind::Date | ValueKind::Time(_) => {
            write_i64(i64::from(value), kind, out)?
        }
        _ => put(out, format_args!("{value}")),
    }
    Ok(())
}

/// Appends the text of an `INT64`.
pub(super) fn write_i64(value: i64, kind: ValueKind, out: &mut String) -> Result<(), FormatError> {
    match kind {
        ValueKind::Unsigned64 => put(out, format_args!("{}", value.cast_unsigned())),
        ValueKind::Decimal { scale } => {
            write_decimal(value < 0, &value.unsigned_abs().to_string(), scale, out);
        }
        ValueKind::Date => write_date(value, out)?,
        ValueKind::Time(clock) => {
            let time = value.checked_mul(clock.unit).ok_or(TIME_OF_DAY)?;
            write_time(time, clock.is_utc, out)?;
        }
        ValueKind::DateTime(clock) => {
            let in_day = NANOSECONDS_OF_DAY / clock.unit;
            let (days, rest) = (value.div_euclid(in_day), value.rem_euclid(in_day));
            write_date_time(days, rest * clock.unit, clock.is_utc, out)?;
        }
        _ => put(out, format_args!("{value}")),
    }
    Ok(())
}

/// Appends the text of an `INT96`: days and nanoseconds, with an undeclared zone.
pub(super) fn write_int96(value: &Int96, out: &mut String) -> Result<(), FormatError> {
    let &[low, high, day] = value.data() else { return Err(RANGE) };
    let nanoseconds = (u64::from(high) << 32 | u64::from(low)).cast_signed();
    let days = i64::from(day) - JULIAN_DAY;
    write_date_time(
        days + nanoseconds.div_euclid(NANOSECONDS_OF_DAY),
        nanoseconds.rem_euclid(NANOSECONDS_OF_DAY),
        false,
        out,
    )
}

pub(super) fn write_boolean(value: bool, out: &mut String) {
    out.push_str(if value { "true" } else { "false" });
}

pub(super) fn write_f32(value: f32, out: &mut String) {
    out.push_str(&float_lexical(value));
}

pub(super) fn write_f64(value: f64, out: &mut String) {
    Inline::Double(value).write_lexical(out);
}

/// Appends the text of a binary value that is not a string.
pub(super) fn write_bytes(bytes: &[u8], kind: ValueKind, out: &mut String) -> Result<(), FormatError> {
    match (kind, bytes) {
        (ValueKind::Uuid, bytes) if bytes.len() == 16 => {
            for (at, byte) in bytes.iter().enumerate() {
                let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
                put(out, format_args!("{dash}{byte:02x}"));
            }
            Ok(())
        }
        (ValueKind::Float16, &[low, high]) => {
            write_f32(half(u16::from_le_bytes([low, high])), out);
            Ok(())
        }
        (ValueKind::Decimal { scale }, bytes) => {
            let limit = usize::try_from(DECIMAL_BYTES_MAX).unwrap_or(0);
            // Leading sign bytes are redundant.
            let sign = if bytes.first().is_some_and(|first| *first >= 0x80) { 0xFF } else { 0 };
            let start = bytes.iter().position(|byte| *byte != sign).unwrap_or(bytes.len());
            if bytes.is_empty() || bytes.len() - start > limit {
                return Err("the decimal is empty or has more than 64 bytes");
            }
            write_decimal(sign != 0, &digits(&bytes[start..], sign != 0), scale, out);
            Ok(())
        }
        _ => Err("the length of the value differs from its type"),
    }
}

/// The decimal digits of the magnitude of a big-endian two's complement number without its leading sign
/// bytes.
fn digits(bytes: &[u8], is_negative: bool) -> String {
    // -n is !n + 1.
    let mut limbs: Vec<u32> = bytes
        .rchunks(4)
        .map(|chunk| {
            let mut limb = if is_negative { [0xFF; 4] } else { [0; 4] };
            limb[4 - chunk.len()..].copy_from_slice(chunk);
            let limb = u32::from_be_bytes(limb);
            if is_negative { !limb } else { limb }
        })
        .collect();
    if is_negative {
        let mut carry = true;
        for limb in &mut limbs {
            (*limb, carry) = limb.overflowing_add(u32::from(carry));
        }
        limbs.push(u32::from(carry));
    }
    const UNIT: u64 = 1_000_000_000;
    let mut parts = Vec::new();
    while limbs.iter().any(|limb| *limb != 0) {
        let mut rest = 0;
        for limb in limbs.iter_mut().rev() {
            let number = rest << 32 | u64::from(*limb);
            *limb = u32::try_from(number / UNIT).unwrap_or(u32::MAX);
            rest = number % UNIT;
        }
        parts.push(rest);
    }
    let mut text = String::new();
    for (at, part) in parts.iter().rev().enumerate() {
        if at == 0 {
            put(&mut text, format_args!("{part}"));
        } else {
            put(&mut text, format_args!("{part:09}"));
        }
    }
    if text.is_empty() { "0".to_owned() } else { text }
}

/// The canonical form: no trailing zeros, and no point without following digits.
fn write_decimal(is_negative: bool, digits: &str, scale: u32, out: &mut String) {
    let scale = usize::try_from(scale).unwrap_or(usize::MAX);
    let zeros = digits.len() - digits.trim_end_matches('0').len();
    let zeros = zeros.min(scale);
    let (digits, scale) = (&digits[..digits.len() - zeros], scale - zeros);
    if digits.is_empty() || digits == "0" {
        out.push('0');
        return;
    }
    if is_negative {
        out.push('-');
    }
    let whole = digits.len().saturating_sub(scale);
    out.push_str(if whole == 0 { "0" } else { &digits[..whole] });
    if scale > 0 {
        out.push('.');
        out.extend(std::iter::repeat_n('0', scale - (digits.len() - whole)));
        out.push_str(&digits[whole..]);
    }
}

fn write_date(days: i64, out: &mut String) -> Result<(), FormatError> {
    if !DAYS.contains(&days) {
        return Err(RANGE);
    }
    Inline::Date(days).write_lexical(out);
    Ok(())
}

fn write_time(nanoseconds: i64, is_utc: bool, out: &mut String) -> Result<(), FormatError> {
    if !(0..NANOSECONDS_OF_DAY).contains(&nanoseconds) {
        return Err(TIME_OF_DAY);
    }
    let (seconds, mut fraction) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    put(out, format_args!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60));
    if fraction != 0 {
        let mut width = 9;
        while fraction % 10 == 0 {
            (fraction, width) = (fraction / 10, width - 1);
        }
        put(out, format_args!(".{fraction:0width$}"));
    }
    if is_utc {
        out.push('Z');
    }
    Ok(())
}

fn write_date_time(days: i64, nanoseconds: i64, is_utc: bool, out: &mut String) -> Result<(), FormatError> {
    write_date(days, out)?;
    out.push('T');
    write_time(nanoseconds, is_utc, out)
}

/// Converts a 16-bit float, which is exact in 32 bits.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 0x1F);
    let fraction = f32::from(bits & 0x3FF);
    sign * match exponent {
        0 => fraction * 2_f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + fraction) * 2_f32.powi(exponent - 25),
    }
}

fn put(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = out.write_fmt(arguments);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(bytes: &[u8], scale: u32) -> String {
        let mut text = String::new();
        write_bytes(bytes, ValueKind::Decimal { scale }, &mut text).expect("a number");
        text
    }

    #[test]
    fn decimals_keep_their_digits() {
        for value in [0, 1, -1, 127, 128, -128, -129, 255, 256, 10_000, -65_536, i64::MAX, i64::MIN] {
            for width in [8, 9, 12, 16, 33] {
                let mut bytes = vec![if value < 0 { 0xFF } else { 0 }; width];
                bytes[width - 8..].copy_from_slice(&value.to_be_bytes());
                assert_eq!(decimal(&bytes, 0), value.to_string(), "{width}");
            }
        }
        let wide = (i128::MAX - 7).to_be_bytes();
        assert_eq!(decimal(&wide, 0), (i128::MAX - 7).to_string());
        assert_eq!(decimal(&i128::MIN.to_be_bytes(), 0), i128::MIN.to_string());
        // 2^255 - 1.
        let mut widest = [0xFF; 32];
        widest[0] = 0x7F;
        assert_eq!(
            decimal(&widest, 76),
            "5.7896044618658097711785492504343953926634992332820282019728792003956564819967"
        );
        for (digits, scale, expected) in [
            ("1250", 2, "12.5"),
            ("1200", 2, "12"),
            ("5", 3, "0.005"),
            ("500", 3, "0.5"),
            ("0", 5, "0"),
            ("100", 0, "100"),
        ] {
            let mut text = String::new();
            write_decimal(false, digits, scale, &mut text);
            assert_eq!(text, expected);
        }
        assert!(write_bytes(&[], ValueKind::Decimal { scale: 0 }, &mut String::new()).is_err());
        assert!(write_bytes(&[1; 65], ValueKind::Decimal { scale: 0 }, &mut String::new()).is_err());
    }

    #[test]
    fn times_keep_their_nanoseconds() {
        let check = |value, unit, is_utc, expected: &str| {
            let mut text = String::new();
            let written = write_i64(value, ValueKind::DateTime(TimeEncoding { unit, is_utc }), &mut text);
            assert_eq!(written.map(|()| text.as_str()), Ok(expected));
        };
        check(0, 1, true, "1970-01-01T00:00:00Z");
        check(-1, 1, false, "1969-12-31T23:59:59.999999999");
        check(1_582_934_400_120, 1_000_000, true, "2020-02-29T00:00:00.12Z");
        check(1_582_934_400_000_001, 1_000, false, "2020-02-29T00:00:00.000001");
        check(-62_135_596_800_000, 1_000_000, false, "0001-01-01T00:00:00");
        check(253_402_300_799_999, 1_000_000, false, "9999-12-31T23:59:59.999");
        for (value, unit) in [(253_402_300_800_000, 1_000_000), (i64::MAX, 1_000), (i64::MIN, 1_000_000)] {
            let clock = TimeEncoding { unit, is_utc: true };
            assert_eq!(write_i64(value, ValueKind::DateTime(clock), &mut String::new()), Err(RANGE));
        }
        for value in [-1, NANOSECONDS_OF_DAY, i64::MAX] {
            assert_eq!(write_time(value, true, &mut String::new()), Err(TIME_OF_DAY));
        }
        // 2000-01-01T12:00:00.5, and the same with a day in the nanoseconds.
        for (day, nanoseconds) in [(2_451_545_u32, 43_200_500_000_000_i64), (2_451_544, 129_600_500_000_000)]
        {
            let mut value = Int96::new();
            let nanoseconds = nanoseconds.cast_unsigned();
            let low = u32::try_from(nanoseconds & 0xFFFF_FFFF).expect("32 bits");
            let high = u32::try_from(nanoseconds >> 32).expect("32 bits");
            value.set_data(low, high, day);
            let mut text = String::new();
            assert_eq!(write_int96(&value, &mut text), Ok(()));
            assert_eq!(text, "2000-01-01T12:00:00.5");
        }
    }

    #[test]
    fn half_precision_floats_are_read() {
        for (bits, expected) in [
            (0x3C00, 1.0),
            (0xC000, -2.0),
            (0x7BFF, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x0400, 6.103_515_6e-5),
            (0x7C00, f32::INFINITY),
            (0x3555, 0.333_251_95),
        ] {
            assert_eq!(half(bits), expected, "{bits:x}");
        }
        assert!(half(0x7E00).is_nan());
    }
}
