//! Parser of complete `multipart/form-data` bodies (RFC 7578).

use crate::http::request::MediaType;
use bytes::Bytes;
use memchr::memmem;

/// The maximum number of parts of one body.
const PARTS_MAX: usize = 1000;

/// The maximum number of header lines of one part.
const HEADERS_MAX: usize = 16;

/// A part: its media type, if given, and its content.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) media_type: Option<MediaType>,
    pub(crate) file_name: Option<String>,
    pub(crate) content: Bytes,
}

/// Splits a body into its parts.
///
/// # Errors
/// What is malformed, as a message.
pub(crate) fn parts(body: &Bytes, boundary: &str) -> Result<Vec<Part>, String> {
    if boundary.is_empty() || boundary.len() > 70 {
        return Err("the boundary does not have 1 to 70 characters".to_owned());
    }
    let delimiter = format!("--{boundary}");
    let behind = format!("\r\n{delimiter}");
    let mut at = if body.starts_with(delimiter.as_bytes()) {
        delimiter.len()
    } else {
        // The preamble before the first delimiter is ignored.
        memmem::find(body, behind.as_bytes()).ok_or("the boundary does not occur")? + behind.len()
    };
    let mut parts = Vec::new();
    loop {
        let rest = &body[at..];
        if rest.starts_with(b"--") {
            return Ok(parts);
        }
        let line = memmem::find(rest, b"\r\n").ok_or("a delimiter has no line end")?;
        if rest[..line].iter().any(|byte| !matches!(byte, b' ' | b'\t')) {
            return Err("a delimiter is followed by other characters".to_owned());
        }
        let from = at + line + 2;
        let length = memmem::find(&body[from..], behind.as_bytes()).ok_or("the last delimiter is missing")?;
        parts.push(part(body.slice(from..from + length))?);
        if parts.len() > PARTS_MAX {
            return Err(format!("it has more than {PARTS_MAX} parts"));
        }
        at = from + length + behind.len();
    }
}

fn part(bytes: Bytes) -> Result<Part, String> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let (length, headers) = match httparse::parse_headers(&bytes, &mut headers) {
        Ok(httparse::Status::Complete(done)) => done,
        Ok(httparse::Status::Partial) => return Err("the head of a part has no end".to_owned()),
        Err(error) => return Err(format!("the head of a part is malformed: {error}")),
    };
    let header = |name: &str| {
        let header = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(header.value).ok()
    };
    let file_name = header("content-disposition").and_then(|value| {
        let value = value.split(';').filter_map(|part| part.trim().split_once('='));
        let mut names = value.filter(|(name, _)| name.trim().eq_ignore_ascii_case("filename"));
        names.next().map(|(_, value)| value.trim().trim_matches('"').to_owned())
    });
    let media_type = header("content-type").map(MediaType::parse);
    Ok(Part { media_type, file_name, content: bytes.slice(length..) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_split_into_parts() {
        let body = "preamble\r\n--x\r\nContent-Disposition: form-data; name=\"a\"; filename=\"a.ttl\"\r\n\
                    Content-Type: text/turtle\r\n\r\n<urn:a> <urn:b> 1 .\r\n\r\n--x \r\n\r\n--x\r\n\r\n\r\n--x--\r\n";
        let parts = parts(&Bytes::from(body.replacen("\r\n--x \r\n\r\n--x", "\r\n--x", 1)), "x").unwrap();
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].content, "<urn:a> <urn:b> 1 .\r\n");
        assert_eq!(parts[0].file_name.as_deref(), Some("a.ttl"));
        assert_eq!(parts[0].media_type.as_ref().unwrap().name, "text/turtle");
        assert_eq!((&parts[1].content[..], &parts[1].media_type), (&b""[..], &None));
    }

    #[test]
    fn broken_bodies_are_errors() {
        for body in [
            "",
            "--x",
            "--x\r\n",
            "--x\r\nA: b\r\n\r\n",
            "--xy\r\n\r\n\r\n--x--",
            "--x\r\nno header\r\n--x--",
        ] {
            assert!(parts(&Bytes::from(body), "x").is_err(), "{body:?}");
        }
        assert!(parts(&Bytes::from("--\r\n"), "").is_err());
        assert_eq!(parts(&Bytes::from("--x--"), "x").unwrap(), []);
    }
}
