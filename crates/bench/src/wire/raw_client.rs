//! The bare client: a WebSocket with GraphBinary on one blocking socket, without a driver.

use super::clients::{self, Client, PipelinedRequests, Single, Writes, found};
use super::options::ADD;
use crate::measure::thread_cpu;
use crate::snb::Found;
use std::collections::HashMap;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::WebSocket;
use tungstenite::{HandshakeError, Message};
use uuid::Uuid;
use vervet::gremlin::{Map, Value};
use vervet_conformance::ldbc::Parameters;
use vervet_model::{Error, Result};
use vervet_tinkerpop::{Data, Format, Limits, Request, Response};

const FORMAT: Format = Format::GraphBinary1;

/// See the header of this file. It connects on the first request.
pub(super) struct RawClient {
    address: SocketAddr,
    socket: Option<WebSocket<TcpStream>>,
    last_id: u128,
}

impl RawClient {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self { address, socket: None, last_id: 0 }
    }

    fn socket(&mut self) -> Result<&mut WebSocket<TcpStream>> {
        if self.socket.is_none() {
            let failed = |error: std::io::Error| Error::io("connect to the server", &error);
            let stream = TcpStream::connect(self.address).map_err(failed)?;
            stream.set_nodelay(true).map_err(failed)?;
            let request = format!("ws://{}/gremlin", self.address).into_client_request();
            let request = request.map_err(|error| internal(&error))?;
            let (socket, _) = tungstenite::client(request, stream).map_err(|error| match error {
                HandshakeError::Failure(error) => internal(&error),
                HandshakeError::Interrupted(_) => Error::internal("a socket that blocks did not"),
            })?;
            self.socket = Some(socket);
        }
        self.socket.as_mut().ok_or_else(|| Error::internal("it has just connected"))
    }

    fn send(&mut self, session: Option<&str>, text: &str, bindings: HashMap<String, Value>) -> Result<Uuid> {
        self.send_in(FORMAT, session, text, bindings)
    }

    fn send_in(
        &mut self,
        format: Format,
        session: Option<&str>,
        text: &str,
        bound: HashMap<String, Value>,
    ) -> Result<Uuid> {
        self.last_id += 1;
        let id = Uuid::from_u128(self.last_id);
        let mut args: Map = [
            (Value::text("gremlin"), Value::text(text)),
            (Value::text("language"), Value::text("gremlin-lang")),
            (Value::text("bindings"), bindings(bound).into()),
        ]
        .into_iter()
        .collect();
        if let Some(session) = session {
            args.insert(Value::text("session"), Value::text(session));
        }
        let processor = if session.is_some() { "session" } else { "" };
        let request = Request { id, op: "eval".to_owned(), processor: processor.to_owned(), args };
        let mut bytes = Vec::new();
        format.begin_frame(&mut bytes);
        request.write(format, &mut bytes).map_err(|error| internal(&error))?;
        self.socket()?.send(Message::binary(bytes)).map_err(|error| internal(&error))?;
        Ok(id)
    }

    /// The bytes of the messages that answer one request, and its id.
    ///
    /// # Errors
    /// The server does not answer, or answers with an error.
    pub(super) fn record(
        &mut self,
        format: clients::Format,
        text: &str,
        parameters: &Parameters,
    ) -> Result<(Uuid, Vec<Vec<u8>>)> {
        let format = match format {
            clients::Format::GraphBinary => Format::GraphBinary1,
            clients::Format::GraphSon => Format::GraphSon3,
        };
        let id = self.send_in(format, None, text, parameters.bindings())?;
        let mut all = Vec::new();
        loop {
            let bytes = match self.socket()?.read().map_err(|error| internal(&error))? {
                Message::Binary(bytes) => bytes.to_vec(),
                Message::Text(text) => text.as_bytes().to_vec(),
                _ => continue,
            };
            let response =
                Response::read(&bytes, format, Limits::default()).map_err(|error| internal(&error))?;
            all.push(bytes);
            match response.status.code {
                206 => {}
                code if code < 300 => return Ok((id, all)),
                _ => {
                    let message = format!("the server said: {}", response.status.message);
                    return Err(Error::internal(message));
                }
            }
        }
    }

    /// The results in the next message, the id of its request, and whether it is the last one.
    fn receive(&mut self) -> Result<(Option<Uuid>, Vec<Value>, bool)> {
        loop {
            let message = self.socket()?.read().map_err(|error| internal(&error))?;
            let Message::Binary(bytes) = message else { continue };
            let response =
                Response::read(&bytes, FORMAT, Limits::default()).map_err(|error| internal(&error))?;
            if response.status.code >= 300 {
                return Err(Error::internal(format!("the server said: {}", response.status.message)));
            }
            let values = match response.data {
                Data::Value(Value::List(values)) => values.to_vec(),
                _ => Vec::new(),
            };
            return Ok((response.id, values, response.status.code != 206));
        }
    }

    fn ask(&mut self, text: &str, parameters: &Parameters) -> Result<Vec<Value>> {
        let id = self.send(None, text, parameters.bindings())?;
        let mut all = Vec::new();
        loop {
            let (of, values, is_last) = self.receive()?;
            if of != Some(id) {
                return Err(Error::internal("an answer to nothing"));
            }
            all.extend(values);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Reads until one request less is in flight.
    fn land(&mut self) -> Result<()> {
        while !self.receive()?.2 {}
        Ok(())
    }
}

impl Client for RawClient {
    fn name(&self) -> &'static str {
        "bare"
    }

    fn own_cpu(&self) -> Duration {
        thread_cpu()
    }

    fn look(&mut self, text: &str, parameters: &[Parameters]) -> Result<Vec<Found>> {
        parameters.iter().map(|one| Ok(found(&self.ask(text, one)?))).collect()
    }

    fn one(&mut self, text: &str, parameters: &[Parameters], time: Duration) -> Result<Single> {
        let mut single = Single { times: Vec::new(), requests: 0 };
        for counted in [false, true] {
            let begin = Instant::now();
            while begin.elapsed() < time || single.times.is_empty() && counted {
                for one in parameters {
                    let start = Instant::now();
                    self.ask(text, one)?;
                    single.requests += 1;
                    if counted {
                        single.times.push(start.elapsed().as_secs_f64() * 1e6);
                    }
                }
            }
        }
        Ok(single)
    }

    fn many(
        &mut self,
        text: &str,
        parameters: &[Parameters],
        in_flight: u32,
        time: Duration,
    ) -> Result<PipelinedRequests> {
        let (mut requests, mut going) = (0, 0);
        let begin = Instant::now();
        for one in parameters.iter().cycle() {
            if begin.elapsed() >= time {
                break;
            }
            if going == in_flight {
                self.land()?;
                going -= 1;
            }
            self.send(None, text, one.bindings())?;
            going += 1;
            requests += 1;
        }
        for _ in 0..going {
            self.land()?;
        }
        Ok(PipelinedRequests { requests, seconds: begin.elapsed().as_secs_f64(), all: requests })
    }

    fn write(&mut self, writes: &Writes) -> Result<f64> {
        let session = writes.session.then_some(writes.name.as_str());
        let begin = Instant::now();
        let mut going = 0;
        for number in 1..=writes.vertices {
            let bindings = [("x".to_owned(), Value::text(format!("{}{number}", writes.name)))].into();
            let ends = writes.session && (number % writes.commit_each == 0 || number == writes.vertices);
            for (text, bindings) in
                [(ADD, bindings)].into_iter().chain(ends.then(|| ("g.tx().commit()", HashMap::new())))
            {
                if going == writes.in_flight {
                    self.land()?;
                    going -= 1;
                }
                self.send(session, text, bindings)?;
                going += 1;
            }
        }
        for _ in 0..going {
            self.land()?;
        }
        Ok(begin.elapsed().as_secs_f64())
    }
}

/// Bindings as the argument of a request.
pub(super) fn bindings(bound: HashMap<String, Value>) -> Map {
    bound.into_iter().map(|(name, value)| (Value::text(name), value)).collect()
}

fn internal(error: &dyn std::fmt::Display) -> Error {
    Error::internal(format!("the bare client: {error}"))
}
