//! Queries: classification, execution and response.
//!
//! # Shape
//! A query runs on a pool thread (`worker_threads`) and holds a permit (`state`) while it runs. Parsing and
//! planning determine whether it is heavy. A heavy query returns to the task of the connection, which waits
//! for a heavy permit and runs it on a heavy thread. Results pass through `stream`. Queries with a
//! fingerprint of short ones run on the I/O thread, and long texts go to a heavy thread directly
//! (`admission`).
//! # Invariants
//! 1. When the client disconnects, the token of the query is cancelled, in every stage.
//! 2. The fast path sends only complete responses. A query that exceeds its time limit or its buffer there,
//!    is heavy, fails, or panics runs again on a worker thread.

use crate::admission::{FAST_PATH_TIME_MAX, TEXT_BYTES_MAX, TEXT_LIGHT_BYTES_MAX, Tier};
use crate::cancel::CancelOnDrop;
use crate::context::RequestContext;
use crate::http::chunks::ChunkStream;
use crate::http::content_negotiation::{AcceptHeader, GRAPH_FORMATS, SOLUTION_FORMATS};
use crate::http::encoding::Encoding;
use crate::http::reply::{Body, Failure, Outcome, Reply};
use crate::http::request::Parameters;
use crate::http::stream::{BUFFERED_BYTES_MAX, ResponseWriter, ResultStart, SendLimits};
use crate::http::warnings::{self, WARNINGS, WarningsHeader};
use crate::operations::metrics::{Metrics, RequestKind};
use crate::operations::running::{RegistryEntry, RequestDescription, STOPPED};
use crate::state::{RunningRequest, State};
use crate::worker_threads;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, VARY};
use hyper::{Response, StatusCode};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use vervet::{Prepared, QueryOptions};
use vervet_model::{Error, ErrorKind};

/// A query with its options.
pub(crate) struct QueryRequest {
    pub(crate) text: String,
    pub(crate) options: QueryOptions,
    pub(crate) accepted: AcceptHeader,
    pub(crate) encoding: Encoding,
    /// The user; `None`: anonymous.
    pub(crate) user: Option<Arc<str>>,
}

