//! The objects below a location.

use crate::client::{Client, Content, Request, tag_of};
use crate::location::Location;
use crate::refusal::{Failure, one_line, unreachable};
use crate::settings::Settings;
use crate::upload::upload;
use crate::xml::elements;
use std::io::{Read, Write};
use std::path::Path;
use ureq::Body;
use ureq::http::Response;
use vervet_model::{Error, ErrorKind, Result, ThreadLimits};

/// Most objects of a list, and most pages, of which each has up to 1,000 objects.
const OBJECTS_MAX: usize = 1 << 20;
const PAGES_MAX: usize = 1 << 12;

/// Longest name of an object in S3.
const KEY_BYTES_MAX: usize = 1 << 10;

/// Bytes of a transfer between two looks whether it was cancelled.
const BUFFER_BYTES: usize = 1 << 16;

/// An object of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Object {
    /// Name below the location.
    pub name: String,
    /// Its length in bytes.
    pub size_bytes: u64,
}

/// A small object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// Its content.
    pub bytes: Vec<u8>,
    /// Names this version of it, for [`Bucket::replace`].
    pub tag: String,
}

/// See the header of this file.
#[derive(Debug)]
pub struct Bucket {
    client: Client,
}

impl Bucket {
    /// Nothing is sent.
    ///
    /// # Errors
    /// Input: the certificates of the settings are none.
    pub fn new(location: Location, settings: Settings) -> Result<Self> {
        Ok(Self { client: Client::new(location, settings)? })
    }

