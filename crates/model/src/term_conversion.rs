//! Conversion of terms between [`TermParts`], the types of `oxrdf` and canonical N-Triples.

use crate::parts::{LiteralKind, TermParts};
use crate::triple::{CLOSING, OPENING, TRIPLE_DEPTH_MAX, triple_parts};
use crate::vocab::EDGE_NAMESPACE;
use oxrdf::{
    BaseDirection, BlankNode, Literal, NamedNode, NamedNodeRef, NamedOrBlankNode, Term, TermRef, Triple,
    TripleRef,
};

impl TermParts<'_> {
    /// The term as an owned value.
    #[must_use]
    pub fn to_term(&self) -> Term {
        match *self {
            Self::Iri { namespace, local } => NamedNode::new_unchecked(format!("{namespace}{local}")).into(),
            Self::Blank(label) => BlankNode::new_unchecked(label).into(),
            Self::Edge(number) => NamedNode::new_unchecked(format!("{EDGE_NAMESPACE}{number}")).into(),
            Self::Literal { head, tail, kind } => {
                let value = format!("{head}{tail}");
                match kind {
                    LiteralKind::String => Literal::new_simple_literal(value),
                    // Only damaged data has a text here that is not that of a triple term.
                    LiteralKind::Triple => match triple_term(&value) {
                        Some(term) => return term,
                        None => Literal::new_simple_literal(value),
                    },
                    LiteralKind::Typed(iri) => {
                        Literal::new_typed_literal(value, NamedNodeRef::new_unchecked(iri))
                    }
                    LiteralKind::Language(tag) => match tag.split_once("--") {
                        Some((tag, direction)) => Literal::new_directional_language_tagged_literal_unchecked(
                            value,
                            tag,
                            if direction == "rtl" { BaseDirection::Rtl } else { BaseDirection::Ltr },
                        ),
                        None => Literal::new_language_tagged_literal_unchecked(value, tag),
                    },
                }
                .into()
            }
        }
    }
}

/// Calls `read` with the parts of a term in canonical N-Triples; `None` if the text is not a term. `scratch`
/// is working space.
pub fn with_nt<T>(text: &str, scratch: &mut String, read: impl FnOnce(TermParts<'_>) -> T) -> Option<T> {
    if text.starts_with(OPENING) {
        triple_parts(text)?;
        return Some(read(TermParts::Literal { head: text, tail: "", kind: LiteralKind::Triple }));
    }
    if let Some(label) = text.strip_prefix("_:") {
        return Some(read(TermParts::Blank(label)));
    }
    if let Some(iri) = text.strip_prefix('<') {
        return Some(read(TermParts::Iri { namespace: iri.strip_suffix('>')?, local: "" }));
    }
    // Neither language tags nor datatypes contain quotes.
    let (quoted, rest) = text.strip_prefix('"')?.rsplit_once('"')?;
    scratch.clear();
    unescape(quoted, scratch)?;
    let kind = match rest.strip_prefix('@') {
        Some(tag) => LiteralKind::Language(tag),
        None if rest.is_empty() => LiteralKind::String,
        None => LiteralKind::Typed(rest.strip_prefix("^^<")?.strip_suffix('>')?),
    };
    Some(read(TermParts::Literal { head: scratch, tail: "", kind }))
}

/// Calls `read` with the parts of `term`; `None` if triple terms are nested deeper than [`TRIPLE_DEPTH_MAX`].
pub fn with_parts<T>(term: TermRef<'_>, read: impl FnOnce(TermParts<'_>) -> T) -> Option<T> {
    let literal = |head, kind| TermParts::Literal { head, tail: "", kind };
    Some(match term {
        TermRef::NamedNode(node) => read(TermParts::Iri { namespace: node.as_str(), local: "" }),
        TermRef::BlankNode(node) => read(TermParts::Blank(node.as_str())),
        TermRef::Literal(value) => match (value.language(), value.direction()) {
            (Some(tag), None) => read(literal(value.value(), LiteralKind::Language(tag))),
            (Some(tag), Some(direction)) => {
                let direction = if direction == BaseDirection::Rtl { "rtl" } else { "ltr" };
                read(literal(value.value(), LiteralKind::Language(&format!("{tag}--{direction}"))))
            }
            (None, _) if value.datatype() == oxrdf::vocab::xsd::STRING => {
                read(literal(value.value(), LiteralKind::String))
            }
            (None, _) => read(literal(value.value(), LiteralKind::Typed(value.datatype().as_str()))),
        },
        TermRef::Triple(triple) => {
            let text = triple_text(triple.as_ref())?;
            read(literal(&text, LiteralKind::Triple))
        }
    })
}

