//! Graph writer (`CONSTRUCT`, `DESCRIBE`) for each RDF format. N-Triples, the fastest, has its own
//! serializer; a quad format contains only the default graph.

use crate::cells::{Cells, PIECE_BYTES};
use crate::row_writer::BUFFER_BYTES;
use crate::{Format, TermSource};
use oxrdf::{NamedOrBlankNode, Term, TermRef, Triple, TripleRef};
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
    Lines { out: W, buffer: Vec<u8>, columns: [Cells; 3], bound: Vec<Id> },
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
                Form::Lines { out, buffer: Vec::new(), columns: Default::default(), bound: Vec::new() }
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

    /// Writes statements from columns of ids; returns their number. A row that is not an RDF statement (an
    /// unbound position, a literal as subject, a predicate that is not an IRI) is skipped, as `CONSTRUCT`
    /// requires.
    ///
    /// # Errors
    /// `out` or `source` fails; columns of different lengths.
    pub fn batch(&mut self, columns: [&[Id]; 3], source: &dyn TermSource) -> Result<u64> {
        let rows = columns[0].len();
        if columns.iter().any(|column| column.len() != rows) {
            return Err(Error::internal("columns of a graph differ in length"));
        }
        if let Form::Lines { out, buffer, columns: cells, bound } = &mut self.form {
            for (cells, ids) in cells.iter_mut().zip(columns) {
                cells.fill(ids, source, bound)?;
            }
            let written = write_lines(cells, rows, buffer);
            if buffer.len() >= BUFFER_BYTES {
                write_buffer(buffer, out)?;
            }
            return Ok(written);
        }
        let mut written = 0;
        for row in 0..rows {
            written += u64::from(self.row(columns.map(|column| column[row]), source)?);
        }
        Ok(written)
    }

    /// Writes a statement of ids; returns whether it is one.
    fn row(&mut self, ids: [Id; 3], source: &dyn TermSource) -> Result<bool> {
        let triple = read_triple(ids, source, &mut self.scratch)?;
        if let Some(triple) = &triple {
            self.triple(triple.as_ref())?;
        }
        Ok(triple.is_some())
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

/// Appends the rows that are statements; returns their number.
fn write_lines(cells: &[Cells; 3], rows: usize, buffer: &mut Vec<u8>) -> u64 {
    const SEPARATORS: usize = " ".len() + " ".len() + " .\n".len();
    let bytes: usize = cells.iter().map(Cells::size_bytes).sum();
    let (mut written, mut at) = (0, buffer.len());
    // Larger than the output, because blocks are copied whole.
    buffer.resize(at + bytes + rows * SEPARATORS + PIECE_BYTES, 0);
    let [subjects, predicates, objects] = cells;
    for row in 0..rows {
        let is_subject = matches!(subjects.cell(row), [b'<', next, ..] if *next != b'<')
            || subjects.cell(row).starts_with(b"_:");
        let is_predicate = matches!(predicates.cell(row), [b'<', next, ..] if *next != b'<');
        if !is_subject || !is_predicate || objects.cell(row).is_empty() {
            continue;
        }
        for (cells, separator) in
            [(subjects, b" ".as_slice()), (predicates, b" ".as_slice()), (objects, b" .\n".as_slice())]
        {
            at = cells.copy_cell(row, buffer, at);
            buffer[at..at + separator.len()].copy_from_slice(separator);
            at += separator.len();
        }
        written += 1;
    }
    buffer.truncate(at);
    written
}

/// The statement of three ids, if they are bound and RDF allows their terms in their positions; `scratch`
/// is a reusable buffer.
///
/// # Errors
/// `source` fails.
pub fn read_triple(ids: [Id; 3], source: &dyn TermSource, scratch: &mut String) -> Result<Option<Triple>> {
    if !ids.iter().all(|id| id.is_bound()) {
        return Ok(None);
    }
    let mut term = |id| {
        let mut term = None;
        source.read_term(id, scratch, &mut |parts| term = Some(parts.to_term()))?;
        term.ok_or_else(|| Error::internal(format!("no term was read for {id:?}")))
    };
    let [subject, predicate, object] = ids;
    let Term::NamedNode(predicate) = term(predicate)? else { return Ok(None) };
    let subject = match term(subject)? {
        Term::NamedNode(iri) => NamedOrBlankNode::from(iri),
        Term::BlankNode(blank) => NamedOrBlankNode::from(blank),
        Term::Literal(_) | Term::Triple(_) => return Ok(None),
    };
    Ok(Some(Triple { subject, predicate, object: term(object)? }))
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
