//! Differences from TinkerGraph that stay, each with its reason.

use super::traversal::{Unit, text};

/// What is known of a traversal that TinkerGraph answers otherwise.
pub(super) fn reason(units: &[Unit]) -> Option<&'static str> {
    let text = text(units);
    KNOWN.iter().find(|(_, is_it)| is_it(&text)).map(|(what, _)| *what)
}

/// What is different and why, and which texts it shows in.
const KNOWN: [(&str, fn(&str) -> bool); 0] = [];
