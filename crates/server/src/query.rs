//! Queries: how one is run for a request, and how its result gets to the client.
//!
//! # Shape
//! A query runs on a blocking thread, which holds a place (`state`) as long as it runs. Once it is parsed and planned it
//! is known to be light or heavy; a heavy one goes back to the connection's task, which waits for a place for heavy ones, and
//! runs on a thread for those (`heavy`). The result goes through `stream`. Those that are known to be short never leave the connection's
//! thread (`swift`).
//! # Invariants
//! When the client goes away, whatever the query is at, its token is cancelled.

use crate::accept::{Accepted, GRAPHS, ROWS};
use crate::encoding::Encoding;
use crate::metrics::Metrics;
use crate::reply::{Body, Failure, Outcome, Reply};
use crate::request::Parameters;
use crate::state::{CancelOnDrop, Running, State};
use crate::stream::{Chunks, Sink, Start};
use crate::{heavy, swift};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, VARY};
use hyper::{Response, StatusCode};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tokio::sync::oneshot;
use vervet::{OutputFormat, Prepared, QueryOptions};
use vervet_model::{Error, ErrorKind};

/// A query as a request has it.
pub(crate) struct Asked {
    pub(crate) text: String,
    pub(crate) options: QueryOptions,
    pub(crate) accepted: Accepted,
    pub(crate) encoding: Encoding,
}

/// What a blocking thread tells the connection.
pub(crate) enum Told {
    /// The result begins.
    Start(Start, &'static str),
    /// It is a heavy one.
    Heavy(Box<(Prepared, Running)>),
    /// Nothing comes of it.
    Failed(Failure),
}

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
    if let Some(answer) = swift::answer(state, &mut asked) {
        return Ok(whole(answer.bytes, Encoding::Identity, answer.content_type));
    }
    let running = state.place().await?;
    let guard = running.guard();
    let asked = Arc::new(asked);
    let told = {
        let (state, asked) = (Arc::clone(state), Arc::clone(&asked));
        blocking(move |sender| first_try(&state, &asked, running, sender)).await?
    };
    let told = match told {
        Told::Heavy(heavy) => {
            let (prepared, mut running) = *heavy;
            state.heavy_place(&mut running).await?;
            let (on_thread, asked) = (Arc::clone(state), Arc::clone(&asked));
            let work = move |sender| {
                run(&on_thread, &asked, &prepared, running, sender);
            };
            heavy::run(state, work).await?
        }
        told => told,
    };
    reply(told, guard)
}

/// Has `work` done on a blocking thread, and waits for what it tells first.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce(oneshot::Sender<T>) + Send + 'static,
) -> Outcome<T> {
    let (sender, receiver) = oneshot::channel();
    tokio::task::spawn_blocking(move || work(sender));
    receiver.await.map_err(|_| Error::internal("a query ended without an answer").into())
}

fn first_try(state: &State, asked: &Asked, running: Running, sender: oneshot::Sender<Told>) {
    let begin = Instant::now();
    let prepared = state.database.prepare_with(&asked.text, &asked.options);
    let heavy = prepared.and_then(|prepared| {
        let heavy = prepared.is_heavy(&asked.options)?;
        Ok((prepared, heavy))
    });
    match heavy {
        Err(error) => tell(sender, Told::Failed(error.into())),
        Ok((prepared, true)) => tell(sender, Told::Heavy(Box::new((prepared, running)))),
        Ok((prepared, false)) => {
            if run(state, asked, &prepared, running, sender) {
                state.swift.took(asked, begin.elapsed());
            }
        }
    }
}

/// Whether the answer was sent as a whole.
fn run(
    state: &State,
    asked: &Asked,
    prepared: &Prepared,
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
    let options = asked.options.clone().with_cancel(&running.token);
    let work = |out: &mut dyn Write| Ok(prepared.write_with(&options, format, out)?.rows);
    produce(state, sender, content_type, asked.encoding, work)
}

/// Has `work` write a result, and sends it on its way; `work` gives the number of rows. Whether it was sent as a whole.
pub(crate) fn produce(
    state: &State,
    sender: oneshot::Sender<Told>,
    content_type: &'static str,
    encoding: Encoding,
    work: impl FnOnce(&mut dyn Write) -> vervet::Result<u64>,
) -> bool {
    let tell_start = move |start| Told::Start(start, content_type);
    let mut sink = Sink::new(sender, tell_start, encoding, state.options.limits.write_timeout);
    let metrics: &Metrics = &state.metrics;
    // A panic drops the sink, which breaks the answer off.
    match work(&mut sink) {
        Ok(rows) => {
            metrics.rows_out.fetch_add(rows, Ordering::Relaxed);
            match sink.finish() {
                Ok(whole) => return whole,
                Err(_) => drop(metrics.broken.fetch_add(1, Ordering::Relaxed)),
            }
        }
        Err(error) => match sink.fail() {
            Some(sender) => tell(sender, Told::Failed(explain(error, state))),
            None => {
                metrics.broken.fetch_add(1, Ordering::Relaxed);
            }
        },
    }
    false
}

/// An error with a hint that fits a server.
fn explain(error: Error, state: &State) -> Failure {
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
    let (start, content_type) = match told {
        Told::Start(start, content_type) => (start, content_type),
        Told::Failed(failure) => {
            guard.disarm();
            return Err(failure);
        }
        Told::Heavy(_) => return Err(Error::internal("a query waits for a place that it has").into()),
    };
    Ok(match start {
        Start::Whole(bytes, encoding) => {
            guard.disarm();
            whole(bytes, encoding, content_type)
        }
        Start::Stream(receiver, encoding) => {
            let chunks = Chunks { receiver, ended: false, cancel: guard };
            found(Body::from(chunks), encoding, content_type)
        }
    })
}

/// An answer in one piece.
fn whole(bytes: Vec<u8>, encoding: Encoding, content_type: &'static str) -> Reply {
    found(Body::from((bytes,)), encoding, content_type)
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

/// The statements of one graph.
pub(crate) async fn graph(
    state: &Arc<State>,
    graph: Option<vervet::NamedNode>,
    format: OutputFormat,
    content_type: &'static str,
    encoding: Encoding,
) -> Outcome {
    let running = state.place().await?;
    let guard = running.guard();
    let options = options(state, &Parameters::default())?.with_cancel(&running.token);
    let work_state = Arc::clone(state);
    let told = blocking(move |sender| {
        let work = |out: &mut dyn Write| {
            Ok(work_state.database.write_graph(graph.as_ref(), &options, format, out)?.rows)
        };
        produce(&work_state, sender, content_type, encoding, work);
        drop(running);
    })
    .await?;
    reply(told, guard)
}
