//! Incremental reader of graph files. It counts braces to delimit a vertex, then parses the vertex as one
//! text. After an error it can continue only if the delimited text is valid JSON (but not a vertex).

use super::{GraphEdge, GraphVertex, VERTEX_BYTES_MAX};
use crate::graphson::{EDGE_LABEL, VERTEX_LABEL};
use crate::json::Cursor;
use crate::{Limits, ReadError, ReadErrorKind};
use std::io::BufRead;
use std::sync::Arc;
use vervet_gremlin::{Direction, Value};

type Result<T> = std::result::Result<T, ReadError>;

/// State of the reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Before the first byte.
    Start,
    /// In a sequence of vertices.
    Lines,
    /// In an array, before its first vertex or its end.
    WrappedFirst,
    /// In an array, after a vertex.
    Wrapped,
    /// After the last vertex, or after a fatal error.
    End,
}

/// Iterator over the vertices of a graph file. It ends after an error, unless the error concerns a single
/// vertex ([`GraphReader::has_more`]).
#[derive(Debug)]
pub struct GraphReader<R> {
    source: R,
    limits: Limits,
    state: State,
    /// Number of consumed bytes.
    at: u64,
    /// Text of the current vertex.
    text: Vec<u8>,
    /// The direction that counts, known after the first edge.
    counted: Option<Direction>,
    /// Numbers of incoming and outgoing edges.
    edges: [u64; 2],
    /// Whether a vertex was skipped, which invalidates the numbers of edges.
    skipped: bool,
}

impl<R: BufRead> GraphReader<R> {
    /// A reader of `source`.
    pub fn new(source: R) -> Self {
        // The number of edges of a vertex is unbounded.
        let limits = Limits { bytes: VERTEX_BYTES_MAX, values: usize::MAX, ..Limits::default() };
        let state = State::Start;
        Self { source, limits, state, at: 0, text: Vec::new(), counted: None, edges: [0; 2], skipped: false }
    }

    /// Replaces the size limit of a vertex.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether more vertices may follow: false after the end, and after an error with an unknown start of the
    /// next vertex.
    pub fn has_more(&self) -> bool {
        self.state != State::End
    }

    /// The source of the reader.
    pub fn get_ref(&self) -> &R {
        &self.source
    }

    /// Peeks at the next byte.
    fn peek(&mut self) -> Result<Option<u8>> {
        let at = self.at;
        let buffer = self.source.fill_buf().map_err(|error| {
            ReadError::new(ReadErrorKind::Io, 0, format!("could not read: {error}")).moved(at)
        })?;
        Ok(buffer.first().copied())
    }

    fn take(&mut self) {
        self.source.consume(1);
        self.at += 1;
    }

    /// Skips white space and peeks at the next byte.
    fn peek_visible(&mut self) -> Result<Option<u8>> {
        loop {
            match self.peek()? {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.take(),
                other => return Ok(other),
            }
        }
    }

    fn expected(&self, expected: &str, found: Option<u8>) -> ReadError {
        let found = match found {
            None => "the end".to_owned(),
            Some(byte) => format!("{:?}", char::from(byte)),
        };
        ReadError::malformed(0, format!("expected {expected}, found {found}")).moved(self.at)
    }

    fn need(&mut self, byte: u8, expected: &str) -> Result<()> {
        match self.peek_visible()? {
            Some(found) if found == byte => {
                self.take();
                Ok(())
            }
            found => Err(self.expected(expected, found)),
        }
    }

    /// Detects the layout; `text` receives the start of the first vertex.
    fn start(&mut self) -> Result<()> {
        self.text.clear();
        if self.peek_visible()?.is_none() {
            self.state = State::End;
            return Ok(());
        }
        self.need(b'{', "a vertex")?;
        self.text.push(b'{');
        let key = b"\"vertices\"";
        self.peek_visible()?;
        for &byte in key {
            if self.peek()? != Some(byte) {
                self.state = State::Lines;
                return Ok(());
            }
            self.text.push(byte);
            self.take();
        }
        self.need(b':', "\":\"")?;
        self.need(b'[', "an array of vertices")?;
        self.text.clear();
        self.state = State::WrappedFirst;
        Ok(())
    }

    /// Reads the text of the next vertex; false at the end.
    fn next_text(&mut self) -> Result<bool> {
        if self.state == State::Start {
            self.start()?;
            if self.state == State::Lines {
                return self.object().map(|()| true);
            }
        }
        self.text.clear();
        let found = self.peek_visible()?;
        match (self.state, found) {
            (State::End, _) | (State::Lines, None) => {
                self.state = State::End;
                Ok(false)
            }
            (State::WrappedFirst | State::Wrapped, Some(b']')) => {
                self.take();
                self.need(b'}', "\"}\"")?;
                if let Some(found) = self.peek_visible()? {
                    return Err(self.expected("the end", Some(found)));
                }
                self.state = State::End;
                Ok(false)
            }
            (State::Wrapped, Some(b',')) => {
                self.take();
                self.need(b'{', "a vertex")?;
                self.text.push(b'{');
                self.object().map(|()| true)
            }
            (State::Lines | State::WrappedFirst, Some(b'{')) => {
                self.take();
                self.text.push(b'{');
                self.state = if self.state == State::Lines { State::Lines } else { State::Wrapped };
                self.object().map(|()| true)
            }
            (State::Lines, found) => Err(self.expected("a vertex", found)),
            (_, found) => Err(self.expected("\",\" or \"]\"", found)),
        }
    }

