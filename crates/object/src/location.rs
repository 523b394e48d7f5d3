//! Where objects are: `s3://bucket/prefix`.

use std::fmt;
use std::str::FromStr;
use vervet_model::{Error, ErrorKind, Result};

/// Most bytes of a prefix: names of objects have 1,024, and those below the prefix need some of them.
const PREFIX_BYTES_MAX: usize = 700;

/// A bucket, and a prefix of the names of its objects, which may be empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    pub(crate) bucket: String,
    /// Without `/` at either end.
    pub(crate) prefix: String,
}

impl Location {
    /// Whether a text is meant as a URL, and not as a path.
    #[must_use]
    pub fn is_url(text: &str) -> bool {
        text.split_once("://").is_some_and(|(scheme, _)| {
            scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+')
        })
    }

    /// The name in the bucket of the object with this name below the prefix.
    pub(crate) fn key(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}/{name}", self.prefix) }
    }

    /// The reverse of `key`; `None`: the object is not below the prefix.
    pub(crate) fn name<'k>(&self, key: &'k str) -> Option<&'k str> {
        match self.prefix.is_empty() {
            true => Some(key),
            false => key.strip_prefix(&self.prefix)?.strip_prefix('/'),
        }
    }
}

impl FromStr for Location {
    type Err = Error;

    /// # Errors
    /// Input: it is no URL of this form.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = |what: &str| {
            Error::new(ErrorKind::Input, format!("{text}: {what}"))
                .with_hint("write a directory, or s3://BUCKET/PREFIX, such as s3://backups/cluster")
        };
        let rest = text.strip_prefix("s3://").ok_or_else(|| wrong("this is neither a path nor s3://…"))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if bucket.len() < 3 || bucket.len() > 255 || !bucket.bytes().all(is_plain) || bucket.contains("..") {
            return Err(wrong("this has no name of a bucket"));
        }
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let is_wrong = |part: &str| matches!(part, "" | "." | "..") || part.contains(char::is_control);
        if !prefix.is_empty() && prefix.split('/').any(is_wrong) {
            return Err(wrong("a part of the prefix is empty, . or .."));
        }
        if prefix.len() > PREFIX_BYTES_MAX {
            return Err(wrong("the prefix is too long"));
        }
        Ok(Self { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}", self.bucket)?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_bucket_and_a_prefix() {
        let of = |text: &str| text.parse::<Location>();
        let location = of("s3://backups/a b/c/").expect("a location");
        assert_eq!((location.bucket.as_str(), location.prefix.as_str()), ("backups", "a b/c"));
        assert_eq!(location.to_string(), "s3://backups/a b/c");
        assert_eq!(location.key("x/y"), "a b/c/x/y");
        assert_eq!(location.name("a b/c/x/y"), Some("x/y"));
        assert_eq!((location.name("a b/cx"), location.name("x")), (None, None));
        let whole = of("s3://backups").expect("a location");
        assert_eq!((whole.to_string(), whole.key("x")), ("s3://backups".to_owned(), "x".to_owned()));
        let long = format!("s3://backups/{}", "x".repeat(701));
        for wrong in ["", "backups", "gs://backups/x", "s3://", "s3:///x", "s3://a b/x", "s3://a..b", &long] {
            assert_eq!(of(wrong).expect_err(wrong).kind(), ErrorKind::Input);
        }
        for wrong in ["s3://abc/x//y", "s3://abc/../y", "s3://abc/.", "s3://abc/x\ny"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        assert!(Location::is_url("s3://x") && Location::is_url("gs://x") && Location::is_url("https://x"));
        assert!(!Location::is_url("/s3/x") && !Location::is_url("c:/x") && !Location::is_url("./a://b"));
    }
}
