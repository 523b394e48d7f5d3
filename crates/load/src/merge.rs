//! The end of every path of a load: blocks in the order of the input become statements of the target.
//!
//! Each term that a block has once is interned once, triples are mapped by a gather from the ids of the
//! block, malformed statements stop the load or go to the report, and progress is told.

use crate::Format;
use crate::block::{At, Block, DEFAULT_GRAPH, Malformed};
use crate::document;
use crate::edges::{Edges, Place};
use crate::header::Table;
use crate::options::{LoadOptions, LoadReport};
use crate::seen::Seen;
use crate::source::Source;
use crate::target::{Kind, Statement, Target, TermRef};
use foldhash::HashMap as SeededMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vervet_model::{Error, ErrorKind, Id, Position, Result, with_labels};

/// Terms are handed over in pieces that stay in the first-level cache.
const TERMS_AT_ONCE: usize = 256;

/// See the header of this file.
pub(crate) struct Merger<'a, T: ?Sized> {
    pub(crate) target: &'a mut T,
    pub(crate) options: &'a LoadOptions<'a>,
    skipped_to: &'a mut dyn Write,
    pub(crate) report: LoadReport,
    /// Bytes read by the open sources.
    pub(crate) bytes: Arc<AtomicU64>,
    bytes_total: Option<u64>,
    /// CSV headers by file name without numbers, for files that continue another.
    pub(crate) csv_tables: SeededMap<String, Table>,
    /// The graph for statements that name none.
    graph: Option<Id>,
    /// Edges named in RDF.
    pub(crate) edges: Edges,
    /// Vertices of property graphs.
    pub(crate) seen: Seen,
    /// Files begun so far: name, the input once more, format.
    files: Vec<(String, Option<Source>, Format)>,
    file: String,
    scope: String,
    /// Lines of the blocks merged so far, of this file.
    lines: u64,
    /// Ids of the tokens of the block that is being merged.
    pub(crate) ids: Vec<Id>,
    triples: Vec<[Id; 3]>,
    statements: Vec<Statement>,
}

impl<'a, T: Target + ?Sized> Merger<'a, T> {
    pub(crate) fn new(
        target: &'a mut T,
        options: &'a LoadOptions<'a>,
        skipped_to: &'a mut dyn Write,
        bytes_total: Option<u64>,
    ) -> Self {
        let seen = Seen::new(target.vertex_count());
        Self {
            target,
            seen,
            options,
            skipped_to,
            report: LoadReport::default(),
            bytes: Arc::default(),
            bytes_total,
            csv_tables: SeededMap::default(),
            graph: None,
            edges: Edges::default(),
            files: Vec::new(),
            file: String::new(),
            scope: String::new(),
            lines: 0,
            ids: Vec::new(),
            triples: Vec::new(),
            statements: Vec::new(),
        }
    }

    /// Begins the file with this number.
    pub(crate) fn begin(&mut self, source: &Source, format: Format, number: usize) {
        source.name().clone_into(&mut self.file);
        self.files.push((self.file.clone(), source.again(), format));
        self.scope = format!("{}{number}_", self.options.blank_scope);
        self.lines = 0;
    }

    /// The label of a blank node of this file in the target.
    pub(crate) fn scoped(&self, label: &str) -> String {
        format!("{}{label}", self.scope)
    }

    /// The format of the file begun last.
    pub(crate) fn format(&self) -> Format {
        self.files.last().map_or(Format::Turtle, |(_, _, format)| *format)
    }

    /// The graph for statements that name none; [`Id::UNBOUND`]: the default graph.
    pub(crate) fn graph(&mut self) -> Result<Id> {
        match (self.graph, &self.options.graph) {
            (Some(graph), _) => Ok(graph),
            (None, None) => Ok(Id::UNBOUND),
            (None, Some(name)) => {
                let graph = self.target.intern_iri(name.as_str())?;
                if !graph.is_vertex() {
                    let message = format!("the edge {name} cannot be the name of a graph");
                    return Err(Error::new(ErrorKind::Input, message).with_hint("choose another name"));
                }
                self.graph = Some(graph);
                Ok(graph)
            }
        }
    }

