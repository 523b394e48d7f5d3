//! SPARQL 1.1 Query Results JSON Format, without white space between tokens, on one line.

use crate::TermSource;
use crate::row_format::RowFormat;
use vervet_model::vocab::EDGE_NAMESPACE;
use vervet_model::{Id, LiteralKind, Result, TermParts, triple_parts, with_nt};

#[derive(Default)]
pub(crate) struct Json {
    /// `"name":` of each column.
    keys: Vec<Vec<u8>>,
    started: bool,
    scratch: String,
}

impl RowFormat for Json {
    fn start(&mut self, columns: &[&str], out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"head\":{\"vars\":[");
        for (i, name) in columns.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            let mut key = Vec::new();
            string(&[name], &mut key);
            out.extend_from_slice(&key);
            key.push(b':');
            self.keys.push(key);
        }
        out.extend_from_slice(b"]},\"results\":{\"bindings\":[");
    }

    fn rows(
        &mut self,
        columns: &[&[Id]],
        rows: usize,
        source: &dyn TermSource,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        for row in 0..rows {
            out.extend_from_slice(if self.started { b",{" } else { b"{" });
            self.started = true;
            let mut first = true;
            for (key, ids) in self.keys.iter().zip(columns) {
                if !ids[row].is_bound() {
                    continue;
                }
                if !first {
                    out.push(b',');
                }
                first = false;
                out.extend_from_slice(key);
                source.read_term(ids[row], &mut self.scratch, &mut |parts| term(parts, out))?;
            }
            out.push(b'}');
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"]}}\n");
    }
}

fn term(parts: TermParts<'_>, out: &mut Vec<u8>) {
    match parts {
        TermParts::Iri { namespace, local } => {
            out.extend_from_slice(b"{\"type\":\"uri\",\"value\":");
            string(&[namespace, local], out);
        }
        TermParts::Edge(number) => {
            out.extend_from_slice(b"{\"type\":\"uri\",\"value\":");
            string(&[EDGE_NAMESPACE, &number.to_string()], out);
        }
        TermParts::Blank(label) => {
            out.extend_from_slice(b"{\"type\":\"bnode\",\"value\":");
            string(&[label], out);
        }
        TermParts::Literal { head, tail, kind: LiteralKind::Triple } => {
            return triple(&[head, tail].concat(), out);
        }
        TermParts::Literal { head, tail, kind } => {
            out.extend_from_slice(b"{\"type\":\"literal\",\"value\":");
            string(&[head, tail], out);
            match kind {
                LiteralKind::String | LiteralKind::Triple => {}
                LiteralKind::Language(tag) => {
                    let (tag, direction) = tag.split_once("--").map_or((tag, None), |(t, d)| (t, Some(d)));
                    out.extend_from_slice(b",\"xml:lang\":");
                    string(&[tag], out);
                    if let Some(direction) = direction {
                        out.extend_from_slice(b",\"its:dir\":");
                        string(&[direction], out);
                    }
                }
                LiteralKind::Typed(iri) => {
                    out.extend_from_slice(b",\"datatype\":");
                    string(&[iri], out);
                }
            }
        }
    }
    out.push(b'}');
}

/// A triple term: an object with the objects of its parts. Depth is limited by `TRIPLE_DEPTH_MAX`.
fn triple(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"triple\",\"value\":{");
    let names: [&[u8]; 3] = [b"\"subject\":", b",\"predicate\":", b",\"object\":"];
    for (name, part) in names.into_iter().zip(triple_parts(text).into_iter().flatten()) {
        out.extend_from_slice(name);
        with_nt(part, &mut String::new(), |parts| term(parts, out));
    }
    out.extend_from_slice(b"}}");
}

/// `parts`, concatenated, as one JSON string.
fn string(parts: &[&str], out: &mut Vec<u8>) {
    out.push(b'"');
    for part in parts {
        let mut rest = part.as_bytes();
        while let Some(at) = rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
            out.extend_from_slice(&rest[..at]);
            match rest[at] {
                b'"' => out.extend_from_slice(b"\\\""),
                b'\\' => out.extend_from_slice(b"\\\\"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\t' => out.extend_from_slice(b"\\t"),
                byte => out.extend_from_slice(format!("\\u{byte:04X}").as_bytes()),
            }
            rest = &rest[at + 1..];
        }
        out.extend_from_slice(rest);
    }
    out.push(b'"');
}
