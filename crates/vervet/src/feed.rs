//! The change feed as text: JSON lines, RDF Patch, server-sent events.
//!
//! # Shape
//! Terms are in N-Triples syntax in all formats.
//!
//! * *JSON lines*: one object for each commit, with its changes in order. It has the statements as they are
//!   stored, with the edge of each, and so is exact.
//! * *RDF Patch*: one transaction for each commit, with the header `position` before it. It has the triples
//!   as SPARQL sees them: an edge is its triple, and a triple `rdf:reifies`. A patch removes a triple when
//!   the newest version has no statement with it: another edge may still have it. So the patches up to the
//!   newest commit always give its graph; those before it may lack a triple, or have one too many, whose
//!   parallel edges later commits change.
//! * *Server-sent events*: the objects of JSON lines; the id of an event is the position after its commit.
//! # Cost
//! Memory of one commit's record and [`BUFFER_BYTES`] of text.

use crate::query::run::control;
use crate::{Database, GraphSnapshot, QueryOptions};
use std::io::Write;
use std::sync::Arc;
use vervet_delta::Version;
use vervet_kernel::Control;
use vervet_model::vocab::RDF_REIFIES;
use vervet_model::{Direction, Error, Id, Result, Statement};
use vervet_snapshot::Snapshot;
use vervet_txn::{
    Feed, FeedCommit, FeedContent, FeedPosition, FeedRefusal, Mutation, RecordSource, Timestamp,
};

/// Size of the output buffer, in bytes.
const BUFFER_BYTES: usize = 64 << 10;

/// Changes between two checks of the limits.
const BATCH_CHANGES: u64 = 256;

/// Format of a change feed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FeedFormat {
    /// One JSON object for each commit, on a line of its own.
    JsonLines,
    /// RDF Patch, one transaction for each commit.
    RdfPatch,
    /// Server-sent events, one for each commit.
    Events,
}

/// How much of a feed to write.
#[derive(Clone, Copy, Debug)]
pub struct FeedLimits {
    /// Maximum number of commits.
    pub commits: u64,
    /// No further commit once this many bytes were written.
    pub bytes: u64,
}

impl Default for FeedLimits {
    fn default() -> Self {
        Self { commits: u64::MAX, bytes: u64::MAX }
    }
}

impl Database {
    /// The commits after a position, as their log has them, up to the newest one; `None`: those after the
    /// newest one.
    ///
    /// # Errors
    /// See [`FeedRefusal`].
    pub fn feed(&self, after: Option<FeedPosition>) -> Result<Feed, FeedRefusal> {
        self.transactions().feed(after)
    }

    /// Moves the end of a feed to the newest commit; returns whether there are commits to visit. The feed
    /// goes on where this process has begun or ended to take changes.
    ///
    /// # Errors
    /// See [`FeedRefusal`].
    pub fn advance_feed(&self, feed: &mut Feed) -> Result<bool, FeedRefusal> {
        feed.go_on_with(self.transactions());
        feed.advance()
    }

    /// The current graph, and its position in the change feed.
    ///
    /// # Errors
    /// Unsupported: there is no change feed. Errors of the log.
    pub fn feed_snapshot(&self) -> Result<(FeedPosition, GraphSnapshot)> {
        let (position, published) = self.transactions().feed_end()?;
        Ok((position, self.snapshot_of(published)))
    }

    /// Whether there may be a change feed: the graph has a log, here or at another process.
    #[must_use]
    pub fn has_feed(&self) -> bool {
        self.transactions().has_feed()
    }

    /// The number of the newest commit.
    #[must_use]
    pub fn newest_commit(&self) -> Timestamp {
        self.published().timestamp
    }

    /// Takes the commits of feeds from the log of another process.
    pub fn feed_from(&self, source: Arc<dyn RecordSource>) {
        self.transactions().feed_from(source);
    }

    /// Writes the commits of a feed, up to its end, within `limits`; returns their number.
    ///
    /// # Errors
    /// See [`FeedRefusal`]; the limits of `options`; `out` fails.
    pub fn write_feed(
        &self,
        feed: &mut Feed,
        format: FeedFormat,
        limits: FeedLimits,
        options: &QueryOptions,
        out: &mut dyn Write,
    ) -> Result<u64, FeedRefusal> {
        let control = control(options, options.begin(), self.driver().gate());
        let _limits = control.enter();
        let end = Arc::clone(feed.end());
        let mut writer = FeedWriter {
            version: &end.version,
            format,
            control: &control,
            ends: Vec::new(),
            terms: Vec::new(),
            buffer: Vec::with_capacity(BUFFER_BYTES),
            written: 0,
            out,
        };
        let mut commits = 0;
        if limits.commits == 0 {
            return Ok(0);
        }
        let log = feed.position().log;
        feed.read(&mut |commit| {
            writer.commit(commit, log)?;
            commits += 1;
            options.progress.iter().for_each(|progress| progress.add(1));
            Ok(commits < limits.commits && writer.written + (writer.buffer.len() as u64) < limits.bytes)
        })?;
        writer.write_buffer()?;
        writer.out.flush().map_err(|error| Error::io("write the change feed", &error))?;
        Ok(commits)
    }
}

struct FeedWriter<'a> {
    /// A version that has the terms of all commits.
    version: &'a Version,
    format: FeedFormat,
    control: &'a Control<'a>,
    ends: Vec<usize>,
    /// The text of one term.
    terms: Vec<u8>,
    buffer: Vec<u8>,
    /// Bytes that left the buffer.
    written: u64,
    out: &'a mut dyn Write,
}

