//! A minimal driver: sends exactly what a test specifies, and exposes every message.

use crate::common::Running;
use std::collections::VecDeque;
use std::net::TcpStream;
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::WebSocket;
use tungstenite::{HandshakeError, Message};
use uuid::Uuid;
use vervet::Database;
use vervet::gremlin::text::{ParseOptions, Statement, parse};
use vervet::gremlin::{Bytecode, Instruction, Map, Value};
use vervet_tinkerpop::{Data, Format, Limits, Request, Response};

/// The graph of TinkerPop's tutorials: six vertices, six edges.
pub(super) fn modern() -> Database {
    let database = Database::in_memory();
    database
        .gremlin(
            r#"g.addV("person").property(T.id, 1).property("name", "marko").property("age", 29).as("marko").
                 addV("person").property(T.id, 2).property("name", "vadas").property("age", 27).as("vadas").
                 addV("software").property(T.id, 3).property("name", "lop").property("lang", "java").as("lop").
                 addV("person").property(T.id, 4).property("name", "josh").property("age", 32).as("josh").
                 addV("software").property(T.id, 5).property("name", "ripple").property("lang", "java").as("ripple").
                 addV("person").property(T.id, 6).property("name", "peter").property("age", 35).as("peter").
                 addE("knows").from("marko").to("vadas").property(T.id, 7).property("weight", 0.5).
                 addE("knows").from("marko").to("josh").property(T.id, 8).property("weight", 1.0).
                 addE("created").from("marko").to("lop").property(T.id, 9).property("weight", 0.4).
                 addE("created").from("josh").to("ripple").property(T.id, 10).property("weight", 1.0).
                 addE("created").from("josh").to("lop").property(T.id, 11).property("weight", 0.4).
                 addE("created").from("peter").to("lop").property(T.id, 12).property("weight", 0.2).iterate()"#,
        )
        .expect("it is written");
    database
}

/// Never ends, without results.
pub(super) const ENDLESS: &str = "g.inject(1).repeat(identity())";
/// Never ends, with endless results.
pub(super) const ENDLESS_RESULTS: &str = "g.inject(1).repeat(identity()).emit()";

/// A connection.
pub(super) struct Client {
    pub(super) socket: WebSocket<TcpStream>,
    /// The message format; `None`: JSON in text frames.
    format: Option<Format>,
    last_id: u128,
    /// Messages for requests that no test has asked for yet.
    waiting: VecDeque<Response>,
}

/// All messages of a response.
#[derive(Debug)]
pub(super) struct Answer(pub(super) Vec<Response>);

impl Client {
    pub(super) fn new(server: &Running, format: impl Into<Option<Format>>) -> Self {
        Self::with_headers(server, format, &[]).expect("it becomes a WebSocket")
    }

