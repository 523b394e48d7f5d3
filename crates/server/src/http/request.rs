//! Parts of a request: its body within limits, its media type, its parameters.

use crate::context::RequestContext;
use crate::http::reply::{Failure, Outcome};
use crate::options::{BODY_BYTES_PER_SECOND_MIN, Limits};
use crate::state::overloaded;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode};
use std::time::Duration;
use tokio::time::Instant;
use vervet::{Dataset, NamedNode};

/// Maximum length of the name of a parameter in a message.
const NAME_CHARACTERS_MAX: usize = 40;

/// The media type of a body without parameters, in lower case, and its `charset` and `boundary`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MediaType {
    pub(crate) name: String,
    pub(crate) charset: Option<String>,
    pub(crate) boundary: Option<String>,
}

impl MediaType {
    /// `None`: not stated.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(Self::parse)
    }

    pub(crate) fn parse(text: &str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let mut media_type = Self { name, ..Self::default() };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"').to_owned();
            if name.trim().eq_ignore_ascii_case("charset") {
                media_type.charset = Some(value);
            } else if name.trim().eq_ignore_ascii_case("boundary") {
                media_type.boundary = Some(value);
            }
        }
        media_type
    }

    /// # Errors
    /// 415 for a character set other than UTF-8.
    pub(crate) fn check_charset(&self) -> Outcome<()> {
        match &self.charset {
            Some(charset)
                if !charset.eq_ignore_ascii_case("utf-8") && !charset.eq_ignore_ascii_case("utf8") =>
            {
                let message = format!("the character set {charset} is not supported");
                Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message).hint("send UTF-8"))
            }
            _ => Ok(()),
        }
    }
}

/// Bytes of earlier messages of a transaction that another server sends on.
const FORWARDED_BYTES_MORE: usize = 2 << 20;

/// A limit on the length of a body.
#[derive(Clone, Copy)]
pub(crate) struct BodyLimit {
    /// Its name in the configuration.
    name: &'static str,
    of: fn(&Limits) -> usize,
}

/// The limit of queries, updates, forms, messages.
pub(crate) const TEXT_BYTES: BodyLimit = BodyLimit { name: "text_bytes", of: |limits| limits.text_bytes };
/// The limit of documents.
pub(crate) const DOCUMENT_BYTES: BodyLimit =
    BodyLimit { name: "document_bytes", of: |limits| limits.document_bytes };

/// The limit of messages that another server sends on: [`Limits::text_bytes`] for one, and those before it.
pub(crate) const FORWARDED_BYTES: BodyLimit =
    BodyLimit { name: "text_bytes", of: |limits| limits.text_bytes.saturating_add(FORWARDED_BYTES_MORE) };

/// Reads the body of a request. Received bytes count against [`Limits::bodies_bytes`] until the end of the
/// request.
///
/// # Errors
/// 413 if it exceeds its limit, 408 if it arrives too slowly, 415 if it is compressed, 503 if the memory for
/// bodies is exhausted.
pub(crate) async fn read_body(
    context: &RequestContext<'_>,
    mut body: Incoming,
    limit: BodyLimit,
) -> Outcome<Bytes> {
    let (state, headers) = (context.state, &context.parts.headers);
    let limits = &state.options.limits;
    let bytes_max = (limit.of)(limits);
    let too_long = || {
        let message = format!("the body is longer than {bytes_max} bytes");
        let hint = format!("the limit is {} in [limits] of the configuration", limit.name);
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, message).hint(hint)
    };
    let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > bytes_max as u64) || body.size_hint().lower() > bytes_max as u64
    {
        return Err(too_long());
    }
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        let message = "bodies with a Content-Encoding are not supported";
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message).hint("send it uncompressed"));
    }
    let begin = Instant::now();
    let mut buffer = BytesMut::new();
    let mut first: Option<Bytes> = None;
    let mut reservation = state.body_memory.reserve();
    loop {
        // A slow trickle of bytes earns no more time than the average rate allows.
        let earned = Duration::from_secs(buffer.len() as u64 / BODY_BYTES_PER_SECOND_MIN);
        let idle = Instant::now() + limits.body_timeout;
        let deadline = idle.min(begin + limits.body_timeout + earned);
        let frame = match tokio::time::timeout_at(deadline, body.frame()).await {
            Err(_) => return Err(Failure::new(StatusCode::REQUEST_TIMEOUT, "the body arrived too slowly")),
            Ok(None) => break,
            Ok(Some(Err(error))) => return Err(Failure::bad(format!("the body could not be read: {error}"))),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        let length = buffer.len() + first.as_ref().map_or(0, Bytes::len) + data.len();
        if length > bytes_max {
            return Err(too_long());
        }
        if !reservation.grow(length) && !reservation.grow_within(length, limits.queue_timeout).await {
            return Err(overloaded(
                "the memory for request bodies is exhausted",
                limits.queue_timeout.as_secs(),
            ));
        }
        state.metrics.bytes_in.inc_by(data.len() as u64);
        // Most bodies arrive in one piece, which needs no copy.
        if first.is_none() && buffer.is_empty() {
            first = Some(data);
        } else {
            if let Some(first) = first.take() {
                buffer.extend_from_slice(&first);
            }
            buffer.extend_from_slice(&data);
        }
    }
    let body = first.unwrap_or_else(|| buffer.freeze());
    context.hold_body(&body, reservation);
    Ok(body)
}

/// A body as text.
///
/// # Errors
/// 400 if it is not UTF-8.
pub(crate) fn text(body: &Bytes) -> Outcome<String> {
    match std::str::from_utf8(body) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(Failure::bad(format!("the body is not UTF-8 (byte {})", error.valid_up_to()))),
    }
}