    /// Adds the statements of the next block.
    pub(crate) fn merge(&mut self, block: &Block) -> Result<()> {
        for malformed in &block.malformed {
            self.malformed(malformed)?;
        }
        self.intern(block)?;
        let empty = block.triples.is_empty() && block.reifiers.is_empty();
        let graph = if empty { Id::UNBOUND } else { self.graph()? };
        let with_edges = self.merge_edges(block, graph)?;
        self.lines += block.line_count;
        if with_edges {
            return Ok(());
        }
        let ids = &self.ids;
        let id = |number: u32| ids[number as usize];
        if block.graphs.is_empty() && !graph.is_bound() {
            self.triples.clear();
            self.triples.extend(block.triples.iter().map(|triple| triple.map(id)));
            self.target.add_triples(&self.triples)?;
        } else {
            self.statements.clear();
            self.statements.extend(block.triples.iter().enumerate().map(
                |(row, &[subject, predicate, object])| {
                    let graph = match block.graphs.get(row) {
                        Some(&number) if number != DEFAULT_GRAPH => id(number),
                        _ => graph,
                    };
                    Statement {
                        subject: id(subject),
                        predicate: id(predicate),
                        object: id(object),
                        graph,
                        edge: Id::UNBOUND,
                    }
                },
            ));
            self.target.add(&self.statements)?;
        }
        self.added(block.triples.len())
    }

    /// The id of a token of the block that is being merged.
    pub(crate) fn id(&self, number: u32) -> Id {
        self.ids[number as usize]
    }

    /// The graph with this token number; `graph`: the one of statements that name none.
    pub(crate) fn graph_of(&self, number: u32, graph: Id) -> Id {
        if number == DEFAULT_GRAPH { graph } else { self.id(number) }
    }

    /// The place of what a block of the current file says is at `at`.
    pub(crate) fn here(&self, at: At) -> Place {
        let at = match at {
            At::Line(line) => At::Line(self.lines + line),
            at => at,
        };
        Place { file: self.files.len().saturating_sub(1), at }
    }

    /// As [`Merger::malformed`] for a place that may be in an earlier file.
    pub(crate) fn malformed_at(&mut self, place: Place, message: &str) -> Result<()> {
        let base = self.options.base_iri.as_deref();
        let (name, line) = match self.files.get_mut(place.file) {
            Some((name, again, format)) => {
                let line = match (place.at, again) {
                    (At::Line(line), _) => Some(line),
                    (At::Statement(number), Some(again)) => document::line_of(again, *format, base, number),
                    _ => None,
                };
                (name.as_str(), line)
            }
            None => ("", None),
        };
        let message = match line {
            Some(line) => format!("{name}:{}: {message}", line + 1),
            None => format!("{name}: {message}"),
        };
        self.skip_or_stop(Error::new(ErrorKind::Input, message))
    }

    fn intern(&mut self, block: &Block) -> Result<()> {
        const UNSCOPED: TermRef<'_> = TermRef::Iri("");
        self.ids.clear();
        let (mut labels, mut ends) = (String::new(), Vec::new());
        for tokens in block.tokens.chunks(TERMS_AT_ONCE) {
            let mut terms = [UNSCOPED; TERMS_AT_ONCE];
            labels.clear();
            ends.clear();
            for (term, token) in terms.iter_mut().zip(tokens) {
                *term = block.term(token)?;
                let mut scoped = |label: &str, labels: &mut String| {
                    labels.push_str(&self.scope);
                    labels.push_str(label);
                };
                match *term {
                    TermRef::Blank(label) => scoped(label, &mut labels),
                    TermRef::Literal { value, kind: Kind::Triple } => {
                        with_labels(value, &mut scoped, &mut labels);
                    }
                    _ => continue,
                }
                ends.push(labels.len());
            }
            let mut at = 0;
            let mut ends = ends.iter();
            for term in &mut terms[..tokens.len()] {
                let is_blank = matches!(term, TermRef::Blank(_));
                if !is_blank && !matches!(term, TermRef::Literal { kind: Kind::Triple, .. }) {
                    continue;
                }
                let Some(end) = ends.next() else { break };
                let text = &labels[at..*end];
                *term = match is_blank {
                    true => TermRef::Blank(text),
                    false => TermRef::Literal { value: text, kind: Kind::Triple },
                };
                at = *end;
            }
            self.target.intern_all(&terms[..tokens.len()], &mut self.ids)?;
        }
        if self.ids.len() == block.tokens.len() {
            Ok(())
        } else {
            Err(Error::internal("the target did not number every term"))
        }
    }

