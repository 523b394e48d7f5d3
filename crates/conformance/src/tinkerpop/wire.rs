//! The same scenarios through a third-party driver and a running server: gremlinpython, by
//! `tinkerpop/wire.py`.
//!
//! # Shape
//! Each database has a server of its own in this process, on a free loopback port. A script is submitted as a
//! text with bindings; results return as the driver read them.
//!
//! # Comparison
//! Python's integers have no width, so both sides are compared without it; its floats are doubles, and where
//! a scenario expects floats all fractions are compared as floats. Elements are compared by kind, id, label,
//! and the ids of their ends, properties of vertices by id, key and value. [`not_carried`] determines from
//! the expectation, before any answer is read, what the driver cannot represent.

use super::compare::same;
use super::failure::ScenarioFailure;
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use vervet::gremlin::{Bulk, Map, Path, Value};
use vervet::{Database, Error, ErrorKind};
use vervet_server::{Server, ServerOptions, Stopper};
use vervet_tinkerpop::Limits;
use vervet_tinkerpop::graphson::{self, Dialect};

/// The serialization format between driver and server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireFormat {
    /// GraphSON 3.
    GraphSon,
    /// GraphBinary 1.
    GraphBinary,
}

/// The driver and its format.
#[derive(Clone, Debug)]
pub struct Driver {
    /// The serialization format.
    pub format: WireFormat,
    /// A Python with gremlinpython.
    pub python: String,
}

/// A running driver. It ends when its input is closed.
pub(super) struct PythonDriver {
    format: &'static str,
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl PythonDriver {
    /// # Errors
    /// The Python does not start.
    pub(super) fn start(driver: &Driver) -> Result<Self, String> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tinkerpop/wire.py");
        let failed = |what: &str| format!("could not run {} {script}: {what}", driver.python);
        let there = Command::new(&driver.python).args(["-c", "import gremlin_python"]).output();
        if !there.is_ok_and(|output| output.status.success()) {
            return Err(failed("it needs gremlinpython (pip install gremlinpython; --python PATH)"));
        }
        let mut command = Command::new(&driver.python);
        let command = command.args(["-W", "ignore", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(&error.to_string()))?;
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("no pipes"));
        };
        let format = match driver.format {
            WireFormat::GraphSon => "graphson",
            WireFormat::GraphBinary => "graphbinary",
        };
        Ok(Self { format, child, requests: Some(requests), answers: BufReader::new(answers) })
    }

    fn tell(&mut self, request: &Json) -> Result<(), String> {
        let requests = self.requests.as_mut().ok_or("the driver has ended")?;
        writeln!(requests, "{request}").and_then(|()| requests.flush()).map_err(|error| error.to_string())
    }

    /// The server's answer to a text. The inner error is the server's.
    pub(super) fn submit(
        &mut self,
        server: &Running,
        text: &str,
        bindings: &HashMap<String, Value>,
    ) -> Result<Result<Vec<Value>, Error>, ScenarioFailure> {
        let mut written = serde_json::Map::new();
        for (name, value) in bindings {
            let mut json = Vec::new();
            graphson::write(value, Dialect::V3, &mut json).map_err(|error| error.to_string())?;
            written.insert(name.clone(), serde_json::from_slice(&json).map_err(|error| error.to_string())?);
        }
        let port = server.address.port();
        self.tell(&json!({"port": port, "format": self.format, "gremlin": text, "bindings": written}))?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|error| error.to_string())?;
        let answer: Json = serde_json::from_str(&line).map_err(|error| format!("{error}: {line:?}"))?;
        if let Some(results) = answer["results"].as_str() {
            let value = graphson::read(results.as_bytes(), Limits::default());
            return match value.map_err(|error| format!("the driver wrote {results}: {error}"))? {
                Value::List(values) => Ok(Ok(values.to_vec())),
                other => Err(format!("no list: {other:?}").into()),
            };
        }
        let error = &answer["error"];
        let Some(message) = error["message"].as_str() else {
            return Err(format!("the driver: {}", answer["driver"]).into());
        };
        let unsupported = error["exceptions"][0] == "vervet.unsupported";
        let kind = if unsupported { ErrorKind::Unsupported } else { ErrorKind::Query };
        Ok(Err(Error::new(kind, message)))
    }

    /// Closes the connection to a server.
    pub(super) fn close(&mut self, server: &Running) -> Result<(), String> {
        self.tell(&json!({"close": server.address.port()}))
    }
}

impl Drop for PythonDriver {
    fn drop(&mut self) {
        drop(self.requests.take());
        let _ = self.child.wait();
    }
}

/// A running server; stopped on drop.
pub(super) struct Running {
    address: SocketAddr,
    stopper: Stopper,
    thread: Option<JoinHandle<vervet::Result<()>>>,
}