/// The message of a worker thread to the task of the connection.
pub(crate) enum WorkerResponse {
    /// The beginning of the result, its content type and its warnings.
    Start(ResultStart, &'static str, WarningsHeader),
    /// The query is heavy.
    Heavy(Box<HeavyQuery>),
    /// The query failed before its result began.
    Failed(Failure),
}

/// A heavy query.
pub(crate) struct HeavyQuery {
    /// `None`: not parsed yet.
    prepared: Option<Prepared>,
    running: RunningRequest,
    /// The part of its timeout used so far.
    elapsed: Duration,
}

/// Query options from the limits of the server and the parameters of a request.
///
/// # Errors
/// 400 for an invalid parameter.
pub(crate) fn options(state: &State, parameters: &Parameters) -> Outcome<QueryOptions> {
    let limits = &state.options.limits;
    Ok(QueryOptions {
        timeout: Some(parameters.timeout(limits.timeout)?),
        memory_limit_bytes: Some(limits.memory_bytes),
        threads: limits.threads,
        ..QueryOptions::default()
    })
}

/// Runs a query.
pub(crate) async fn answer(state: &Arc<State>, mut request: QueryRequest) -> Outcome {
    if let Some((bytes, content_type, warnings)) = try_fast_path(state, &mut request) {
        return Ok(full_response(bytes, Encoding::Identity, content_type, warnings));
    }
    let running = state
        .acquire_permit(RequestDescription::new(RequestKind::Query, request.user.clone(), &request.text))
        .await?;
    let guard = running.guard();
    request.options.progress = Some(running.entry.progress.clone());
    let request = Arc::new(request);
    let response = if is_heavy_by_length(&request) {
        WorkerResponse::Heavy(Box::new(HeavyQuery { prepared: None, running, elapsed: Duration::ZERO }))
    } else {
        let (worker_state, request) = (Arc::clone(state), Arc::clone(&request));
        worker_threads::light(&state.threads, move |sender| {
            run_light(&worker_state, &request, running, sender)
        })
        .await?
    };
    let response = match response {
        WorkerResponse::Heavy(heavy) => {
            let HeavyQuery { prepared, mut running, elapsed } = *heavy;
            state.acquire_heavy_permit(&mut running).await?;
            let (worker_state, request) = (Arc::clone(state), Arc::clone(&request));
            let work = move |sender| run_heavy(&worker_state, &request, (prepared, elapsed), running, sender);
            worker_threads::heavy(&state.threads, work).await?
        }
        response => response,
    };
    reply(response, guard)
}

/// The complete result of a query on the fast path; `None`: it must run on a worker thread.
fn try_fast_path(state: &State, request: &mut QueryRequest) -> Option<CompleteResult> {
    let fingerprint = query_fingerprint(state, request)?;
    if !state.admission.is_short(fingerprint) {
        return None;
    }
    let begin = Instant::now();
    let timeout = request.options.timeout;
    (request.options.timeout, request.options.started) =
        (Some(timeout.unwrap_or(FAST_PATH_TIME_MAX).min(FAST_PATH_TIME_MAX)), Some(begin));
    let answer = catch_unwind(AssertUnwindSafe(|| run_fast_path(state, request)));
    (request.options.timeout, request.options.started) = (timeout, None);
    let answer = answer.ok().and_then(Result::ok).flatten();
    match &answer {
        Some(_) => state.admission.record_success(fingerprint, Tier::FastPath, begin.elapsed()),
        None => state.admission.record_rejection(fingerprint, Tier::FastPath),
    }
    answer
}

fn run_fast_path(state: &State, request: &QueryRequest) -> vervet::Result<Option<CompleteResult>> {
    let prepared = state.database.prepare_with(&request.text, &request.options)?;
    if prepared.is_heavy(&request.options)? {
        return Ok(None);
    }
    let offers = if prepared.is_graph() { GRAPH_FORMATS } else { SOLUTION_FORMATS };
    let Ok((format, content_type)) = request.accepted.choose(offers) else { return Ok(None) };
    let mut out = BoundedBuffer { bytes: Vec::with_capacity(1 << 10), bytes_max: BUFFERED_BYTES_MAX };
    let written = prepared.write_with(&request.options, format, &mut out)?;
    state.metrics.rows_out.inc_by(written.rows);
    let warnings = warnings::header(&prepared.warnings_after(written.rows)?);
    Ok(Some((out.bytes, content_type, warnings)))
}

/// A complete result: bytes, content type, warnings.
type CompleteResult = (Vec<u8>, &'static str, Option<HeaderValue>);

/// A buffer that refuses to grow beyond `bytes_max`.
struct BoundedBuffer {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl Write for BoundedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.bytes_max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn run_light(
    state: &State,
    request: &QueryRequest,
    running: RunningRequest,
    sender: oneshot::Sender<WorkerResponse>,
) {
    let begin = Instant::now();
    let prepared = state.database.prepare_with(&request.text, &request.options);
    let heavy = prepared.and_then(|prepared| {
        let heavy = prepared.is_heavy(&request.options)?;
        Ok((prepared, heavy))
    });
    let prepared = match heavy {
        Err(error) => return send_response(sender, WorkerResponse::Failed(error.into())),
        Ok((prepared, true)) => {
            return send_response(
                sender,
                WorkerResponse::Heavy(Box::new(HeavyQuery {
                    prepared: Some(prepared),
                    running,
                    elapsed: begin.elapsed(),
                })),
            );
        }
        Ok((prepared, false)) => prepared,
    };
    if run(state, request, (&prepared, begin.elapsed()), running, sender) {
        record_time(state, request, begin.elapsed());
    }
}

/// Whether the length of the text alone makes it heavy: parsing and planning it takes longer than a light
/// query.
fn is_heavy_by_length(request: &QueryRequest) -> bool {
    request.text.len() > TEXT_LIGHT_BYTES_MAX
}

/// The fingerprint of a query; `None` if it never takes the fast path: a compressed response, a dataset in
/// the request, a long text.
fn query_fingerprint(state: &State, request: &QueryRequest) -> Option<u64> {
    let is_usual = request.encoding == Encoding::Identity && request.options.dataset.is_none();
    (is_usual && request.text.len() <= TEXT_BYTES_MAX).then(|| state.admission.fingerprint(&request.text))
}

/// Records the time of a query on a light thread.
fn record_time(state: &State, request: &QueryRequest, time: Duration) {
    if let Some(fingerprint) = query_fingerprint(state, request) {
        state.admission.record_success(fingerprint, Tier::Light, time);
    }
}

fn run_heavy(
    state: &State,
    request: &QueryRequest,
    (prepared, elapsed): (Option<Prepared>, Duration),
    running: RunningRequest,
    sender: oneshot::Sender<WorkerResponse>,
) {
    let begin = Instant::now();
    let prepared = match prepared {
        Some(prepared) => Ok(prepared),
        None => state.database.prepare_with(&request.text, &request.options),
    };
    match prepared {
        Err(error) => send_response(sender, WorkerResponse::Failed(error.into())),
        Ok(prepared) => {
            run(state, request, (&prepared, elapsed + begin.elapsed()), running, sender);
        }
    }
}

/// Runs a query that has used `elapsed` of its timeout; waiting for a heavy permit does not count. Returns
/// whether the response was sent in one piece.
fn run(
    state: &State,
    request: &QueryRequest,
    (prepared, elapsed): (&Prepared, Duration),
    running: RunningRequest,
    sender: oneshot::Sender<WorkerResponse>,
) -> bool {
    let offers = if prepared.is_graph() { GRAPH_FORMATS } else { SOLUTION_FORMATS };
    let (format, content_type) = match request.accepted.choose(offers) {
        Ok(chosen) => chosen,
        Err(failure) => {
            send_response(sender, WorkerResponse::Failed(failure));
            return false;
        }
    };
    let mut options = request.options.clone().with_cancel(&running.token);
    let now = Instant::now();
    let started = now.checked_sub(elapsed).unwrap_or(now);
    options.started = Some(started);
    let deadline = started + options.timeout.unwrap_or(state.options.limits.timeout);
    let warnings_header = WarningsHeader::default();
    let warnings = Arc::clone(&warnings_header);
    let work = |out: &mut dyn Write| {
        let rows = prepared.write_with(&options, format, out)?.rows;
        if let Some(header) = warnings::header(&prepared.warnings_after(rows)?) {
            // Set once per response.
            let _ = warnings.set(header);
        }
        Ok(rows)
    };
    let (encoding, entry) = ((request.encoding, deadline), &running.entry);
    let is_complete = produce(state, sender, (content_type, warnings_header), encoding, work, entry);
    record_plan_hash(state, prepared, &options, &running);
    is_complete
}

/// Records the plan hash of a slow request for the slow-query log.
fn record_plan_hash(state: &State, prepared: &Prepared, options: &QueryOptions, running: &RunningRequest) {
    if state.options.slow_query.is_some_and(|slow| running.entry.time() >= slow)
        && let Ok(hash) = prepared.plan_hash(options)
    {
        running.entry.set_plan_hash(hash);
    }
}

/// Runs `work`, which writes a result and returns its number of rows, and sends the result. Returns whether
/// the response was sent in one piece.
pub(crate) fn produce(
    state: &State,
    sender: oneshot::Sender<WorkerResponse>,
    (content_type, warnings_header): (&'static str, WarningsHeader),
    (encoding, deadline): (Encoding, Instant),
    work: impl FnOnce(&mut dyn Write) -> vervet::Result<u64>,
    entry: &RegistryEntry,
) -> bool {
    let response_of = move |start| WorkerResponse::Start(start, content_type, warnings_header);
    let (write_timeout, cancel) = (state.options.limits.write_timeout, entry.token.clone());
    let limits = SendLimits { write_timeout, deadline, cancel };
    let mut writer = ResponseWriter::new(sender, response_of, encoding, limits);
    let metrics: &Metrics = &state.metrics;
    // A panic drops the writer, which aborts the response.
    match work(&mut writer) {
        Ok(rows) => {
            metrics.rows_out.inc_by(rows);
            match writer.finish() {
                Ok(is_complete) => return is_complete,
                Err(_) => drop(metrics.broken.inc()),
            }
        }
        Err(error) => match writer.fail() {
            Some(sender) => send_response(sender, WorkerResponse::Failed(explain(error, state, entry))),
            None => {
                metrics.broken.inc();
            }
        },
    }
    false
}

/// Converts an error, with a hint about the limits of the server.
fn explain(error: Error, state: &State, entry: &RegistryEntry) -> Failure {
    let limits = &state.options.limits;
    match error.kind() {
        ErrorKind::Deadline => {
            let seconds = limits.timeout.as_secs_f64();
            error.with_hint(format!("ask for less; the server allows {seconds} s (--timeout)")).into()
        }
        ErrorKind::MemoryLimit => {
            let bytes_max = limits.memory_bytes;
            error.with_hint(format!("ask for less; the server allows {bytes_max} bytes (--memory)")).into()
        }
        ErrorKind::Cancelled if entry.is_stopped() => Failure::new(StatusCode::SERVICE_UNAVAILABLE, STOPPED),
        ErrorKind::Cancelled => {
            Failure::new(StatusCode::SERVICE_UNAVAILABLE, "the query was cancelled: the server is ending")
        }
        _ => error.into(),
    }
}

fn send_response(sender: oneshot::Sender<WorkerResponse>, response: WorkerResponse) {
    // If the receiver is gone, the client has disconnected.
    let _ = sender.send(response);
}

/// Converts the message of a worker into a response.
pub(crate) fn reply(response: WorkerResponse, mut guard: CancelOnDrop) -> Outcome {
    let (start, content_type, warnings_header) = match response {
        WorkerResponse::Start(start, content_type, warnings_header) => (start, content_type, warnings_header),
        WorkerResponse::Failed(failure) => {
            guard.disarm();
            return Err(failure);
        }
        WorkerResponse::Heavy(_) => {
            return Err(Error::internal("a query with a heavy permit was classified as heavy again").into());
        }
    };
    Ok(match start {
        ResultStart::Full(bytes, encoding) => {
            guard.disarm();
            full_response(bytes, encoding, content_type, warnings_header.get().cloned())
        }
        ResultStart::Stream(receiver, encoding) => {
            let chunks = ChunkStream { receiver, ended: false, cancel: guard };
            response_with_headers(Body::from(chunks), encoding, content_type)
        }
    })
}

/// A response in one piece.
fn full_response(
    bytes: Vec<u8>,
    encoding: Encoding,
    content_type: &'static str,
    warnings: Option<HeaderValue>,
) -> Reply {
    let mut reply = response_with_headers(Body::from((bytes,)), encoding, content_type);
    if let Some(warnings) = warnings {
        reply.headers_mut().insert(WARNINGS, warnings);
    }
    reply
}

fn response_with_headers(body: Body, encoding: Encoding, content_type: &'static str) -> Reply {
    let mut reply: Reply = Response::new(body);
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
    if let Some(name) = encoding.name() {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(name));
    }
    reply
}

/// Responds with the output of `work`, which runs on a light thread, or with a heavy permit if `is_heavy`.
/// `name` is the text in the list of running requests.
pub(crate) async fn write(
    context: &RequestContext<'_>,
    (name, is_heavy): (&str, bool),
    content_type: &'static str,
    (encoding, deadline): (Encoding, Instant),
    work: impl FnOnce(&State, &RunningRequest, &mut dyn Write) -> vervet::Result<u64> + Send + 'static,
) -> Outcome {
    let state = context.state;
    let mut running = state.acquire_permit(context.describe(name)).await?;
    let guard = running.guard();
    if is_heavy {
        state.acquire_heavy_permit(&mut running).await?;
    }
    let worker_state = Arc::clone(state);
    let write = move |sender| {
        let work = |out: &mut dyn Write| work(&worker_state, &running, out);
        produce(
            &worker_state,
            sender,
            (content_type, WarningsHeader::default()),
            (encoding, deadline),
            work,
            &running.entry,
        );
        drop(running);
    };
    let response = if is_heavy {
        worker_threads::heavy(&state.threads, write).await?
    } else {
        worker_threads::light(&state.threads, write).await?
    };
    reply(response, guard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::SHORT_TIME_MAX;
    use crate::options::ServerOptions;
    use crate::security::auth::Users;
    use vervet::{Database, Format};

    fn state() -> State {
        let database = Database::in_memory();
        let text: String = (0..2000).map(|n| format!("<urn:s:{n}> <urn:p> \"value {n}\" .\n")).collect();
        database.load_text(Format::NTriples, &text).unwrap();
        let options = ServerOptions::default();
        let metrics = Arc::default();
        let users = Users::new(&options, &metrics).unwrap();
        State::new(database, options, users, metrics)
    }

    fn request(text: &str) -> QueryRequest {
        QueryRequest {
            text: text.to_owned(),
            options: QueryOptions::default(),
            accepted: AcceptHeader::default(),
            encoding: Encoding::Identity,
            user: None,
        }
    }

    #[test]
    fn short_queries_take_the_fast_path() {
        let state = state();
        let mut short = request("SELECT ?o { <urn:s:7> <urn:p> ?o }");
        assert!(try_fast_path(&state, &mut short).is_none(), "its fingerprint is unknown");
        record_time(&state, &short, SHORT_TIME_MAX + Duration::from_nanos(1));
        assert!(try_fast_path(&state, &mut short).is_none(), "it was not short");
        // On a busy machine it may take longer than the fast path allows, and is no short one then.
        let mut attempts = (0..1_000).filter_map(|_| {
            record_time(&state, &short, SHORT_TIME_MAX);
            try_fast_path(&state, &mut short)
        });
        let full_response = attempts.next().expect("its fingerprint is short");
        assert!(String::from_utf8(full_response.0).unwrap().contains("value 7"));
        assert_eq!(full_response.1, "application/sparql-results+json");
        let timeout = QueryOptions::default().timeout;
        assert_eq!(short.options.timeout, timeout, "the options are restored");
    }

    #[test]
    fn long_texts_are_heavy_before_they_are_parsed() {
        let text = "SELECT ?o { <urn:s:7> <urn:p> ?o }";
        assert!(!is_heavy_by_length(&request(text)));
        assert!(is_heavy_by_length(&request(&format!("{text}#{}", " ".repeat(TEXT_LIGHT_BYTES_MAX)))));
    }

    #[test]
    fn queries_beyond_fast_path_limits_run_on_worker_threads() {
        let state = state();
        for text in [
            // Over the time limit, over the buffer limit, heavy, a syntax error.
            "SELECT (COUNT(*) AS ?n) { ?a <urn:p> ?b . ?c <urn:p> ?d . FILTER(CONCAT(?b, ?d) = \"x\") }",
            "SELECT * { ?s <urn:p> ?o }",
            "SELECT * { ?a <urn:p> ?b . ?c <urn:p> ?d . ?e <urn:p> ?f }",
            "SELECT * {",
        ] {
            let mut request = request(text);
            record_time(&state, &request, Duration::ZERO);
            let hash = query_fingerprint(&state, &request).unwrap();
            assert!(state.admission.is_short(hash));
            assert!(try_fast_path(&state, &mut request).is_none(), "{text}");
            assert!(!state.admission.is_short(hash), "the fingerprint of {text} is cleared");
        }
    }

    #[test]
    fn some_queries_have_no_fingerprint() {
        let state = state();
        let mut compressed = request("ASK {}");
        compressed.encoding = Encoding::Gzip;
        let mut other_graphs = request("ASK {}");
        other_graphs.options.dataset = Some(vervet::Dataset { default: Some(Vec::new()), named: None });
        let long = request(&format!("ASK {{}} #{}", "x".repeat(TEXT_BYTES_MAX)));
        for request in [compressed, other_graphs, long] {
            assert!(query_fingerprint(&state, &request).is_none());
        }
    }
}
