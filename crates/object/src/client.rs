//! One request, and its retries.

use crate::location::Location;
use crate::refusal::{Failure, Refused, unreachable};
use crate::settings::Settings;
use crate::signature::{EMPTY_HASH, Signed, authorization, encoded, hash, query, stamp};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use ureq::http::{self, Response};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, SendBody};
use vervet_model::{Error, ErrorKind, Result, ThreadLimits};

/// How often a request is sent that fails each time without progress.
const ATTEMPTS_MAX: u32 = 6;

const RETRY_DELAY_MAX: Duration = Duration::from_secs(10);

/// A pause looks this often whether it was cancelled.
const SLEEP_STEP: Duration = Duration::from_millis(50);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Most bytes of an answer that is a text, such as a page of a list: 1,000 names of 1,024 bytes, some of them
/// escaped.
const TEXT_BYTES_MAX: u64 = 8 << 20;

/// Most bytes that are read of the reason of a refusal.
const REFUSAL_BYTES_MAX: u64 = 1 << 16;

/// What a request sends.
#[derive(Clone, Copy)]
pub(crate) enum Content<'a> {
    Empty,
    Bytes(&'a [u8]),
    /// Bytes of a file, and their hash.
    Part {
        path: &'a Path,
        offset: u64,
        length: u64,
        hash: &'a str,
    },
}

/// A request.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'static str,
    /// Name of the object below the prefix; `None`: the bucket.
    pub(crate) name: Option<&'a str>,
    pub(crate) query: &'a [(&'a str, &'a str)],
    /// Names in lower case.
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) content: Content<'a>,
}

impl<'a> Request<'a> {
    pub(crate) fn new(method: &'static str, name: Option<&'a str>) -> Self {
        Self { method, name, query: &[], headers: &[], content: Content::Empty }
    }
}

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct Client {
    agent: Agent,
    pub(crate) settings: Settings,
    pub(crate) location: Location,
    /// Scheme and host.
    pub(crate) server: String,
    /// Path of the bucket, without `/` at its end.
    root: String,
}

impl Client {
    pub(crate) fn new(location: Location, settings: Settings) -> Result<Self> {
        let (server, root) = address(&location.bucket, &settings);
        let mut tls = TlsConfig::builder();
        if let Some(pem) = &settings.authorities {
            let certificates: Vec<_> = parse_pem(pem)
                .filter_map(|item| match item {
                    Ok(PemItem::Certificate(certificate)) => Some(certificate),
                    _ => None,
                })
                .collect();
            if certificates.is_empty() {
                return Err(Error::new(
                    ErrorKind::Input,
                    "the file of AWS_CA_BUNDLE has no certificate in PEM",
                ));
            }
            tls = tls.root_certs(RootCerts::new_with_certs(&certificates));
        }
        let config = Agent::config_builder()
            .timeout_resolve(Some(CONNECT_TIMEOUT))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(settings.timeout))
            .timeout_per_read(Some(settings.timeout))
            .timeout_per_write(Some(settings.timeout))
            .max_redirects(0)
            .http_status_as_error(false)
            .https_only(server.starts_with("https://"))
            .user_agent(concat!("vervet/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls.build())
            .build();
        Ok(Self { agent: Agent::new_with_config(config), settings, location, server, root })
    }

    /// Name of an object, or of the bucket, for messages.
    pub(crate) fn shown(&self, name: Option<&str>) -> String {
        match name {
            Some(name) => format!("s3://{}/{}", self.location.bucket, self.location.key(name)),
            None => format!("s3://{}", self.location.bucket),
        }
    }

    /// Sends a request once. Answers that are no success are failures.
    pub(crate) fn send_once(&self, request: &Request<'_>) -> Result<Response<Body>, Failure> {
        ThreadLimits::check().map_err(Failure::last)?;
        let path = match request.name {
            Some(name) => format!("{}/{}", self.root, encoded(&self.location.key(name), "/")),
            None if self.root.is_empty() => "/".to_owned(),
            None => self.root.clone(),
        };
        let query = query(request.query);
        let (length, content_hash) = match request.content {
            Content::Empty => (0, EMPTY_HASH.to_owned()),
            Content::Bytes(bytes) => (bytes.len() as u64, hash(bytes)),
            Content::Part { length, hash, .. } => (length, hash.to_owned()),
        };
        let stamp = stamp(OffsetDateTime::now_utc());
        let host = self.server.split_once("://").map_or("", |(_, host)| host);
        let mut headers: Vec<(&str, &str)> = request.headers.to_vec();
        headers.extend([("host", host), ("x-amz-content-sha256", &content_hash), ("x-amz-date", &stamp)]);
        let credentials = &self.settings.credentials;
        if let Some(token) = &credentials.session_token {
            headers.push(("x-amz-security-token", token));
        }
        headers.sort_unstable();
        let signed = Signed {
            method: request.method,
            path: &path,
            query: &query,
            headers: &headers,
            content_hash: &content_hash,
        };
        let authorization = authorization(credentials, &self.settings.region, &stamp, &signed);
        let mark = if query.is_empty() { "" } else { "?" };
        let mut builder = http::Request::builder()
            .method(request.method)
            .uri(format!("{}{path}{mark}{query}", self.server))
            .header("authorization", authorization)
            .header("accept-encoding", "identity");
        for (name, value) in headers {
            builder = builder.header(name, value);
        }
        let has_content = matches!(request.method, "PUT" | "POST");
        if has_content {
            builder = builder.header("content-length", length);
        }
        let invalid = |error: http::Error| Failure::last(Error::internal(format!("a request: {error}")));
        let sent = match request.content {
            Content::Empty if !has_content => self.agent.run(builder.body(()).map_err(invalid)?),
            Content::Empty => self.agent.run(builder.body(&[][..]).map_err(invalid)?),
            Content::Bytes(bytes) => self.agent.run(builder.body(bytes).map_err(invalid)?),
            Content::Part { path, offset, length, .. } => {
                let opened = open_part(path, offset, length);
                let failed = |error: io::Error| {
                    Failure::last(Error::io(format_args!("read {}", path.display()), &error))
                };
                let mut part = opened.map_err(failed)?;
                self.agent.run(builder.body(SendBody::from_reader(&mut part)).map_err(invalid)?)
            }
        };
        let response = sent.map_err(|error| {
            // A transfer that was cancelled ends as a failed read of its content.
            match ThreadLimits::check() {
                Err(cancelled) => Failure::last(cancelled),
                Ok(()) => unreachable(&self.server, &self.shown(request.name), &error),
            }
        })?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refusal(request, response))
    }