    /// Where the objects are.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.client.location
    }

    /// All objects whose name below the location begins with `begin`.
    ///
    /// # Errors
    /// Input: the server refuses the request. Unavailable: it does not answer, its answer is no list, or the
    /// list is too long. Cancelled.
    pub fn list(&self, begin: &str) -> Result<Vec<Object>> {
        let mut prefix = self.location().key(begin);
        if begin.is_empty() && self.location().prefix.is_empty() {
            prefix.clear();
        }
        let (mut objects, mut token) = (Vec::new(), None::<String>);
        for _ in 0..PAGES_MAX {
            let mut query = vec![("list-type", "2"), ("max-keys", "1000"), ("prefix", &prefix)];
            query.extend(token.as_deref().map(|token| ("continuation-token", token)));
            let request = Request { query: &query, ..Request::new("GET", None) };
            let text = self.client.with_retries(&mut |_| self.client.text(&request))?;
            let next = self.page(&text, &mut objects).map_err(|what| self.no_list(&what))?;
            if objects.len() > OBJECTS_MAX {
                return Err(self.no_list(&format!("it has more than {OBJECTS_MAX} objects")));
            }
            match next {
                None => return Ok(objects),
                next if next == token => return Err(self.no_list("a page is followed by itself")),
                next => token = next,
            }
        }
        Err(self.no_list(&format!("it has more than {PAGES_MAX} pages")))
    }

    fn no_list(&self, what: &str) -> Error {
        let (location, server) = (self.location(), &self.client.server);
        let what = one_line(&format!("{location}: the list of objects of {server} cannot be used: {what}"));
        Error::new(ErrorKind::Unavailable, what)
            .with_hint("check that AWS_ENDPOINT_URL names a server with the interface of S3, and the prefix")
    }

    /// Adds the objects of a page, and returns where the next one begins.
    fn page(&self, text: &str, objects: &mut Vec<Object>) -> Result<Option<String>, String> {
        let (mut key, mut size, mut next) = (None::<String>, None, None);
        let (mut is_list, mut is_truncated) = (false, false);
        elements(text, &mut |path, content| {
            match path {
                "ListBucketResult" => is_list = true,
                "ListBucketResult/Contents/Key" if content.len() > KEY_BYTES_MAX => {
                    return Err(format!("an object has a name of {} bytes", content.len()));
                }
                "ListBucketResult/Contents/Key" => key = Some(content.to_owned()),
                "ListBucketResult/Contents/Size" => size = content.trim().parse().ok(),
                "ListBucketResult/IsTruncated" => is_truncated = content.trim() == "true",
                "ListBucketResult/NextContinuationToken" => next = Some(content.to_owned()),
                "ListBucketResult/Contents" => {
                    let key = key.take().ok_or("an object has no name")?;
                    let size_bytes = size.take().ok_or("an object has no size")?;
                    let outside = || format!("{key:?} is not below the prefix");
                    let name = self.location().name(&key).ok_or_else(outside)?.to_owned();
                    // A folder that a console has made.
                    if !name.is_empty() {
                        objects.push(Object { name, size_bytes });
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        match (is_list, is_truncated, next) {
            (false, ..) => Err("it is no list".to_owned()),
            (true, false, _) => Ok(None),
            (true, true, next) => {
                next.map(Some).ok_or_else(|| "a page does not name the next one".to_owned())
            }
        }
    }

    /// The content of an object; `None`: there is none with this name.
    ///
    /// # Errors
    /// Input: the server refuses the request. Unavailable: it does not answer, or the object has more than
    /// `bytes_max` bytes. Cancelled.
    pub fn read(&self, name: &str, bytes_max: u64) -> Result<Option<Stored>> {
        let request = Request::new("GET", Some(name));
        let read = self.client.with_retries(&mut |_| {
            let mut response = self.client.send_once(&request)?;
            let bytes = self.client.bytes(Some(name), &mut response, bytes_max)?;
            Ok(Stored { bytes, tag: tag_of(&response) })
        });
        match read {
            Ok(stored) => Ok(Some(stored)),
            Err(failure) if failure.status == 404 && failure.code == "NoSuchKey" => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Writes the content of an object to `out`. A transfer that breaks off is resumed. `progress` gets the
    /// number of bytes of each step.
    ///
    /// # Errors
    /// Corrupt: the object is missing, or has another size. Input: the server refuses the request.
    /// Unavailable: it does not answer. Io: `out` cannot be written. Cancelled; those of `progress`.
    pub fn download(
        &self,
        object: &Object,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let Object { name, size_bytes } = object;
        if *size_bytes == 0 {
            return Ok(());
        }
        let mut tag = None::<String>;
        let mut buffer = vec![0; BUFFER_BYTES];
        let downloaded = self.client.with_retries(&mut |done| {
            let range = format!("bytes={done}-{}", size_bytes - 1);
            let mut headers = vec![("range", range.as_str())];
            // The rest has to be that of the same object.
            let is_strong = |tag: &&str| !tag.is_empty() && !tag.starts_with("W/");
            headers.extend(tag.as_deref().filter(is_strong).map(|tag| ("if-match", tag)));
            let request = Request { headers: &headers, ..Request::new("GET", Some(name)) };
            let mut response = self.client.send_once(&request)?;
            tag.get_or_insert_with(|| tag_of(&response));
            self.expect_range(object, *done, &response)?;
            let mut reader = response.body_mut().as_reader();
            while *done < *size_bytes {
                ThreadLimits::check().map_err(Failure::last)?;
                let wanted = usize::try_from(*size_bytes - *done).unwrap_or(BUFFER_BYTES).min(BUFFER_BYTES);
                let shown = || self.client.shown(Some(name));
                let count = reader.read(&mut buffer[..wanted]);
                let count =
                    count.map_err(|error| unreachable(&self.client.server, &shown(), &error.into()))?;
                if count == 0 {
                    let what = format!("{}: the answer ended after {done} of {size_bytes} bytes", shown());
                    return Err(Failure::transient(Error::new(ErrorKind::Unavailable, what)));
                }
                out.write_all(&buffer[..count]).map_err(|error| {
                    Failure::last(Error::io(format_args!("write a copy of {}", shown()), &error))
                })?;
                *done += count as u64;
                progress(count as u64).map_err(Failure::last)?;
            }
            Ok(())
        });
        downloaded.map_err(|failure| match failure.status {
            404 | 412 | 416 if failure.code != "NoSuchBucket" => {
                let what =
                    if failure.status == 404 { "it is missing" } else { "it was replaced while it was read" };
                Error::corrupt(self.client.shown(Some(name)), what)
            }
            _ => failure.into(),
        })
    }

    /// Verifies that an answer has an object from a position on.
    fn expect_range(&self, object: &Object, from: u64, response: &Response<Body>) -> Result<(), Failure> {
        let range = response.headers().get("content-range").and_then(|value| value.to_str().ok());
        let size = object.size_bytes;
        let is_expected = match response.status().as_u16() {
            206 => range.is_some_and(|range| range.trim() == format!("bytes {from}-{}/{size}", size - 1)),
            // A server that does not know ranges sends all of it.
            _ => from == 0 && response.body().content_length().is_none_or(|length| length == size),
        };
        if is_expected {
            return Ok(());
        }
        let what = format!("the server does not send bytes {from} to {size}, which its list says");
        Err(Failure::last(Error::corrupt(self.client.shown(Some(&object.name)), what)))
    }

    /// Stores a file as an object, which is there as a whole or not at all. `progress` gets the number of
    /// bytes of each step.
    ///
    /// # Errors
    /// Input: the server refuses the request. Unavailable: it does not answer. Io: the file cannot be read.
    /// Cancelled; those of `progress`.
    pub fn upload(&self, name: &str, file: &Path, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        upload(&self.client, name, file, progress)
    }

    /// Stores a small object in place of the version `before`, or, if that is `None`, if there is none of
    /// this name; `false`: there is another version. A server without such conditions compares nothing: then
    /// the object is compared before, and not at the same moment.
    ///
    /// # Errors
    /// Input: the server refuses the request. Unavailable: it does not answer. Cancelled.
    pub fn replace(&self, name: &str, bytes: &[u8], before: Option<&str>) -> Result<bool> {
        let condition = before.map_or(("if-none-match", "*"), |tag| ("if-match", tag));
        let put = |headers: &[(&str, &str)]| {
            self.client.send(&Request {
                headers,
                content: Content::Bytes(bytes),
                ..Request::new("PUT", Some(name))
            })
        };
        let is_there = || -> Result<Option<Stored>> { self.read(name, bytes.len() as u64 + (64 << 20)) };
        match put(&[condition]) {
            Ok(_) => Ok(true),
            Err(failure)
                if matches!(failure.status, 409 | 412) || failure.status == 404 && before.is_some() =>
            {
                if failure.code == "NoSuchBucket" {
                    return Err(failure.into());
                }
                // An attempt whose answer was lost has stored it.
                Ok(is_there()?.is_some_and(|stored| stored.bytes == bytes))
            }
            Err(failure) if failure.status == 501 || failure.code == "NotImplemented" => {
                if is_there()?.map(|stored| stored.tag).as_deref() != before {
                    return Ok(false);
                }
                put(&[]).map(|_| true).map_err(Error::from)
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Removes an object, which may be missing.
    ///
    /// # Errors
    /// Input: the server refuses the request. Unavailable: it does not answer. Cancelled.
    pub fn remove(&self, name: &str) -> Result<()> {
        match self.client.send(&Request::new("DELETE", Some(name))) {
            Err(failure) if failure.status != 404 || failure.code == "NoSuchBucket" => Err(failure.into()),
            _ => Ok(()),
        }
    }
}
