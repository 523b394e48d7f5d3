//! Responses: bodies, and failures as status, text or JSON.
//!
//! # Invariants
//! A body that ends is complete. If its producer fails half way, the body fails and hyper aborts the
//! connection, so no client can mistake a part for the whole.

use crate::http::chunks::{ChunkStream, IncompleteBody};
use crate::operations::metrics::RequestTimer;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use vervet_model::{Error, ErrorKind, Position};

/// A response.
pub(crate) type Reply = Response<Body>;

/// The body of a response.
#[derive(Default)]
pub(crate) struct Body {
    content: Content,
    /// Notified at the end of the response.
    pub(crate) timer: Option<RequestTimer>,
    /// Counts the requests in progress of a connection, by its clones.
    pub(crate) in_progress: Option<Arc<()>>,
}

#[derive(Default)]
enum Content {
    #[default]
    None,
    Full(Bytes),
    Stream(ChunkStream),
}

impl From<ChunkStream> for Body {
    fn from(chunks: ChunkStream) -> Self {
        Self { content: Content::Stream(chunks), timer: None, in_progress: None }
    }
}

impl<B: Into<Bytes>> From<(B,)> for Body {
    fn from((bytes,): (B,)) -> Self {
        Self { content: Content::Full(bytes.into()), timer: None, in_progress: None }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = IncompleteBody;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, IncompleteBody>>> {
        let next = match &mut self.content {
            Content::None => None,
            Content::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                self.content = Content::None;
                Some(Ok(bytes))
            }
            Content::Stream(chunks) => match chunks.poll_next(context) {
                Poll::Ready(next) => next,
                Poll::Pending => return Poll::Pending,
            },
        };
        if let (Some(timer), Some(Ok(bytes))) = (&mut self.timer, &next) {
            timer.add_bytes(bytes.len());
        }
        Poll::Ready(next.map(|next| next.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::None => true,
            Content::Full(bytes) => bytes.is_empty(),
            Content::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::None => SizeHint::with_exact(0),
            Content::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

/// A complete response of this type.
pub(crate) fn full(status: StatusCode, content_type: &str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Body::from((body,)));
    *reply.status_mut() = status;
    set(&mut reply, CONTENT_TYPE, content_type);
    reply
}

/// A response without a body.
pub(crate) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Body::default());
    *reply.status_mut() = status;
    reply
}

/// Sets a header; an invalid value is left out.
pub(crate) fn set(reply: &mut Reply, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        reply.headers_mut().insert(name, value);
    }
}

/// A failed request and its reason.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    kind: &'static str,
    message: String,
    hint: Option<String>,
    position: Option<Position>,
    headers: Vec<(HeaderName, String)>,
    /// Another server of the cluster would take the request.
    is_elsewhere: bool,
}

/// The result of a handler.
pub(crate) type Outcome<T = Reply> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let kind = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::MISDIRECTED_REQUEST => {
                "permission"
            }
            StatusCode::SERVICE_UNAVAILABLE => "unavailable",
            _ => "request",
        };
        Self {
            status,
            kind,
            message: message.into(),
            hint: None,
            position: None,
            headers: Vec::new(),
            is_elsewhere: false,
        }
    }

    /// A mistake in the request: 400.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same failure, of a request that another server of the cluster would take.
    pub(crate) fn elsewhere(mut self) -> Self {
        self.is_elsewhere = true;
        self
    }

    /// Whether another server of the cluster would take the request.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.is_elsewhere
    }

    /// The message, followed by its hint if there is one.
    pub(crate) fn text(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}\nhint: {hint}", self.message),
            None => self.message.clone(),
        }
    }

    /// The kind of the failure, in a word.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    pub(crate) fn header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The response, as JSON or as text.
    pub(crate) fn reply(self, json: bool) -> Reply {
        let mut reply = if json {
            let (line, column) = (self.position.map(|at| at.line), self.position.and_then(|at| at.column));
            let error = serde_json::json!({
                "error": {
                    "kind": self.kind, "message": self.message, "hint": self.hint, "line": line, "column": column,
                }
            });
            full(self.status, "application/json", error.to_string() + "\n")
        } else {
            let hint = self.hint.map(|hint| format!("hint: {hint}\n")).unwrap_or_default();
            full(self.status, "text/plain; charset=utf-8", format!("error: {}\n{hint}", self.message))
        };
        for (name, value) in self.headers {
            set(&mut reply, name, &value);
        }
        reply
    }
}

/// 405 with the allowed methods.
pub(crate) fn not_allowed(allowed: &str) -> Failure {
    let message = "this address does not take that method";
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, message)
        .hint(format!("it takes {allowed}"))
        .header(ALLOW, allowed)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (status, kind) = match error.kind() {
            ErrorKind::Query => (StatusCode::BAD_REQUEST, "query"),
            ErrorKind::Input => (StatusCode::BAD_REQUEST, "input"),
            ErrorKind::Unsupported => (StatusCode::BAD_REQUEST, "unsupported"),
            ErrorKind::Conflict => (StatusCode::CONFLICT, "conflict"),
            ErrorKind::Constraint => (StatusCode::CONFLICT, "constraint"),
            ErrorKind::Deadline => (StatusCode::GATEWAY_TIMEOUT, "deadline"),
            ErrorKind::MemoryLimit => (StatusCode::INSUFFICIENT_STORAGE, "memory"),
            ErrorKind::Cancelled => (StatusCode::SERVICE_UNAVAILABLE, "cancelled"),
            ErrorKind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
            ErrorKind::Corrupt => (StatusCode::INTERNAL_SERVER_ERROR, "corrupt"),
            ErrorKind::Io => (StatusCode::INTERNAL_SERVER_ERROR, "io"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        };
        Self {
            status,
            kind,
            message: error.message().to_owned(),
            hint: error.hint().map(str::to_owned),
            position: error.position(),
            headers: Vec::new(),
            is_elsewhere: false,
        }
    }
}