impl Running {
    /// # Errors
    /// No port is free.
    pub(super) fn start(database: &Database) -> Result<Self, String> {
        let mut options = ServerOptions::default();
        options.bind = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        options.signals = false;
        let server = Server::bind(database.clone(), options).map_err(|error| error.to_string())?;
        let (address, stopper) = (server.address().map_err(|error| error.to_string())?, server.stopper());
        Ok(Self { address, stopper, thread: Some(std::thread::spawn(move || server.run())) })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Whether a value contains a float.
pub(super) fn has_float(value: &Value) -> bool {
    match value {
        Value::Float(_) => true,
        Value::List(values) => values.iter().any(has_float),
        Value::Set(values) => values.iter().any(has_float),
        Value::Path(path) => path.objects.iter().any(has_float),
        Value::Map(map) => map.iter().any(|(key, value)| has_float(key) || has_float(value)),
        _ => false,
    }
}

/// The compared parts of a value; see the header.
pub(super) fn plain(value: &Value, floats: bool) -> Value {
    let all = |values: &mut dyn Iterator<Item = &Value>| values.map(|value| plain(value, floats)).collect();
    match value {
        Value::Byte(number) => i64::from(*number).into(),
        Value::Short(number) => i64::from(*number).into(),
        Value::Int(number) => i64::from(*number).into(),
        Value::BigInteger(number) => i64::try_from(&**number).map_or_else(|_| value.clone(), Value::Long),
        #[expect(clippy::cast_possible_truncation, reason = "that is what a float is")]
        Value::Double(number) if floats => Value::Float(*number as f32),
        Value::List(values) => Value::list(all(&mut values.iter())),
        Value::Set(values) => Value::set(values.iter().map(|value| plain(value, floats))),
        Value::Path(path) => {
            let objects: Vec<Value> = all(&mut path.objects.iter());
            let labels = vec![Vec::new(); objects.len()];
            Path { objects, labels }.into()
        }
        Value::Bulk(bulk) => {
            let items = bulk.iter().map(|(value, count)| (plain(value, floats), *count));
            items.collect::<Bulk>().into()
        }
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| (plain(key, floats), plain(value, floats)));
            Value::map(entries.collect::<Map>())
        }
        Value::Vertex(vertex) => {
            let label = vertex.detail.as_ref().map_or(Value::Null, |detail| Value::text(&detail.label));
            Value::list(vec!["vertex".into(), plain(vertex.id(), floats), label])
        }
        Value::Edge(edge) => {
            let mut parts = vec!["edge".into(), plain(edge.id(), floats)];
            if let Some(detail) = &edge.detail {
                let ends = [plain(detail.source.id(), floats), plain(detail.target.id(), floats)];
                parts.push(Value::text(&detail.label));
                parts.extend(ends);
            }
            Value::list(parts)
        }
        Value::VertexProperty(property) => {
            let id = property.detail.as_ref().map_or(Value::Null, |detail| plain(&detail.id, floats));
            let value = plain(&property.value, floats);
            Value::list(vec!["vertex property".into(), id, Value::text(&property.label), value])
        }
        Value::Property(property) => {
            let value = plain(&property.value, floats);
            Value::list(vec!["property".into(), Value::text(&property.key), value])
        }
        other => other.clone(),
    }
}

/// Why the driver cannot represent an expected value; `None`: it can.
pub(super) fn not_carried(value: &Value) -> Option<&'static str> {
    match value {
        Value::List(values) => values.iter().find_map(not_carried),
        Value::Path(path) => path.objects.iter().find_map(not_carried),
        Value::Set(values) => {
            let is_collection =
                |value: &Value| matches!(value, Value::List(_) | Value::Set(_) | Value::Map(_));
            if values.iter().any(is_collection) {
                return Some("a set with collections in it, which Python cannot hash");
            }
            let values: Vec<&Value> = values.iter().collect();
            if collide(&values) {
                return Some("a set with values that are equal in Python");
            }
            values.into_iter().find_map(not_carried)
        }
        Value::Map(map) => {
            let keys: Vec<&Value> = map.keys().collect();
            if collide(&keys) {
                return Some("a map with keys that are equal in Python");
            }
            if keys.iter().any(|key| matches!(key, Value::Set(_))) {
                return Some("a map with a set as key, which Python cannot hash");
            }
            map.iter().find_map(|(key, value)| not_carried(key).or_else(|| not_carried(value)))
        }
        _ => None,
    }
}

/// Whether Python considers two of these equal: numbers by value, booleans as 1 and 0.
fn collide(values: &[&Value]) -> bool {
    let number = |value: &Value| {
        let fraction = match value {
            Value::Double(number) => Some(*number),
            Value::Float(number) => Some(f64::from(*number)),
            _ => None,
        };
        match (value, fraction) {
            #[expect(clippy::cast_possible_truncation, reason = "only whole numbers")]
            (_, Some(number)) if number.fract() == 0.0 => Value::Long(number as i64),
            (Value::Boolean(flag), _) => Value::Long(i64::from(*flag)),
            (other, _) => plain(other, false),
        }
    };
    let values: Vec<Value> = values.iter().map(|value| number(value)).collect();
    values.iter().enumerate().any(|(at, value)| values[..at].iter().any(|other| same(value, other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lose_their_width_and_nothing_else() {
        assert_eq!(plain(&Value::Byte(1), false), plain(&Value::Long(1), false));
        assert_ne!(plain(&Value::Int(1), false), plain(&Value::Double(1.0), false));
        assert_eq!(plain(&Value::Float(0.1), true), plain(&Value::Double(f64::from(0.1_f32)), true));
        assert_ne!(plain(&"1".into(), false), plain(&Value::Int(1), false));
    }

    #[test]
    fn expectations_that_python_cannot_represent_are_recognized() {
        let set = Value::set([Value::Int(1), Value::Double(1.0)]);
        assert!(not_carried(&set).is_some());
        assert!(not_carried(&Value::set([Value::Int(1), Value::Int(2)])).is_none());
        assert!(not_carried(&Value::list(vec![Value::set([Value::list(vec![])])])).is_some());
    }
}
