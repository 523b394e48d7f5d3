//! N-Triples and N-Quads parser: a fast path for plain lines, `oxttl` for all others.
//!
//! The fast path scans lines without escapes for token ends, looks each token up in the block, and validates
//! a token only at its first occurrence (IRIs with `oxiri`, as `oxttl` does, unless `is_plain_iri` accepts
//! it; UTF-8; the language tag). Any other line goes to `oxttl` as a separate document, which decides on its
//! validity and gives the reason. So the accepted language is exactly that of `oxttl`, and a plain line costs
//! a few hash look-ups.
//!
//! # Cost
//! LUBM (160 bytes per line, sorted by subject): docs/loading.md has measured rates.

use crate::block::{Block, BlockBuilder, BlockPosition, DEFAULT_GRAPH, Malformed, TokenKind, literal_kind};
use crate::{guard, terms};
use memchr::{memchr, memchr3};
use oxrdf::{GraphName, Quad};
use oxttl::{NQuadsParser, NTriplesParser};
use std::ops::Range;
use vervet_model::{ErrorKind, is_plain_iri};

/// Parses blocks of whole lines.
pub(crate) struct LineParser {
    with_graph: bool,
    /// Whether to stop at the first malformed line.
    stop: bool,
    builder: BlockBuilder,
}

/// Token positions of a plain line.
struct PlainLine {
    /// `None`: the same as in the previous line.
    subject: Option<TokenSpan>,
    predicate: TokenSpan,
    object: TokenSpan,
    graph: Option<TokenSpan>,
}

struct TokenSpan {
    range: Range<usize>,
    kind: TokenKind,
    value_length: usize,
}

/// The subject of the previous plain line.
#[derive(Default)]
struct PreviousSubject {
    range: Range<usize>,
    number: u32,
}

impl LineParser {
    pub(crate) fn new(with_graph: bool, stop: bool) -> Self {
        Self { with_graph, stop, builder: BlockBuilder::new() }
    }

    /// Parses `block.text` (whole lines; the last may lack its line feed) and fills the rest of `block`.
    pub(crate) fn parse(&mut self, block: &mut Block) {
        self.builder.clear();
        let end = block.text.len();
        block.raw_bytes = end;
        let mut start = 0;
        let mut previous = PreviousSubject::default();
        while start < end {
            let line_end = memchr(b'\n', &block.text[start..end]).map_or(end, |length| start + length);
            if !self.parse_plain(block, start..line_end, &mut previous) {
                self.parse_with_library(block, start..(line_end + 1).min(end));
                if self.stop && !block.malformed.is_empty() {
                    return;
                }
            }
            block.line_count += 1;
            start = line_end + 1;
        }
    }

    /// Parses the line if it is plain and valid.
    #[inline]
    fn parse_plain(&mut self, block: &mut Block, line: Range<usize>, previous: &mut PreviousSubject) -> bool {
        let bytes = &block.text[line.clone()];
        let same = &block.text[previous.range.clone()];
        let Some(plain) = scan(bytes, self.with_graph, same) else {
            return false;
        };
        let subject = match plain.subject {
            None => previous.number,
            Some(part) => {
                let range = line.start + part.range.start..line.start + part.range.end;
                let Some(number) = self.token(block, line.start, part) else { return false };
                *previous = PreviousSubject { range, number };
                number
            }
        };
        let Some(predicate) = self.token(block, line.start, plain.predicate) else { return false };
        let Some(object) = self.token(block, line.start, plain.object) else { return false };
        let graph = match plain.graph {
            None => DEFAULT_GRAPH,
            Some(part) => match self.token(block, line.start, part) {
                Some(number) => number,
                None => return false,
            },
        };
        block.push([subject, predicate, object], graph);
        true
    }

