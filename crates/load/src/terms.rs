//! Conversion of the terms of the parser libraries to tokens of a block.

use crate::block::{Block, BlockBuilder, BlockPosition, DEFAULT_GRAPH, Reifier, TEXT_BYTES_MAX};
use crate::target::TermRef;
use foldhash::HashMap as SeededMap;
use oxrdf::{
    BaseDirection, BlankNodeRef, GraphNameRef, LiteralRef, NamedOrBlankNodeRef, QuadRef, TermRef as Term,
};
use std::cell::RefCell;
use vervet_model::vocab::{RDF_REIFIES, is_blank_label};
use vervet_model::{LiteralKind, TRIPLE_DEPTH_MAX, mentions_edge, replace_blank_labels, triple_text};

const XSD_STRING: &str = "http://www.w3.org/2001/XMLSchema#string";

/// Labels for anonymous blank nodes: parsers generate random labels, with which two loads of one file would
/// differ, so the n-th becomes `-n` (no written label starts with `-`).
#[derive(Default)]
pub(crate) struct GeneratedLabels {
    numbers: SeededMap<u128, u64>,
    /// Labels that are valid in JSON-LD but not in other formats.
    others: SeededMap<String, u64>,
    label: String,
}

impl GeneratedLabels {
    /// Generated labels have 128 random bits; a written hexadecimal label of that length is renamed too,
    /// which is harmless.
    const LEAST: u128 = 1 << 96;

    fn label<'a>(&'a mut self, node: BlankNodeRef<'a>) -> &'a str {
        let next = (self.numbers.len() + self.others.len()) as u64;
        let number = match node.unique_id() {
            Some(number) if number >= Self::LEAST => *self.numbers.entry(number).or_insert(next),
            _ if is_blank_label(node.as_str()) => return node.as_str(),
            _ => match self.others.get(node.as_str()) {
                Some(number) => *number,
                None => *self.others.entry(node.as_str().to_owned()).or_insert(next),
            },
        };
        self.label.clear();
        self.label.push('-');
        self.label.push_str(&number.to_string());
        &self.label
    }
}

/// Adds a statement, or a reifier, to `block`. `at`: its position.
///
/// # Errors
/// The reason why Vervet cannot represent the statement.
pub(crate) fn push_quad(
    builder: &mut BlockBuilder,
    block: &mut Block,
    quad: QuadRef<'_>,
    labels: Option<&mut GeneratedLabels>,
    at: BlockPosition,
) -> Result<(), String> {
    let reified = match quad.object {
        Term::Triple(triple) if quad.predicate.as_str() == RDF_REIFIES => Some(triple),
        _ => None,
    };
    // Two closures borrow it, one at a time.
    let labels = labels.map(RefCell::new);
    let invented = labels.as_ref();
    let mut number = |term: TermRef<'_>| {
        if size(term) > TEXT_BYTES_MAX / 4 {
            return Err(format!("a term is longer than {} bytes", TEXT_BYTES_MAX / 4));
        }
        Ok(match (term, invented) {
            (TermRef::Blank(label), Some(labels)) => {
                let node = BlankNodeRef::new_unchecked(label);
                builder.number(block, TermRef::Blank(labels.borrow_mut().label(node)))
            }
            _ => builder.number(block, term),
        })
    };
    let subject = number(match quad.subject {
        NamedOrBlankNodeRef::NamedNode(node) => TermRef::Iri(node.as_str()),
        NamedOrBlankNodeRef::BlankNode(node) => TermRef::Blank(node.as_str()),
    })?;
    let (triple_subject, triple_predicate, triple_object) = match reified {
        Some(triple) => (triple.subject.as_ref(), triple.predicate.as_ref(), triple.object.as_ref()),
        None => (quad.subject, quad.predicate, quad.object),
    };
    let first = if reified.is_some() {
        number(match triple_subject {
            NamedOrBlankNodeRef::NamedNode(node) => TermRef::Iri(node.as_str()),
            NamedOrBlankNodeRef::BlankNode(node) => TermRef::Blank(node.as_str()),
        })?
    } else {
        subject
    };
    let predicate = number(TermRef::Iri(triple_predicate.as_str()))?;
    let (tag, triple_term);
    let object = number(match triple_object {
        Term::NamedNode(node) => TermRef::Iri(node.as_str()),
        Term::BlankNode(node) => TermRef::Blank(node.as_str()),
        Term::Literal(literal) => {
            tag = directed(literal);
            TermRef::Literal { value: literal.value(), kind: kind(literal, tag.as_deref()) }
        }
        Term::Triple(triple) => {
            triple_term = text_of(triple.as_ref(), invented)?;
            TermRef::Literal { value: &triple_term, kind: LiteralKind::Triple }
        }
    })?;
    let graph = match quad.graph_name {
        GraphNameRef::DefaultGraph => DEFAULT_GRAPH,
        GraphNameRef::NamedNode(node) => number(TermRef::Iri(node.as_str()))?,
        GraphNameRef::BlankNode(node) => number(TermRef::Blank(node.as_str()))?,
    };
    let triple = [first, predicate, object];
    if reified.is_some() {
        block.reifiers.push(Reifier { row: block.triples.len(), reifier: subject, triple, graph, at });
    } else {
        block.push(triple, graph);
    }
    Ok(())
}

/// The text of a triple term.
fn text_of(
    triple: oxrdf::TripleRef<'_>,
    labels: Option<&RefCell<&mut GeneratedLabels>>,
) -> Result<String, String> {
    let text = triple_text(triple).ok_or_else(|| {
        format!("a triple term is nested deeper than {TRIPLE_DEPTH_MAX} (TRIPLE_DEPTH_MAX)")
    })?;
    if mentions_edge(&text) {
        return Err("a triple term other than of rdf:reifies cannot have an edge in it".to_owned());
    }
    let Some(labels) = labels else { return Ok(text) };
    let mut renamed = String::with_capacity(text.len());
    let mut rename = |label: &str, out: &mut String| {
        out.push_str(labels.borrow_mut().label(BlankNodeRef::new_unchecked(label)))
    };
    replace_blank_labels(&text, &mut rename, &mut renamed);
    Ok(renamed)
}

/// Language and base direction in one string, if there is a direction.
fn directed(literal: LiteralRef<'_>) -> Option<String> {
    let direction = match literal.direction()? {
        BaseDirection::Ltr => "ltr",
        BaseDirection::Rtl => "rtl",
    };
    Some(format!("{}--{direction}", literal.language()?))
}

fn kind<'a>(literal: LiteralRef<'a>, directed: Option<&'a str>) -> LiteralKind<'a> {
    match (directed, literal.language()) {
        (Some(tag), _) | (None, Some(tag)) => LiteralKind::Language(tag),
        (None, None) if literal.datatype().as_str() == XSD_STRING => LiteralKind::String,
        (None, None) => LiteralKind::Typed(literal.datatype().as_str()),
    }
}

fn size(term: TermRef<'_>) -> usize {
    match term {
        TermRef::Iri(text) | TermRef::Blank(text) => text.len(),
        TermRef::Literal { value, kind: LiteralKind::String | LiteralKind::Triple } => value.len(),
        TermRef::Literal { value, kind: LiteralKind::Language(text) | LiteralKind::Typed(text) } => {
            value.len() + text.len()
        }
    }
}