    fn refusal(&self, request: &Request<'_>, mut response: Response<Body>) -> Failure {
        let header = |name: &str| {
            let value = response.headers().get(name).and_then(|value| value.to_str().ok());
            value.map(|value| self.settings.credentials.redact(value))
        };
        let (date, region) = (header("date"), header("x-amz-bucket-region"));
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        // An incomplete reason of the server is shown as far as it was read.
        let length = response.body().content_length().unwrap_or(REFUSAL_BYTES_MAX).min(REFUSAL_BYTES_MAX);
        _ = response.body_mut().as_reader().take(length).read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        Refused {
            what: &self.shown(request.name),
            method: request.method,
            status,
            text: &self.settings.credentials.redact(&text),
            date: date.as_deref(),
            region: (region.as_deref(), &self.settings.region),
        }
        .failure()
    }

    /// The text of a successful answer.
    pub(crate) fn text(&self, request: &Request<'_>) -> Result<String, Failure> {
        let mut response = self.send_once(request)?;
        let bytes = self.bytes(request.name, &mut response, TEXT_BYTES_MAX)?;
        String::from_utf8(bytes).map_err(|_| {
            let what = format!("{}: an answer of {} is no text", self.shown(request.name), self.server);
            Failure::last(Error::new(ErrorKind::Unavailable, what))
        })
    }

