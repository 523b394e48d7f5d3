//! Graph writer (`CONSTRUCT`, `DESCRIBE`) for each RDF format. N-Triples, the fastest, has its own
//! serializer; a quad format contains only the default graph.

use crate::row_writer::BUFFER_BYTES;
use crate::{Format, TermSource};
use oxrdf::{NamedOrBlankNode, Term, TermRef, TripleRef};
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfSerializer, WriterQuadSerializer};
use oxttl::TurtleSerializer;
use oxttl::turtle::WriterTurtleSerializer;
use std::io::Write;
use vervet_model::{Error, ErrorKind, Id, Result};

/// Streams statements. The caller removes duplicates.
pub struct GraphWriter<W: Write> {
    form: Form<W>,
    scratch: String,
}

enum Form<W: Write> {
    Lines { out: W, buffer: Vec<u8>, terms: Vec<u8>, ends: Vec<usize>, row: Vec<Id> },
    Turtle(Box<WriterTurtleSerializer<W>>),
    Library(Box<WriterQuadSerializer<W>>),
}

impl<W: Write> GraphWriter<W> {
    /// A writer of statements; Turtle is abbreviated with `prefixes` (name without colon, IRI).
    ///
    /// # Errors
    /// The format is for rows; a prefix with an invalid IRI.
    pub fn new(format: Format, prefixes: &[(&str, &str)], out: W) -> Result<Self> {
        let form = match format {
            Format::NTriples | Format::NQuads => {
                Form::Lines { out, buffer: Vec::new(), terms: Vec::new(), ends: Vec::new(), row: Vec::new() }
            }
            Format::Turtle | Format::TriG => {
                let mut serializer = TurtleSerializer::new();
                for (name, iri) in prefixes {
                    serializer =
                        serializer.with_prefix(*name, *iri).map_err(|error| no_prefix(name, &error))?;
                }
                Form::Turtle(Box::new(serializer.for_writer(out)))
            }
            Format::RdfXml | Format::JsonLd => {
                let format = match format {
                    Format::RdfXml => RdfFormat::RdfXml,
                    _ => RdfFormat::JsonLd { profile: JsonLdProfileSet::empty() },
                };
                let mut serializer = RdfSerializer::from_format(format);
                for (name, iri) in prefixes {
                    serializer =
                        serializer.with_prefix(*name, *iri).map_err(|error| no_prefix(name, &error))?;
                }
                Form::Library(Box::new(serializer.for_writer(out)))
            }
            _ => {
                let message = format!("a graph cannot be written as {format}");
                return Err(Error::new(ErrorKind::Input, message)
                    .with_hint("choose nt, turtle, nq, trig, rdf or jsonld"));
            }
        };
        Ok(Self { form, scratch: String::new() })
    }

    /// Writes a statement.
    ///
    /// # Errors
    /// `out` fails. [`ErrorKind::Unsupported`]: a triple term in RDF/XML or JSON-LD.
    pub fn triple(&mut self, triple: TripleRef<'_>) -> Result<()> {
        match &mut self.form {
            Form::Lines { out, buffer, .. } => {
                writeln!(buffer, "{triple} .").map_err(|error| failed(&error))?;
                if buffer.len() >= BUFFER_BYTES { write_buffer(buffer, out) } else { Ok(()) }
            }
            Form::Turtle(serializer) => serializer.serialize_triple(triple).map_err(|error| failed(&error)),
            Form::Library(_) if matches!(triple.object, TermRef::Triple(_)) => {
                let message = "RDF/XML and JSON-LD cannot represent the triple terms of the graph";
                Err(Error::new(ErrorKind::Unsupported, message).with_hint("choose nt, turtle, nq or trig"))
            }
            Form::Library(serializer) => serializer.serialize_triple(triple).map_err(|error| failed(&error)),
        }
    }

    /// Writes statements from columns of ids. A row that is not an RDF statement (an unbound position, a
    /// literal as subject, a predicate that is not an IRI) is skipped, as `CONSTRUCT` requires.
    ///
    /// # Errors
    /// `out` or `source` fails; columns of different lengths.
    pub fn batch(&mut self, columns: [&[Id]; 3], source: &dyn TermSource) -> Result<()> {
        let rows = columns[0].len();
        if columns.iter().any(|column| column.len() != rows) {
            return Err(Error::internal("columns of a graph differ in length"));
        }
        for row in 0..rows {
            let ids = columns.map(|column| column[row]);
            if ids.iter().all(|id| id.is_bound()) {
                self.row(ids, source)?;
            }
        }
        Ok(())
    }

    fn row(&mut self, ids: [Id; 3], source: &dyn TermSource) -> Result<()> {
        if let Form::Lines { out, buffer, terms, ends, row } = &mut self.form {
            terms.clear();
            ends.clear();
            row.clear();
            row.extend_from_slice(&ids);
            source.write_terms(row, terms, ends)?;
            if let [subject, predicate, object] = ends[..]
                && terms.first() != Some(&b'"')
                && !terms.starts_with(b"<<")
                && terms.get(subject) == Some(&b'<')
                && terms.get(subject + 1) != Some(&b'<')
            {
                for (start, end, after) in
                    [(0, subject, " "), (subject, predicate, " "), (predicate, object, " .\n")]
                {
                    buffer.extend_from_slice(&terms[start..end]);
                    buffer.extend_from_slice(after.as_bytes());
                }
            }
            return if buffer.len() >= BUFFER_BYTES { write_buffer(buffer, out) } else { Ok(()) };
        }
        let mut terms = Vec::with_capacity(3);
        for id in ids {
            source.read_term(id, &mut self.scratch, &mut |parts| terms.push(parts.to_term()))?;
        }
        if let [subject, Term::NamedNode(predicate), object] = &terms[..]
            && let Some(subject) = match subject {
                Term::NamedNode(iri) => Some(NamedOrBlankNode::from(iri.clone())),
                Term::BlankNode(blank) => Some(NamedOrBlankNode::from(blank.clone())),
                _ => None,
            }
        {
            self.triple(TripleRef::new(subject.as_ref(), predicate, object))?;
        }
        Ok(())
    }

    /// Completes the document, and returns `out`.
    ///
    /// # Errors
    /// `out` fails.
    pub fn finish(self) -> Result<W> {
        let mut out = match self.form {
            Form::Lines { mut out, mut buffer, .. } => {
                write_buffer(&mut buffer, &mut out)?;
                out
            }
            Form::Turtle(serializer) => serializer.finish().map_err(|error| failed(&error))?,
            Form::Library(serializer) => serializer.finish().map_err(|error| failed(&error))?,
        };
        out.flush().map_err(|error| failed(&error))?;
        Ok(out)
    }
}

fn write_buffer(buffer: &mut Vec<u8>, out: &mut dyn Write) -> Result<()> {
    let result = out.write_all(buffer);
    buffer.clear();
    result.map_err(|error| failed(&error))
}

fn no_prefix(name: &str, error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Input, format!("the prefix {name}: has no valid IRI: {error}"))
}

fn failed(error: &std::io::Error) -> Error {
    Error::io("write the result", error)
}