    /// The number of a raw token; `None` if it is neither in the index nor certainly valid.
    #[inline]
    fn token(&mut self, block: &mut Block, line_start: usize, part: TokenSpan) -> Option<u32> {
        let range = line_start + part.range.start..line_start + part.range.end;
        let bytes = &block.text[range.clone()];
        let numbering = self.builder.numbering();
        match numbering.find(&block.text, &block.tokens, bytes) {
            Ok(number) => Some(number),
            Err(vacant) => {
                let kind = check(bytes, part.kind, part.value_length)?;
                Some(numbering.insert(&mut block.tokens, vacant, range, kind, part.value_length))
            }
        }
    }

    /// Parses a line that is not plain: with escapes, comments, unusual characters, or malformed.
    #[cold]
    fn parse_with_library(&mut self, block: &mut Block, line: Range<usize>) {
        let bytes = &block.text[line];
        let start = bytes.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(bytes.len());
        if matches!(&bytes[start..], [] | b"\n" | b"\r\n") {
            return;
        }
        if let Err(message) = guard::check_line(bytes) {
            let (line, column, kind) = (block.line_count, Some(0), ErrorKind::Input);
            block.malformed.push(Malformed { line, column, message, kind });
            return;
        }
        let parsed: Result<Vec<Quad>, _> = if self.with_graph {
            NQuadsParser::new().for_slice(bytes).collect()
        } else {
            let parser = NTriplesParser::new().for_slice(bytes);
            parser.map(|triple| triple.map(|triple| triple.in_graph(GraphName::DefaultGraph))).collect()
        };
        let line = block.line_count;
        match parsed {
            Ok(quads) => {
                for quad in &quads {
                    let at = BlockPosition::Line(line);
                    if let Err(message) = terms::push_quad(&mut self.builder, block, quad.as_ref(), None, at)
                    {
                        let kind = ErrorKind::Unsupported;
                        block.malformed.push(Malformed { line, column: Some(0), message, kind });
                    }
                }
            }
            Err(error) => {
                let at = error.location().start;
                let text = bytes.trim_ascii_end();
                // An error at the end of a line is reported there, not at the next line.
                let (extra, column) = match usize::try_from(at.offset) {
                    Ok(offset) if offset < text.len() => (at.line, at.column),
                    _ => (0, String::from_utf8_lossy(text).chars().count() as u64),
                };
                block.malformed.push(Malformed {
                    line: line + extra,
                    column: Some(column),
                    message: error.message().to_owned(),
                    kind: ErrorKind::Input,
                });
            }
        }
    }
}

/// The tokens of a plain line without its line feed; `None` if it is not plain. `same`: the subject token of
/// the previous line, which sorted input repeats.
#[inline]
fn scan(line: &[u8], with_graph: bool, same: &[u8]) -> Option<PlainLine> {
    let (subject, at) = if !same.is_empty() && line.starts_with(same) && line.get(same.len()) == Some(&b' ') {
        (None, same.len() + 1)
    } else {
        let subject = resource(line, 0)?;
        let at = subject.range.end;
        (Some(subject), at)
    };
    let at = space(line, at);
    if line.get(at) != Some(&b'<') {
        return None;
    }
    let predicate = resource(line, at)?;
    let at = space(line, predicate.range.end);
    let object = if line.get(at) == Some(&b'"') { literal(line, at)? } else { resource(line, at)? };
    let mut at = space(line, object.range.end);
    let mut graph = None;
    if with_graph && matches!(line.get(at), Some(b'<' | b'_')) {
        let part = resource(line, at)?;
        at = space(line, part.range.end);
        graph = Some(part);
    }
    match line.get(at..)? {
        b"." | b".\r" => Some(PlainLine { subject, predicate, object, graph }),
        _ => None,
    }
}

