//! Text forms of the opaque types of the wire formats.

use crate::Extended;
use crate::semantics::date::{day, offset, time_of_day};
use std::fmt::Write;
use vervet_model::civil_from_days;

pub(super) fn text(value: &Extended) -> String {
    match value {
        Extended::Date(milliseconds) | Extended::Timestamp(milliseconds) => {
            instant(milliseconds.div_euclid(1000), milliseconds.rem_euclid(1000) * 1_000_000)
        }
        Extended::Instant(seconds, nanoseconds) => instant(*seconds, (*nanoseconds).into()),
        Extended::LocalDate(year, month, date) => day((*year).into(), (*month).into(), (*date).into()),
        Extended::LocalDateTime(year, month, date, time) => {
            format!("{}T{}", day((*year).into(), (*month).into(), (*date).into()), time_of_day(*time))
        }
        Extended::LocalTime(time) => time_of_day(*time),
        Extended::MonthDay(month, day) => format!("--{month:02}-{day:02}"),
        Extended::OffsetDateTime(year, month, date, time, seconds) => {
            let day = day((*year).into(), (*month).into(), (*date).into());
            format!("{day}T{}{}", time_of_day(*time), offset((*seconds).into()))
        }
        Extended::OffsetTime(time, seconds) => format!("{}{}", time_of_day(*time), offset((*seconds).into())),
        Extended::Period(years, months, days) => period(*years, *months, *days),
        Extended::Year(year) => year.to_string(),
        Extended::YearMonth(year, month) => {
            let day = day((*year).into(), (*month).into(), 1);
            day.strip_suffix("-01").unwrap_or(&day).to_owned()
        }
        Extended::ZonedDateTime(year, month, date, time, seconds, zone) => {
            let day = day((*year).into(), (*month).into(), (*date).into());
            let mut out = format!("{day}T{}{}", time_of_day(*time), offset((*seconds).into()));
            if let Some(zone) = zone {
                let _ = write!(out, "[{zone}]");
            }
            out
        }
        Extended::ZoneOffset(seconds) => offset((*seconds).into()),
        Extended::InetAddress(address) => format!("/{address}"),
        Extended::Bytes(bytes) => {
            format!("java.nio.HeapByteBuffer[pos=0 lim={} cap={}]", bytes.len(), bytes.len())
        }
        Extended::Class(name) => format!("class {name}"),
    }
}

/// `nanoseconds`: of the second, possibly out of range.
fn instant(seconds: i64, nanoseconds: i64) -> String {
    let (year, month, date) = civil_from_days(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    let mut time = time_of_day(of_day * 1_000_000_000 + nanoseconds);
    if time.len() == 5 {
        time.push_str(":00");
    }
    format!("{}T{time}Z", day(year, month, date))
}

fn period(years: i32, months: i32, days: i32) -> String {
    let mut out = String::from("P");
    for (count, unit) in [(years, 'Y'), (months, 'M'), (days, 'D')] {
        if count != 0 {
            let _ = write!(out, "{count}{unit}");
        }
    }
    if out.len() == 1 { "P0D".to_owned() } else { out }
}