    /// Counts statements, tells the progress, and stops if the load is cancelled.
    pub(crate) fn added(&mut self, statements: usize) -> Result<()> {
        self.report.statements += u64::try_from(statements).unwrap_or(u64::MAX);
        self.report.bytes = self.bytes.load(Ordering::Relaxed);
        if let Some(progress) = self.options.progress {
            progress.advance(self.report.bytes, self.bytes_total, self.report.statements);
        }
        // Relaxed: the flag guards no other memory.
        if self.options.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed)) {
            return Err(Error::new(ErrorKind::Cancelled, "the load was cancelled"));
        }
        Ok(())
    }

    /// Stops with the error of a malformed statement, or writes it to the report.
    pub(crate) fn malformed(&mut self, malformed: &Malformed) -> Result<()> {
        self.skip_or_stop(self.place(malformed))
    }

    /// The same, of an error that has its place.
    pub(crate) fn skip_or_stop(&mut self, error: Error) -> Result<()> {
        if !self.options.skip_errors {
            let hint = match hint_of(error.message()) {
                Some(hint) => hint.to_owned(),
                None => "mend the file, or pass over malformed statements with --skip-errors".to_owned(),
            };
            return Err(error.with_hint(hint));
        }
        self.report.skipped += 1;
        writeln!(self.skipped_to, "{error}")
            .map_err(|error| Error::io("write the report of skipped statements", &error))
    }

    /// The error of a malformed statement behind which the format cannot go on.
    pub(crate) fn fatal(&self, malformed: &Malformed) -> Error {
        let error = self.place(malformed);
        let hint = hint_of(error.message()).unwrap_or("mend the file");
        if self.options.skip_errors {
            error.with_hint(format!("{hint}: a document in this format cannot be read on behind an error"))
        } else {
            error.with_hint(hint)
        }
    }

    fn place(&self, malformed: &Malformed) -> Error {
        let line = self.lines + malformed.line + 1;
        let message = match malformed.column {
            Some(column) => format!("{}:{line}:{}: {}", self.file, column + 1, malformed.message),
            None => format!("{}:{line}: {}", self.file, malformed.message),
        };
        let position = Position { line, column: malformed.column.map(|column| column + 1) };
        Error::new(malformed.kind, message).at(position)
    }
}

/// What to do about a message that says it in other words than a person at a file would need.
fn hint_of(message: &str) -> Option<&'static str> {
    const HINTS: [(&str, &str); 6] = [
        ("the file ends inside of", "an end quote, a bracket or a dot is missing, maybe many lines before"),
        ("relative IRI", "say with --base IRI what relative IRIs are resolved against"),
        (
            "is not a valid subject",
            "the statement before may end too early: look at its language tags and quotes",
        ),
        (
            "expected a member \"id\"",
            ".json is read as GraphSON; name another format with --format, such as jsonld",
        ),
        ("has not been declared", "declare the prefix with @prefix before it is used"),
        ("remote contexts", "copy the context into the document"),
    ];
    HINTS.iter().find(|(part, _)| message.contains(part)).map(|(_, hint)| *hint)
}
