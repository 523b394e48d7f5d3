//! SPARQL Query Results XML Format.
//!
//! XML 1.0 cannot represent most control characters; a result with one is an error.

use crate::TermSource;
use crate::row_format::RowFormat;
use vervet_model::vocab::EDGE_NAMESPACE;
use vervet_model::{Error, ErrorKind, Id, LiteralKind, Result, TermParts, triple_parts, with_nt};

#[derive(Default)]
pub(crate) struct Xml {
    /// `<binding name="...">` of each column.
    openings: Vec<Vec<u8>>,
    scratch: String,
}

/// The start of every document.
pub(crate) const HEADER: &[u8] =
    b"<?xml version=\"1.0\"?><sparql xmlns=\"http://www.w3.org/2005/sparql-results#\">";

const ITS: &[u8] = b" xmlns:its=\"http://www.w3.org/2005/11/its\" its:version=\"2.0\" its:dir=\"";

impl RowFormat for Xml {
    fn start(&mut self, columns: &[&str], out: &mut Vec<u8>) {
        out.extend_from_slice(HEADER);
        out.extend_from_slice(b"<head>");
        for name in columns {
            out.extend_from_slice(b"<variable name=\"");
            let mut opening = b"<binding name=\"".to_vec();
            // Variable names contain no control characters.
            escape(name, out);
            escape(name, &mut opening);
            out.extend_from_slice(b"\"/>");
            opening.extend_from_slice(b"\">");
            self.openings.push(opening);
        }
        out.extend_from_slice(b"</head><results>");
    }

    fn rows(
        &mut self,
        columns: &[&[Id]],
        rows: usize,
        source: &dyn TermSource,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let mut writable = true;
        for row in 0..rows {
            out.extend_from_slice(b"<result>");
            for (opening, ids) in self.openings.iter().zip(columns) {
                if ids[row].is_bound() {
                    out.extend_from_slice(opening);
                    source
                        .read_term(ids[row], &mut self.scratch, &mut |parts| writable &= term(parts, out))?;
                    out.extend_from_slice(b"</binding>");
                }
            }
            out.extend_from_slice(b"</result>");
        }
        if writable {
            return Ok(());
        }
        let message = "a value of the result has a control character that XML cannot represent";
        Err(Error::new(ErrorKind::Unsupported, message).with_hint("choose json, tsv or csv"))
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"</results></sparql>\n");
    }
}

/// Appends the element of a term; `false` if XML cannot represent it.
fn term(parts: TermParts<'_>, out: &mut Vec<u8>) -> bool {
    match parts {
        TermParts::Iri { namespace, local } => element(b"uri", &[namespace, local], out),
        TermParts::Edge(number) => element(b"uri", &[EDGE_NAMESPACE, &number.to_string()], out),
        TermParts::Blank(label) => element(b"bnode", &[label], out),
        TermParts::Literal { head, tail, kind: LiteralKind::Triple } => triple(&[head, tail].concat(), out),
        TermParts::Literal { head, tail, kind } => {
            out.extend_from_slice(b"<literal");
            let attribute = match kind {
                LiteralKind::String | LiteralKind::Triple => true,
                LiteralKind::Language(tag) => {
                    let (tag, direction) = tag.split_once("--").unwrap_or((tag, ""));
                    out.extend_from_slice(b" xml:lang=\"");
                    let mut writable = escape(tag, out);
                    out.push(b'"');
                    if !direction.is_empty() {
                        out.extend_from_slice(ITS);
                        writable &= escape(direction, out);
                        out.push(b'"');
                    }
                    writable
                }
                LiteralKind::Typed(iri) => {
                    out.extend_from_slice(b" datatype=\"");
                    let writable = escape(iri, out);
                    out.push(b'"');
                    writable
                }
            };
            out.push(b'>');
            let text = escape(head, out) & escape(tail, out);
            out.extend_from_slice(b"</literal>");
            attribute && text
        }
    }
}

/// A triple term: an element with those of its parts. Depth is limited by `TRIPLE_DEPTH_MAX`.
fn triple(text: &str, out: &mut Vec<u8>) -> bool {
    let mut writable = true;
    out.extend_from_slice(b"<triple>");
    let names = ["subject", "predicate", "object"];
    for (name, part) in names.into_iter().zip(triple_parts(text).into_iter().flatten()) {
        out.extend_from_slice(format!("<{name}>").as_bytes());
        writable &= with_nt(part, &mut String::new(), |parts| term(parts, out)).unwrap_or(false);
        out.extend_from_slice(format!("</{name}>").as_bytes());
    }
    out.extend_from_slice(b"</triple>");
    writable
}

fn element(name: &[u8], parts: &[&str], out: &mut Vec<u8>) -> bool {
    out.push(b'<');
    out.extend_from_slice(name);
    out.push(b'>');
    let mut writable = true;
    for part in parts {
        writable &= escape(part, out);
    }
    out.extend_from_slice(b"</");
    out.extend_from_slice(name);
    out.push(b'>');
    writable
}

/// Appends escaped `text`; `false` if it contains a character that XML 1.0 excludes.
fn escape(text: &str, out: &mut Vec<u8>) -> bool {
    let mut start = 0;
    let mut writable = !text.contains(['\u{FFFE}', '\u{FFFF}']);
    let bytes = text.as_bytes();
    for (i, &byte) in bytes.iter().enumerate() {
        let replacement: &[u8] = match byte {
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            b'&' => b"&amp;",
            b'"' => b"&quot;",
            // Parsers normalize these to blanks or line feeds unless they are character references.
            b'\t' => b"&#x9;",
            b'\n' => b"&#xA;",
            b'\r' => b"&#xD;",
            0..0x20 => {
                writable = false;
                b""
            }
            _ => continue,
        };
        out.extend_from_slice(&bytes[start..i]);
        out.extend_from_slice(replacement);
        start = i + 1;
    }
    out.extend_from_slice(&bytes[start..]);
    writable
}
