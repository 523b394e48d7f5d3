//! An error as the body of a frame: kind, position, hint, message.
//!
//! Byte 0: kind. Byte 1: flags (1: line, 2: column, 4: hint). Then, as the flags say, line and column (8
//! bytes each), the hint (4 bytes length, text); then the message up to the end of the body.

use crate::frame::{CONTROL_BYTES_MAX, prefix};
use vervet_model::{Error, ErrorKind, Position};

const HAS_LINE: u8 = 1;
const HAS_COLUMN: u8 = 2;
const HAS_HINT: u8 = 4;

/// Longer texts are cut, at a character.
const TEXT_BYTES_MAX: usize = CONTROL_BYTES_MAX / 4;

fn kind_byte(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Query => 1,
        ErrorKind::Input => 2,
        ErrorKind::Corrupt => 3,
        ErrorKind::Io => 4,
        ErrorKind::Cancelled => 5,
        ErrorKind::Deadline => 6,
        ErrorKind::MemoryLimit => 7,
        ErrorKind::Unsupported => 8,
        ErrorKind::Conflict => 9,
        ErrorKind::Constraint => 10,
        ErrorKind::Unavailable => 11,
        _ => 12,
    }
}

fn kind_of(byte: u8) -> Option<ErrorKind> {
    Some(match byte {
        1 => ErrorKind::Query,
        2 => ErrorKind::Input,
        3 => ErrorKind::Corrupt,
        4 => ErrorKind::Io,
        5 => ErrorKind::Cancelled,
        6 => ErrorKind::Deadline,
        7 => ErrorKind::MemoryLimit,
        8 => ErrorKind::Unsupported,
        9 => ErrorKind::Conflict,
        10 => ErrorKind::Constraint,
        11 => ErrorKind::Unavailable,
        12 => ErrorKind::Internal,
        _ => return None,
    })
}

fn cut(text: &str) -> &str {
    prefix(text, TEXT_BYTES_MAX)
}

pub(crate) fn encode(error: &Error) -> Vec<u8> {
    let mut bytes = vec![kind_byte(error.kind()), 0];
    if let Some(position) = error.position() {
        bytes[1] |= HAS_LINE;
        bytes.extend(position.line.to_le_bytes());
        if let Some(column) = position.column {
            bytes[1] |= HAS_COLUMN;
            bytes.extend(column.to_le_bytes());
        }
    }
    if let Some(hint) = error.hint().map(cut) {
        bytes[1] |= HAS_HINT;
        bytes.extend(u32::try_from(hint.len()).expect("texts are cut").to_le_bytes());
        bytes.extend(hint.as_bytes());
    }
    bytes.extend(cut(error.message()).as_bytes());
    bytes
}

/// The error, or `None` for bytes that are none.
pub(crate) fn decode(bytes: &[u8]) -> Option<Error> {
    let (&[kind, flags], mut rest) = bytes.split_first_chunk()?;
    let kind = kind_of(kind)?;
    let mut number = |flag: u8| -> Option<Option<u64>> {
        if flags & flag == 0 {
            return Some(None);
        }
        let (number, after) = rest.split_first_chunk()?;
        rest = after;
        Some(Some(u64::from_le_bytes(*number)))
    };
    let (line, column) = (number(HAS_LINE)?, number(HAS_COLUMN)?);
    let mut hint = None;
    if flags & HAS_HINT != 0 {
        let (length, after) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (text, after) = after.split_at_checked(length)?;
        hint = Some(String::from_utf8_lossy(text).into_owned());
        rest = after;
    }
    let mut error = Error::new(kind, String::from_utf8_lossy(rest));
    if let Some(hint) = hint {
        error = error.with_hint(hint);
    }
    if let Some(line) = line {
        error = error.at(Position { line, column });
    }
    Some(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_all_that_they_say() {
        for kind in (1..=12).map(|byte| kind_of(byte).expect("a kind")) {
            let plain = Error::new(kind, "a mässage");
            let column = Position { line: 3, column: Some(7) };
            let line = Position { line: u64::MAX, column: None };
            let all = [
                plain.clone(),
                plain.clone().with_hint("a hint"),
                plain.clone().at(column),
                plain.with_hint("").at(line),
            ];
            for error in all {
                let again = decode(&encode(&error)).expect("an error");
                let parts =
                    |e: &Error| (e.kind(), e.message().to_owned(), e.hint().map(str::to_owned), e.position());
                assert_eq!(parts(&again), parts(&error));
            }
        }
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let text = "ä".repeat(CONTROL_BYTES_MAX);
        let bytes = encode(&Error::new(ErrorKind::Query, format!("x{text}")).with_hint(text));
        assert!(bytes.len() <= CONTROL_BYTES_MAX);
        let again = decode(&bytes).expect("an error");
        assert!(again.message().ends_with('ä') && again.hint().is_some_and(|hint| hint.ends_with('ä')));
    }

    #[test]
    fn no_bytes_panic() {
        let seed = fastrand::u64(..);
        let mut random = fastrand::Rng::with_seed(seed);
        for case in 0..20_000 {
            let mut bytes: Vec<u8> = (0..random.usize(..40)).map(|_| random.u8(..)).collect();
            if let [kind, flags, ..] = bytes.as_mut_slice() {
                *kind %= 14;
                *flags %= 8;
            }
            if let Some(error) = decode(&bytes) {
                assert!(decode(&encode(&error)).is_some(), "seed {seed}, case {case}: {bytes:?}");
            }
        }
    }
}