/// Parameters of the URL and of a form, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub(crate) fn of_query(parts: &Parts) -> Self {
        let mut parameters = Self::default();
        parameters.extend(parts.uri.query().unwrap_or_default().as_bytes());
        parameters
    }

    /// Adds the parameters of a form.
    pub(crate) fn extend(&mut self, form: &[u8]) {
        self.0.extend(
            form_urlencoded::parse(form).map(|(name, value)| (name.into_owned(), value.into_owned())),
        );
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(other, _)| other == name)
    }

    /// # Errors
    /// 400 for a parameter whose name is not among `known`.
    pub(crate) fn check_known(&self, known: &[&str]) -> Outcome<()> {
        let Some((name, _)) = self.0.iter().find(|(name, _)| !known.contains(&name.as_str())) else {
            return Ok(());
        };
        let shown: String = name.chars().take(NAME_CHARACTERS_MAX).collect();
        let hint = match vervet_model::nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("the parameters are {}", known.join(", ")),
        };
        Err(Failure::bad(format!("unknown parameter {shown:?}")).hint(hint))
    }

    /// The value of a parameter that may occur once.
    ///
    /// # Errors
    /// 400 if it occurs twice.
    pub(crate) fn one(&self, name: &str) -> Outcome<Option<&str>> {
        let mut values = self.all(name);
        let value = values.next();
        match values.next() {
            Some(_) => Err(Failure::bad(format!("the parameter {name} is given twice"))),
            None => Ok(value),
        }
    }

    /// The values of a parameter that may occur several times.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// Parameters whose name begins with `prefix`, without it.
    pub(crate) fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
    }

    /// A parameter that is `true` or `false`; `false` if it is not given.
    ///
    /// # Errors
    /// 400 for another value.
    pub(crate) fn flag(&self, name: &str) -> Outcome<bool> {
        match self.one(name)? {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Failure::bad(format!("{name} must be true or false"))),
        }
    }

    /// The dataset in two parameters; `None` if neither is given.
    ///
    /// # Errors
    /// 400 for a value that is not an IRI.
    pub(crate) fn dataset(&self, default: &str, named: &str) -> Outcome<Option<Dataset>> {
        if !self.has(default) && !self.has(named) {
            return Ok(None);
        }
        let list = |name: &str| -> Outcome<Vec<NamedNode>> {
            let mut list = Vec::new();
            for value in self.all(name) {
                let graph = iri(name, value)?;
                if !list.contains(&graph) {
                    list.push(graph);
                }
            }
            Ok(list)
        };
        Ok(Some(Dataset { default: Some(list(default)?), named: Some(list(named)?) }))
    }

    /// The timeout of the request, at most the server's.
    ///
    /// # Errors
    /// 400 for a value that is not a number of seconds above 0.
    pub(crate) fn timeout(&self, most: Duration) -> Outcome<Duration> {
        let Some(value) = self.one("timeout")? else { return Ok(most) };
        match value.parse::<f64>() {
            Ok(seconds) if seconds > 0.0 && seconds.is_finite() => {
                Ok(Duration::from_secs_f64(seconds.min(most.as_secs_f64())))
            }
            _ => Err(Failure::bad(format!("timeout={value} is not a number of seconds"))),
        }
    }
}

/// The IRI in a parameter.
///
/// # Errors
/// 400 if it is not an IRI.
pub(crate) fn iri(name: &str, value: &str) -> Outcome<NamedNode> {
    NamedNode::new(value).map_err(|error| {
        Failure::bad(format!("{name}={value} is not an absolute IRI: {error}"))
            .hint("percent-encode it, as in graph=http%3A%2F%2Fexample.org%2Fg")
    })
}

/// The URL of `path` as the client used it, as far as the server can know it: the base of relative IRIs.
pub(crate) fn address(parts: &Parts, tls: bool, path: &str) -> Option<NamedNode> {
    let host = parts.headers.get(HOST)?.to_str().ok()?;
    NamedNode::new(format!("{}://{host}{path}", if tls { "https" } else { "http" })).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_have_parameters() {
        let parsed = MediaType::parse("Text/Turtle; Charset=\"UTF-8\"");
        assert_eq!((parsed.name.as_str(), parsed.charset.as_deref()), ("text/turtle", Some("UTF-8")));
        parsed.check_charset().expect("UTF-8 is fine");
        assert!(MediaType::parse("text/turtle;charset=latin-1").check_charset().is_err());
        assert_eq!(MediaType::parse("multipart/form-data; boundary=a").boundary.as_deref(), Some("a"));
    }

    #[test]
    fn parameters_are_decoded_and_counted() {
        let mut parameters = Parameters::default();
        parameters.extend(b"query=ASK%20%7B%7D&timeout=0.5&named-graph-uri=urn%3Aa&named-graph-uri=urn%3Aa");
        assert_eq!(parameters.one("query").unwrap(), Some("ASK {}"));
        assert!(parameters.one("named-graph-uri").is_err());
        let dataset = parameters.dataset("default-graph-uri", "named-graph-uri").unwrap().unwrap();
        assert_eq!((dataset.default.unwrap().len(), dataset.named.unwrap().len()), (0, 1));
        assert_eq!(parameters.timeout(Duration::from_secs(60)).unwrap(), Duration::from_millis(500));
        assert_eq!(parameters.timeout(Duration::from_millis(1)).unwrap(), Duration::from_millis(1));
        parameters.extend(b"default-graph-uri=relative");
        assert!(parameters.dataset("default-graph-uri", "x").is_err());
        for wrong in ["0", "-1", "nan", "inf", "x", ""] {
            let mut parameters = Parameters::default();
            parameters.extend(format!("timeout={wrong}").as_bytes());
            assert!(parameters.timeout(Duration::from_secs(1)).is_err(), "{wrong}");
        }
    }
}