    /// The content of an answer. One that is longer than `bytes_max` is an error.
    pub(crate) fn bytes(
        &self,
        name: Option<&str>,
        response: &mut Response<Body>,
        bytes_max: u64,
    ) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        // Never behind the end: ureq waits for more there.
        let length = response.body().content_length();
        let mut reader = response.body_mut().as_reader().take(length.unwrap_or(u64::MAX).min(bytes_max + 1));
        let mut buffer = [0; 16 << 10];
        loop {
            ThreadLimits::check().map_err(Failure::last)?;
            let count = reader.read(&mut buffer);
            match count.map_err(|error| unreachable(&self.server, &self.shown(name), &error.into()))? {
                0 => break,
                count => bytes.extend_from_slice(&buffer[..count]),
            }
        }
        let found = bytes.len() as u64;
        if found <= bytes_max && length.is_some_and(|length| found < length) {
            let what = format!("{}: an answer of {} ended too early", self.shown(name), self.server);
            return Err(Failure::transient(Error::new(ErrorKind::Unavailable, what)));
        }
        if found > bytes_max {
            let what = format!("{}: an answer of {} is too long", self.shown(name), self.server);
            return Err(Failure::last(Error::new(ErrorKind::Unavailable, what)));
        }
        Ok(bytes)
    }

    /// Calls `attempt` until it succeeds, or fails for a reason that does not pass. It says how much it has
    /// done so far: progress begins the number of attempts anew.
    pub(crate) fn with_retries<T>(
        &self,
        attempt: &mut dyn FnMut(&mut u64) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let (mut failures, mut done) = (0, 0);
        loop {
            let before = done;
            let mut failure = match attempt(&mut done) {
                Ok(result) => return Ok(result),
                Err(failure) => failure,
            };
            failures = if done > before { 1 } else { failures + 1 };
            if !failure.is_transient || failures >= ATTEMPTS_MAX {
                failure.attempts = failures;
                return Err(failure);
            }
            let delay = self.settings.retry_delay.saturating_mul(1 << (failures - 1)).min(RETRY_DELAY_MAX);
            // Between half of it and all, so that clients that failed together do not return together.
            sleep(delay.mul_f64(0.5 + fastrand::f64() / 2.0)).map_err(Failure::last)?;
        }
    }

    /// Sends a request until it is answered.
    pub(crate) fn send(&self, request: &Request<'_>) -> Result<Response<Body>, Failure> {
        self.with_retries(&mut |_| self.send_once(request))
    }
}

/// Scheme and host of the server of a bucket, and the path of the bucket there.
fn address(bucket: &str, settings: &Settings) -> (String, String) {
    if let Some(endpoint) = &settings.endpoint {
        let (scheme, rest) = endpoint.split_once("://").unwrap_or(("https", endpoint));
        let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        return (format!("{scheme}://{host}"), format!("{path}/{bucket}"));
    }
    let region = &settings.region;
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    // Certificates have no names with more dots, and names of hosts have no capitals.
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match bucket.bytes().all(is_plain) {
        true => (format!("https://{bucket}.s3.{region}.{domain}"), String::new()),
        false => (format!("https://s3.{region}.{domain}"), format!("/{bucket}")),
    }
}

/// The header that names the version of an object.
pub(crate) fn tag_of(response: &Response<Body>) -> String {
    let value = response.headers().get("etag").and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

/// Waits, unless the limits of the thread end it.
fn sleep(time: Duration) -> Result<()> {
    let begun = Instant::now();
    loop {
        ThreadLimits::check()?;
        let left = time.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(SLEEP_STEP));
    }
}

/// Reads some bytes of a file, unless the limits of the thread end it.
pub(crate) struct Part(io::Take<File>);

pub(crate) fn open_part(path: &Path, offset: u64, length: u64) -> io::Result<Part> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    Ok(Part(file.take(length)))
}

impl Read for Part {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        ThreadLimits::check().map_err(io::Error::other)?;
        self.0.read(into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Credentials;

    #[test]
    fn buckets_have_addresses() {
        let mut settings = Settings::new(Credentials::new("a", "b", None).expect("keys"));
        let mut of = |region: &str, endpoint: Option<&str>, bucket: &str| {
            settings.region = region.to_owned();
            settings.endpoint = endpoint.map(str::to_owned);
            let (server, root) = address(bucket, &settings);
            format!("{server} {root}")
        };
        assert_eq!(of("eu-west-1", None, "my-bucket"), "https://my-bucket.s3.eu-west-1.amazonaws.com ");
        assert_eq!(of("cn-north-1", None, "my-bucket"), "https://my-bucket.s3.cn-north-1.amazonaws.com.cn ");
        for bucket in ["my.bucket", "My_bucket"] {
            let expected = format!("https://s3.eu-west-1.amazonaws.com /{bucket}");
            assert_eq!(of("eu-west-1", None, bucket), expected);
        }
        assert_eq!(of("auto", Some("http://[::1]:9000"), "x"), "http://[::1]:9000 /x");
        assert_eq!(of("auto", Some("https://h/storage/s3"), "x"), "https://h /storage/s3/x");
    }
}
