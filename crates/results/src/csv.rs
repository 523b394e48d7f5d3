//! CSV writer: untyped text (`STR()` of each term; blank nodes with `_:`), quoted as RFC 4180 requires.

use crate::TermSource;
use crate::row_format::RowFormat;
use vervet_model::{Id, Result, TermParts};

#[derive(Default)]
pub(crate) struct Csv {
    scratch: String,
    text: String,
}

impl RowFormat for Csv {
    fn start(&mut self, columns: &[&str], out: &mut Vec<u8>) {
        for (i, name) in columns.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            field(name, out);
        }
        out.extend_from_slice(b"\r\n");
    }

    fn rows(
        &mut self,
        columns: &[&[Id]],
        rows: usize,
        source: &dyn TermSource,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        for row in 0..rows {
            for (i, ids) in columns.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                if ids[row].is_bound() {
                    self.text.clear();
                    let text = &mut self.text;
                    source.read_term(ids[row], &mut self.scratch, &mut |parts| {
                        if matches!(parts, TermParts::Blank(_)) {
                            text.push_str("_:");
                        }
                        parts.write_str(text);
                    })?;
                    field(&self.text, out);
                }
            }
            out.extend_from_slice(b"\r\n");
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut Vec<u8>) {}
}

fn field(text: &str, out: &mut Vec<u8>) {
    if !text.bytes().any(|byte| matches!(byte, b'"' | b',' | b'\r' | b'\n')) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for (i, part) in text.split('"').enumerate() {
        if i > 0 {
            out.extend_from_slice(b"\"\"");
        }
        out.extend_from_slice(part.as_bytes());
    }
    out.push(b'"');
}