impl FeedWriter<'_> {
    fn commit(&mut self, commit: &FeedCommit<'_>, log: Option<u64>) -> Result<()> {
        let position = FeedPosition { commit: commit.timestamp, log };
        match self.format {
            FeedFormat::RdfPatch => self.patch(commit, position),
            FeedFormat::JsonLines => {
                self.object(commit, position)?;
                self.text("\n");
                Ok(())
            }
            FeedFormat::Events => {
                self.text(&format!("id: {position}\ndata: "));
                self.object(commit, position)?;
                self.text("\n\n");
                Ok(())
            }
        }
    }

    fn object(&mut self, commit: &FeedCommit<'_>, position: FeedPosition) -> Result<()> {
        self.text(&format!("{{\"commit\":{},\"position\":\"{position}\",", commit.timestamp));
        match &commit.content {
            FeedContent::Constraints(texts) => {
                self.text("\"constraints\":[");
                for (index, text) in texts.iter().enumerate() {
                    self.text(if index > 0 { ",\"" } else { "\"" });
                    escape(text.as_bytes(), &mut self.buffer);
                    self.text("\"");
                }
            }
            FeedContent::Mutations(mutations) => {
                self.text("\"changes\":[");
                let mut count = 0;
                for mutation in mutations.clone() {
                    self.text(if count > 0 { "," } else { "" });
                    self.change(&mutation?)?;
                    self.after_change(&mut count)?;
                }
            }
        }
        self.text("]}");
        Ok(())
    }

    fn change(&mut self, Mutation { statement, added }: &Mutation) -> Result<()> {
        let Statement { subject, predicate, object, graph, edge } = *statement;
        self.text(if *added { "{\"op\":\"insert\"" } else { "{\"op\":\"remove\"" });
        for (name, id) in [
            ("subject", subject),
            ("predicate", predicate),
            ("object", object),
            ("graph", graph),
            ("edge", edge),
        ] {
            if id.is_bound() {
                self.text(&format!(",\"{name}\":\""));
                self.read_term(id)?;
                escape(&self.terms, &mut self.buffer);
                self.text("\"");
            }
        }
        self.text("}");
        Ok(())
    }

    fn patch(&mut self, commit: &FeedCommit<'_>, position: FeedPosition) -> Result<()> {
        self.text(&format!("H position \"{position}\" .\nTX .\n"));
        if let FeedContent::Mutations(mutations) = &commit.content {
            let mut count = 0;
            for mutation in mutations.clone() {
                self.rows(&mutation?)?;
                self.after_change(&mut count)?;
            }
        }
        self.text("TC .\n");
        Ok(())
    }

    fn rows(&mut self, Mutation { statement, added }: &Mutation) -> Result<()> {
        let Statement { subject, predicate, object, graph, edge } = *statement;
        let triple = [subject, predicate, object];
        let operation = if *added { "A " } else { "D " };
        if edge.is_bound() {
            self.text(operation);
            self.row_terms(&[edge])?;
            self.text(&format!("<{RDF_REIFIES}> <<( "));
            self.row_terms(&triple)?;
            self.text(")>> ");
            self.row_end(graph)?;
        }
        if *added || !self.has_triple(statement)? {
            self.text(operation);
            self.row_terms(&triple)?;
            self.row_end(graph)?;
        }
        Ok(())
    }

    /// Whether the newest version has this triple in this graph, with any edge or none.
    fn has_triple(&self, statement: &Statement) -> Result<bool> {
        let Some(segment) = self.version.segment(statement.predicate, Direction::Out)? else {
            return Ok(false);
        };
        let mut entries = Vec::with_capacity(1);
        let from = [statement.object, statement.graph, Id::UNBOUND];
        segment.entries(statement.subject, from, 1, &mut entries)?;
        Ok(entries.first().is_some_and(|[object, graph, _]| [*object, *graph] == from[..2]))
    }

    fn row_terms(&mut self, ids: &[Id]) -> Result<()> {
        for id in ids {
            self.read_term(*id)?;
            self.buffer.extend_from_slice(&self.terms);
            self.buffer.push(b' ');
        }
        Ok(())
    }

    fn row_end(&mut self, graph: Id) -> Result<()> {
        if graph.is_bound() {
            self.row_terms(&[graph])?;
        }
        self.text(".\n");
        Ok(())
    }

    /// Reads the N-Triples form of a term.
    fn read_term(&mut self, id: Id) -> Result<()> {
        self.terms.clear();
        self.ends.clear();
        self.version.write_terms(std::slice::from_ref(&id), &mut self.terms, &mut self.ends)
    }

    fn text(&mut self, text: &str) {
        self.buffer.extend_from_slice(text.as_bytes());
    }

    /// Counts a change, checks the limits, and writes a full buffer.
    fn after_change(&mut self, count: &mut u64) -> Result<()> {
        *count += 1;
        if count.is_multiple_of(BATCH_CHANGES) {
            self.control.check()?;
        }
        if self.buffer.len() >= BUFFER_BYTES { self.write_buffer() } else { Ok(()) }
    }

    fn write_buffer(&mut self) -> Result<()> {
        let written = self.out.write_all(&self.buffer);
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        written.map_err(|error| Error::io("write the change feed", &error))
    }
}

/// Appends a text as the content of a JSON string.
fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(*byte),
        }
    }
}
