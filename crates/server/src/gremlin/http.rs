//! The HTTP form of Gremlin: one request, one response, no session.
//!
//! The request is in the URL (`GET /gremlin?gremlin=…`), in JSON (`POST`), or in a WebSocket message as some
//! drivers send it. The response is one message, in the format that `Accept` prefers. Errors are HTTP errors.

use super::access::Access;
use super::answer::{Outlet, Results, Trouble};
use super::request::{Asked, Ready};
use super::run::{explain, tell};
use super::tier::{self, HELD_BYTES, Ran};
use super::upgrade;
use crate::accept::quality;
use crate::admission::Tier;
use crate::auth::random;
use crate::encoding::Encoding;
use crate::metrics::Kind;
use crate::protocol::not_allowed;
use crate::query;
use crate::reply::{Failure, Outcome};
use crate::request::{Parameters, TEXT_BYTES, read_body};
use crate::route::Context;
use crate::running::Description;
use crate::state::{Running, State};
use crate::stream::{Patience, Sink};
use crate::threads;
use crate::warned::{self, Said};
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
pub(crate) async fn answer(context: &mut Context<'_>, body: Incoming) -> Outcome {
    let (state, parts) = (context.state, context.parts);
    if upgrade::is_asked(&parts.headers) {
        return upgrade::answer(context).await;
    }
    let is_post = match parts.method.as_str() {
        "GET" | "HEAD" => false,
        "POST" => true,
        _ => return Err(not_allowed("GET, HEAD, POST, OPTIONS")),
    };
    let access = Access::of_request(context).await?;
    let format = format(&parts.headers)?;
    let limits = &state.options.limits;
    let (asked, id) = if is_post {
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
    let running = state.place(Description::new(Kind::Gremlin, access.user(), &asked.source_text())).await?;
    let guard = running.guard();
    let progress = running.entry.progress.clone();
    let work_state = Arc::clone(state);
    let told = threads::light(state, move |sender| {
        let said = Said::default();
        let ready = asked.ready(&work_state);
        let work = Work { ready, access, id, format, encoding, is_post, progress, said };
        work.run(&work_state, running, Tier::Light, sender);
    })
    .await?;
    let told = match told {
        Told::Answer(told) => told,
        Told::Heavy(heavy) => {
            let (work, mut running) = *heavy;
            state.heavy_place(&mut running).await?;
            let on_thread = Arc::clone(state);
            match threads::heavy(state, move |sender| work.run(&on_thread, running, Tier::Heavy, sender))
                .await?
            {
                Told::Answer(told) => told,
                Told::Heavy(_) => {
                    return Err(Error::internal("a heavy request was sent on again").into());
                }
            }
        }
    };
    query::reply(told, guard)
}

/// The message of a worker thread to the connection.
enum Told {
    Answer(query::Told),
    Heavy(Box<(Work, Running)>),
}

/// The work of a thread.
struct Work {
    ready: Result<Ready, Trouble>,
    access: Access,
    id: Uuid,
    format: Format,
    encoding: Encoding,
    is_post: bool,
    progress: RowCounter,
    /// Set when the response is complete.
    said: Said,
}

impl Work {
    fn run(mut self, state: &State, running: Running, tier: Tier, sender: oneshot::Sender<Told>) {
        let bytes = match self.message(state, &running, tier) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return drop(sender.send(Told::Heavy(Box::new((self, running))))),
            Err(trouble) => {
                let failed = query::Told::Failed(*explain(trouble, state).failure);
                return drop(sender.send(Told::Answer(failed)));
            }
        };
        let mime = self.format.mime();
        let tell = move |start| Told::Answer(query::Told::Start(start, mime, self.said));
        let limits = &state.options.limits;
        let deadline = Instant::now() + limits.timeout;
        let cancel = running.token.clone();
        let patience = Patience { write_timeout: limits.write_timeout, deadline, cancel };
        let mut sink = Sink::new(sender, tell, self.encoding, patience);
        if sink.write_all(&bytes).and_then(|()| sink.finish().map(drop)).is_err() {
            state.metrics.broken.inc();
        }
    }

    /// The whole response: its status comes first. `None`: too much for the tier.
    fn message(&mut self, state: &State, running: &Running, tier: Tier) -> Result<Option<Vec<u8>>, Trouble> {
        let ready = match &mut self.ready {
            Ok(ready) => ready,
            Err(trouble) => {
                return Err(std::mem::replace(trouble, Trouble::argument("the request was refused")));
            }
        };
        self.access.allow_script(&ready.script)?;
        let mutates = ready.script.mutates();
        if mutates && !self.is_post {
            let failure = not_allowed("POST").hint("a traversal that writes is sent by POST");
            return Err(failure.into());
        }
        let most = state.options.limits.memory_bytes;
        ready.telling.batch = usize::MAX;
        let holds = tier == Tier::Light && !mutates;
        let most = if holds { most.min(HELD_BYTES as u64) } else { most };
        ready.telling.message_bytes = usize::try_from(most).unwrap_or(usize::MAX);
        let (format, id, said) = (self.format, self.id, Arc::clone(&self.said));
        ready.progress = Some(self.progress.clone());
        if tier == Tier::Light && state.admission.is_heavy(ready.shape) {
            return Ok(None);
        }
        let mut whole = Whole { bytes: Vec::new(), most, holds };
        let ran = tier::attempts(state, ready, tier, &running.token, &mut |ready| {
            let mut has_begun = false;
            let results = Results::new(&mut whole, format, id, Map::default(), ready.telling.clone());
            let done = results.and_then(|mut results| {
                let done = tell(&mut results, ready, |each| {
                    state.database.gremlin_each(&ready.script, &ready.options, each)
                });
                if done.is_ok() {
                    let warnings = results.warn(|| state.database.gremlin_warnings(&ready.script))?;
                    if let Some(header) = warned::header(&warnings) {
                        // Each attempt would set the same value.
                        let _ = said.set(header);
                    }
                }
                has_begun = results.have_begun();
                done.map(|()| results.finish(state))
            });
            // Results of a write are sent after its commit.
            Ran::of(done, tier == Tier::Light && !(mutates && has_begun))
        });
        match ran {
            Ran::Done(..) => Ok(Some(whole.bytes)),
            Ran::Failed(trouble) => Err(trouble),
            Ran::TooMuch => Ok(None),
        }
    }
}

