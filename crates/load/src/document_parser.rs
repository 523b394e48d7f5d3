//! Parser of Turtle, TriG, RDF/XML and JSON-LD: a document as a sequence of blocks, by the `oxrdf` family of
//! libraries. `guard` enforces limits that the libraries lack.
//!
//! Parsing cannot resume after an error: later statements may depend on the malformed one, and the error
//! recovery of the Turtle parser can produce statements from the rest of a malformed one. So an error ends
//! the document even with `skip_errors`.

use crate::block::{Block, BlockBuilder, BlockPosition, Malformed};
use crate::guard::{LimitExceeded, LimitedReader, Syntax};
use crate::options::LoadOptions;
use crate::source::{Source, read_error};
use crate::terms::{GeneratedLabels, push_quad};
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfParseError, RdfParser, ReaderQuadParser};
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use vervet_model::{Error, ErrorKind, Result};

/// Maximum number of statements in a block.
const BLOCK_STATEMENTS: usize = 1 << 13;
/// Size of the terms at which a block is full, in bytes.
const BLOCK_TEXT_BYTES: usize = 1 << 20;
/// The format in terms of the library.
pub(crate) fn library_format(format: crate::Format) -> Option<RdfFormat> {
    Some(match format {
        crate::Format::Turtle => RdfFormat::Turtle,
        crate::Format::TriG => RdfFormat::TriG,
        crate::Format::RdfXml => RdfFormat::RdfXml,
        crate::Format::JsonLd => RdfFormat::JsonLd { profile: JsonLdProfileSet::empty() },
        _ => return None,
    })
}

/// The line of a statement, both numbered from 0, for error messages, since the parsers do not report it.
/// Parses the document again; the result is at most one line too far.
pub(crate) fn line_of(
    source: &mut Source,
    format: crate::Format,
    base_iri: Option<&str>,
    statement: u64,
) -> Option<u64> {
    let mut parser = RdfParser::from_format(library_format(format)?);
    if let Some(base) = base_iri {
        parser = parser.with_base_iri(base).ok()?;
    }
    let input = source.open(&Arc::default()).ok()?;
    let lines = Arc::new(AtomicU64::new(0));
    let input = LineChunkReader::new(input, &lines);
    let index = usize::try_from(statement).ok()?;
    let outcome = catch_unwind(AssertUnwindSafe(|| parser.for_reader(input).nth(index)));
    matches!(outcome, Ok(Some(Ok(_)))).then(|| lines.load(Ordering::Relaxed).saturating_sub(1))
}

/// The next part of a document.
pub(crate) enum Parsed {
    Block(Block),
    Malformed(Malformed),
    Failed(Error),
}

/// A document that is being parsed.
pub(crate) struct Document {
    name: String,
    quads: ReaderQuadParser<Box<dyn Read + Send>>,
    lines: Arc<AtomicU64>,
    /// The exceeded limit: parsers wrap the error.
    exceeded: Arc<OnceLock<LimitExceeded>>,
    again: Option<Source>,
    by_line: bool,
    format: crate::Format,
    base_iri: Option<String>,
    /// Number of statements parsed so far.
    statements: u64,
    builder: BlockBuilder,
    labels: GeneratedLabels,
    skip_errors: bool,
    ended: bool,
}

impl Document {
    /// The document in `input`. `library`: the format in terms of the library. `again`: a second source of
    /// the same input, for line numbers.
    pub(crate) fn open(
        name: &str,
        input: Box<dyn Read + Send>,
        again: Option<Source>,
        format: crate::Format,
        library: RdfFormat,
        options: &LoadOptions<'_>,
    ) -> Result<Self> {
        let mut parser = RdfParser::from_format(library);
        if let Some(base) = &options.base_iri {
            parser = parser.with_base_iri(base.as_str()).map_err(|error| {
                Error::new(ErrorKind::Input, format!("the base IRI {base} is not valid: {error}"))
            })?;
        }
        let lines = Arc::new(AtomicU64::new(0));
        // The input is split into lines only if the library reports no positions and the document cannot be
        // read again.
        let by_line = again.is_none() || matches!(library, RdfFormat::RdfXml | RdfFormat::JsonLd { .. });
        let input: Box<dyn Read + Send> =
            if by_line { Box::new(LineChunkReader::new(input, &lines)) } else { input };
        let exceeded = Arc::default();
        let syntax = match library {
            RdfFormat::RdfXml => Syntax::xml(),
            RdfFormat::JsonLd { .. } => Syntax::json(),
            _ => Syntax::turtle(),
        };
        let input: Box<dyn Read + Send> = Box::new(LimitedReader::new(input, syntax, &exceeded));
        Ok(Self {
            name: name.to_owned(),
            quads: parser.for_reader(input),
            lines,
            exceeded,
            again,
            by_line,
            format,
            base_iri: options.base_iri.clone(),
            statements: 0,
            builder: BlockBuilder::new(),
            labels: GeneratedLabels::default(),
            skip_errors: options.skip_errors,
            ended: false,
        })
    }

