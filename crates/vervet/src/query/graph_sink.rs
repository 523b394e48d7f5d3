//! Where the statements of a graph go as they are made: a list, or a writer.

use crate::OutputFormat;
use oxrdf::{NamedOrBlankNode, Term, TermRef, Triple, TripleRef};
use std::io::Write;
use vervet_expression::Evaluator;
use vervet_kernel::Control;
use vervet_model::{Id, Result, TermParts, triple_text};
use vervet_results::{GraphWriter, TermSource, read_triple};
use vervet_snapshot::Snapshot;

/// Receives the statements of a graph, each once.
pub(crate) trait GraphSink {
    /// Statements as columns of ids. A row that is not an RDF statement (an unbound position, a literal as
    /// subject, a predicate that is not an IRI) is skipped.
    fn batch(&mut self, columns: [&[Id]; 3], source: &dyn TermSource) -> Result<()>;

    /// A statement of terms.
    fn triple(&mut self, triple: TripleRef<'_>) -> Result<()>;
}

/// The ids of one running query.
pub(crate) struct EvaluatorTerms<'a, 'e>(pub &'a Evaluator<'e>);

impl TermSource for EvaluatorTerms<'_, '_> {
    fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
        self.0.write_terms(ids, out, ends)
    }

    fn read_term(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        self.0.read_term(id, scratch, read)
    }
}

/// The ids of a snapshot.
pub(crate) struct SnapshotTerms<'a>(pub &'a dyn Snapshot);

impl TermSource for SnapshotTerms<'_> {
    fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
        self.0.write_terms(ids, out, ends)
    }

    fn read_term(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        self.0.read_term(id, scratch, read)
    }
}

/// All statements in memory; they count against the memory cap.
pub(crate) struct TripleList<'a> {
    pub triples: Vec<Triple>,
    control: &'a Control<'a>,
    scratch: String,
}

impl<'a> TripleList<'a> {
    pub(crate) fn new(control: &'a Control<'a>) -> Self {
        Self { triples: Vec::new(), control, scratch: String::new() }
    }

    fn push(&mut self, triple: Triple) -> Result<()> {
        self.control.grow(size_bytes(&triple))?;
        self.triples.push(triple);
        Ok(())
    }
}

impl GraphSink for TripleList<'_> {
    fn batch(&mut self, columns: [&[Id]; 3], source: &dyn TermSource) -> Result<()> {
        for row in 0..columns[0].len() {
            if let Some(triple) = read_triple(columns.map(|column| column[row]), source, &mut self.scratch)? {
                self.push(triple)?;
            }
        }
        Ok(())
    }

    fn triple(&mut self, triple: TripleRef<'_>) -> Result<()> {
        self.push(triple.into_owned())
    }
}

/// Approximate size of a triple in memory, in bytes.
fn size_bytes(triple: &Triple) -> u64 {
    let subject = match &triple.subject {
        NamedOrBlankNode::NamedNode(node) => node.as_str().len(),
        NamedOrBlankNode::BlankNode(node) => node.as_str().len(),
    };
    let object = match &triple.object {
        Term::NamedNode(node) => node.as_str().len(),
        Term::BlankNode(node) => node.as_str().len(),
        Term::Literal(literal) => literal.value().len() + literal.datatype().as_str().len(),
        Term::Triple(triple) => triple_text(triple.as_ref().as_ref()).map_or(0, |text| text.len()),
    };
    (size_of::<Triple>() + subject + triple.predicate.as_str().len() + object) as u64
}

/// The number of statements up to which a graph is searched for the prefixes that it uses.
const SEARCHED_STATEMENTS_MAX: usize = 1000;

/// Streams statements to an output. A format with prefixes declares the well-known ones that a small graph
/// uses, and all of them for a larger one: its first statements wait.
pub(crate) struct GraphOutput<'a> {
    format: OutputFormat,
    state: State<'a>,
    /// Number of statements so far.
    statements: u64,
    scratch: String,
}

enum State<'a> {
    Waiting {
        out: &'a mut dyn Write,
        triples: Vec<Triple>,
    },
    Writing(GraphWriter<&'a mut dyn Write>),
    /// Only after an error.
    Failed,
}

