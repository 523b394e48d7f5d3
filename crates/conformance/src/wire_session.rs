//! A session of Gremlin over a WebSocket: one client, whose requests share transactions.

use crate::voter_processes::{NoAnswer, Servers};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::WebSocket;
use tungstenite::{HandshakeError, Message};
use uuid::Uuid;
use vervet::gremlin::{Map, Value};
use vervet_tinkerpop::{Data, Format, Limits, Request, Response};

const FORMAT: Format = Format::GraphBinary1;

/// The longest wait for a connection.
const CONNECT_MAX: Duration = Duration::from_millis(500);

/// Why a request has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RequestFailure {
    /// The server has answered with an error: its kind, and its message.
    Error { kind: String, message: String },
    /// There is no answer. The connection cannot be used any more.
    Lost(String),
}

/// Whether a request that failed may have changed something, as far as its error says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    None,
    /// It conflicts with another transaction, and has no effect.
    Conflict,
    Unknown,
    /// The error is none that a change at a server of a cluster may have.
    Unexpected,
}

/// In refusals of servers that do not lead.
const LEADER_ELSEWHERE: &str = "changes of this graph go to";
/// In errors of changes that have had no effect.
const NOTHING_CHANGED: [&str; 3] = ["nothing was changed", "does not lead any more", "have no leader"];
/// In errors of changes that may have had an effect.
const UNKNOWN: &str = " is unknown: ";
/// In errors of a transaction that its server has rolled back.
const ROLLED_BACK: &str = "was rolled back";

impl Effect {
    /// Of an error with this kind and message.
    pub(crate) fn of(kind: &str, message: &str) -> Self {
        if message.contains(UNKNOWN) {
            return Self::Unknown;
        }
        let without_effect = message.contains(LEADER_ELSEWHERE)
            || message.contains(ROLLED_BACK)
            || NOTHING_CHANGED.iter().any(|words| message.contains(words));
        match kind {
            "conflict" => Self::Conflict,
            _ if without_effect => Self::None,
            // Overload, or the end of the server.
            "unavailable" | "cancelled" => Self::Unknown,
            _ => Self::Unexpected,
        }
    }
}

/// Whether a transaction was refused when it moved to the leader: the leader shows another graph than the
/// server at which it has read.
pub(crate) fn has_read_older(message: &str) -> bool {
    message.contains("has read here differs at server")
}

/// The address of the server that takes changes, if an error names it.
fn named_leader(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once(LEADER_ELSEWHERE)?;
    let (_, rest) = rest.split_once('(')?;
    rest.split_once(')').map(|(address, _)| address)
}

/// Server `server`, which clients take for the leader, has failed or refused with this message: another one
/// leads, the one that the refusal names, or perhaps the next one.
pub(crate) fn follow(servers: &Servers, leader: &AtomicUsize, server: usize, message: &str) {
    let servers = &servers.servers;
    let named = named_leader(message).and_then(|name| servers.iter().position(|one| one.address == name));
    let next = named.unwrap_or((server + 1) % servers.len());
    // Not if another client has found one meanwhile.
    let _ = leader.compare_exchange(server, next, Ordering::SeqCst, Ordering::SeqCst);
}

/// See the header of this file.
pub(crate) struct WireSession {
    socket: WebSocket<TcpStream>,
    last_id: u128,
}

impl WireSession {
    /// Connects to a server. `is_strict`: the session sees everything that was committed before this call.
    ///
    /// # Errors
    /// Nothing listens, or there is no answer in time.
    pub(crate) fn connect(address: &str, is_strict: bool, answer_max: Duration) -> Result<Self, NoAnswer> {
        let lost = |error: &dyn std::fmt::Display| NoAnswer::Lost(error.to_string());
        let place: SocketAddr = address.parse().map_err(|error| lost(&error))?;
        let stream = TcpStream::connect_timeout(&place, CONNECT_MAX).map_err(|_| NoAnswer::NotSent)?;
        stream.set_nodelay(true).map_err(|error| lost(&error))?;
        stream.set_read_timeout(Some(answer_max)).map_err(|error| lost(&error))?;
        stream.set_write_timeout(Some(answer_max)).map_err(|error| lost(&error))?;
        let mut request =
            format!("ws://{address}/gremlin").into_client_request().map_err(|error| lost(&error))?;
        if is_strict {
            let strict = "strict".parse().map_err(|_| lost(&"not a header"))?;
            request.headers_mut().insert("vervet-consistency", strict);
        }
        match tungstenite::client(request, stream) {
            Ok((socket, _)) => Ok(Self { socket, last_id: 0 }),
            Err(HandshakeError::Failure(error)) => Err(lost(&error)),
            Err(HandshakeError::Interrupted(_)) => Err(lost(&"no answer in time")),
        }
    }

