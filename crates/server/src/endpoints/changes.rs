//! `/changes`: the change feed, as a response up to the newest commit, or as a stream of server-sent events.
//!
//! # Shape
//! A *response* has the commits after `after=` up to the newest one as of the request, or `limit=` of them,
//! and the header `Vervet-Position`, which is the `after=` of the next request. It is written by a worker
//! thread at the pace of the client, like an export.
//!
//! A *stream* is a task without a thread. It waits for commits ([`FeedStreams`]) and until the client has
//! read all that was sent; then a worker thread writes the next commits, about [`BURST_BYTES`] of them, to a
//! short channel. Only a commit that does not fit into the channel holds the thread while the client reads,
//! within the limits of an export.
//! # Invariants
//! 1. A response and a stream have whole commits, in order, without gaps; otherwise they break off.
//! 2. A client that does not read for the write timeout loses its stream. It can resume after the last event
//!    that it has.

use crate::cancel::CancelOnDrop;
use crate::context::RequestContext;
use crate::endpoints::{query, update};
use crate::http::chunks::{Chunk, ChunkStream};
use crate::http::content_negotiation::AcceptHeader;
use crate::http::encoding::Encoding;
use crate::http::reply::{Body, Failure, Outcome, Reply, empty, not_allowed, set};
use crate::http::request::Parameters;
use crate::http::stream::{CHUNKS, ChunkWriter, SendLimits};
use crate::operations::feed_streams::FeedPermit;
use crate::operations::running::RequestDescription;
use crate::options::Role;
use crate::state::{State, overloaded};
use crate::worker_threads;
use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, VARY};
use hyper::{Method, StatusCode};
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use vervet::{
    CancelToken, Error, ErrorKind, Feed, FeedFormat, FeedLimits, FeedPosition, FeedRefusal, QueryOptions,
};

/// The position after a response, or of an export.
pub(crate) const POSITION: HeaderName = HeaderName::from_static("vervet-position");

/// The position after the last event that a client of a stream has.
const LAST_EVENT: &str = "last-event-id";

const PARAMETERS: [&str; 4] = ["after", "limit", "format", "timeout"];

/// Formats by media type.
const FORMATS: &[(&str, FeedFormat, &str)] = &[
    ("application/x-ndjson", FeedFormat::JsonLines, "application/x-ndjson"),
    ("application/jsonl", FeedFormat::JsonLines, "application/jsonl"),
    ("application/json", FeedFormat::JsonLines, "application/x-ndjson"),
    ("application/rdf-patch", FeedFormat::RdfPatch, "application/rdf-patch"),
    ("text/event-stream", FeedFormat::Events, "text/event-stream"),
];

/// A response with this many commits or more is a heavy request.
const HEAVY_COMMITS: u64 = 200;

/// A worker thread writes no further commit to a stream after this many bytes: as many fit into the channel.
const BURST_BYTES: u64 = 64 << 10;

/// Time between two looks at whether an idle stream has been given up.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// An idle stream sends a comment each time after this many checks.
const HEARTBEAT_CHECKS: u32 = 15;

/// A stream ends after this time; the client connects again, and is authorized again.
const STREAM_TIME_MAX: Duration = Duration::from_secs(3600);

/// Handles a request.
pub(crate) async fn answer(context: &mut RequestContext<'_>) -> Outcome {
    let parts = context.parts;
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return Err(not_allowed("GET, HEAD, OPTIONS"));
    }
    context.allow(Role::Read).await?;
    let state = context.state;
    if !has_feed(state) {
        return Err(Failure::new(StatusCode::NOT_FOUND, "this server has no change feed")
            .hint("it does not write the log of its database: it was started with --read-only"));
    }
    let parameters = Parameters::of_query(parts);
    parameters.check_known(&PARAMETERS)?;
    let (format, content_type) = format(context, &parameters)?;
    let after = after(context, &parameters, format)?;
    let limit = limit(&parameters)?;
    if format == FeedFormat::Events {
        if limit != u64::MAX || parameters.has("timeout") {
            return Err(Failure::bad("a stream of events has no limit and no timeout")
                .hint("leave `limit` and `timeout` out, or ask for another format"));
        }
        return stream(context, after).await;
    }
    let timeout = parameters.timeout(state.options.limits.export_timeout)?;
    let started = Instant::now();
    let deadline = started + timeout;
    let mut feed = open(state, context.describe("changes"), after).await?;
    let (begin, end) = (feed.position().commit.0, feed.end().timestamp);
    let commits = end.0.saturating_sub(begin).min(limit);
    let position = feed.position_of(vervet::Timestamp(begin + commits)).to_string();
    if parts.method == Method::HEAD {
        let mut reply = empty(StatusCode::OK);
        set(&mut reply, CONTENT_TYPE, content_type);
        set(&mut reply, POSITION, &position);
        return Ok(reply);
    }
    let name = format!("changes after {}", feed.position());
    let encoding = Encoding::choose(&parts.headers);
    let mut options = query::options(state, &Parameters::default())?;
    (options.timeout, options.started) = (Some(timeout), Some(started));
    let mut reply = query::write(
        context,
        (&name, commits >= HEAVY_COMMITS),
        content_type,
        (encoding, deadline),
        move |state, running, out| {
            let mut options = options.with_cancel(&running.token);
            options.progress = Some(running.entry.progress.clone());
            let limits = FeedLimits { commits, ..FeedLimits::default() };
            let written = state.database.write_feed(&mut feed, format, limits, &options, out);
            written.map_err(|refusal| match refusal.into_error() {
                error if error.kind() == ErrorKind::Io && Instant::now() >= deadline => {
                    Error::new(ErrorKind::Deadline, "reading the changes took too long")
                }
                error => error,
            })
        },
    )
    .await?;
    set(&mut reply, POSITION, &position);
    set(&mut reply, CACHE_CONTROL, "no-store");
    Ok(reply)
}

