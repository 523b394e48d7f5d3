//! The floor server: answers from a table, to measure the inherent cost of a request's transport.
//!
//! # Shape
//! Our server's responses are recorded once as bytes. A blocking thread for each connection reads a request
//! with our parser, looks the response up by text and bindings, inserts the id of the request, and sends it.
//! It has no limits, users, sessions, transactions or graph, and passes nothing to another thread: no server
//! can have less overhead without keeping a processor busy while it waits.

use super::clients::Format;
use super::raw_client::RawClient;
use crate::snb::Operation;
use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use tungstenite::Message;
use tungstenite::protocol::WebSocket;
use uuid::Uuid;
use vervet::gremlin::{Map, Value};
use vervet_model::{Error, Result};
use vervet_tinkerpop::{Limits, Request};

/// Responses by request text.
#[derive(Default)]
pub(super) struct RecordedResponses(HashMap<String, Vec<RecordedResponse>>);

/// A message without the id of its request.
#[derive(Clone)]
struct RecordedResponse {
    format: Format,
    bytes: Vec<u8>,
    /// The position of the id in it.
    id_at: usize,
}

impl RecordedResponses {
    /// Records the responses of a server to all requests, in both formats.
    ///
    /// # Errors
    /// It does not answer, or a response contains no request id.
    pub(super) fn record(raw_client: &mut RawClient, light: &[Operation]) -> Result<Self> {
        let mut all = Self::default();
        for operation in light {
            for parameters in &operation.parameters {
                let key = key(&operation.gremlin, &super::raw_client::bindings(parameters.bindings()));
                for format in [Format::GraphBinary, Format::GraphSon] {
                    let (id, messages) = raw_client.record(format, &operation.gremlin, parameters)?;
                    for bytes in messages {
                        let said = said(format, id);
                        let id_at = bytes.windows(said.len()).position(|part| *part == *said);
                        let id_at =
                            id_at.ok_or_else(|| Error::internal("an answer does not say whose it is"))?;
                        all.0.entry(key.clone()).or_default().push(RecordedResponse { format, bytes, id_at });
                    }
                }
            }
        }
        Ok(all)
    }

    /// The messages that answer a request; empty if it was not recorded.
    fn to(&self, format: Format, request: &Request) -> Vec<Message> {
        let Some(Value::String(text)) = request.args.get(&Value::text("gremlin")) else { return Vec::new() };
        let key = match request.args.get(&Value::text("bindings")) {
            Some(Value::Map(bindings)) => key(text, bindings),
            _ => key(text, &Map::default()),
        };
        let recorded = self.0.get(&key).into_iter().flatten().filter(|recorded| recorded.format == format);
        let said = said(format, request.id);
        recorded
            .map(|recorded| {
                let mut bytes = recorded.bytes.clone();
                bytes[recorded.id_at..recorded.id_at + said.len()].copy_from_slice(&said);
                match format {
                    Format::GraphBinary => Message::binary(bytes),
                    Format::GraphSon => Message::text(String::from_utf8_lossy(&bytes).into_owned()),
                }
            })
            .collect()
    }
}

/// The encoding of an id in a response.
fn said(format: Format, id: Uuid) -> Vec<u8> {
    match format {
        Format::GraphBinary => id.as_bytes().to_vec(),
        Format::GraphSon => id.to_string().into_bytes(),
    }
}

fn key(text: &str, bindings: &Map) -> String {
    let mut bound: Vec<String> = bindings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    bound.sort();
    format!("{text} {}", bound.join(" "))
}

/// See the header of this file. It ends with the process; its threads end with their connections.
pub(super) struct ReplayServer {
    pub(super) address: SocketAddr,
    _thread: JoinHandle<()>,
}

impl ReplayServer {
    /// Listens on a loopback address.
    ///
    /// # Errors
    /// The system cannot create a socket.
    pub(super) fn start(answers: RecordedResponses) -> Result<Self> {
        let failed = |error: std::io::Error| Error::io("listen", &error);
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let answers = Arc::new(answers);
        let thread = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let answers = Arc::clone(&answers);
                std::thread::spawn(move || talk(stream, &answers));
            }
        });
        Ok(Self { address, _thread: thread })
    }
}

/// Answers until the client disconnects, or sends a request that was not recorded.
fn talk(stream: TcpStream, answers: &RecordedResponses) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut socket: WebSocket<TcpStream> = tungstenite::accept(stream).ok()?;
    loop {
        let Message::Binary(bytes) = socket.read().ok()? else { continue };
        let (format, request) = Request::read_frame(&bytes, Limits::default()).ok()?;
        let format = match format {
            vervet_tinkerpop::Format::GraphBinary1 => Format::GraphBinary,
            _ => Format::GraphSon,
        };
        let messages = answers.to(format, &request);
        if messages.is_empty() {
            return None;
        }
        for message in messages {
            socket.write(message).ok()?;
        }
        socket.flush().ok()?;
    }
}
