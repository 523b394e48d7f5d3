//! Queries: how one is run for a request, and how its result gets to the client.
//!
//! # Shape
//! A query runs on a thread for light ones (`threads`), which holds a place (`state`) as long as it runs.
//! Once it is parsed and planned it is known to be light or heavy; a heavy one goes back to the connection's
//! task, which waits for a place for heavy ones, and runs on a thread for those. The result goes through
//! `stream`. Those that are known to be short never leave the connection's thread, and long texts go to a
//! thread for heavy ones at once (`admission`).
//! # Invariants
//! 1. When the client goes away, whatever the query is at, its token is cancelled.
//! 2. Only a whole answer comes from the connection's thread. A query that takes longer there, is refused,
//!    has more rows than are sent in one piece, or panics, runs again the usual way.

use crate::accept::{Accepted, GRAPHS, ROWS};
use crate::admission::{HERE, TEXT_LIGHT_BYTES_MAX, Tier};
use crate::encoding::Encoding;
use crate::metrics::{Kind, Metrics};
use crate::reply::{Body, Failure, Outcome, Reply};
use crate::request::Parameters;
use crate::route::Context;
use crate::running::{Description, Entry};
use crate::state::{CancelOnDrop, Running, State};
use crate::stream::{Chunks, HELD_BYTES, Patience, Sink, Start};
use crate::threads;
use crate::warned::{self, Said, WARNINGS};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, VARY};
use hyper::{Response, StatusCode};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use vervet::{Prepared, QueryOptions};
use vervet_model::{Error, ErrorKind};

/// A query as a request has it.
pub(crate) struct Asked {
    pub(crate) text: String,
    pub(crate) options: QueryOptions,
    pub(crate) accepted: Accepted,
    pub(crate) encoding: Encoding,
    /// Who asks; `None`: anonymous.
    pub(crate) user: Option<Arc<str>>,
}