    /// The results of a text, which begins a transaction unless there is one.
    ///
    /// # Errors
    /// An error, which leaves the transaction open; no answer.
    pub(crate) fn run(&mut self, text: &str) -> Result<Vec<Value>, RequestFailure> {
        let lost = |error: &dyn std::fmt::Display| RequestFailure::Lost(error.to_string());
        self.last_id += 1;
        let id = Uuid::from_u128(self.last_id);
        let args: Map = [("gremlin", text), ("language", "gremlin-lang"), ("session", "s")]
            .into_iter()
            .map(|(name, value)| (Value::text(name), Value::text(value)))
            .collect();
        let request = Request { id, op: "eval".to_owned(), processor: "session".to_owned(), args };
        let mut bytes = Vec::new();
        FORMAT.begin_frame(&mut bytes);
        request.write(FORMAT, &mut bytes).map_err(|error| lost(&error))?;
        self.socket.send(Message::binary(bytes)).map_err(|error| lost(&error))?;
        let mut all = Vec::new();
        loop {
            let bytes = match self.socket.read().map_err(|error| lost(&error))? {
                Message::Binary(bytes) => bytes,
                Message::Close(_) => return Err(lost(&"the server has closed the connection")),
                _ => continue,
            };
            let response = Response::read(&bytes, FORMAT, Limits::default()).map_err(|error| lost(&error))?;
            if response.id != Some(id) {
                continue;
            }
            if response.status.code >= 300 {
                let exceptions = response.status.attributes.get(&Value::text("exceptions"));
                let kind = match exceptions {
                    Some(Value::List(kinds)) => kinds.first().and_then(Value::as_text).unwrap_or_default(),
                    _ => "",
                };
                let kind = kind.strip_prefix("vervet.").unwrap_or(kind).to_owned();
                return Err(RequestFailure::Error { kind, message: response.status.message });
            }
            if let Data::Value(Value::List(values)) = response.data {
                all.extend(values.iter().cloned());
            }
            if response.status.code != 206 {
                return Ok(all);
            }
        }
    }

    /// Commits the transaction.
    ///
    /// # Errors
    /// See [`Effect::of`]; without an answer the outcome is unknown.
    pub(crate) fn commit(&mut self) -> Result<(), RequestFailure> {
        self.run("g.tx().commit()").map(drop)
    }

    /// Rolls the transaction back.
    ///
    /// # Errors
    /// No answer: the server rolls it back when it notices the end of the connection.
    pub(crate) fn roll_back(&mut self) -> Result<(), RequestFailure> {
        self.run("g.tx().rollback()").map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_whether_something_was_changed() {
        let unavailable = |message: &str| Effect::of("unavailable", message);
        assert_eq!(
            unavailable("the outcome of this commit is unknown: the leader has changed"),
            Effect::Unknown
        );
        assert_eq!(unavailable("the server is shutting down"), Effect::Unknown);
        assert_eq!(unavailable("this server does not lead any more; nothing was changed"), Effect::None);
        assert_eq!(Effect::of("conflict", "a conflict"), Effect::Conflict);
        assert_eq!(Effect::of("internal", "a damaged page"), Effect::Unexpected);
        let elsewhere = "changes of this graph go to server b (127.0.0.1:7878), which leads";
        assert_eq!(Effect::of("unsupported", elsewhere), Effect::None);
        assert_eq!(named_leader(elsewhere), Some("127.0.0.1:7878"));
        assert_eq!(named_leader("the voters of this graph have no leader; nothing was changed"), None);
    }
}