/// The text of a triple as a term; `None` if it is nested deeper than [`TRIPLE_DEPTH_MAX`].
#[must_use]
pub fn triple_text(triple: TripleRef<'_>) -> Option<String> {
    let mut out = Vec::new();
    let mut rest = triple;
    for depth in 1..=TRIPLE_DEPTH_MAX {
        out.extend_from_slice(OPENING.as_bytes());
        for term in [TermRef::from(rest.subject), TermRef::from(rest.predicate)] {
            with_parts(term, |parts| parts.write_nt(&mut out))?;
            out.push(b' ');
        }
        match rest.object {
            TermRef::Triple(inner) => rest = inner.as_ref(),
            object => {
                with_parts(object, |parts| parts.write_nt(&mut out))?;
                (0..depth).for_each(|_| out.extend_from_slice(CLOSING.as_bytes()));
                return String::from_utf8(out).ok();
            }
        }
    }
    None
}

/// The term of a text; `None` if the text is invalid, or nested deeper than [`TRIPLE_DEPTH_MAX`].
#[must_use]
pub fn triple_term(text: &str) -> Option<Term> {
    let mut outer = Vec::new();
    let mut rest = text;
    while rest.starts_with(OPENING) && outer.len() < TRIPLE_DEPTH_MAX {
        let [subject, predicate, object] = triple_parts(rest)?;
        let subject = match subject.strip_prefix("_:") {
            Some(label) => NamedOrBlankNode::from(BlankNode::new_unchecked(label)),
            None => iri(subject)?.into(),
        };
        outer.push((subject, iri(predicate)?));
        rest = object;
    }
    if rest.starts_with(OPENING) {
        return None;
    }
    let innermost = with_nt(rest, &mut String::new(), |parts| parts.to_term())?;
    let enclose = |object, (subject, predicate)| Term::from(Triple { subject, predicate, object });
    Some(outer.into_iter().rev().fold(innermost, enclose))
}

fn iri(text: &str) -> Option<NamedNode> {
    Some(NamedNode::new_unchecked(text.strip_prefix('<')?.strip_suffix('>')?))
}

