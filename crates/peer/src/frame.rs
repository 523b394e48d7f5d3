//! The format of a frame: 4 bytes length of the body (little endian), 1 byte kind, body.

use std::time::Duration;

/// The largest request.
pub const REQUEST_BYTES_MAX: usize = 16 << 20;

/// The largest answer.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A peer that sends no byte for this long during a request counts as hung.
pub const PEER_TIMEOUT: Duration = Duration::from_secs(3);

/// The largest hello, error or refusal.
pub(crate) const CONTROL_BYTES_MAX: usize = 64 << 10;

/// Length and kind.
pub(crate) const HEADER_BYTES: usize = 5;

/// The milliseconds that are left to the query, before the content of a request.
pub(crate) const TIME_LEFT_BYTES: usize = 4;

/// A frame that has begun is complete within this time: it bounds peers that send a byte now and then.
pub(crate) const FRAME_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FrameKind {
    Hello,
    Request,
    Answer,
    /// The request failed; the connection serves the next one.
    Error,
    /// As an empty request that no handler sees.
    Ping,
    /// The handler still works.
    Working,
    /// An error after which the sender closes the connection.
    Refusal,
}

impl FrameKind {
    pub(crate) fn byte(self) -> u8 {
        match self {
            Self::Hello => 1,
            Self::Request => 2,
            Self::Answer => 3,
            Self::Error => 4,
            Self::Ping => 5,
            Self::Working => 6,
            Self::Refusal => 7,
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Hello,
            2 => Self::Request,
            3 => Self::Answer,
            4 => Self::Error,
            5 => Self::Ping,
            6 => Self::Working,
            7 => Self::Refusal,
            _ => return None,
        })
    }

    /// The largest body of a frame of this kind.
    pub(crate) fn body_bytes_max(self) -> usize {
        match self {
            Self::Request => TIME_LEFT_BYTES + REQUEST_BYTES_MAX,
            Self::Answer => ANSWER_BYTES_MAX,
            Self::Hello | Self::Error | Self::Refusal => CONTROL_BYTES_MAX,
            Self::Ping | Self::Working => 0,
        }
    }
}

/// The header of a frame whose body is within its limit.
pub(crate) fn header(kind: FrameKind, body_bytes: usize) -> [u8; HEADER_BYTES] {
    debug_assert!(body_bytes <= kind.body_bytes_max(), "checked by the sender");
    let length = u32::try_from(body_bytes).expect("limits are below 4 GiB").to_le_bytes();
    [length[0], length[1], length[2], length[3], kind.byte()]
}

/// Kind and length of the body.
///
/// # Errors
/// The reason why these bytes are no header.
pub(crate) fn parse_header(header: [u8; HEADER_BYTES]) -> Result<(FrameKind, usize), String> {
    let [a, b, c, d, kind] = header;
    let kind = FrameKind::from_byte(kind).ok_or_else(|| format!("a frame of unknown kind {kind}"))?;
    let length = u32::from_le_bytes([a, b, c, d]);
    match usize::try_from(length) {
        Ok(length) if length <= kind.body_bytes_max() => Ok((kind, length)),
        _ => Err(format!("a frame ({kind:?}) of {length} bytes, more than {}", kind.body_bytes_max())),
    }
}

/// The start of `text`, at most `bytes_max` bytes, up to the end of a character.
pub(crate) fn prefix(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}
