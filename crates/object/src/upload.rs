//! Storing files.
//!
//! # Shape
//! A small file is one request. A larger one is stored in parts, each of which is repeated on its own; a last
//! request makes an object of them. Parts that no object was made of are removed when an upload fails. Those
//! of a process that was killed stay, until a rule of the bucket removes them.
//! # Cost
//! A part is read twice: for its hash, and to be sent. Memory does not depend on its size.

use crate::client::{Client, Content, Request, open_part, tag_of};
use crate::refusal::Failure;
use crate::xml::{element, elements};
use ring::digest;
use std::fs;
use std::io::Read;
use std::path::Path;
use vervet_model::{Error, ErrorKind, Result, ThreadLimits, hex};

/// S3 has parts up to this number; some fewer are used.
const PARTS_MAX: u64 = 9_000;

/// S3 has objects up to this size.
const OBJECT_BYTES_MAX: u64 = 5 << 40;

pub(crate) fn upload(
    client: &Client,
    name: &str,
    file: &Path,
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<()> {
    let length =
        fs::metadata(file).map_err(|error| Error::io(format_args!("read {}", file.display()), &error))?;
    let length = length.len();
    if length > OBJECT_BYTES_MAX {
        let what = format!("{} is larger than an object can be, 5 TiB", file.display());
        return Err(Error::new(ErrorKind::Unsupported, what).with_hint("keep the backup in a directory"));
    }
    if length > client.settings.part_bytes {
        return upload_in_parts(client, name, (file, length), progress);
    }
    let hash = hash_of(file, 0, length)?;
    let content = Content::Part { path: file, offset: 0, length, hash: &hash };
    client.send(&Request { content, ..Request::new("PUT", Some(name)) })?;
    progress(length)
}

/// Bytes of each part of a file but the last one.
fn part_bytes(length: u64, least: u64) -> u64 {
    length.div_ceil(PARTS_MAX).next_multiple_of(1 << 20).max(least)
}

fn upload_in_parts(
    client: &Client,
    name: &str,
    (file, length): (&Path, u64),
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<()> {
    let begin = Request { query: &[("uploads", "")], ..Request::new("POST", Some(name)) };
    let text = client.with_retries(&mut |_| client.text(&begin))?;
    let id = element(&text, "InitiateMultipartUploadResult/UploadId").filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| unexpected(client, name, "does not name the upload that was begun"))?;
    let stored = store_parts(client, (name, &id), (file, length), progress);
    if stored.is_err() {
        // At any rate the error is that of the upload. The limits of the thread may have ended it.
        let _unlimited = ThreadLimits::default().enter();
        _ = client.send_once(&Request { query: &[("uploadId", &id)], ..Request::new("DELETE", Some(name)) });
    }
    stored
}

fn store_parts(
    client: &Client,
    (name, id): (&str, &str),
    (file, length): (&Path, u64),
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<()> {
    let part_bytes = part_bytes(length, client.settings.part_bytes);
    let mut parts = String::new();
    let (mut offset, mut number) = (0, 1);
    while offset < length {
        let part = part_bytes.min(length - offset);
        let hash = hash_of(file, offset, part)?;
        let number_text = number.to_string();
        let query = [("partNumber", number_text.as_str()), ("uploadId", id)];
        let content = Content::Part { path: file, offset, length: part, hash: &hash };
        let request = Request { query: &query, content, ..Request::new("PUT", Some(name)) };
        let tag = tag_of(&client.send(&request)?);
        if tag.is_empty() {
            return Err(unexpected(client, name, "does not name a part that was stored"));
        }
        let tag = tag.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        parts.push_str(&format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"));
        progress(part)?;
        (offset, number) = (offset + part, number + 1);
    }
    let all = format!(
        "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{parts}</CompleteMultipartUpload>"
    );
    let query = [("uploadId", id)];
    let content = Content::Bytes(all.as_bytes());
    let request = Request { query: &query, content, ..Request::new("POST", Some(name)) };
    let completed = client.with_retries(&mut |_| {
        let text = client.text(&request)?;
        // The answer may begin before the object is made, with success, and end with an error.
        let mut is_complete = false;
        let read = elements(&text, &mut |path, _| {
            is_complete |= path == "CompleteMultipartUploadResult";
            Ok(())
        });
        if read.is_ok() && is_complete {
            return Ok(());
        }
        let code = element(&text, "Error/Code").unwrap_or_default();
        let error = unexpected(client, name, &format!("has not made an object of its parts: {code}"));
        let is_transient =
            read.is_err() || matches!(code.as_str(), "InternalError" | "SlowDown" | "ServiceUnavailable");
        Err(if is_transient { Failure::transient(error) } else { Failure::last(error) })
    });
    match completed {
        // An attempt whose answer was lost has made it.
        Err(failure) if failure.status == 404 && has_size(client, name, length)? => Ok(()),
        completed => Ok(completed?),
    }
}

/// Whether there is an object with this size.
fn has_size(client: &Client, name: &str, length: u64) -> Result<bool> {
    let response = client.send(&Request::new("HEAD", Some(name)))?;
    let found = response.headers().get("content-length").and_then(|value| value.to_str().ok()?.parse().ok());
    Ok(found == Some(length))
}

fn unexpected(client: &Client, name: &str, what: &str) -> Error {
    let what = format!("{}: {} {what}", client.shown(Some(name)), client.server);
    Error::new(ErrorKind::Unavailable, crate::refusal::one_line(&what))
        .with_hint("check that AWS_ENDPOINT_URL names a server with the interface of S3")
}

/// SHA-256 of some bytes of a file, in hexadecimal.
fn hash_of(file: &Path, offset: u64, length: u64) -> Result<String> {
    let failed = |error: std::io::Error| match ThreadLimits::check() {
        Err(cancelled) => cancelled,
        Ok(()) => Error::io(format_args!("read {}", file.display()), &error),
    };
    let mut part = open_part(file, offset, length).map_err(failed)?;
    let mut context = digest::Context::new(&digest::SHA256);
    let (mut buffer, mut read) = (vec![0; 1 << 16], 0);
    loop {
        let count = part.read(&mut buffer).map_err(failed)?;
        if count == 0 {
            break;
        }
        context.update(&buffer[..count]);
        read += count as u64;
    }
    if read != length {
        let what = format!("{} has become shorter while it was read", file.display());
        return Err(Error::new(ErrorKind::Io, what));
    }
    Ok(hex(context.finish().as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_large_as_they_have_to_be() {
        let least = 16 << 20;
        assert_eq!(part_bytes(least + 1, least), least);
        assert_eq!(part_bytes(100 << 30, least), least);
        for length in [200 << 30, OBJECT_BYTES_MAX] {
            let part = part_bytes(length, least);
            assert!(part > least && length.div_ceil(part) <= PARTS_MAX && part <= 5 << 30, "{length}");
        }
    }

    #[test]
    fn hashes_are_those_of_parts() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("x");
        fs::write(&file, b"xxWelcome to Amazon S3.yy").expect("written");
        assert_eq!(hash_of(&file, 2, 21).expect("read"), crate::signature::hash(b"Welcome to Amazon S3."));
        assert_eq!(hash_of(&file, 2, 24).expect_err("shorter").kind(), ErrorKind::Io);
    }
}
