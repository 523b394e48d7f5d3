//! Values of another datatype: a number where the data have texts, and the reverse. `7` and `"7"` are
//! different terms, and a comparison of them is an error, so a query of the wrong one is empty.

use crate::gremlin::Value;
use oxrdf::vocab::xsd;
use oxrdf::{Literal, LiteralRef, NamedNodeRef};
use vervet_model::{Direction, Id, Result};
use vervet_snapshot::{EntryFilter, GraphFilter, Snapshot};

/// Datatypes of numbers that files have.
const NUMBERS: [NamedNodeRef<'static>; 14] = [
    xsd::INTEGER,
    xsd::INT,
    xsd::LONG,
    xsd::DECIMAL,
    xsd::DOUBLE,
    xsd::FLOAT,
    xsd::SHORT,
    xsd::BYTE,
    xsd::NON_NEGATIVE_INTEGER,
    xsd::POSITIVE_INTEGER,
    xsd::UNSIGNED_LONG,
    xsd::UNSIGNED_INT,
    xsd::UNSIGNED_SHORT,
    xsd::UNSIGNED_BYTE,
];

/// Datatypes whose values are often written as texts.
const OTHERS: [NamedNodeRef<'static>; 3] = [xsd::DATE, xsd::DATE_TIME, xsd::BOOLEAN];

/// How a query uses a literal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Matching {
    /// As a term: numbers of different datatypes are different.
    Term,
    /// By value: numbers of all datatypes are comparable.
    Value,
}

/// The values of a predicate.
pub(super) struct Values<'s> {
    pub(super) snapshot: &'s dyn Snapshot,
    pub(super) predicate: Id,
}

impl Values<'_> {
    /// The value with the text of `literal` in another datatype, if no value of the predicate matches
    /// `literal` itself.
    pub(super) fn other_datatype(
        &self,
        literal: LiteralRef<'_>,
        matching: Matching,
    ) -> Result<Option<Literal>> {
        let (text, datatype) = (literal.value(), literal.datatype());
        let numbers = NUMBERS.map(|number| LiteralRef::new_typed_literal(text, number));
        let is_number = NUMBERS.contains(&datatype);
        if self.contains(literal)?
            || is_number && matching == Matching::Value && self.contains_any(&numbers)?
        {
            return Ok(None);
        }
        let mut candidates = Vec::new();
        if is_number && matching == Matching::Term || datatype == xsd::STRING && text.parse::<f64>().is_ok() {
            candidates.extend(numbers);
        }
        if datatype == xsd::STRING {
            candidates.extend(OTHERS.map(|other| LiteralRef::new_typed_literal(text, other)));
        } else {
            candidates.push(LiteralRef::new_simple_literal(text));
        }
        for candidate in candidates {
            if self.contains(candidate)? {
                return Ok(Some(candidate.into_owned()));
            }
        }
        Ok(None)
    }

    fn contains_any(&self, literals: &[LiteralRef<'_>]) -> Result<bool> {
        for literal in literals {
            if self.contains(*literal)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn contains(&self, literal: LiteralRef<'_>) -> Result<bool> {
        let Some(value) = self.snapshot.lookup(literal.into())? else { return Ok(false) };
        let Some(segment) = self.snapshot.segment(self.predicate, Direction::In)? else { return Ok(false) };
        let mut degrees = Vec::new();
        segment.degrees(&[value], EntryFilter { graph: GraphFilter::Any, parallel: false }, &mut degrees)?;
        Ok(degrees.iter().any(|degree| *degree > 0))
    }
}

/// The literal of a value of Gremlin; `None` for values without one datatype that is meant.
pub(super) fn literal_of(value: &Value) -> Option<Literal> {
    Some(match value {
        Value::Int(number) => Literal::new_typed_literal(number.to_string(), xsd::INTEGER),
        Value::Long(number) => Literal::new_typed_literal(number.to_string(), xsd::INTEGER),
        Value::Boolean(truth) => Literal::from(*truth),
        Value::String(text) => Literal::new_simple_literal(&**text),
        _ => return None,
    })
}

/// A literal as in a query: numbers and truth values bare, other datatypes as `shown_iri` writes them.
pub(super) fn shown(literal: LiteralRef<'_>, matching: Matching, shown_iri: fn(&str) -> String) -> String {
    match literal.datatype() {
        number if matching == Matching::Value && NUMBERS.contains(&number) => literal.value().to_owned(),
        xsd::INTEGER | xsd::DECIMAL | xsd::BOOLEAN => literal.value().to_owned(),
        xsd::STRING => format!("{:?}", literal.value()),
        _ if literal.language().is_some() => literal.to_string(),
        datatype => format!("{:?}^^{}", literal.value(), shown_iri(datatype.as_str())),
    }
}