/// A response of one message.
struct Whole {
    bytes: Vec<u8>,
    most: u64,
    /// Whether a longer response belongs to the heavy tier.
    holds: bool,
}

impl Outlet for Whole {
    fn take(&mut self, message: Vec<u8>, is_last: bool) -> vervet::Result<()> {
        if !is_last && self.holds {
            return Err(Error::new(ErrorKind::Deadline, "the response is too long to be held"));
        }
        if !is_last {
            let message = format!("the response is longer than {} bytes", self.most);
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
    let (mut best, mut named) = (None, false);
    for entry in values.flat_map(|value| value.split(',')).map(str::trim).filter(|entry| !entry.is_empty()) {
        named = true;
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
        None if !named => Ok(Format::Json),
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
fn of_address(parameters: &Parameters) -> Outcome<Asked> {
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
    Asked::text(args).map_err(|trouble| *trouble.failure)
}

/// A value in a URL: JSON; invalid JSON is a string.
fn json(text: &str) -> Value {
    graphson::read(text.as_bytes(), Limits::default()).unwrap_or_else(|_| Value::text(text))
}

/// The request in a body, and its id if it has one.
///
/// # Errors
/// 400: neither JSON nor a message.
fn of_body(body: &[u8], limits: Limits) -> Outcome<(Asked, Option<Uuid>)> {
    let bad = |error: &dyn std::fmt::Display| {
        Failure::bad(format!("the body is not a request: {error}"))
            .hint("send JSON such as {\"gremlin\": \"g.V().count()\", \"bindings\": {}}")
    };
    let request = match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => {
            let value = graphson::read(body, limits).map_err(|error| bad(&error))?;
            let Value::Map(args) = value else { return Err(bad(&"it is not an object")) };
            if !args.contains_key(&Value::text("op")) {
                let asked = Asked::text(args.as_ref().clone()).map_err(|trouble| *trouble.failure)?;
                return Ok((asked, None));
            }
            Request::read(body, Format::GraphSon3, limits)
        }
        _ => Request::read_frame(body, limits).map(|(_, request)| request),
    };
    let Request { id, op, args, processor } = request.map_err(|error| bad(&error))?;
    let asked = match (&*processor, &*op) {
        ("", "eval") => Asked::text(args),
        ("traversal", "bytecode") => Asked::bytecode(args),
        _ => {
            let message = format!("over HTTP the processor {processor:?} has no operation {op:?}");
            return Err(Failure::bad(message).hint("sessions and credentials need a WebSocket"));
        }
    };
    Ok((asked.map_err(|trouble| *trouble.failure)?, Some(id)))
}