/// What a light thread tells the connection.
pub(crate) enum Told {
    /// The result begins.
    Start(Start, &'static str, Said),
    /// It is a heavy one.
    Heavy(Box<Heavy>),
    /// Nothing comes of it.
    Failed(Failure),
}

/// A heavy query.
pub(crate) struct Heavy {
    /// `None`: not parsed yet.
    prepared: Option<Prepared>,
    running: Running,
    /// What it has taken so far of its timeout.
    taken: Duration,
}

/// What a request is told that somebody has stopped.
pub(crate) const STOPPED: &str = "the request was stopped by DELETE /api/queries";

/// The options of a query by the limits of the server.
///
/// # Errors
/// A parameter that is none.
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
pub(crate) async fn answer(state: &Arc<State>, mut asked: Asked) -> Outcome {
    if let Some((bytes, content_type, warnings)) = answer_here(state, &mut asked) {
        return Ok(whole(bytes, Encoding::Identity, content_type, warnings));
    }
    let running = state.place(Description::new(Kind::Query, asked.user.clone(), &asked.text)).await?;
    let guard = running.guard();
    asked.options.progress = Some(running.entry.progress.clone());
    let asked = Arc::new(asked);
    let told = if is_known_heavy(&asked) {
        Told::Heavy(Box::new(Heavy { prepared: None, running, taken: Duration::ZERO }))
    } else {
        let (on_thread, asked) = (Arc::clone(state), Arc::clone(&asked));
        threads::light(state, move |sender| first_try(&on_thread, &asked, running, sender)).await?
    };
    let told = match told {
        Told::Heavy(heavy) => {
            let Heavy { prepared, mut running, taken } = *heavy;
            state.heavy_place(&mut running).await?;
            let (on_thread, asked) = (Arc::clone(state), Arc::clone(&asked));
            let work = move |sender| run_heavy(&on_thread, &asked, (prepared, taken), running, sender);
            threads::heavy(state, work).await?
        }
        told => told,
    };
    reply(told, guard)
}

/// The whole answer of a query that is known to be short, and its type; `None`: it takes the usual way.
fn answer_here(state: &State, asked: &mut Asked) -> Option<Held> {
    let fingerprint = state.admission.of_query(asked)?;
    if !state.admission.is_short(fingerprint) {
        return None;
    }
    let begin = Instant::now();
    let most = asked.options.timeout;
    (asked.options.timeout, asked.options.started) = (Some(most.unwrap_or(HERE).min(HERE)), Some(begin));
    let answer = catch_unwind(AssertUnwindSafe(|| attempt_here(state, asked)));
    (asked.options.timeout, asked.options.started) = (most, None);
    let answer = answer.ok().and_then(Result::ok).flatten();
    match &answer {
        Some(_) => state.admission.ended(fingerprint, Tier::Here, begin.elapsed()),
        None => state.admission.too_much(fingerprint, Tier::Here),
    }
    answer
}

fn attempt_here(state: &State, asked: &Asked) -> vervet::Result<Option<Held>> {
    let prepared = state.database.prepare_with(&asked.text, &asked.options)?;
    if prepared.is_heavy(&asked.options)? {
        return Ok(None);
    }
    let offers = if prepared.is_graph() { GRAPHS } else { ROWS };
    let Ok((format, content_type)) = asked.accepted.choose(offers) else { return Ok(None) };
    let mut out = Piece { bytes: Vec::with_capacity(1 << 10), most: HELD_BYTES };
    let written = prepared.write_with(&asked.options, format, &mut out)?;
    state.metrics.rows_out.inc_by(written.rows);
    let warnings = warned::header(&prepared.warnings_after(written.rows)?);
    Ok(Some((out.bytes, content_type, warnings)))
}

/// An answer in one piece: bytes, content type, warnings.
type Held = (Vec<u8>, &'static str, Option<HeaderValue>);

/// Takes what is sent in one piece, and no more.
struct Piece {
    bytes: Vec<u8>,
    most: usize,
}

impl Write for Piece {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn first_try(state: &State, asked: &Asked, running: Running, sender: oneshot::Sender<Told>) {
    let begin = Instant::now();
    let prepared = state.database.prepare_with(&asked.text, &asked.options);
    let heavy = prepared.and_then(|prepared| {
        let heavy = prepared.is_heavy(&asked.options)?;
        Ok((prepared, heavy))
    });
    let prepared = match heavy {
        Err(error) => return tell(sender, Told::Failed(error.into())),
        Ok((prepared, true)) => {
            return tell(
                sender,
                Told::Heavy(Box::new(Heavy { prepared: Some(prepared), running, taken: begin.elapsed() })),
            );
        }
        Ok((prepared, false)) => prepared,
    };
    if run(state, asked, (&prepared, begin.elapsed()), running, sender) {
        took(state, asked, begin.elapsed());
    }
}

/// Whether it does not run among light ones: texts that take longer to parse and to plan than those run.
fn is_known_heavy(asked: &Asked) -> bool {
    asked.text.len() > TEXT_LIGHT_BYTES_MAX
}

/// Remembers what a query took the usual way.
fn took(state: &State, asked: &Asked, time: Duration) {
    if let Some(fingerprint) = state.admission.of_query(asked) {
        state.admission.ended(fingerprint, Tier::Light, time);
    }
}

fn run_heavy(
    state: &State,
    asked: &Asked,
    (prepared, taken): (Option<Prepared>, Duration),
    running: Running,
    sender: oneshot::Sender<Told>,
) {
    let begin = Instant::now();
    let prepared = match prepared {
        Some(prepared) => Ok(prepared),
        None => state.database.prepare_with(&asked.text, &asked.options),
    };
    match prepared {
        Err(error) => tell(sender, Told::Failed(error.into())),
        Ok(prepared) => {
            run(state, asked, (&prepared, taken + begin.elapsed()), running, sender);
        }
    }
}

/// Runs a query that has taken `taken` of its timeout; waiting for a heavy place does not count. Whether the
/// answer was sent as a whole.
fn run(
    state: &State,
    asked: &Asked,
    (prepared, taken): (&Prepared, Duration),
    running: Running,
    sender: oneshot::Sender<Told>,
) -> bool {
    let offers = if prepared.is_graph() { GRAPHS } else { ROWS };
    let (format, content_type) = match asked.accepted.choose(offers) {
        Ok(chosen) => chosen,
        Err(failure) => {
            tell(sender, Told::Failed(failure));
            return false;
        }
    };
    let mut options = asked.options.clone().with_cancel(&running.token);
    let now = Instant::now();
    let started = now.checked_sub(taken).unwrap_or(now);
    options.started = Some(started);
    let deadline = started + options.timeout.unwrap_or(state.options.limits.timeout);
    let said = Said::default();
    let warnings = Arc::clone(&said);
    let work = |out: &mut dyn Write| {
        let rows = prepared.write_with(&options, format, out)?.rows;
        if let Some(header) = warned::header(&prepared.warnings_after(rows)?) {
            // Nobody else sets it.
            let _ = warnings.set(header);
        }
        Ok(rows)
    };
    let (encoding, entry) = ((asked.encoding, deadline), &running.entry);
    let is_whole = produce(state, sender, (content_type, said), encoding, work, entry);
    note_plan(state, prepared, &options, &running);
    is_whole
}

/// Notes the plan of a slow request for its event.
fn note_plan(state: &State, prepared: &Prepared, options: &QueryOptions, running: &Running) {
    if state.options.slow_query.is_some_and(|slow| running.entry.time() >= slow)
        && let Ok(hash) = prepared.plan_hash(options)
    {
        running.entry.set_plan_hash(hash);
    }
}

/// Has `work` write a result, and sends it on its way; `work` gives the number of rows. Whether it was sent
/// as a whole.
pub(crate) fn produce(
    state: &State,
    sender: oneshot::Sender<Told>,
    (content_type, said): (&'static str, Said),
    (encoding, deadline): (Encoding, Instant),
    work: impl FnOnce(&mut dyn Write) -> vervet::Result<u64>,
    entry: &Entry,
) -> bool {
    let tell_start = move |start| Told::Start(start, content_type, said);
    let (write_timeout, cancel) = (state.options.limits.write_timeout, entry.token.clone());
    let patience = Patience { write_timeout, deadline, cancel };
    let mut sink = Sink::new(sender, tell_start, encoding, patience);
    let metrics: &Metrics = &state.metrics;
    // A panic drops the sink, which breaks the answer off.
    match work(&mut sink) {
        Ok(rows) => {
            metrics.rows_out.inc_by(rows);
            match sink.finish() {
                Ok(whole) => return whole,
                Err(_) => drop(metrics.broken.inc()),
            }
        }
        Err(error) => match sink.fail() {
            Some(sender) => tell(sender, Told::Failed(explain(error, state, entry))),
            None => {
                metrics.broken.inc();
            }
        },
    }
    false
}

/// An error with a hint that fits a server.
fn explain(error: Error, state: &State, entry: &Entry) -> Failure {
    let limits = &state.options.limits;
    match error.kind() {
        ErrorKind::Deadline => {
            let most = limits.timeout.as_secs_f64();
            error.with_hint(format!("ask for less; the server allows {most} s (--timeout)")).into()
        }
        ErrorKind::MemoryLimit => {
            let most = limits.memory_bytes;
            error.with_hint(format!("ask for less; the server allows {most} bytes (--memory)")).into()
        }
        ErrorKind::Cancelled if entry.is_stopped() => Failure::new(StatusCode::SERVICE_UNAVAILABLE, STOPPED),
        ErrorKind::Cancelled => {
            Failure::new(StatusCode::SERVICE_UNAVAILABLE, "the query was cancelled: the server is ending")
        }
        _ => error.into(),
    }
}

fn tell(sender: oneshot::Sender<Told>, told: Told) {
    // Nobody is there any more: then nobody needs to know.
    let _ = sender.send(told);
}

/// What the client gets.
pub(crate) fn reply(told: Told, mut guard: CancelOnDrop) -> Outcome {
    let (start, content_type, said) = match told {
        Told::Start(start, content_type, said) => (start, content_type, said),
        Told::Failed(failure) => {
            guard.disarm();
            return Err(failure);
        }
        Told::Heavy(_) => return Err(Error::internal("a query waits for a place that it has").into()),
    };
    Ok(match start {
        Start::Whole(bytes, encoding) => {
            guard.disarm();
            whole(bytes, encoding, content_type, said.get().cloned())
        }
        Start::Stream(receiver, encoding) => {
            let chunks = Chunks { receiver, ended: false, cancel: guard };
            found(Body::from(chunks), encoding, content_type)
        }
    })
}

/// An answer in one piece.
fn whole(
    bytes: Vec<u8>,
    encoding: Encoding,
    content_type: &'static str,
    warnings: Option<HeaderValue>,
) -> Reply {
    let mut reply = found(Body::from((bytes,)), encoding, content_type);
    if let Some(warnings) = warnings {
        reply.headers_mut().insert(WARNINGS, warnings);
    }
    reply
}

fn found(body: Body, encoding: Encoding, content_type: &'static str) -> Reply {
    let mut reply: Reply = Response::new(body);
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
    if let Some(name) = encoding.name() {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(name));
    }
    reply
}

/// Has `work` written as the answer: on a light thread, or in a heavy place if it is heavy. `name` is what
/// it is listed as.
pub(crate) async fn write(
    context: &Context<'_>,
    (name, is_heavy): (&str, bool),
    content_type: &'static str,
    (encoding, deadline): (Encoding, Instant),
    work: impl FnOnce(&State, &Running, &mut dyn Write) -> vervet::Result<u64> + Send + 'static,
) -> Outcome {
    let state = context.state;
    let mut running = state.place(context.describe(name)).await?;
    let guard = running.guard();
    if is_heavy {
        state.heavy_place(&mut running).await?;
    }
    let on_thread = Arc::clone(state);
    let write = move |sender| {
        let work = |out: &mut dyn Write| work(&on_thread, &running, out);
        produce(
            &on_thread,
            sender,
            (content_type, Said::default()),
            (encoding, deadline),
            work,
            &running.entry,
        );
        drop(running);
    };
    let told =
        if is_heavy { threads::heavy(state, write).await? } else { threads::light(state, write).await? };
    reply(told, guard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::{SHORT, TEXT_BYTES_MAX};
    use crate::auth::Users;
    use crate::options::ServerOptions;
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

    fn asked(text: &str) -> Asked {
        Asked {
            text: text.to_owned(),
            options: QueryOptions::default(),
            accepted: Accepted::default(),
            encoding: Encoding::Identity,
            user: None,
        }
    }

    #[test]
    fn a_text_that_was_short_is_answered_at_once() {
        let state = state();
        let mut short = asked("SELECT ?o { <urn:s:7> <urn:p> ?o }");
        assert!(answer_here(&state, &mut short).is_none(), "nothing is known of it");
        took(&state, &short, SHORT + Duration::from_nanos(1));
        assert!(answer_here(&state, &mut short).is_none(), "it was not short");
        took(&state, &short, SHORT);
        let whole = answer_here(&state, &mut short).expect("it was short");
        assert!(String::from_utf8(whole.0).unwrap().contains("value 7"));
        assert_eq!(whole.1, "application/sparql-results+json");
        let most = QueryOptions::default().timeout;
        assert_eq!(short.options.timeout, most, "the deadline of the usual way is as it was");
    }

    #[test]
    fn long_texts_are_heavy_before_they_are_parsed() {
        let text = "SELECT ?o { <urn:s:7> <urn:p> ?o }";
        assert!(!is_known_heavy(&asked(text)));
        assert!(is_known_heavy(&asked(&format!("{text}#{}", " ".repeat(TEXT_LIGHT_BYTES_MAX)))));
    }

    #[test]
    fn what_is_not_short_any_more_takes_the_usual_way() {
        let state = state();
        for text in [
            // Out of time, too many rows for one piece, heavy, wrong.
            "SELECT (COUNT(*) AS ?n) { ?a <urn:p> ?b . ?c <urn:p> ?d . FILTER(CONCAT(?b, ?d) = \"x\") }",
            "SELECT * { ?s <urn:p> ?o }",
            "SELECT * { ?a <urn:p> ?b . ?c <urn:p> ?d . ?e <urn:p> ?f }",
            "SELECT * {",
        ] {
            let mut asked = asked(text);
            took(&state, &asked, Duration::ZERO);
            let hash = state.admission.of_query(&asked).unwrap();
            assert!(state.admission.is_short(hash));
            assert!(answer_here(&state, &mut asked).is_none(), "{text}");
            assert!(!state.admission.is_short(hash), "the mark of {text} is gone");
        }
    }

    #[test]
    fn some_are_never_marked() {
        let state = state();
        let mut compressed = asked("ASK {}");
        compressed.encoding = Encoding::Gzip;
        let mut other_graphs = asked("ASK {}");
        other_graphs.options.dataset = Some(vervet::Dataset { default: Some(Vec::new()), named: None });
        let long = asked(&format!("ASK {{}} #{}", "x".repeat(TEXT_BYTES_MAX)));
        for asked in [compressed, other_graphs, long] {
            assert!(state.admission.of_query(&asked).is_none());
        }
    }
}
