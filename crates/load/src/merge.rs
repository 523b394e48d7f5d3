//! Merger: converts blocks in input order to statements of the target.
//!
//! Each distinct term of a block is interned once, triples are mapped by a gather from the ids of the block,
//! malformed statements stop the load or go to the report, and progress is reported.

use crate::Format;
use crate::block::{Block, BlockPosition, DEFAULT_GRAPH, Malformed};
use crate::document_parser::line_of;
use crate::edge_table::{Edges, InputPosition};
use crate::header::Table;
use crate::options::{LoadOptions, LoadReport};
use crate::source::Source;
use crate::target::{Kind, Statement, Target, TermRef};
use crate::vertex_sets::VertexSets;
use foldhash::HashMap as SeededMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vervet_model::{Error, ErrorKind, Id, Position, Result, with_labels};

/// Terms per call of the target, which stay in the first-level cache.
const TERMS_AT_ONCE: usize = 256;

/// See the header of this file.
pub(crate) struct Merger<'a, T: ?Sized> {
    pub(crate) target: &'a mut T,
    pub(crate) options: &'a LoadOptions<'a>,
    skipped_to: &'a mut dyn Write,
    pub(crate) report: LoadReport,
    /// Bytes read from the open sources.
    pub(crate) bytes: Arc<AtomicU64>,
    bytes_total: Option<u64>,
    /// CSV headers by file name without numbers, for continuation files.
    pub(crate) csv_tables: SeededMap<String, Table>,
    /// The graph of statements without one.
    graph: Option<Id>,
    /// Edges declared in RDF.
    pub(crate) edges: Edges,
    /// Vertices of property graphs.
    pub(crate) seen: VertexSets,
    /// Files started so far: name, a second source of the same input, format.
    files: Vec<(String, Option<Source>, Format)>,
    file: String,
    scope: String,
    /// Lines of this file in the blocks merged so far.
    lines: u64,
    /// Ids of the tokens of the current block.
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
        let seen = VertexSets::new(target.vertex_count());
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

    /// Starts the file with this number.
    pub(crate) fn begin(&mut self, source: &Source, format: Format, number: usize) {
        source.name().clone_into(&mut self.file);
        self.files.push((self.file.clone(), source.again(), format));
        self.scope = format!("{}{number}_", self.options.blank_scope);
        self.lines = 0;
    }

    /// The label in the target of a blank node of this file.
    pub(crate) fn scoped(&self, label: &str) -> String {
        format!("{}{label}", self.scope)
    }

    /// The format of the current file.
    pub(crate) fn format(&self) -> Format {
        self.files.last().map_or(Format::Turtle, |(_, _, format)| *format)
    }

    /// The graph of statements without one; [`Id::UNBOUND`]: the default graph.
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

    /// Merges the next block.
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
        self.record_added(block.triples.len())
    }

    /// The id of a token of the current block.
    pub(crate) fn id(&self, number: u32) -> Id {
        self.ids[number as usize]
    }

    /// The graph with this token number; `graph`: the graph of statements without one.
    pub(crate) fn graph_of(&self, number: u32, graph: Id) -> Id {
        if number == DEFAULT_GRAPH { graph } else { self.id(number) }
    }

    /// The input position of `at` in a block of the current file.
    pub(crate) fn input_position(&self, at: BlockPosition) -> InputPosition {
        let at = match at {
            BlockPosition::Line(line) => BlockPosition::Line(self.lines + line),
            at => at,
        };
        InputPosition { file: self.files.len().saturating_sub(1), at }
    }

    /// As [`Merger::malformed`], for a position that may be in an earlier file.
    pub(crate) fn malformed_at(&mut self, position: InputPosition, message: &str) -> Result<()> {
        let base = self.options.base_iri.as_deref();
        let (name, line) = match self.files.get_mut(position.file) {
            Some((name, again, format)) => {
                let line = match (position.at, again) {
                    (BlockPosition::Line(line), _) => Some(line),
                    (BlockPosition::Statement(number), Some(again)) => line_of(again, *format, base, number),
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

    /// Counts statements, reports progress, and stops a cancelled load.
    pub(crate) fn record_added(&mut self, statements: usize) -> Result<()> {
        self.report.statements += u64::try_from(statements).unwrap_or(u64::MAX);
        self.report.bytes = self.bytes.load(Ordering::Relaxed);
        if let Some(progress) = self.options.progress {
            progress.advance(self.report.bytes, self.bytes_total, self.report.statements);
        }
        // Relaxed: the flag synchronizes no other memory.
        if self.options.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed)) {
            return Err(Error::new(ErrorKind::Cancelled, "the load was cancelled"));
        }
        Ok(())
    }

    /// Stops with the error of a malformed statement, or writes it to the report.
    pub(crate) fn malformed(&mut self, malformed: &Malformed) -> Result<()> {
        self.skip_or_stop(self.position_error(malformed))
    }

    /// As [`Merger::malformed`], for an error that already has its position.
    pub(crate) fn skip_or_stop(&mut self, error: Error) -> Result<()> {
        if !self.options.skip_errors {
            let hint = match hint_of(error.message()) {
                Some(hint) => hint.to_owned(),
                None => "correct the file, or skip malformed statements with --skip-errors".to_owned(),
            };
            return Err(error.with_hint(hint));
        }
        self.report.skipped += 1;
        writeln!(self.skipped_to, "{error}")
            .map_err(|error| Error::io("write the report of skipped statements", &error))
    }

    /// The error of a malformed statement after which the format cannot continue.
    pub(crate) fn fatal(&self, malformed: &Malformed) -> Error {
        let error = self.position_error(malformed);
        let hint = hint_of(error.message()).unwrap_or("correct the file");
        if self.options.skip_errors {
            error.with_hint(format!("{hint}: a document in this format cannot be read beyond an error"))
        } else {
            error.with_hint(hint)
        }
    }

    fn position_error(&self, malformed: &Malformed) -> Error {
        let line = self.lines + malformed.line + 1;
        let message = match malformed.column {
            Some(column) => format!("{}:{line}:{}: {}", self.file, column + 1, malformed.message),
            None => format!("{}:{line}: {}", self.file, malformed.message),
        };
        let position = Position { line, column: malformed.column.map(|column| column + 1) };
        Error::new(malformed.kind, message).at(position)
    }
}

/// Hints for messages of the libraries.
fn hint_of(message: &str) -> Option<&'static str> {
    const HINTS: [(&str, &str); 7] = [
        ("text behind its closing quote", crate::quotes::QUOTE_HINT),
        ("the file ends inside", "a closing quote, a bracket or a dot is missing, maybe many lines before"),
        ("relative IRI", "set the base of relative IRIs with --base IRI"),
        (
            "is not a valid subject",
            "the previous statement may end too early: check its language tags and quotes",
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
