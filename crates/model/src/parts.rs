//! Terms in borrowed parts, as returned by the dictionary, ready to be copied to an output.

use crate::vocab::EDGE_NAMESPACE;
use std::fmt::Write;

/// Datatype or language of a literal, besides its lexical form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LiteralKind<'a> {
    /// `xsd:string`.
    String,
    /// A language tag; a base direction of RDF 1.2 follows it as `--ltr` or `--rtl`.
    Language(&'a str),
    /// Any other datatype, as an IRI.
    Typed(&'a str),
    /// A triple term of RDF 1.2, whose text is `<<( s p o )>>` in canonical N-Triples. Dictionaries number
    /// and store triple terms as literals, so the layers below query languages need no further kind.
    Triple,
}

/// A term in borrowed parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TermParts<'a> {
    /// The IRI is `namespace` followed by `local`.
    Iri {
        /// First part.
        namespace: &'a str,
        /// The rest.
        local: &'a str,
    },
    /// The label of a blank node, without `_:`.
    Blank(&'a str),
    /// The lexical form is `head` followed by `tail`.
    Literal {
        /// First part of the lexical form.
        head: &'a str,
        /// The rest of the lexical form.
        tail: &'a str,
        /// Datatype or language, or the mark of a triple term.
        kind: LiteralKind<'a>,
    },
    /// An edge as a term: the IRI `urn:vervet:edge:N`.
    Edge(u64),
}

impl TermParts<'_> {
    /// Appends the result of `STR()`: the IRI, the lexical form, or the label of a blank node; for a triple
    /// term its text.
    pub fn write_str(&self, out: &mut String) {
        match *self {
            Self::Iri { namespace, local } => {
                out.push_str(namespace);
                out.push_str(local);
            }
            Self::Blank(label) => out.push_str(label),
            Self::Literal { head, tail, .. } => {
                out.push_str(head);
                out.push_str(tail);
            }
            Self::Edge(number) => {
                // Writing to a `String` cannot fail.
                let _ = write!(out, "{EDGE_NAMESPACE}{number}");
            }
        }
    }

    /// Appends the N-Triples form, which is also the form of most cells of SPARQL's TSV.
    pub fn write_nt(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Iri { namespace, local } => {
                out.push(b'<');
                out.extend_from_slice(namespace.as_bytes());
                out.extend_from_slice(local.as_bytes());
                out.push(b'>');
            }
            Self::Blank(label) => {
                out.extend_from_slice(b"_:");
                out.extend_from_slice(label.as_bytes());
            }
            Self::Edge(number) => {
                out.push(b'<');
                out.extend_from_slice(EDGE_NAMESPACE.as_bytes());
                out.extend_from_slice(number.to_string().as_bytes());
                out.push(b'>');
            }
            Self::Literal { head, tail, kind: LiteralKind::Triple } => {
                out.extend_from_slice(head.as_bytes());
                out.extend_from_slice(tail.as_bytes());
            }
            Self::Literal { head, tail, kind } => {
                out.push(b'"');
                write_escaped(head, out);
                write_escaped(tail, out);
                out.push(b'"');
                match kind {
                    LiteralKind::String | LiteralKind::Triple => {}
                    LiteralKind::Language(tag) => {
                        out.push(b'@');
                        out.extend_from_slice(tag.as_bytes());
                    }
                    LiteralKind::Typed(iri) => {
                        out.extend_from_slice(b"^^<");
                        out.extend_from_slice(iri.as_bytes());
                        out.push(b'>');
                    }
                }
            }
        }
    }
}

/// Appends `text` with the escapes of canonical N-Triples.
fn write_escaped(text: &str, out: &mut Vec<u8>) {
    let plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\' && byte != 0x7F;
    if text.bytes().all(plain) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    for byte in text.bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0C => out.extend_from_slice(b"\\f"),
            byte if plain(byte) => out.push(byte),
            byte => out.extend_from_slice(format!("\\u{byte:04X}").as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n_triples_form_is_that_of_the_library() {
        let literal = |head, tail, kind| TermParts::Literal { head, tail, kind };
        for parts in [
            TermParts::Iri { namespace: "http://example.org/", local: "a" },
            TermParts::Blank("b0"),
            TermParts::Edge(7),
            literal("a \"quoted\"\n", "line\\ \t é", LiteralKind::String),
            literal("chat", "", LiteralKind::Language("fr")),
            literal("<<( _:a <http://b> ", "\"c\"@en )>>", LiteralKind::Triple),
            literal("1", "", LiteralKind::Typed("http://www.w3.org/2001/XMLSchema#byte")),
        ] {
            let mut bytes = Vec::new();
            parts.write_nt(&mut bytes);
            assert_eq!(String::from_utf8(bytes).expect("UTF-8"), parts.to_term().to_string());
        }
    }
}
