//! `vervet mcp`: a server of the Model Context Protocol (MCP) on standard input and output.
//!
//! # Shape
//! The main thread reads lines ([`LineReader`]), parses messages ([`Message`]) and answers all requests but
//! calls of tools. Each call runs on a thread of its own, at most [`CALLS_MAX`] at a time, so that a
//! notification can cancel it ([`Calls`]). Threads write whole lines to standard output, which has a lock: a
//! client that does not read its answers stops the reading of further requests.
//! # Invariants
//! 1. Standard output has messages of the protocol and nothing else.
//! 2. Every request with an id has one answer, except a cancelled call, which has none.
//! 3. Without `--write` no tool changes the database.
//! 4. Lines, results, times, memory and concurrent calls have maxima.
//! # Source
//! Model Context Protocol, revisions 2024-11-05 to 2025-11-25 (with the handshake `initialize`) and
//! 2026-07-28 (with the revision in each request); JSON-RPC 2.0. Batches, which only 2025-03-26 has, are not
//! supported.

mod calls;
mod cells;
mod database;
mod excerpt;
mod line_reader;
mod message;
mod revision;
mod schema;
mod tools;

use crate::arguments::McpArguments;
use crate::output::Outcome;
use calls::{Call, Calls};
use database::ServedDatabase;
use line_reader::{Line, LineReader};
use message::{Fault, Message};
use revision::{Revision, Session};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tools::Tools;
use vervet::Error;

/// The maximum length of a line, in bytes.
const LINE_BYTES_MAX: usize = 4 << 20;

/// The maximum number of calls that run at the same time.
const CALLS_MAX: usize = 8;

/// The stack of a call, in bytes: parsers and planners assume that of a main thread.
const STACK_BYTES: usize = 8 << 20;

pub(crate) fn run(arguments: &McpArguments) -> Outcome {
    let database = ServedDatabase::open(&arguments.database, arguments.write)?;
    let mut server = Server {
        tools: Arc::new(Tools::new(arguments, database)),
        calls: Arc::new(Calls::default()),
        client: Arc::new(Client::default()),
        session: Session::default(),
    };
    let mut lines = LineReader::new(io::stdin().lock(), LINE_BYTES_MAX);
    // The scope ends with the threads of all calls.
    thread::scope(|scope| {
        while !server.client.is_gone() {
            match lines.next().map_err(|error| Error::io("read standard input", &error))? {
                Some(line) => server.take(line, scope),
                None => break,
            }
        }
        Ok(())
    })
}

/// The reader of standard output.
#[derive(Default)]
struct Client {
    is_gone: AtomicBool,
}

impl Client {
    /// Writes a message as one line.
    fn send(&self, message: &Value) {
        let mut line = message.to_string();
        line.push('\n');
        let mut out = io::stdout().lock();
        if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
            // Relaxed: the flag carries no other data.
            self.is_gone.store(true, Ordering::Relaxed);
        }
    }

    fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }
}

struct Server {
    tools: Arc<Tools>,
    calls: Arc<Calls>,
    client: Arc<Client>,
    session: Session,
}

impl Server {
    /// Answers one line.
    fn take<'s>(&mut self, line: Line, scope: &'s thread::Scope<'s, '_>) {
        let message = match line {
            Line::Complete(bytes) => Message::parse(&bytes),
            Line::TooLong => {
                let text = format!("the line is longer than {LINE_BYTES_MAX} bytes");
                Err((None, Fault::new(message::INVALID_REQUEST, text)))
            }
        };
        match message {
            Ok(Message::Request { id, method, params }) => {
                if let Some(answer) = self.answer(&id, &method, params, scope) {
                    self.client.send(&message::response(Some(&id), answer));
                }
            }
            Ok(Message::Notification { method, params }) => {
                if method == "notifications/cancelled" {
                    self.calls.cancel(&params["requestId"]);
                }
            }
            // This server sends no requests.
            Ok(Message::Response | Message::Empty) => {}
            Err((id, fault)) => self.client.send(&message::response(id.as_ref(), Err(fault))),
        }
    }

    /// The answer of a request; `None`: a call that has started answers later.
    fn answer<'s>(
        &mut self,
        id: &Value,
        method: &str,
        params: Value,
        scope: &'s thread::Scope<'s, '_>,
    ) -> Option<Result<Value, Fault>> {
        if method == "initialize" {
            return Some(Ok(self.session.initialize(&params)));
        }
        let revision = match self.session.revision(method, &params) {
            Ok(revision) => revision,
            Err(fault) => return Some(Err(fault)),
        };
        Some(match method {
            "ping" => Ok(revision.result(json!({}))),
            "server/discover" => Ok(revision.cacheable(revision::discovery())),
            "tools/list" => Ok(revision.cacheable(json!({ "tools": self.tools.list() }))),
            "tools/call" => return self.call(id, revision, params, scope).err().map(Err),
            _ => {
                let known = method.chars().take(100).collect::<String>();
                Err(Fault::new(message::METHOD_NOT_FOUND, format!("there is no method {known}")))
            }
        })
    }

    /// Starts a call on a thread of its own.
    fn call<'s>(
        &self,
        id: &Value,
        revision: Revision,
        params: Value,
        scope: &'s thread::Scope<'s, '_>,
    ) -> Result<(), Fault> {
        let tool = self.tools.find(&params)?;
        let call = Call::begin(&self.calls, id, CALLS_MAX)?;
        let (tools, client) = (Arc::clone(&self.tools), Arc::clone(&self.client));
        let id = id.clone();
        let work = move || {
            let result = tools.call(tool, &params["arguments"], call.token());
            // A cancelled call has no answer.
            if call.end() {
                client.send(&message::response(Some(&id), Ok(revision.result(result))));
            }
        };
        let thread = thread::Builder::new().name("mcp call".to_owned()).stack_size(STACK_BYTES);
        // An error drops the closure, and with it the call.
        thread.spawn_scoped(scope, work).map(drop).map_err(|error| {
            Fault::new(message::INTERNAL_ERROR, format!("could not start a thread: {error}"))
        })
    }
}