#[inline]
fn space(line: &[u8], mut at: usize) -> usize {
    while matches!(line.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}

/// An IRI, or a blank node with a plain label followed by a space.
#[inline]
fn resource(line: &[u8], at: usize) -> Option<TokenSpan> {
    let rest = line.get(at..)?;
    let (length, kind) = match rest {
        [b'<', tail @ ..] => (memchr(b'>', tail)? + 2, TokenKind::Iri),
        [b'_', b':', label @ ..] => {
            let plain = |&byte: &u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            let length = label.iter().position(|byte| !plain(byte))?;
            if length == 0 || label[0] == b'-' || label[length] != b' ' {
                return None;
            }
            (length + 2, TokenKind::Blank)
        }
        _ => return None,
    };
    Some(TokenSpan { range: at..at + length, kind, value_length: 0 })
}

/// A literal without escapes.
#[inline]
fn literal(line: &[u8], at: usize) -> Option<TokenSpan> {
    let rest = &line[at + 1..];
    let value_length = memchr3(b'"', b'\\', b'\r', rest)?;
    if rest[value_length] != b'"' {
        return None;
    }
    let suffix = &rest[value_length + 1..];
    let suffix_length = match suffix {
        [b'^', b'^', b'<', tail @ ..] => memchr(b'>', tail)? + 4,
        [b'^', ..] => return None,
        [b'@', tag @ ..] => tag.iter().position(|byte| !byte.is_ascii_lowercase())? + 1,
        _ => 0,
    };
    let range = at..at + 2 + value_length + suffix_length;
    let kind = literal_kind(&suffix[..suffix_length]);
    Some(TokenSpan { range, kind, value_length })
}

/// The kind of a new raw token, if it is certainly valid.
fn check(token: &[u8], kind: TokenKind, value_length: usize) -> Option<TokenKind> {
    if kind == TokenKind::Iri && is_plain_iri(&token[1..token.len() - 1]) {
        return Some(kind);
    }
    let text = std::str::from_utf8(token).ok()?;
    match kind {
        TokenKind::Blank | TokenKind::String | TokenKind::Triple => {}
        TokenKind::Iri => {
            oxiri::Iri::parse(&text[1..text.len() - 1]).ok()?;
        }
        TokenKind::Language => {
            // The two most common lengths of a primary language; `oxttl` decides on all others.
            if !matches!(text.len() - value_length - 3, 2 | 3) {
                return None;
            }
        }
        TokenKind::Typed => {
            let datatype = &text[value_length + 5..text.len() - 1];
            if !is_plain_iri(datatype.as_bytes()) {
                oxiri::Iri::parse(datatype).ok()?;
            }
            if datatype.ends_with("#langString") || datatype.ends_with("#dirLangString") {
                return None;
            }
        }
    }
    Some(kind)
}

#[cfg(test)]
mod tests {
    use vervet_model::is_plain_iri;

    #[test]
    fn plain_iris_are_valid_iris() {
        let seed = 7_u64;
        let mut state = seed;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap_or_default() % below
        };
        let pieces = [
            "http",
            "a",
            "1",
            ":",
            "//",
            "/",
            "?",
            "#",
            "@",
            "[",
            "]",
            "%",
            "%41",
            "é",
            " ",
            "<",
            "\"",
            "{",
            "|",
            "\\",
            "^",
            "`",
            ".",
            "-",
            "~",
            "!",
            "=",
            "example.org",
            "80",
            "\t",
            "\u{7f}",
            "\u{1}",
            "+",
            "urn",
        ];
        let (mut plain, mut valid) = (0, 0);
        for _ in 0..200_000 {
            let mut iri = String::new();
            if random(2) == 0 {
                iri.push_str(["http://", "urn:", "x://y"][random(3)]);
            }
            for _ in 0..random(7) {
                iri.push_str(pieces[random(pieces.len())]);
            }
            let is_valid = oxiri::Iri::parse(iri.as_str()).is_ok();
            let passes = is_plain_iri(iri.as_bytes());
            assert!(!passes || is_valid, "seed {seed}: {iri}");
            plain += usize::from(passes);
            valid += usize::from(is_valid);
        }
        assert!(plain > 5_000 && valid > plain, "{plain} of {valid}");
    }
}
