//! Compression of answers: gzip and zstd, negotiated by `Accept-Encoding`.

use crate::http::content_negotiation::quality;
use hyper::HeaderMap;
use hyper::header::ACCEPT_ENCODING;
use std::io::{self, Write};

/// The gzip level: results are compressed on the fly, and speed is worth more than a few per cent of size.
const GZIP_LEVEL: u32 = 3;
/// The zstd level, for the same reason.
const ZSTD_LEVEL: i32 = 1;

/// How the bytes of an answer are encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

impl Encoding {
    /// The encoding with the highest quality; zstd before gzip if equal.
    pub(crate) fn choose(headers: &HeaderMap) -> Self {
        let Some(accept) = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()) else {
            return Self::Identity;
        };
        let (zstd, gzip) = (quality(accept, "zstd"), quality(accept, "gzip"));
        match (zstd, gzip) {
            (0, 0) => Self::Identity,
            (zstd, gzip) if zstd >= gzip => Self::Zstd,
            _ => Self::Gzip,
        }
    }

    /// The value of `Content-Encoding`.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Identity => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
        }
    }

    pub(crate) fn compress(self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::Identity => Ok(bytes.to_vec()),
            Self::Gzip => {
                let mut encoder = gzip(Vec::with_capacity(bytes.len() / 4));
                encoder.write_all(bytes)?;
                encoder.finish()
            }
            Self::Zstd => {
                let mut encoder = self::zstd(Vec::with_capacity(bytes.len() / 4))?;
                encoder.write_all(bytes)?;
                encoder.finish()
            }
        }
    }
}

pub(crate) fn gzip<W: Write>(out: W) -> flate2::write::GzEncoder<W> {
    flate2::write::GzEncoder::new(out, flate2::Compression::new(GZIP_LEVEL))
}

pub(crate) fn zstd<W: Write>(out: W) -> io::Result<zstd::stream::write::Encoder<'static, W>> {
    zstd::stream::write::Encoder::new(out, ZSTD_LEVEL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_encoding_selects_the_encoding() {
        for (accept, expected) in [
            ("gzip, deflate, br, zstd", Encoding::Zstd),
            ("gzip, zstd;q=0.5", Encoding::Gzip),
            ("gzip;q=0", Encoding::Identity),
            ("*", Encoding::Zstd),
            ("identity", Encoding::Identity),
            ("zstd;q=0, *", Encoding::Gzip),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, accept.parse().unwrap());
            assert_eq!(Encoding::choose(&headers), expected, "{accept}");
        }
        assert_eq!(Encoding::choose(&HeaderMap::new()), Encoding::Identity);
    }
}
