//! Triple terms of RDF 1.2 as texts: `<<( s p o )>>` with each part in canonical N-Triples.
//!
//! # Shape
//! One space between the parts, none elsewhere. Neither IRIs nor labels of blank nodes contain a space, so
//! the first two parts end at the first and the second space, and the third, the only one that may be a
//! triple term, is the rest. Hence there is no recursion, and parsing a text is finding two spaces.
//! # Invariants
//! 1. Equal texts are equal terms, and equal terms have equal texts.
//! 2. Texts contain no ids: renumbering by dictionaries and checkpoints does not invalidate them.
//! 3. No term is nested deeper than [`TRIPLE_DEPTH_MAX`].

use crate::vocab::EDGE_NAMESPACE;
use oxrdf::TermRef;

/// Maximum nesting depth of triple terms; `<<( s p o )>>` has depth one.
pub const TRIPLE_DEPTH_MAX: usize = 100;

pub(crate) const OPENING: &str = "<<( ";
pub(crate) const CLOSING: &str = " )>>";

/// Appends the text of the triple term of these parts, which are in N-Triples form.
pub fn write_triple([subject, predicate, object]: [&str; 3], out: &mut String) {
    for (piece, after) in [(OPENING, subject), (" ", predicate), (" ", object), (CLOSING, "")] {
        out.push_str(piece);
        out.push_str(after);
    }
}

/// Subject, predicate and object of the text of a triple term, in N-Triples form; `None` for other texts.
#[must_use]
pub fn triple_parts(text: &str) -> Option<[&str; 3]> {
    let inner = text.strip_prefix(OPENING)?.strip_suffix(CLOSING)?;
    let (subject, rest) = inner.split_once(' ')?;
    let (predicate, object) = rest.split_once(' ')?;
    let is_iri = |text: &str| text.len() > 2 && text.starts_with('<') && text.ends_with('>');
    let whole = (is_iri(subject) || subject.starts_with("_:")) && is_iri(predicate) && !object.is_empty();
    whole.then_some([subject, predicate, object])
}

/// Appends the text with each blank node label replaced by what `label` appends.
pub fn with_labels(text: &str, label: &mut dyn FnMut(&str, &mut String), out: &mut String) {
    let mut put = |part: &str, out: &mut String| match part.strip_prefix("_:") {
        Some(old) => {
            out.push_str("_:");
            label(old, out);
        }
        None => out.push_str(part),
    };
    let (mut rest, mut depth) = (text, 0);
    while let Some([subject, predicate, object]) = triple_parts(rest) {
        out.push_str(OPENING);
        put(subject, out);
        out.push(' ');
        out.push_str(predicate);
        out.push(' ');
        (rest, depth) = (object, depth + 1);
    }
    put(rest, out);
    (0..depth).for_each(|_| out.push_str(CLOSING));
}

/// Whether an edge is a part of a triple term, at any depth. Edges are renumbered when their graph is loaded
/// elsewhere, so a stored text with an edge would change its meaning.
#[must_use]
pub fn speaks_of_edge(text: &str) -> bool {
    let is_edge = |part: &str| part.strip_prefix('<').is_some_and(|iri| iri.starts_with(EDGE_NAMESPACE));
    let mut rest = text;
    while let Some([subject, predicate, object]) = triple_parts(rest) {
        if is_edge(subject) || is_edge(predicate) {
            return true;
        }
        rest = object;
    }
    is_edge(rest)
}

/// Nesting depth of triple terms in a term in N-Triples form; 0 for other terms.
#[must_use]
pub fn triple_depth(text: &str) -> usize {
    let mut depth = 0;
    let mut rest = text;
    while let Some([_, _, object]) = triple_parts(rest) {
        depth += 1;
        rest = object;
    }
    depth
}

/// Whether a text from a file is that of a triple term: well-formed at each depth, and not deeper than
/// [`TRIPLE_DEPTH_MAX`]. Does not check the innermost object.
#[must_use]
pub fn is_triple_text(text: &str) -> bool {
    let mut rest = text;
    for _ in 0..TRIPLE_DEPTH_MAX {
        match triple_parts(rest) {
            Some([_, _, object]) if object.starts_with(OPENING) => rest = object,
            parts => return parts.is_some(),
        }
    }
    false
}

/// [`triple_depth`] of a structured term.
#[must_use]
pub fn depth_of_term(term: TermRef<'_>) -> usize {
    let (mut rest, mut depth) = (term, 0);
    while let TermRef::Triple(triple) = rest {
        (rest, depth) = (triple.object.as_ref(), depth + 1);
    }
    depth
}
