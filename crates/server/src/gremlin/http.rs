//! The HTTP form of Gremlin: one request, one response, no session.
//!
//! The request is in the URL (`GET /gremlin?gremlin=…`), in JSON (`POST`), or in a WebSocket message as some
//! drivers send it. The response is one message, in the format that `Accept` prefers. Errors are HTTP errors.

use super::access::Access;
use super::authorize;
use super::error::GremlinError;
use super::request::{GremlinRequest, PreparedRequest};
use super::response::{BUFFERED_BYTES_MAX, MessageSink, Results};
use super::run::{explain, write_results};
use super::tier::{self, RunOutcome};
use super::upgrade;
use crate::admission::Tier;
use crate::context::RequestContext;
use crate::endpoints::query;
use crate::http::content_negotiation::quality;
use crate::http::encoding::Encoding;
use crate::http::reply::{Failure, Outcome, not_allowed};
use crate::http::request::{Parameters, TEXT_BYTES, read_body};
use crate::http::stream::{ResponseWriter, SendLimits};
use crate::http::warnings::{self, WarningsHeader};
use crate::operations::metrics::RequestKind;
use crate::operations::running::RequestDescription;
use crate::security::auth::random;
use crate::state::{RunningRequest, State};
use crate::worker_threads;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderMap};
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;
use uuid::Uuid;
use vervet::RowCounter;
use vervet::gremlin::{Map, Value};
use vervet_model::{Error, ErrorKind};
use vervet_tinkerpop::{Format, Limits, Request, graphson};

/// URL parameters that are arguments of `eval`.
const PARAMETERS: [&str; 5] =
    ["gremlin", "language", "evaluationTimeout", "batchSize", "materializeProperties"];
/// Prefix of the names of bindings in the URL.
const BINDING: &str = "bindings.";

/// Handles a request to `/gremlin`, or a WebSocket upgrade.
pub(crate) async fn answer(context: &mut RequestContext<'_>, body: Incoming) -> Outcome {
    let (state, parts) = (context.state, context.parts);
    if upgrade::is_upgrade_request(&parts.headers) {
        return upgrade::answer(context).await;
    }
    let is_post = match parts.method.as_str() {
        "GET" | "HEAD" => false,
        "POST" => true,
        _ => return Err(not_allowed("GET, HEAD, POST, OPTIONS")),
    };
    let access = authorize::of_request(context).await?;
    let format = format(&parts.headers)?;
    let limits = &state.options.limits;
    let (request, id) = if is_post {
        let body = read_body(context, body, TEXT_BYTES).await?;
        of_body(&body, Limits { bytes: limits.text_bytes, ..Limits::default() })?
    } else {
        (of_address(&Parameters::of_query(parts))?, None)
    };
    let id = match id {
        Some(id) => id,
        None => {
            let mut bytes = [0; 16];
            random(&mut bytes)?;
            uuid::Builder::from_random_bytes(bytes).into_uuid()
        }
    };
    let encoding = Encoding::choose(&parts.headers);
    let running = state
        .acquire_permit(RequestDescription::new(RequestKind::Gremlin, access.user(), &request.source_text()))
        .await?;
    let guard = running.guard();
    let progress = running.entry.progress.clone();
    let worker_state = Arc::clone(state);
    let result = worker_threads::light(&state.threads, move |sender| {
        let warnings_header = WarningsHeader::default();
        let prepared = request.prepare(&worker_state);
        let request_run =
            RequestRun { prepared, access, id, format, encoding, is_post, progress, warnings_header };
        request_run.run(&worker_state, running, Tier::Light, sender);
    })
    .await?;
    let result = match result {
        TierResult::Response(result) => result,
        TierResult::TooHeavy(heavy) => {
            let (request_run, mut running) = *heavy;
            state.acquire_heavy_permit(&mut running).await?;
            let worker_state = Arc::clone(state);
            match worker_threads::heavy(&state.threads, move |sender| {
                request_run.run(&worker_state, running, Tier::Heavy, sender)
            })
            .await?
            {
                TierResult::Response(result) => result,
                TierResult::TooHeavy(_) => {
                    return Err(Error::internal("a heavy request was sent on again").into());
                }
            }
        }
    };
    query::reply(result, guard)
}

/// The message of a worker thread to the connection.
enum TierResult {
    Response(query::WorkerResponse),
    TooHeavy(Box<(RequestRun, RunningRequest)>),
}

/// The work of a thread.
struct RequestRun {
    prepared: Result<PreparedRequest, GremlinError>,
    access: Access,
    id: Uuid,
    format: Format,
    encoding: Encoding,
    is_post: bool,
    progress: RowCounter,
    /// Set when the response is complete.
    warnings_header: WarningsHeader,
}

