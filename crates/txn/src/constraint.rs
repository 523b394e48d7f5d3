//! Constraints: what a user says must hold for all vertices of a class.
//!
//! # Shape
//! A kind, a class and properties, all of them IRIs, with one spelling:
//! `unique <http://example.org/Person> <http://example.org/email>`. The log and the manifest hold that text.
//! # What it means
//! A vertex has a class if a statement says so with `rdf:type`, and a value if a statement does, in any
//! graph. Values are compared as terms: `1` and `1.0` are two, and so are `"a"` and `"a"@en`. Nothing is
//! inferred from hierarchies of classes.

use oxrdf::NamedNode;
use std::fmt;
use std::str::FromStr;
use vervet_model::{Error, ErrorKind, Result};

/// The most properties of one constraint.
pub const CONSTRAINT_PROPERTIES_MAX: usize = 8;

/// What must hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum ConstraintKind {
    /// No two vertices of the class have the same value of the property, or of all properties if there are
    /// several. A vertex that lacks one of them is free.
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
            Error::new(ErrorKind::Input, format!("there is no kind of constraint {text:?}"))
                .with_hint("known are unique, required, single")
        })
    }
}

/// What must hold for all vertices of a class. See the header of this file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Constraint {
    kind: ConstraintKind,
    class: NamedNode,
    /// Ascending, each once, for [`ConstraintKind::Unique`] one or more, else one.
    properties: Vec<NamedNode>,
}

impl Constraint {
    /// A constraint on `properties`, whose order means nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: no property, more than one where the kind takes one, more than
    /// [`CONSTRAINT_PROPERTIES_MAX`]; what is no absolute IRI.
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
        // Others may have made them without a look, and the text must read back.
        for iri in properties.iter().chain([&class]) {
            NamedNode::new(iri.as_str()).map_err(|error| {
                Error::new(ErrorKind::Input, format!("{iri} is not an absolute IRI: {error}"))
            })?;
        }
        Ok(Self { kind, class, properties })
    }

    /// What must hold.
    #[must_use]
    pub fn kind(&self) -> ConstraintKind {
        self.kind
    }

    /// The class of the vertices for which it must hold.
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

    /// The inverse of `to_string`.
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
