//! Constraints: user-defined conditions on all vertices of a class.
//!
//! # Shape
//! A kind, a class and properties, all of them IRIs, with one spelling:
//! `unique <http://example.org/Person> <http://example.org/email>`. The log and the manifest hold that text.
//! # Semantics
//! A vertex has a class if an `rdf:type` statement in any graph states so, and a value likewise. Values are
//! compared as terms: `1` and `1.0` are different, and so are `"a"` and `"a"@en`. Class hierarchies are not
//! used for inference.

use oxrdf::NamedNode;
use std::fmt;
use std::str::FromStr;
use vervet_model::{Error, ErrorKind, Result};

/// Maximum number of properties of one constraint.
pub const CONSTRAINT_PROPERTIES_MAX: usize = 8;

/// The condition of a constraint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum ConstraintKind {
    /// No two vertices of the class have the same value of the property, or of all properties if there are
    /// several. A vertex that lacks one of them is exempt.
    Unique,
    /// Every vertex of the class has a value of the property.
    Required,
    /// No vertex of the class has two values of the property.
    Single,
}

impl ConstraintKind {
    fn name(self) -> &'static str {
        match self {
            Self::Unique => "unique",
            Self::Required => "required",
            Self::Single => "single",
        }
    }
}

impl fmt::Display for ConstraintKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ConstraintKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let all = [Self::Unique, Self::Required, Self::Single];
        all.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            Error::new(ErrorKind::Input, format!("unknown kind of constraint {text:?}"))
                .with_hint("known are unique, required, single")
        })
    }
}

/// A condition on all vertices of a class. See the header of this file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Constraint {
    kind: ConstraintKind,
    class: NamedNode,
    /// Ascending, without duplicates: at least one for [`ConstraintKind::Unique`], else exactly one.
    properties: Vec<NamedNode>,
}

impl Constraint {
    /// A constraint on `properties`, in any order.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: no property, more than one where the kind takes one, more than
    /// [`CONSTRAINT_PROPERTIES_MAX`]; a relative IRI.
    pub fn new(
        kind: ConstraintKind,
        class: impl Into<NamedNode>,
        properties: impl IntoIterator<Item = NamedNode>,
    ) -> Result<Self> {
        let class = class.into();
        let mut properties: Vec<NamedNode> = properties.into_iter().collect();
        properties.sort_unstable();
        properties.dedup();
        let most = if kind == ConstraintKind::Unique { CONSTRAINT_PROPERTIES_MAX } else { 1 };
        if properties.is_empty() || properties.len() > most {
            let count = properties.len();
            let message = format!("a constraint of the kind {kind} has 1 to {most} properties, not {count}");
            return Err(Error::new(ErrorKind::Input, message));
        }
        // The IRIs may have been created unchecked, and the text must parse back.
        for iri in properties.iter().chain([&class]) {
            NamedNode::new(iri.as_str()).map_err(|error| {
                Error::new(ErrorKind::Input, format!("{iri} is not an absolute IRI: {error}"))
            })?;
        }
        Ok(Self { kind, class, properties })
    }

    /// The condition.
    #[must_use]
    pub fn kind(&self) -> ConstraintKind {
        self.kind
    }

    /// The class whose vertices must satisfy it.
    #[must_use]
    pub fn class(&self) -> &NamedNode {
        &self.class
    }

    /// The properties, ascending.
    #[must_use]
    pub fn properties(&self) -> &[NamedNode] {
        &self.properties
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.class)?;
        self.properties.iter().try_for_each(|property| write!(f, " {property}"))
    }
}

impl FromStr for Constraint {
    type Err = Error;

    /// Inverse of `to_string`.
    fn from_str(text: &str) -> Result<Self> {
        let mut words = text.split(' ');
        let kind = words.next().unwrap_or_default().parse()?;
        let iri = |word: &str| {
            let iri = word.strip_prefix('<').and_then(|word| word.strip_suffix('>'));
            let iri = iri.and_then(|iri| NamedNode::new(iri).ok());
            iri.ok_or_else(|| {
                Error::new(ErrorKind::Input, format!("{word:?} is not an absolute IRI in angle brackets"))
            })
        };
        let class = iri(words.next().unwrap_or_default())?;
        let properties = words.map(iri).collect::<Result<Vec<_>>>()?;
        Self::new(kind, class, properties)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iri(name: &str) -> NamedNode {
        NamedNode::new_unchecked(format!("http://example.org/{name}"))
    }

    #[test]
    fn texts_read_back() {
        for (kind, properties, text) in [
            (
                ConstraintKind::Unique,
                vec!["b", "a", "b"],
                "unique <http://example.org/C> <http://example.org/a> <http://example.org/b>",
            ),
            (ConstraintKind::Required, vec!["a"], "required <http://example.org/C> <http://example.org/a>"),
            (ConstraintKind::Single, vec!["a"], "single <http://example.org/C> <http://example.org/a>"),
        ] {
            let constraint = Constraint::new(kind, iri("C"), properties.into_iter().map(iri)).expect("sound");
            assert_eq!(constraint.to_string(), text);
            assert_eq!(text.parse::<Constraint>().expect("reads back"), constraint);
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in [
            "",
            "unique",
            "unique <urn:C>",
            "unique <urn:C> a",
            "single <urn:C> <urn:a> <urn:b>",
            "every <urn:C> <urn:a>",
            "unique <urn:C>  <urn:a>",
        ] {
            assert_eq!(text.parse::<Constraint>().expect_err(text).kind(), ErrorKind::Input);
        }
        let spoiled = NamedNode::new_unchecked("urn:a> <urn:b");
        Constraint::new(ConstraintKind::Single, iri("C"), [spoiled]).expect_err("no IRI");
        let many = (0..9).map(|i| iri(&i.to_string()));
        Constraint::new(ConstraintKind::Unique, iri("C"), many).expect_err("too many");
    }
}