impl<'a> GraphOutput<'a> {
    /// # Errors
    /// A format for rows.
    pub(crate) fn new(format: OutputFormat, out: &'a mut dyn Write) -> Result<Self> {
        let state = match format {
            OutputFormat::NTriples | OutputFormat::NQuads => {
                State::Writing(GraphWriter::new(format, &[], out)?)
            }
            _ => State::Waiting { out, triples: Vec::new() },
        };
        Ok(Self { format, state, statements: 0, scratch: String::new() })
    }

    /// Writes what waits, with the prefixes that it uses, or all of them if there is `more`.
    fn start(&mut self, more: bool) -> Result<&mut GraphWriter<&'a mut dyn Write>> {
        self.state = match std::mem::replace(&mut self.state, State::Failed) {
            State::Waiting { out, triples } => {
                let prefixes = vervet_sparql::well_known_prefixes();
                let mut writer = match more {
                    true => GraphWriter::new(self.format, prefixes, out)?,
                    false => GraphWriter::new(self.format, &used_prefixes(prefixes, &triples), out)?,
                };
                triples.iter().try_for_each(|triple| writer.triple(triple.as_ref()))?;
                State::Writing(writer)
            }
            other => other,
        };
        match &mut self.state {
            State::Writing(writer) => Ok(writer),
            _ => Err(vervet_model::Error::internal("a graph is written after an error")),
        }
    }

    /// Completes the document; returns the number of statements.
    ///
    /// # Errors
    /// The output fails.
    pub(crate) fn finish(mut self) -> Result<u64> {
        self.start(false)?;
        if let State::Writing(writer) = self.state {
            writer.finish()?;
        }
        Ok(self.statements)
    }
}

impl GraphSink for GraphOutput<'_> {
    fn batch(&mut self, columns: [&[Id]; 3], source: &dyn TermSource) -> Result<()> {
        if let State::Waiting { triples, .. } = &mut self.state
            && triples.len() + columns[0].len() <= SEARCHED_STATEMENTS_MAX
        {
            for row in 0..columns[0].len() {
                let ids = columns.map(|column| column[row]);
                if let Some(triple) = read_triple(ids, source, &mut self.scratch)? {
                    triples.push(triple);
                    self.statements += 1;
                }
            }
            return Ok(());
        }
        let written = self.start(true)?.batch(columns, source)?;
        self.statements += written;
        Ok(())
    }

    fn triple(&mut self, triple: TripleRef<'_>) -> Result<()> {
        self.statements += 1;
        if let State::Waiting { triples, .. } = &mut self.state
            && triples.len() < SEARCHED_STATEMENTS_MAX
        {
            triples.push(triple.into_owned());
            return Ok(());
        }
        self.start(true)?.triple(triple)
    }
}

/// Those of `prefixes` that the statements use.
fn used_prefixes(
    prefixes: &[(&'static str, &'static str)],
    triples: &[Triple],
) -> Vec<(&'static str, &'static str)> {
    fn visit(term: TermRef<'_>, iri: &mut dyn FnMut(&str)) {
        match term {
            TermRef::NamedNode(node) => iri(node.as_str()),
            TermRef::Literal(literal) => iri(literal.datatype().as_str()),
            TermRef::Triple(triple) => {
                let triple = triple.as_ref();
                visit(triple.subject.into(), iri);
                iri(triple.predicate.as_str());
                visit(triple.object, iri);
            }
            TermRef::BlankNode(_) => {}
        }
    }
    let mut used = vec![false; prefixes.len()];
    let mut mark = |iri: &str| {
        let all = prefixes.iter().zip(&mut used);
        all.for_each(|((_, namespace), used)| *used |= iri.starts_with(namespace));
    };
    for triple in triples {
        visit(triple.subject.as_ref().into(), &mut mark);
        mark(triple.predicate.as_str());
        visit(triple.object.as_ref(), &mut mark);
    }
    prefixes.iter().zip(used).filter(|(_, used)| *used).map(|(prefix, _)| *prefix).collect()
}
