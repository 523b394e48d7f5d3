//! Warnings about a query with an empty answer, in a response header.
//!
//! `Vervet-Warnings` is a JSON list of ASCII texts. Only responses sent in one piece have it; every empty
//! answer is one.

use hyper::header::{HeaderName, HeaderValue};
use std::fmt::Write;
use std::sync::{Arc, OnceLock};
use vervet::Warning;

/// The name of the header.
pub(crate) const WARNINGS: HeaderName = HeaderName::from_static("vervet-warnings");

/// The warnings of a response: set by the thread that produces it, before its end.
pub(crate) type WarningsHeader = Arc<OnceLock<HeaderValue>>;

/// The header for these warnings; `None` without any.
pub(crate) fn header(warnings: &[Warning]) -> Option<HeaderValue> {
    if warnings.is_empty() {
        return None;
    }
    let texts: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let json = serde_json::to_string(&texts).ok()?;
    let mut ascii = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() && !character.is_ascii_control() {
            ascii.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                // Writing to a string cannot fail.
                let _ = write!(ascii, "\\u{unit:04x}");
            }
        }
    }
    HeaderValue::from_str(&ascii).ok()
}
