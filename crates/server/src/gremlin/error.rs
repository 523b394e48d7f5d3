//! Gremlin errors, with the status codes of the protocol.

use crate::http::reply::Failure;
use crate::operations::metrics::RequestKind;
use hyper::StatusCode;
use vervet::gremlin::{Map, Value};
use vervet_model::{Error, ErrorKind};
use vervet_tinkerpop::{Status, WriteError};

pub(super) const SUCCESS: i32 = 200;
pub(super) const NO_CONTENT: i32 = 204;
pub(super) const PARTIAL_CONTENT: i32 = 206;
pub(super) const UNAUTHORIZED: i32 = 401;
pub(super) const FORBIDDEN: i32 = 403;
pub(super) const AUTHENTICATE: i32 = 407;
pub(super) const UNREADABLE: i32 = 497;
pub(super) const MALFORMED: i32 = 498;
pub(super) const BAD_ARGUMENTS: i32 = 499;
const SERVER_ERROR: i32 = 500;
const FAIL_STEP: i32 = 595;
pub(super) const TEMPORARY: i32 = 596;
const EVALUATION: i32 = 597;
const TIMEOUT: i32 = 598;
const UNWRITABLE: i32 = 599;

/// Why a request failed.
#[derive(Debug)]
pub(super) struct GremlinError {
    pub(super) code: i32,
    pub(super) failure: Box<Failure>,
    /// The message of `fail()`, if the script called it.
    failed: Option<String>,
}

impl GremlinError {
    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, failure: Box::new(Failure::bad(message)), failed: None }
    }

    /// An invalid argument of a request.
    pub(super) fn argument(message: impl Into<String>) -> Self {
        Self::new(BAD_ARGUMENTS, message)
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.failure = Box::new(self.failure.hint(hint));
        self
    }

    /// An error of a script whose `fail()` steps have these messages.
    pub(super) fn of_script(error: Error, fails: &[String]) -> Self {
        let message = error.message().to_owned();
        let mut error = Self::from(error);
        if error.code == EVALUATION && fails.contains(&message) {
            error.code = FAIL_STEP;
            error.failed = Some(message);
        }
        error
    }

    /// Whether a login may resolve the failure.
    pub(super) fn is_challenge(&self) -> bool {
        self.code == AUTHENTICATE
    }

    /// Whether another server of the cluster would take the request.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.failure.is_elsewhere()
    }

    /// Whether the deadline was exceeded.
    pub(super) fn is_deadline(&self) -> bool {
        self.code == TIMEOUT
    }

    /// Logs the failure at a level that reflects its relevance to the operator.
    pub(super) fn log(&self) {
        let (status, kind, message) = (self.code, RequestKind::Gremlin.name(), self.failure.text());
        match self.code {
            SERVER_ERROR | UNWRITABLE => {
                tracing::error!(kind, status, error = message.as_str(), "request failed")
            }
            TIMEOUT => tracing::warn!(kind, status, error = message.as_str(), "request failed"),
            TEMPORARY if self.failure.kind() == "conflict" => {
                tracing::info!(kind, status, error = message.as_str(), "transaction refused");
            }
            TEMPORARY => tracing::warn!(kind, status, error = message.as_str(), "request failed"),
            _ => tracing::debug!(kind, status, error = message.as_str(), "request refused"),
        }
    }

    pub(super) fn status(&self, mut attributes: Map) -> Status {
        let message = self.failure.text();
        let kind = Value::text(format!("vervet.{}", self.failure.kind()));
        attributes.insert(Value::text("exceptions"), Value::list(vec![kind]));
        attributes.insert(Value::text("stackTrace"), Value::text(&message));
        if let Some(failed) = &self.failed {
            attributes.insert(Value::text("failStepMessage"), Value::text(failed));
        }
        Status { code: self.code, message, attributes }
    }
}

impl From<Error> for GremlinError {
    fn from(error: Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Query | ErrorKind::Unsupported => EVALUATION,
            ErrorKind::Deadline => TIMEOUT,
            ErrorKind::Conflict | ErrorKind::Cancelled | ErrorKind::Unavailable => TEMPORARY,
            _ => SERVER_ERROR,
        };
        Self { code, failure: Box::new(error.into()), failed: None }
    }
}

impl From<WriteError> for GremlinError {
    fn from(error: WriteError) -> Self {
        let failure = Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
        Self { code: UNWRITABLE, failure: Box::new(failure), failed: None }
    }
}

impl From<Failure> for GremlinError {
    fn from(failure: Failure) -> Self {
        let code = match failure.status {
            StatusCode::UNAUTHORIZED => AUTHENTICATE,
            StatusCode::FORBIDDEN => FORBIDDEN,
            StatusCode::SERVICE_UNAVAILABLE => TEMPORARY,
            status if status.is_client_error() => BAD_ARGUMENTS,
            _ => SERVER_ERROR,
        };
        Self { code, failure: Box::new(failure), failed: None }
    }
}