    /// # Errors
    /// The status and the body of a refused upgrade.
    pub(super) fn with_headers(
        server: &Running,
        format: impl Into<Option<Format>>,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, (u16, String)> {
        let mut request =
            format!("ws://{}/gremlin", server.address).into_client_request().expect("an address");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("a header"));
        }
        match tungstenite::client(request, server.connect()) {
            Ok((socket, reply)) => {
                assert_eq!(reply.status(), 101);
                Ok(Self { socket, format: format.into(), last_id: 0, waiting: VecDeque::new() })
            }
            Err(HandshakeError::Failure(tungstenite::Error::Http(reply))) => {
                let body = reply.body().clone().unwrap_or_default();
                Err((reply.status().as_u16(), String::from_utf8_lossy(&body).into_owned()))
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Sends a request; returns its id.
    pub(super) fn send(&mut self, op: &str, processor: &str, args: Map) -> Uuid {
        self.last_id += 1;
        let id = Uuid::from_u128(self.last_id);
        self.send_as(id, op, processor, args);
        id
    }

    pub(super) fn send_as(&mut self, id: Uuid, op: &str, processor: &str, args: Map) {
        self.try_send_as(id, op, processor, args).expect("it is sent");
    }

    /// Sends a request to a server that may close the connection before it has received all of it.
    pub(super) fn try_send(&mut self, op: &str, args: Map) -> Result<(), tungstenite::Error> {
        self.last_id += 1;
        self.try_send_as(Uuid::from_u128(self.last_id), op, "", args)
    }

    fn try_send_as(
        &mut self,
        id: Uuid,
        op: &str,
        processor: &str,
        args: Map,
    ) -> Result<(), tungstenite::Error> {
        let request = Request { id, op: op.to_owned(), processor: processor.to_owned(), args };
        let mut bytes = Vec::new();
        let message = match self.format {
            None => {
                request.write(Format::Json, &mut bytes).expect("it is written");
                Message::text(String::from_utf8(bytes).expect("JSON is UTF-8"))
            }
            Some(format) => {
                format.begin_frame(&mut bytes);
                request.write(format, &mut bytes).expect("it is written");
                Message::binary(bytes)
            }
        };
        self.socket.send(message)
    }

    /// The next message, of any request. Skips pings.
    pub(super) fn receive(&mut self) -> Response {
        loop {
            let message = self.socket.read().expect("a message comes");
            let format = self.format.unwrap_or(Format::Json);
            assert_eq!(message.is_text(), self.format.is_none() && !message.is_ping(), "{message:?}");
            match message {
                Message::Ping(_) => {}
                Message::Text(text) => {
                    return Response::read(text.as_bytes(), format, Limits::default()).expect("a response");
                }
                Message::Binary(bytes) => {
                    return Response::read(&bytes, format, Limits::default()).expect("a response");
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// The response to a request, from its first message to its last.
    pub(super) fn answer(&mut self, id: Uuid) -> Answer {
        let (mut answer, mut others) = (Vec::new(), VecDeque::new());
        loop {
            let response = self.waiting.pop_front().unwrap_or_else(|| self.receive());
            if response.id != Some(id) {
                others.push_back(response);
                continue;
            }
            let ended = response.status.code != 206;
            answer.push(response);
            if ended {
                others.append(&mut self.waiting);
                self.waiting = others;
                return Answer(answer);
            }
        }
    }

    pub(super) fn ask(&mut self, op: &str, processor: &str, args: Map) -> Answer {
        let id = self.send(op, processor, args);
        self.answer(id)
    }

    pub(super) fn eval(&mut self, text: &str) -> Answer {
        self.ask("eval", "", args([("gremlin", text.into())]))
    }

    /// Sends a traversal as bytecode.
    pub(super) fn bytecode(&mut self, text: &str) -> Answer {
        self.ask("bytecode", "traversal", bytecode_args(bytecode(text)))
    }

    /// Sends a script in a session.
    pub(super) fn in_session(&mut self, session: &str, text: &str) -> Answer {
        self.ask("eval", "session", args([("gremlin", text.into()), ("session", session.into())]))
    }

    /// Sends what a driver's `tx.commit()` sends.
    pub(super) fn transaction(&mut self, session: &str, action: &str) -> Answer {
        let source = vec![Instruction::new("tx", vec![action.into()])];
        let mut args = bytecode_args(Bytecode { source, steps: Vec::new() });
        args.insert("session".into(), session.into());
        self.ask("bytecode", "session", args)
    }
}

impl Answer {
    pub(super) fn code(&self) -> i32 {
        self.0.last().expect("an answer has a message").status.code
    }

    pub(super) fn message(&self) -> &str {
        &self.0.last().expect("an answer has a message").status.message
    }

    /// The results, repeated by their bulk; asserts success.
    #[track_caller]
    pub(super) fn values(&self) -> Vec<Value> {
        assert!(matches!(self.code(), 200 | 204), "{}: {}", self.code(), self.message());
        let mut all = Vec::new();
        for response in &self.0 {
            match &response.data {
                Data::Value(Value::List(values)) => all.extend(values.iter().cloned()),
                Data::Value(Value::Null) => assert_eq!(response.status.code, 204),
                Data::Value(other) => panic!("{other}"),
                Data::Traversers(traversers) => {
                    for traverser in traversers {
                        let count = usize::try_from(traverser.bulk).expect("there are some");
                        all.extend(std::iter::repeat_n(traverser.value.clone(), count));
                    }
                }
            }
        }
        all
    }

    /// Asserts this status code and these words in the message.
    #[track_caller]
    pub(super) fn refused(self, code: i32, words: &str) -> Self {
        assert_eq!(self.code(), code, "{}", self.message());
        assert!(self.message().contains(words), "{}", self.message());
        self
    }
}

pub(super) fn args<const N: usize>(entries: [(&str, Value); N]) -> Map {
    entries.into_iter().map(|(name, value)| (Value::text(name), value)).collect()
}

pub(super) fn bytecode_args(bytecode: Bytecode) -> Map {
    let aliases = Value::map(args([("g", "g".into())]));
    args([("gremlin", bytecode.into()), ("aliases", aliases)])
}

pub(super) fn bytecode(text: &str) -> Bytecode {
    let mut statements = parse(text, &ParseOptions::default()).expect("it is Gremlin");
    match statements.pop() {
        Some(Statement::Traversal { bytecode, .. }) => bytecode,
        other => panic!("{other:?}"),
    }
}

pub(super) fn texts<const N: usize>(texts: [&str; N]) -> Vec<Value> {
    texts.map(Value::text).to_vec()
}