impl RequestRun {
    fn run(
        mut self,
        state: &State,
        running: RunningRequest,
        tier: Tier,
        sender: oneshot::Sender<TierResult>,
    ) {
        let bytes = match self.message(state, &running, tier) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return drop(sender.send(TierResult::TooHeavy(Box::new((self, running))))),
            Err(error) => {
                let failed = query::WorkerResponse::Failed(*explain(error, state).failure);
                return drop(sender.send(TierResult::Response(failed)));
            }
        };
        let mime = self.format.mime();
        let response_of = move |start| {
            TierResult::Response(query::WorkerResponse::Start(start, mime, self.warnings_header))
        };
        let limits = &state.options.limits;
        let deadline = Instant::now() + limits.timeout;
        let cancel = running.token.clone();
        let limits = SendLimits { write_timeout: limits.write_timeout, deadline, cancel };
        let mut writer = ResponseWriter::new(sender, response_of, self.encoding, limits);
        if writer.write_all(&bytes).and_then(|()| writer.finish().map(drop)).is_err() {
            state.metrics.broken.inc();
        }
    }

    /// The whole response: its status comes first. `None`: too much for the tier.
    fn message(
        &mut self,
        state: &State,
        running: &RunningRequest,
        tier: Tier,
    ) -> Result<Option<Vec<u8>>, GremlinError> {
        let prepared = match &mut self.prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                return Err(std::mem::replace(error, GremlinError::argument("the request was refused")));
            }
        };
        self.access.allow_script(&prepared.script, &state.options)?;
        let mutates = prepared.script.mutates();
        if mutates && !self.is_post {
            let failure = not_allowed("POST").hint("a traversal that writes is sent by POST");
            return Err(failure.into());
        }
        let bytes_max = state.options.limits.memory_bytes;
        prepared.result_options.batch = usize::MAX;
        let is_buffered = tier == Tier::Light && !mutates;
        let bytes_max = if is_buffered { bytes_max.min(BUFFERED_BYTES_MAX as u64) } else { bytes_max };
        prepared.result_options.message_bytes = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let (format, id, warnings_header) = (self.format, self.id, Arc::clone(&self.warnings_header));
        prepared.progress = Some(self.progress.clone());
        if tier == Tier::Light && state.admission.is_heavy(prepared.fingerprint) {
            return Ok(None);
        }
        let mut single = SingleMessage { bytes: Vec::new(), bytes_max, is_buffered };
        let outcome = tier::run_with_retries(state, prepared, tier, &running.token, &mut |prepared| {
            let mut has_begun = false;
            let results =
                Results::new(&mut single, format, id, Map::default(), prepared.result_options.clone());
            let done = results.and_then(|mut results| {
                let done = write_results(&mut results, prepared, |each| {
                    state.database.gremlin_each(&prepared.script, &prepared.options, each)
                });
                if done.is_ok() {
                    let warnings = results.warn(|| state.database.gremlin_warnings(&prepared.script))?;
                    if let Some(header) = warnings::header(&warnings) {
                        // Each attempt would set the same value.
                        let _ = warnings_header.set(header);
                    }
                }
                has_begun = results.has_sent_messages();
                done.map(|()| results.finish(state))
            });
            // Results of a write are sent after its commit.
            RunOutcome::of(done, tier == Tier::Light && !(mutates && has_begun))
        });
        match outcome {
            RunOutcome::Done(..) => Ok(Some(single.bytes)),
            RunOutcome::Failed(error) => Err(error),
            RunOutcome::TooHeavy => Ok(None),
        }
    }
}

/// A response of one message.
struct SingleMessage {
    bytes: Vec<u8>,
    bytes_max: u64,
    /// Whether a longer response belongs to the heavy tier.
    is_buffered: bool,
}

impl MessageSink for SingleMessage {
    fn write_message(&mut self, message: Vec<u8>, is_last: bool) -> vervet::Result<()> {
        if !is_last && self.is_buffered {
            return Err(Error::new(ErrorKind::Deadline, "the response is too long to be held"));
        }
        if !is_last {
            let message = format!("the response is longer than {} bytes", self.bytes_max);
            return Err(Error::new(ErrorKind::MemoryLimit, message));
        }
        self.bytes = message;
        Ok(())
    }
}