/// Whether the database may have a change feed: a process that only reads a directory does not open its log.
pub(crate) fn has_feed(state: &State) -> bool {
    !state.options.read_only || state.options.cluster.is_some()
}

fn format(context: &RequestContext<'_>, parameters: &Parameters) -> Outcome<(FeedFormat, &'static str)> {
    match parameters.one("format")? {
        None => AcceptHeader::of(&context.parts.headers).choose(FORMATS),
        Some("json") => Ok((FeedFormat::JsonLines, "application/x-ndjson")),
        Some("rdf-patch") => Ok((FeedFormat::RdfPatch, "application/rdf-patch")),
        Some("events") => Ok((FeedFormat::Events, "text/event-stream")),
        Some(_) => Err(Failure::bad("unknown format").hint("format is json, rdf-patch or events")),
    }
}

/// The position at which to begin. A client that resumes a stream sends its last event with the address that
/// it began with.
fn after(
    context: &RequestContext<'_>,
    parameters: &Parameters,
    format: FeedFormat,
) -> Outcome<Option<FeedPosition>> {
    let last_event = context.parts.headers.get(LAST_EVENT).filter(|_| format == FeedFormat::Events);
    let text = match last_event {
        Some(value) => Some(value.to_str().unwrap_or("?")).filter(|text| !text.is_empty()),
        None => None,
    };
    let text = match text {
        Some(text) => Some(text),
        None => parameters.one("after")?,
    };
    Ok(text.map(str::parse).transpose()?)
}

fn limit(parameters: &Parameters) -> Outcome<u64> {
    match parameters.one("limit")? {
        None => Ok(u64::MAX),
        Some(text) => match text.parse::<u64>() {
            Ok(limit) if limit > 0 => Ok(limit),
            _ => Err(Failure::bad("limit is not a number of commits above 0")),
        },
    }
}

/// Finds a position in the log, on a worker thread.
async fn open(
    state: &Arc<State>,
    description: RequestDescription,
    after: Option<FeedPosition>,
) -> Outcome<Feed> {
    let is_behind = is_behind(state);
    let opened = update::work(state, description, move |state, _| Ok(state.database.feed(after))).await?;
    opened.map_err(|refusal| refused(refusal, is_behind))
}

/// Whether other servers of the cluster may have commits that this one does not have yet.
fn is_behind(state: &State) -> bool {
    state.options.cluster.as_ref().is_some_and(|cluster| !cluster.takes_changes())
}

fn refused(refusal: FeedRefusal, is_behind: bool) -> Failure {
    match refusal {
        FeedRefusal::Future(_) if is_behind => {
            let what = "this server does not have the commit of that position yet";
            overloaded(what, 1).hint("ask again in a moment, or another server")
        }
        FeedRefusal::Gone(error) => with_status(StatusCode::GONE, &error),
        FeedRefusal::Future(error) => with_status(StatusCode::BAD_REQUEST, &error),
        FeedRefusal::Failed(error) if error.kind() == ErrorKind::Unsupported => {
            with_status(StatusCode::NOT_FOUND, &error)
        }
        FeedRefusal::Failed(error) => error.into(),
    }
}

