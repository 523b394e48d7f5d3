//! From the numbers of a share to those of the whole graph, and from statements to the servers of their
//! halves.
//!
//! # Shape
//! A server numbers the terms and edges of its share from 0. The first server keeps its numbers; the others
//! send their terms, and get the numbers in the whole graph. Then each statement, with these numbers, goes
//! as two halves to the servers that own its subject and its object, and the row of its edge to the server
//! that owns the edge.

use super::link::Link;
use super::requests::{self, CHUNK_BYTES};
use rustc_hash::FxHashMap;
use vervet_codec::{Damaged, Reader, write_u64};
use vervet_dictionary::DictionaryBuilder;
use vervet_model::vocab::EDGE_ID;
use vervet_model::{Direction, Error, ErrorKind, Id, Partitioning, Result, Statement, Tag, Watch};
use vervet_store::{Halves, StoreBuilder};

/// Halves for one server are sent when they have this size.
const HALVES_BYTES: u64 = 1 << 20;

/// Statements between two checks of the watch.
const CHECKED_EVERY: u64 = 1 << 12;

/// The numbers in the whole graph of the terms and edges of a share.
#[derive(Default)]
pub(crate) struct Numbers {
    /// By number in the share; the first server keeps its own.
    vertices: Option<Vec<u32>>,
    literals: Option<Vec<u32>>,
    /// Added to the numbers of edges.
    pub(crate) edges: u64,
}

impl Numbers {
    /// Sends the terms of this server, which is not the first one, and gets their numbers.
    pub(crate) fn of(dictionary: &DictionaryBuilder, link: &Link) -> Result<Self> {
        let (mut vertices, mut literals) = (Vec::new(), Vec::new());
        let (mut at, mut bytes) = (0, Vec::new());
        let mut kinds = dictionary.kinds();
        loop {
            bytes.clear();
            let is_last = dictionary.transfer(&mut at, CHUNK_BYTES / 2, &mut bytes);
            // A term may be longer than a request.
            let mut parts = bytes.chunks(CHUNK_BYTES).peekable();
            let mut answer = Vec::new();
            while let Some(part) = parts.next() {
                let is_cut = parts.peek().is_some();
                answer = link.ask(0, requests::terms(link.own, is_last, is_cut, part))?;
            }
            if bytes.is_empty() {
                link.ask(0, requests::terms(link.own, is_last, false, &[]))?;
            }
            for number in answer.chunks_exact(4) {
                let number = number.try_into().map(u32::from_le_bytes).unwrap_or_default();
                match kinds.next() {
                    Some(true) => vertices.push(number),
                    Some(false) => literals.push(number),
                    None => return Err(Error::corrupt("an answer of another server", "too many numbers")),
                }
            }
            if is_last {
                break;
            }
        }
        match kinds.next() {
            None => Ok(Self { vertices: Some(vertices), literals: Some(literals), edges: 0 }),
            Some(_) => Err(Error::corrupt("an answer of another server", "too few numbers")),
        }
    }

    /// The id in the whole graph.
    #[inline]
    pub(crate) fn id(&self, id: Id) -> Result<Id> {
        let mapped = |numbers: &Option<Vec<u32>>, new: fn(u64) -> Id| {
            let Some(numbers) = numbers else { return Some(id) };
            let number = usize::try_from(id.payload()).ok().and_then(|at| numbers.get(at))?;
            Some(new(u64::from(*number)))
        };
        let mapped = match id.tag() {
            Tag::Vertex => mapped(&self.vertices, Id::vertex),
            Tag::Literal => mapped(&self.literals, Id::literal),
            Tag::Edge => Some(Id::edge(id.payload() + self.edges)),
            _ => Some(id),
        };
        mapped.ok_or_else(|| Error::internal("an id that its share does not have"))
    }
}

/// What the servers tell each other of their shares.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ShareCounts {
    pub(crate) statements: u64,
    pub(crate) edges: u64,
    /// Vertices that are names of edges of the share: ids in the whole graph.
    pub(crate) names: Vec<u64>,
}

impl ShareCounts {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for number in [self.statements, self.edges, self.names.len() as u64].iter().chain(&self.names) {
            write_u64(*number, out);
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        let (statements, edges) = (reader.u64()?, reader.u64()?);
        let names = (0..reader.list_length()?).map(|_| reader.u64()).collect::<Result<_, _>>()?;
        Ok(Self { statements, edges, names })
    }
}