    /// The next block, or the error that ends the document; `None` after the end.
    pub(crate) fn next(&mut self) -> Option<Parsed> {
        if self.ended {
            return None;
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| self.parse()));
        let (block, end) = outcome.unwrap_or_else(|_| {
            self.ended = true;
            let message = format!("the parser library panicked in {}", self.name);
            let error = Error::new(ErrorKind::Unsupported, message).with_hint(
                "the document may be valid; write it as N-Quads with another tool, and report it with the document",
            );
            (Block::default(), Some(Parsed::Failed(error)))
        });
        if end.is_some() {
            // The statements before the error are dropped, because the whole load fails.
            return end;
        }
        let empty = block.triples.is_empty() && block.reifiers.is_empty() && block.malformed.is_empty();
        (!self.ended || !empty).then_some(Parsed::Block(block))
    }

    fn parse(&mut self) -> (Block, Option<Parsed>) {
        let first_statement = if self.by_line { None } else { Some(self.statements) };
        let mut block = Block { first_statement, ..Block::default() };
        self.builder.clear();
        while block.triples.len() + block.reifiers.len() < BLOCK_STATEMENTS
            && block.text.len() < BLOCK_TEXT_BYTES
        {
            let error = match self.quads.next() {
                None => {
                    self.ended = true;
                    break;
                }
                Some(Ok(quad)) => {
                    let at = self.at();
                    self.statements += 1;
                    let labels = Some(&mut self.labels);
                    match push_quad(&mut self.builder, &mut block, quad.as_ref(), labels, at) {
                        Ok(()) => continue,
                        Err(message) => self.rejected(at, message),
                    }
                }
                Some(Err(RdfParseError::Io(error))) => {
                    self.ended = true;
                    let error = self.limit_error().unwrap_or_else(|| self.io_error(&error));
                    return (block, Some(Parsed::Failed(error)));
                }
                Some(Err(RdfParseError::Syntax(error))) => {
                    self.ended = true;
                    let at = error.location().map(|range| (range.start.line, range.start.column));
                    let mut message = error.to_string();
                    if message.contains("LoadDocumentCallback") {
                        "remote contexts are not fetched; put the context into the document"
                            .clone_into(&mut message);
                    }
                    let malformed = self.malformed(at, message, ErrorKind::Input);
                    return (block, Some(Parsed::Malformed(malformed)));
                }
            };
            if self.skip_errors {
                block.malformed.push(error);
            } else {
                self.ended = true;
                return (block, Some(Parsed::Malformed(error)));
            }
        }
        (block, None)
    }

    /// The current position of the parser.
    fn at(&self) -> BlockPosition {
        if self.by_line {
            BlockPosition::Line(self.lines.load(Ordering::Relaxed).saturating_sub(1))
        } else {
            BlockPosition::Statement(self.statements)
        }
    }

    /// The error for a statement that the library accepts but Vervet rejects.
    fn rejected(&mut self, at: BlockPosition, message: String) -> Malformed {
        let line = match (at, &mut self.again) {
            (BlockPosition::Line(line), _) => line,
            (BlockPosition::Statement(number), Some(again)) => {
                line_of(again, self.format, self.base_iri.as_deref(), number).unwrap_or_default()
            }
            _ => 0,
        };
        Malformed { line, column: None, message, kind: ErrorKind::Unsupported }
    }

    fn malformed(&self, at: Option<(u64, u64)>, message: String, kind: ErrorKind) -> Malformed {
        // The position precedes the message, so the library's own position is removed.
        let message = match message.strip_prefix("Parser error ").and_then(|rest| rest.split_once(": ")) {
            Some((_, reason)) => reason.to_owned(),
            None => message,
        };
        let message = rewrite_message(message);
        let (line, column) = match at {
            Some((line, column)) => (line, Some(column)),
            None => (self.lines.load(Ordering::Relaxed).saturating_sub(1), None),
        };
        Malformed { line, column, message, kind }
    }

    /// The error for an exceeded limit.
    fn limit_error(&self) -> Option<Error> {
        let LimitExceeded { line, message, hint } = self.exceeded.get()?;
        Some(Error::new(ErrorKind::Input, format!("{}:{}: {message}", self.name, line + 1)).with_hint(*hint))
    }

    /// The libraries report some XML syntax errors as I/O errors.
    fn io_error(&self, error: &io::Error) -> Error {
        let of_content = matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::Other);
        if !self.by_line || !of_content {
            return read_error(&self.name, error);
        }
        let line = self.lines.load(Ordering::Relaxed).max(1);
        Error::new(ErrorKind::Input, format!("{}:{line}: {error}", self.name))
            .with_hint("the file is damaged or has a wrong extension; correct it, or fetch it again")
    }
}

/// Rewrites misleading messages of the libraries.
fn rewrite_message(message: String) -> String {
    match message.as_str() {
        "Unexpected end of file" => "the file ends inside a string or a statement".to_owned(),
        _ if message.contains("No scheme found in an absolute IRI") => {
            format!("a relative IRI without a base IRI ({message})")
        }
        _ => message,
    }
}

/// Provides one line at a time and counts lines, so that a parser without positions is at most one line ahead
/// of an error.
struct LineChunkReader<R> {
    input: io::BufReader<R>,
    lines: Arc<AtomicU64>,
}

impl<R: Read> LineChunkReader<R> {
    fn new(input: R, lines: &Arc<AtomicU64>) -> Self {
        Self { input: io::BufReader::with_capacity(1 << 16, input), lines: Arc::clone(lines) }
    }
}

impl<R: Read> Read for LineChunkReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = io::BufRead::fill_buf(&mut self.input)?;
        let (length, whole) = match memchr::memchr(b'\n', available) {
            Some(end) if end < buffer.len() => (end + 1, true),
            _ => (available.len().min(buffer.len()), false),
        };
        buffer[..length].copy_from_slice(&available[..length]);
        io::BufRead::consume(&mut self.input, length);
        if whole {
            self.lines.fetch_add(1, Ordering::Relaxed);
        }
        Ok(length)
    }
}