fn with_status(status: StatusCode, error: &Error) -> Failure {
    let failure = Failure::new(status, error.message());
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// A stream of events.
async fn stream(context: &RequestContext<'_>, after: Option<FeedPosition>) -> Outcome {
    let state = context.state;
    if context.parts.method == Method::HEAD {
        let mut reply = empty(StatusCode::OK);
        set(&mut reply, CONTENT_TYPE, "text/event-stream");
        return Ok(reply);
    }
    let Some(permit) = state.feed_streams.acquire() else {
        return Err(overloaded("too many streams of changes", 5));
    };
    let feed = open(state, context.describe("changes"), after).await?;
    let (sender, receiver) = mpsc::channel(CHUNKS);
    let token = CancelToken::new();
    let chunks = ChunkStream { receiver, ended: false, cancel: CancelOnDrop::new(token.clone()) };
    let mut reply = Reply::new(Body::from(chunks));
    set(&mut reply, CONTENT_TYPE, "text/event-stream");
    set(&mut reply, CACHE_CONTROL, "no-store");
    set(&mut reply, VARY, "Accept");
    set(&mut reply, POSITION, &feed.position().to_string());
    // Proxies that buffer responses would hold events back.
    set(&mut reply, HeaderName::from_static("x-accel-buffering"), "no");
    let description = context.describe(&format!("stream of changes after {}", feed.position()));
    let stream = EventStream { state: Arc::clone(state), sender, token, description };
    tokio::spawn(stream.run(feed, permit));
    Ok(reply)
}

/// The task of a stream.
struct EventStream {
    state: Arc<State>,
    sender: mpsc::Sender<Chunk>,
    /// Cancelled when the client is gone.
    token: CancelToken,
    description: RequestDescription,
}

/// How a burst has ended.
enum Burst {
    /// The rest of the commits, or the next ones, may follow.
    Written(Box<Feed>),
    /// The server has too many requests, or the writer of the log does not answer: the stream waits.
    Postponed(Box<Feed>),
    /// The client is gone or reads too slowly, or the log cannot be read.
    Broken,
    /// The log no longer has the next commit.
    Gone(Error),
}

impl EventStream {
    async fn run(self, feed: Feed, mut permit: FeedPermit) {
        let begin = Instant::now();
        let mut feed = Box::new(feed);
        let mut checks = 0;
        // The first bytes show the client that the stream is open.
        if !self.send(": vervet\n\n".into()).await {
            return;
        }
        loop {
            if permit.is_ending() || begin.elapsed() >= STREAM_TIME_MAX {
                _ = self.send_chunk(Chunk::End).await;
                return;
            }
            if permit.newest() > feed.position().commit {
                checks = 0;
                match self.burst(feed).await {
                    Burst::Written(next) => feed = next,
                    Burst::Postponed(next) => {
                        feed = next;
                        tokio::time::sleep(CHECK_INTERVAL).await;
                    }
                    Burst::Broken => return,
                    Burst::Gone(error) => {
                        let hint = error.hint().unwrap_or_default().to_owned();
                        let data = serde_json::json!({ "message": error.message(), "hint": hint });
                        let event = format!("event: gone\ndata: {data}\n\n");
                        _ = self.send(event.into()).await && self.send_chunk(Chunk::End).await;
                        return;
                    }
                }
                continue;
            }
            tokio::select! {
                () = permit.changed() => {}
                () = self.sender.closed() => return,
                () = tokio::time::sleep(CHECK_INTERVAL) => {
                    checks += 1;
                    if checks % HEARTBEAT_CHECKS == 0 && !self.send(":\n\n".into()).await {
                        return;
                    }
                }
            }
        }
    }

    /// Sends bytes; returns whether the client takes them.
    async fn send(&self, bytes: Bytes) -> bool {
        self.send_chunk(Chunk::Data(bytes)).await
    }

    async fn send_chunk(&self, chunk: Chunk) -> bool {
        let timeout = self.state.options.limits.write_timeout;
        matches!(tokio::time::timeout(timeout, self.sender.send(chunk)).await, Ok(Ok(())))
    }

    /// Sends the next commits, once the client has read all that was sent.
    async fn burst(&self, mut feed: Box<Feed>) -> Burst {
        let limits = &self.state.options.limits;
        match tokio::time::timeout(limits.write_timeout, self.sender.reserve_many(CHUNKS)).await {
            Ok(Ok(room)) => drop(room),
            _ => return Burst::Broken,
        }
        let Ok(running) = self.state.acquire_permit(self.description.clone()).await else {
            return Burst::Postponed(feed);
        };
        let timeout = limits.export_timeout;
        let deadline = Instant::now() + timeout;
        let limits = SendLimits { write_timeout: limits.write_timeout, deadline, cancel: self.token.clone() };
        let (state, sender) = (Arc::clone(&self.state), self.sender.clone());
        let written = worker_threads::light(&self.state.threads, move |done| {
            let mut writer = ChunkWriter::new(sender, limits);
            let options = QueryOptions { timeout: Some(timeout), ..QueryOptions::default() };
            let options = options.with_cancel(&running.token);
            let result = state.database.advance_feed(&mut feed).and_then(|_| {
                let limits = FeedLimits { bytes: BURST_BYTES, ..FeedLimits::default() };
                let written =
                    state.database.write_feed(&mut feed, FeedFormat::Events, limits, &options, &mut writer);
                let commits = written?;
                writer.flush().map_err(|error| Error::io("send changes", &error))?;
                Ok(commits)
            });
            drop(running);
            _ = done.send(match result {
                Ok(commits) => {
                    state.metrics.rows_out.inc_by(commits);
                    Burst::Written(feed)
                }
                Err(FeedRefusal::Gone(error)) => Burst::Gone(error),
                Err(FeedRefusal::Failed(error)) if error.kind() == ErrorKind::Unavailable => {
                    Burst::Postponed(feed)
                }
                Err(refusal) => {
                    let error = refusal.into_error();
                    tracing::debug!(%error, "a stream of changes ends");
                    Burst::Broken
                }
            });
        })
        .await;
        written.unwrap_or(Burst::Broken)
    }
}