/// The names of the edges of a share, as ids of the share.
pub(crate) fn edge_names(dictionary: &DictionaryBuilder, statements: &StoreBuilder<'_>) -> Vec<Id> {
    let Some(key) = dictionary.lookup_iri(EDGE_ID) else { return Vec::new() };
    let mut names = Vec::new();
    statements.for_each_of(key, &mut |[subject, name]| {
        if subject.tag() == Tag::Edge && name.is_vertex() {
            names.push(name);
        }
    });
    names
}

/// Sends the statements of a share to the servers of their halves.
pub(crate) struct Router<'a> {
    link: &'a Link,
    partitioning: Partitioning,
    /// The server of each partition.
    server_of: Vec<usize>,
    halves: Vec<Halves>,
    numbers: &'a Numbers,
    /// Names of edges of other shares, with the servers that read them.
    foreign_names: FxHashMap<u64, usize>,
    edge_id: Option<Id>,
}

impl<'a> Router<'a> {
    pub(crate) fn new(
        link: &'a Link,
        partitioning: Partitioning,
        numbers: &'a Numbers,
        (foreign_names, edge_id): (FxHashMap<u64, usize>, Option<Id>),
    ) -> Self {
        let mut server_of = vec![0; partitioning.count()];
        for (server, (_, partitions)) in link.servers.iter().enumerate() {
            partitions.iter().for_each(|partition| server_of[*partition] = server);
        }
        let halves = (0..link.count()).map(|_| Halves::default()).collect();
        Self { link, partitioning, server_of, halves, numbers, foreign_names, edge_id }
    }

    /// Sends all statements. `name`: the text of a vertex of the share, for messages.
    pub(crate) fn send_all(
        mut self,
        statements: StoreBuilder<'_>,
        name: &dyn Fn(Id) -> String,
        watch: &Watch<'_>,
    ) -> Result<()> {
        let mut count = 0_u64;
        statements.into_statements(&mut |statement| {
            count += 1;
            if count.is_multiple_of(CHECKED_EVERY) {
                watch.advance(CHECKED_EVERY)?;
            }
            self.send(&statement, name)
        })?;
        (0..self.halves.len()).try_for_each(|server| self.flush(server))
    }

    fn send(&mut self, local: &Statement, name: &dyn Fn(Id) -> String) -> Result<()> {
        let Statement { subject, predicate, object, graph, edge } = *local;
        let id = |id| self.numbers.id(id);
        let statement = Statement {
            subject: id(subject)?,
            predicate: id(predicate)?,
            object: id(object)?,
            graph: id(graph)?,
            edge: id(edge)?,
        };
        if !self.foreign_names.is_empty() {
            // The name of an edge as the value of the key of names is no statement about the edge.
            let is_name_of = Some(predicate) == self.edge_id && subject.tag() == Tag::Edge;
            let used = [(statement.subject, subject), (statement.object, object)];
            for (id, local) in used.into_iter().take(if is_name_of { 1 } else { 2 }) {
                if let Some(server) = self.foreign_names.get(&id.bits()) {
                    return Err(self.foreign(*server, &name(local)));
                }
            }
        }
        for (direction, id) in Direction::BOTH.into_iter().zip([statement.subject, statement.object]) {
            let server = self.server(id);
            self.halves[server].add(direction, &statement);
            self.flush_if_full(server)?;
        }
        if statement.edge.is_bound() {
            let server = self.server(statement.edge);
            self.halves[server].add_edge(&statement);
            self.flush_if_full(server)?;
        }
        Ok(())
    }

    fn server(&self, id: Id) -> usize {
        self.server_of[self.partitioning.owner(id)]
    }

    fn flush_if_full(&mut self, server: usize) -> Result<()> {
        if self.halves[server].held_bytes() < HALVES_BYTES { Ok(()) } else { self.flush(server) }
    }

    fn flush(&mut self, server: usize) -> Result<()> {
        let halves = &mut self.halves[server];
        if halves.held_bytes() == 0 {
            return Ok(());
        }
        if server == self.link.own {
            let mut bytes = Vec::new();
            halves.drain(&mut bytes);
            return self.link.state.add_halves(&bytes);
        }
        self.link.ask(server, requests::halves(|out| halves.drain(out))).map(drop)
    }

    fn foreign(&self, server: usize, name: &str) -> Error {
        let names = |server: usize| self.link.servers.get(server).map_or("", |(name, _)| name);
        let what = format!(
            "{name} is the name of an edge in the files of server {}, and used in those of server {}",
            names(server),
            names(self.link.own)
        );
        Error::new(ErrorKind::Unsupported, what)
            .with_hint("load an edge and the statements about it at one server")
    }
}