/// Appends `text` with the escapes of canonical N-Triples decoded; `None` if there are other escapes.
fn unescape(text: &str, out: &mut String) -> Option<()> {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let mut letters = after.chars();
        out.push(match letters.next()? {
            't' => '\t',
            'b' => '\u{8}',
            'n' => '\n',
            'r' => '\r',
            'f' => '\u{C}',
            '"' => '"',
            '\\' => '\\',
            'u' => {
                let digits = letters.as_str().get(..4)?;
                letters = letters.as_str().get(4..)?.chars();
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
            }
            _ => return None,
        });
        rest = letters.as_str();
    }
    out.push_str(rest);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::triple::{
        depth_of_term, is_triple_text, speaks_of_edge, triple_depth, with_labels, write_triple,
    };

    fn random_term(random: &mut fastrand::Rng, depth: usize) -> Term {
        let text: String = (0..random.usize(0..6))
            .map(|_| {
                random
                    .choice(['a', '"', '\\', ' ', '\n', '\t', '\u{7F}', '\u{1}', '<', '>', '(', 'é', '𝄞'])
                    .unwrap_or('x')
            })
            .collect();
        let node = NamedNode::new_unchecked(format!("http://e/{}", random.u8(..)));
        match random.u8(0..if depth < 4 { 8 } else { 6 }) {
            0 => node.into(),
            1 => BlankNode::new_unchecked(format!("b{}", random.u8(..))).into(),
            2 => Literal::new_simple_literal(text).into(),
            3 => Literal::new_language_tagged_literal_unchecked(text, "en").into(),
            4 => Literal::new_directional_language_tagged_literal_unchecked(text, "ar", BaseDirection::Rtl)
                .into(),
            5 => Literal::new_typed_literal(text, NamedNodeRef::new_unchecked("http://e/t")).into(),
            _ => {
                let subject = match random.bool() {
                    true => NamedOrBlankNode::from(node.clone()),
                    false => BlankNode::new_unchecked("s").into(),
                };
                Triple { subject, predicate: node, object: random_term(random, depth + 1) }.into()
            }
        }
    }

    #[test]
    fn texts_are_those_of_the_library_and_come_back() {
        let seed = fastrand::u64(..);
        eprintln!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut triples = 0;
        for _ in 0..5_000 {
            let Term::Triple(triple) = random_term(&mut random, 0) else { continue };
            triples += 1;
            let text = triple_text(triple.as_ref().as_ref()).expect("not deep");
            assert_eq!(text, Term::Triple(triple.clone()).to_string());
            let [subject, predicate, object] = triple_parts(&text).expect("a triple term");
            assert_eq!(
                [subject, predicate, object],
                [&triple.subject.to_string(), &triple.predicate.to_string(), &triple.object.to_string()]
            );
            let mut again = String::new();
            write_triple([subject, predicate, object], &mut again);
            assert_eq!(again, text);
            assert_eq!(triple_depth(&text), 1 + triple_depth(object));
            let mut other = String::new();
            with_labels(&text, &mut |label, out| out.extend(["x", label]), &mut other);
            // Literals here contain no label.
            assert_eq!(other, text.replace("_:", "_:x"));
            assert!(!speaks_of_edge(&text));
            let edge = text.replacen("<http://e/", "<urn:vervet:edge:", 1);
            assert!(speaks_of_edge(&edge), "{edge}");
            assert_eq!(triple_term(&text), Some(Term::Triple(triple)));
        }
        assert!(triples > 500);
    }

    #[test]
    fn depth_has_a_limit_and_damage_is_no_term() {
        let node = NamedNode::new_unchecked("http://e/");
        let mut term = Term::from(node.clone());
        for depth in 1..=TRIPLE_DEPTH_MAX + 1 {
            let triple = Triple { subject: node.clone().into(), predicate: node.clone(), object: term };
            let text = triple_text(triple.as_ref());
            assert_eq!(text.is_some(), depth <= TRIPLE_DEPTH_MAX, "{depth}");
            if let Some(text) = text {
                assert_eq!((triple_depth(&text), triple_term(&text)), (depth, Some(triple.clone().into())));
                assert!(is_triple_text(&text));
            } else {
                let text = Term::from(triple.clone()).to_string();
                assert_eq!((triple_term(&text), is_triple_text(&text)), (None, false));
            }
            term = triple.into();
            assert_eq!(depth_of_term(term.as_ref()), depth);
        }
        let whole = "<<( <http://a> <http://b> \"c\\u007F\" )>>";
        assert!(triple_term(whole).is_some());
        for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
            assert_eq!(triple_term(&whole[..end]).filter(Term::is_triple), None, "{end}");
            assert!(!is_triple_text(&whole[..end]), "{end}");
        }
        for damaged in
            ["<<( \"a\" <b> <c> )>>", "<<( <a> _:b <c> )>>", "<<( <a> <b>  )>>", "<<( <a> <b> c )>>"]
        {
            assert_eq!(triple_term(damaged), None, "{damaged}");
        }
        let million = "<<( <a> <b> ".repeat(1 << 20);
        let closed = format!("{million}<c>{}", " )>>".repeat(1 << 20));
        let inner = "<<( <a> <b> <<( \"a\" <b> <c> )>> )>>";
        for damaged in [&million, &closed, inner, "<<( \"a\" <b> <c> )>>", "<<( <a> <b>  )>>", "<a>", ""] {
            assert!(!is_triple_text(damaged), "{}", &damaged[..damaged.len().min(60)]);
        }
        assert!(is_triple_text("<<( <a> <b> <<( _:a <b> <c> )>> )>>"));
    }
}
