//! From the terms of the parser libraries to tokens of a block.

use crate::block::{Block, Builder, DEFAULT_GRAPH, TEXT_BYTES_MAX};
use crate::target::{Kind, TermRef};
use oxrdf::{
    BaseDirection, BlankNodeRef, GraphNameRef, LiteralRef, NamedOrBlankNodeRef, QuadRef, TermRef as Term,
};
use rustc_hash::FxHashMap;

const XSD_STRING: &str = "http://www.w3.org/2001/XMLSchema#string";

/// Labels for blank nodes that a parser invents: its labels are random numbers, which would make two loads
/// of one file differ, so the n-th becomes `-n` (no written label starts with `-`).
#[derive(Default)]
pub(crate) struct InventedLabels {
    numbers: FxHashMap<u128, u64>,
    label: String,
}

impl InventedLabels {
    /// Invented numbers have 128 random bits; a written hexadecimal label as long as that is renamed too,
    /// which is no harm.
    const LEAST: u128 = 1 << 96;

    fn label<'a>(&'a mut self, node: BlankNodeRef<'a>) -> &'a str {
        match node.unique_id() {
            Some(number) if number >= Self::LEAST => {
                let next = self.numbers.len() as u64;
                let number = *self.numbers.entry(number).or_insert(next);
                self.label.clear();
                self.label.push('-');
                self.label.push_str(&number.to_string());
                &self.label
            }
            _ => node.as_str(),
        }
    }
}

/// Adds a statement to `block`.
///
/// # Errors
/// Why Vervet cannot hold the statement.
pub(crate) fn push_quad(
    builder: &mut Builder,
    block: &mut Block,
    quad: QuadRef<'_>,
    mut labels: Option<&mut InventedLabels>,
) -> Result<(), String> {
    if matches!(quad.object, Term::Triple(_)) {
        return Err("triple terms (and with them reifiers) of RDF 1.2 cannot be loaded".to_owned());
    }
    let mut number = |term: TermRef<'_>| {
        if size(term) > TEXT_BYTES_MAX / 4 {
            return Err(format!("a term is longer than {} bytes", TEXT_BYTES_MAX / 4));
        }
        Ok(match (term, labels.as_deref_mut()) {
            (TermRef::Blank(label), Some(labels)) => {
                let node = BlankNodeRef::new_unchecked(label);
                builder.number(block, TermRef::Blank(labels.label(node)))
            }
            _ => builder.number(block, term),
        })
    };
    let subject = number(match quad.subject {
        NamedOrBlankNodeRef::NamedNode(node) => TermRef::Iri(node.as_str()),
        NamedOrBlankNodeRef::BlankNode(node) => TermRef::Blank(node.as_str()),
    })?;
    let predicate = number(TermRef::Iri(quad.predicate.as_str()))?;
    let tag;
    let object = number(match quad.object {
        Term::NamedNode(node) => TermRef::Iri(node.as_str()),
        Term::BlankNode(node) => TermRef::Blank(node.as_str()),
        Term::Literal(literal) => {
            tag = directed(literal);
            TermRef::Literal { value: literal.value(), kind: kind(literal, tag.as_deref()) }
        }
        Term::Triple(_) => return Err("triple terms cannot be loaded".to_owned()),
    })?;
    let graph = match quad.graph_name {
        GraphNameRef::DefaultGraph => DEFAULT_GRAPH,
        GraphNameRef::NamedNode(node) => number(TermRef::Iri(node.as_str()))?,
        GraphNameRef::BlankNode(node) => number(TermRef::Blank(node.as_str()))?,
    };
    block.push([subject, predicate, object], graph);
    Ok(())
}

/// Language and base direction in one text, if there is a direction.
fn directed(literal: LiteralRef<'_>) -> Option<String> {
    let direction = match literal.direction()? {
        BaseDirection::Ltr => "ltr",
        BaseDirection::Rtl => "rtl",
    };
    Some(format!("{}--{direction}", literal.language()?))
}

fn kind<'a>(literal: LiteralRef<'a>, directed: Option<&'a str>) -> Kind<'a> {
    match (directed, literal.language()) {
        (Some(tag), _) | (None, Some(tag)) => Kind::Language(tag),
        (None, None) if literal.datatype().as_str() == XSD_STRING => Kind::String,
        (None, None) => Kind::Typed(literal.datatype().as_str()),
    }
}

fn size(term: TermRef<'_>) -> usize {
    match term {
        TermRef::Iri(text) | TermRef::Blank(text) => text.len(),
        TermRef::Literal { value, kind: Kind::String } => value.len(),
        TermRef::Literal { value, kind: Kind::Language(text) | Kind::Typed(text) } => {
            value.len() + text.len()
        }
    }
}
