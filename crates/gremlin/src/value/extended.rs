//! Durations, and the opaque types of the wire formats.

use std::net::IpAddr;
use std::sync::Arc;

/// A duration: `seconds` plus `nanoseconds` (0 to 999,999,999).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Duration {
    /// Whole seconds, rounded down.
    pub seconds: i64,
    /// The remainder.
    pub nanoseconds: u32,
}

/// Types of the wire formats without operations in the language. Fields are those of the formats, not
/// validated.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Extended {
    /// `java.util.Date`: milliseconds since 1970.
    Date(i64),
    /// `java.sql.Timestamp`: milliseconds since 1970.
    Timestamp(i64),
    /// Seconds since 1970, nanoseconds.
    Instant(i64, i32),
    /// Year, month, day.
    LocalDate(i32, u8, u8),
    /// Year, month, day, nanoseconds of the day.
    LocalDateTime(i32, u8, u8, i64),
    /// Nanoseconds of the day.
    LocalTime(i64),
    /// Month, day.
    MonthDay(u8, u8),
    /// Year, month, day, nanoseconds of the day, offset in seconds, beyond the range of
    /// `time::OffsetDateTime`.
    OffsetDateTime(i32, u8, u8, i64, i32),
    /// Nanoseconds of the day, offset in seconds.
    OffsetTime(i64, i32),
    /// Years, months, days.
    Period(i32, i32, i32),
    /// A year.
    Year(i32),
    /// Year, month.
    YearMonth(i32, u8),
    /// Year, month, day, nanoseconds of the day, offset in seconds, optional name of the zone.
    ZonedDateTime(i32, u8, u8, i64, i32, Option<Arc<str>>),
    /// Seconds.
    ZoneOffset(i32),
    /// An address.
    InetAddress(IpAddr),
    /// Bytes.
    Bytes(Vec<u8>),
    /// The name of a Java class.
    Class(Arc<str>),
}

impl Extended {
    /// The readable type name for messages.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Date(_) => "Date",
            Self::Timestamp(_) => "Timestamp",
            Self::Instant(..) => "Instant",
            Self::LocalDate(..) => "LocalDate",
            Self::LocalDateTime(..) => "LocalDateTime",
            Self::LocalTime(_) => "LocalTime",
            Self::MonthDay(..) => "MonthDay",
            Self::OffsetDateTime(..) => "OffsetDateTime",
            Self::OffsetTime(..) => "OffsetTime",
            Self::Period(..) => "Period",
            Self::Year(_) => "Year",
            Self::YearMonth(..) => "YearMonth",
            Self::ZonedDateTime(..) => "ZonedDateTime",
            Self::ZoneOffset(_) => "ZoneOffset",
            Self::InetAddress(_) => "InetAddress",
            Self::Bytes(_) => "ByteBuffer",
            Self::Class(_) => "Class",
        }
    }
}
