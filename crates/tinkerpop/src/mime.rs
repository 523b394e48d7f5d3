//! Message formats, their MIME types, and binary WebSocket frames.

use crate::graphson::Dialect;
use crate::{ReadError, number::shortened};

/// A message format.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Format {
    /// `application/vnd.graphbinary-v1.0`
    GraphBinary1,
    /// `application/vnd.graphbinary-v1.0-stringd`: results are strings. The caller converts them.
    GraphBinary1Strings,
    /// `application/vnd.gremlin-v3.0+json`
    GraphSon3,
    /// `application/vnd.gremlin-v3.0+json;types=false`
    GraphSon3Untyped,
    /// `application/vnd.gremlin-v2.0+json`
    GraphSon2,
    /// `application/vnd.gremlin-v2.0+json;types=false`
    GraphSon2Untyped,
    /// `application/json`: GraphSON 3 without types.
    Json,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 7] = [
        Self::GraphBinary1,
        Self::GraphBinary1Strings,
        Self::GraphSon3,
        Self::GraphSon3Untyped,
        Self::GraphSon2,
        Self::GraphSon2Untyped,
        Self::Json,
    ];

    /// The MIME type.
    #[must_use]
    pub const fn mime(self) -> &'static str {
        match self {
            Self::GraphBinary1 => "application/vnd.graphbinary-v1.0",
            Self::GraphBinary1Strings => "application/vnd.graphbinary-v1.0-stringd",
            Self::GraphSon3 => "application/vnd.gremlin-v3.0+json",
            Self::GraphSon3Untyped => "application/vnd.gremlin-v3.0+json;types=false",
            Self::GraphSon2 => "application/vnd.gremlin-v2.0+json",
            Self::GraphSon2Untyped => "application/vnd.gremlin-v2.0+json;types=false",
            Self::Json => "application/json",
        }
    }

    /// The format with this MIME type (case-insensitive); parameters other than `types` are ignored.
    #[must_use]
    pub fn from_mime(mime: &str) -> Option<Self> {
        let mut parts = mime.split(';').map(str::trim);
        let name = parts.next()?;
        let untyped = parts.any(|part| {
            part.split_once('=').is_some_and(|(key, value)| {
                key.trim().eq_ignore_ascii_case("types")
                    && value.trim().trim_matches('"').eq_ignore_ascii_case("false")
            })
        });
        let format = Self::ALL.into_iter().find(|format| format.mime().eq_ignore_ascii_case(name))?;
        Some(match (format, untyped) {
            (Self::GraphSon3, true) => Self::GraphSon3Untyped,
            (Self::GraphSon2, true) => Self::GraphSon2Untyped,
            _ => format,
        })
    }

    /// The GraphSON dialect; none for GraphBinary.
    #[must_use]
    pub const fn dialect(self) -> Option<Dialect> {
        match self {
            Self::GraphBinary1 | Self::GraphBinary1Strings => None,
            Self::GraphSon3 => Some(Dialect::V3),
            Self::GraphSon3Untyped | Self::Json => Some(Dialect::V3_UNTYPED),
            Self::GraphSon2 => Some(Dialect::V2),
            Self::GraphSon2Untyped => Some(Dialect::V2_UNTYPED),
        }
    }

    /// Splits a binary WebSocket frame into its format and the request.
    ///
    /// The frame is a byte with the length of the MIME type, the MIME type, and the request.
    ///
    /// # Errors
    /// A missing or unknown MIME type.
    pub fn split_frame(frame: &[u8]) -> Result<(Self, &[u8]), ReadError> {
        let Some((&length, rest)) = frame.split_first() else {
            return Err(ReadError::malformed(0, "expected the length of a MIME type, found an empty frame"));
        };
        let Some((mime, request)) = rest.split_at_checked(usize::from(length)) else {
            return Err(ReadError::malformed(
                0,
                format!("expected a MIME type of {length} bytes, found {} bytes", rest.len()),
            ));
        };
        let mime = String::from_utf8_lossy(mime);
        let format = Self::from_mime(&mime).ok_or_else(|| {
            ReadError::unsupported(
                1,
                format!(
                    "expected a MIME type such as {}, found {}",
                    Self::GraphSon3.mime(),
                    shortened(&mime)
                ),
            )
        })?;
        Ok((format, request))
    }

    /// Starts a binary WebSocket frame of a client; the request follows.
    pub fn begin_frame(self, out: &mut Vec<u8>) {
        let mime = self.mime();
        out.push(u8::try_from(mime.len()).expect("MIME types are short"));
        out.extend_from_slice(mime.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mime_types_are_found_again() {
        for format in Format::ALL {
            assert_eq!(Format::from_mime(format.mime()), Some(format));
            let mut frame = Vec::new();
            format.begin_frame(&mut frame);
            frame.extend_from_slice(b"xyz");
            assert_eq!(Format::split_frame(&frame).unwrap(), (format, &b"xyz"[..]));
        }
        let spaced = "Application/vnd.Gremlin-v3.0+JSON ; charset=utf-8; types = FALSE";
        assert_eq!(Format::from_mime(spaced), Some(Format::GraphSon3Untyped));
        assert_eq!(Format::from_mime("text/plain"), None);
    }

    #[test]
    fn bad_frames_say_so() {
        assert!(Format::split_frame(&[]).is_err());
        assert!(Format::split_frame(&[3, b'a']).is_err());
        assert_eq!(
            Format::split_frame(b"\x03abc{}").unwrap_err().to_string(),
            "expected a MIME type such as application/vnd.gremlin-v3.0+json, found \"abc\" at byte 1"
        );
    }
}