    /// Reads the rest of an object that starts with `text`.
    fn object(&mut self) -> Result<()> {
        // `text` may end in the middle of a key.
        let mut scan = Scan::default();
        for &byte in &self.text {
            scan.byte(byte);
        }
        loop {
            let at = self.at;
            let buffer = self.source.fill_buf().map_err(|error| {
                ReadError::new(ReadErrorKind::Io, 0, format!("could not read: {error}")).moved(at)
            })?;
            if buffer.is_empty() {
                return Err(self.expected("the rest of a vertex", None));
            }
            let end = buffer.iter().position(|&byte| scan.byte(byte));
            let taken = end.map_or(buffer.len(), |end| end + 1);
            if self.text.len() + taken > self.limits.bytes {
                let message = format!("expected at most {} bytes of one vertex", self.limits.bytes);
                return Err(ReadError::too_large(0, message).moved(self.at));
            }
            self.text.extend_from_slice(&buffer[..taken]);
            self.source.consume(taken);
            self.at += taken as u64;
            if end.is_some() {
                return Ok(());
            }
        }
    }

    fn next_vertex(&mut self) -> Result<Option<GraphVertex>> {
        let text = self.next_text();
        if !matches!(text, Ok(true)) {
            self.state = State::End;
        }
        if !text? {
            return self.checked_end().map(|()| None);
        }
        // White space after the first brace of a file is dropped, so the position is computed from the end.
        let start = self.at - self.text.len() as u64;
        let vertex = match vertex(&self.text, self.limits) {
            Ok(vertex) => vertex,
            Err(error) => {
                self.skipped = true;
                if !is_json(&self.text, self.limits) {
                    // The text is not JSON, so the braces may not delimit the vertex.
                    self.state = State::End;
                }
                return Err(error.moved(start));
            }
        };
        self.edges[0] += vertex.incoming.len() as u64;
        self.edges[1] += vertex.outgoing.len() as u64;
        if self.counted.is_none() {
            self.counted = match (vertex.incoming.is_empty(), vertex.outgoing.is_empty()) {
                (true, true) => None,
                (false, _) => Some(Direction::In),
                (true, false) => Some(Direction::Out),
            };
        }
        Ok(Some(GraphVertex { counted: self.counted.unwrap_or(Direction::Out), ..vertex }))
    }

    /// Compares the numbers of incoming and outgoing edges.
    fn checked_end(&self) -> Result<()> {
        let [incoming, outgoing] = self.edges;
        if self.skipped || incoming == 0 || outgoing == 0 || incoming == outgoing {
            return Ok(());
        }
        let message = format!("expected as many edges in inE as in outE, found {incoming} and {outgoing}");
        Err(ReadError::malformed(0, message).moved(self.at))
    }
}

impl<R: BufRead> Iterator for GraphReader<R> {
    type Item = Result<GraphVertex>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::End {
            return None;
        }
        self.next_vertex().transpose()
    }
}

/// Brace counter that ignores strings.
#[derive(Default)]
struct Scan {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Scan {
    /// Processes a byte; true if it closes the object.
    fn byte(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' => self.depth += 1,
            b'}' => self.depth = self.depth.saturating_sub(1),
            _ => return false,
        }
        self.depth == 0 && byte == b'}'
    }
}

/// Whether the whole text is one JSON value.
fn is_json(text: &[u8], limits: Limits) -> bool {
    let whole = |mut cursor: Cursor<'_>| cursor.skip().and_then(|()| cursor.end());
    Cursor::new(text, limits).and_then(whole).is_ok()
}

fn vertex(text: &[u8], limits: Limits) -> Result<GraphVertex> {
    let mut cursor = Cursor::new(text, limits)?;
    let (mut id, mut label, mut properties) = (None, None, Vec::new());
    let (mut incoming, mut outgoing) = (Vec::new(), Vec::new());
    cursor.object(|cursor, key| {
        match &*key {
            "id" => id = Some(cursor.value()?),
            "label" => label = Some(cursor.string()?),
            "properties" => properties = cursor.vertex_properties()?,
            "inE" => incoming = edges(cursor, "outV")?,
            "outE" => outgoing = edges(cursor, "inV")?,
            _ => cursor.skip()?,
        }
        Ok(())
    })?;
    cursor.end()?;
    let id = id.ok_or_else(|| ReadError::malformed(0, "expected a member \"id\""))?;
    let label = label.map_or_else(|| VERTEX_LABEL.into(), Arc::from);
    Ok(GraphVertex { id, label, properties, incoming, outgoing, counted: Direction::Out })
}

/// `{"label": [edge, …], …}`; the member `end` of an edge is its other end.
fn edges(cursor: &mut Cursor<'_>, end: &str) -> Result<Vec<GraphEdge>> {
    let mut edges = Vec::new();
    cursor.object(|cursor, label| {
        let label: Arc<str> = if label.is_empty() { EDGE_LABEL.into() } else { label.into() };
        cursor.array(|cursor| {
            cursor.peek();
            let at = cursor.at();
            let (mut id, mut other, mut properties) = (Value::Null, None, Vec::new());
            cursor.object(|cursor, key| {
                match &*key {
                    "id" => id = cursor.value()?,
                    "properties" => properties = cursor.properties()?,
                    key if key == end => other = Some(cursor.value()?),
                    _ => cursor.skip()?,
                }
                Ok(())
            })?;
            let other =
                other.ok_or_else(|| ReadError::malformed(at, format!("expected a member {end:?}")))?;
            edges.push(GraphEdge { id, label: label.clone(), other, properties });
            Ok(())
        })
    })?;
    Ok(edges)
}