/// The format with the highest quality; of equal ones the first that the header names.
///
/// # Errors
/// 406 with the list of formats.
fn format(headers: &HeaderMap) -> Outcome<Format> {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let (mut best, mut has_entries) = (None, false);
    for entry in values.flat_map(|value| value.split(',')).map(str::trim).filter(|entry| !entry.is_empty()) {
        has_entries = true;
        let quality = quality(entry, entry.split(';').next().unwrap_or_default().trim());
        let format = match entry.split(';').next().map(str::trim) {
            Some("*/*" | "application/*") => Some(Format::Json),
            _ => Format::from_mime(entry),
        };
        if let Some(format) = format
            && quality > best.map_or(0, |(quality, _)| quality)
        {
            best = Some((quality, format));
        }
    }
    match best {
        Some((_, format)) => Ok(format),
        None if !has_entries => Ok(Format::Json),
        None => {
            let types: Vec<&str> = Format::ALL.into_iter().map(Format::mime).collect();
            Err(Failure::new(
                StatusCode::NOT_ACCEPTABLE,
                "none of the formats in Accept fits a result of Gremlin",
            )
            .hint(format!("available types: {}", types.join(", "))))
        }
    }
}

/// The request in the parameters of a URL.
fn of_address(parameters: &Parameters) -> Outcome<GremlinRequest> {
    let mut args = Map::default();
    for name in PARAMETERS {
        if let Some(value) = parameters.one(name)? {
            let value = match name {
                "evaluationTimeout" | "batchSize" => json(value),
                _ => Value::text(value),
            };
            args.insert(Value::text(name), value);
        }
    }
    let bindings: Map =
        parameters.with_prefix(BINDING).map(|(name, value)| (Value::text(name), json(value))).collect();
    args.insert(Value::text("bindings"), bindings.into());
    GremlinRequest::text(args).map_err(|error| *error.failure)
}

/// A value in a URL: JSON; invalid JSON is a string.
fn json(text: &str) -> Value {
    graphson::read(text.as_bytes(), Limits::default()).unwrap_or_else(|_| Value::text(text))
}

/// The maximum characters of a plain text that a hint repeats.
const PLAIN_TEXT_MAX: usize = 200;

/// The failure of a body that is plain text such as `g.V()`, or a form: neither JSON nor a message.
fn of_plain_text(body: &[u8]) -> Option<Failure> {
    let text = std::str::from_utf8(body).ok()?.trim();
    // A message begins with the length of its MIME type, which names the format.
    let is_json = text.starts_with('{') || serde_json::from_str::<serde_json::Value>(text).is_ok();
    let is_message = is_json || text.get(..48).unwrap_or(text).contains("application/");
    if is_message || text.contains(|c: char| c.is_control() && !c.is_whitespace()) {
        return None;
    }
    let is_traversal = text.starts_with("g.") && text.chars().count() <= PLAIN_TEXT_MAX;
    let traversal = if is_traversal { text } else { "g.V().count()" };
    let example = serde_json::json!({ "gremlin": traversal });
    let message = match text {
        "" => "the body is empty, and not a request in JSON",
        _ => "the body is plain text, and not a request in JSON",
    };
    Some(Failure::bad(message).hint(format!("send {example}; \"bindings\" may hold the values of variables")))
}

/// The request in a body, and its id if it has one.
///
/// # Errors
/// 400: neither JSON nor a message.
fn of_body(body: &[u8], limits: Limits) -> Outcome<(GremlinRequest, Option<Uuid>)> {
    if let Some(failure) = of_plain_text(body) {
        return Err(failure);
    }
    let bad = |error: &dyn std::fmt::Display| {
        Failure::bad(format!("the body is not a request: {error}"))
            .hint("send JSON such as {\"gremlin\": \"g.V().count()\", \"bindings\": {}}")
    };
    let request = match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => {
            let value = graphson::read(body, limits).map_err(|error| bad(&error))?;
            let Value::Map(args) = value else { return Err(bad(&"it is not an object")) };
            if !args.contains_key(&Value::text("op")) {
                let request = GremlinRequest::text(args.as_ref().clone()).map_err(|error| *error.failure)?;
                return Ok((request, None));
            }
            Request::read(body, Format::GraphSon3, limits)
        }
        _ => Request::read_frame(body, limits).map(|(_, request)| request),
    };
    let Request { id, op, args, processor } = request.map_err(|error| bad(&error))?;
    let request = match (&*processor, &*op) {
        ("", "eval") => GremlinRequest::text(args),
        ("traversal", "bytecode") => GremlinRequest::bytecode(args),
        _ => {
            let message = format!("over HTTP the processor {processor:?} has no operation {op:?}");
            return Err(Failure::bad(message).hint("sessions and credentials need a WebSocket"));
        }
    };
    Ok((request.map_err(|error| *error.failure)?, Some(id)))
}
