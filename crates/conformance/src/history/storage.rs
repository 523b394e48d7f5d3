//! Storage layouts of keys in the graph, and the queries and updates that read and write them.
//!
//! # Shape
//! | layout | key `K` has element `E` | access path of a read |
//! | --- | --- | --- |
//! | property | `K :value E` | property values, forward |
//! | edge | `K :has E` | edges of a vertex |
//! | inverse | `E :of K` | a predicate with its object bound: the reverse index |
//! | type | `E a K` | vertices of a type |
//! | tag | `E :tag "K"` | the index from a value to its vertices |
//!
//! Elements of a list also have positions: `E :position P`, or in the layout *property* a value `"P E"`.

use super::record::Kind;
use oxrdf::{Literal, Term};
use vervet::{Direction, Error, ErrorKind, Graph, Isolation, Result, Transaction, Vertex};
use vervet_testkit::Random;

const NAMESPACE: &str = "urn:history:";

/// See the header of this file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StorageForm {
    Property,
    Edge,
    Inverse,
    Type,
    Tag,
}

impl StorageForm {
    pub(super) const ALL: [Self; 5] = [Self::Property, Self::Edge, Self::Inverse, Self::Type, Self::Tag];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Property => "property",
            Self::Edge => "edge",
            Self::Inverse => "inverse",
            Self::Type => "type",
            Self::Tag => "tag",
        }
    }

    /// The pattern for the elements of a key, or for one of them.
    pub(super) fn pattern(self, key: u64, element: &str) -> String {
        let vertex = vertex("key", key);
        match self {
            Self::Property => format!("<{vertex}> <urn:history:value> {element}"),
            Self::Edge => format!("<{vertex}> <urn:history:has> {element}"),
            Self::Inverse => format!("{element} <urn:history:of> <{vertex}>"),
            Self::Type => format!("{element} a <{vertex}>"),
            Self::Tag => format!("{element} <urn:history:tag> \"the tag of key {key}\""),
        }
    }
}

pub(super) fn vertex(kind: &str, number: u64) -> String {
    format!("{NAMESPACE}{kind}:{number}")
}

/// The keys of a history, as a client reads and writes them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Storage {
    pub(super) kind: Kind,
    pub(super) shape: StorageForm,
    pub(super) isolation: Isolation,
}

impl Storage {
    /// Whether a list stores its length: see the header of [`super`].
    fn has_length(self) -> bool {
        self.kind == Kind::List
            && self.isolation == Isolation::Snapshot
            && self.shape != StorageForm::Property
    }

    /// Whether the first transaction of a history writes an element to each key. Two transactions that write
    /// the first edge of a vertex do not conflict under snapshot isolation.
    pub(super) fn starts_with_elements(self) -> bool {
        self.kind == Kind::Register && self.shape != StorageForm::Property
    }

    /// Writes what the first transaction requires.
    pub(super) fn set_up(self, transaction: &mut Transaction, keys: u64) -> Result<()> {
        if self.has_length() {
            let lengths: String =
                (0..keys).map(|key| format!("<{}> <urn:history:length> 0 . ", vertex("key", key))).collect();
            transaction.update(&format!("INSERT DATA {{ {lengths} }}"))?;
        }
        Ok(())
    }

    /// All elements of a key in order, by SPARQL or by typed methods.
    pub(super) fn read(self, transaction: &Transaction, key: u64, random: &mut Random) -> Result<Vec<u64>> {
        let mut elements = if random.one_in(2) {
            self.read_by_query(transaction, key)?
        } else {
            transaction.read(|graph| self.read_by_calls(graph, key))?
        };
        // A register with several elements is left for the checkers to reject.
        elements.sort_unstable();
        Ok(elements.into_iter().map(|(_, element)| element).collect())
    }

    /// Pairs of position and element.
    fn read_by_query(self, transaction: &Transaction, key: u64) -> Result<Vec<(u64, u64)>> {
        let pattern = self.shape.pattern(key, "?element");
        let positioned = self.kind == Kind::List && self.shape != StorageForm::Property;
        let position = if positioned { " . ?element <urn:history:position> ?position" } else { "" };
        let solutions = transaction.select(&format!("SELECT * {{ {pattern}{position} }}"))?;
        let element = |row: vervet::Row<'_>| {
            let element = row.get("element")?.ok_or_else(|| unexpected("an unbound element"))?;
            let position = if positioned { row.integer("position")?.unwrap_or_default() } else { 0 };
            self.element(&element, position)
        };
        solutions.rows().map(element).collect()
    }

    fn read_by_calls(self, graph: Graph<'_>, key: u64) -> Result<Vec<(u64, u64)>> {
        let name = vertex("key", key);
        let neighbours = |label: &str, direction| match graph.vertex(&name)? {
            Some(vertex) => graph.neighbours(vertex, label, direction),
            None => Ok(Vec::new()),
        };
        let vertices = match self.shape {
            StorageForm::Property => {
                let Some(vertex) = graph.vertex(&name)? else { return Ok(Vec::new()) };
                let values = graph.property_values(vertex, "urn:history:value")?;
                return values.iter().map(|value| self.element(value, 0)).collect();
            }
            StorageForm::Edge => neighbours("urn:history:has", Direction::Out)?,
            StorageForm::Inverse => neighbours("urn:history:of", Direction::In)?,
            StorageForm::Type => graph.vertices_with_label(&name)?,
            StorageForm::Tag => {
                let tag = Literal::new_simple_literal(format!("the tag of key {key}"));
                graph.vertices_with_property("urn:history:tag", tag.as_ref())?
            }
        };
        let element = |vertex: Vertex| {
            let position = match graph.property(vertex, "urn:history:position")? {
                Some(Term::Literal(position)) => position.value().parse().unwrap_or_default(),
                _ => 0,
            };
            self.element(&graph.vertex_term(vertex)?, position)
        };
        vertices.into_iter().map(element).collect()
    }

    /// Position and element of the term that represents an element.
    fn element(self, term: &Term, position: i64) -> Result<(u64, u64)> {
        let numbers = match term {
            Term::Literal(literal) if self.kind == Kind::List => literal
                .value()
                .split_once(' ')
                .and_then(|(position, element)| Some((position.parse().ok()?, element.parse().ok()?))),
            Term::Literal(literal) => literal.value().parse().ok().map(|element| (0, element)),
            Term::NamedNode(node) => node
                .as_str()
                .strip_prefix("urn:history:element:")
                .and_then(|element| Some((u64::try_from(position).ok()?, element.parse().ok()?))),
            _ => None,
        };
        numbers.ok_or_else(|| unexpected(&term.to_string()))
    }

    /// Replaces the element of a register, or appends to a list.
    pub(super) fn write(
        self,
        transaction: &mut Transaction,
        key: u64,
        element: u64,
        random: &mut Random,
    ) -> Result<()> {
        let term = match self.shape {
            StorageForm::Property => element.to_string(),
            _ => format!("<{}>", vertex("element", element)),
        };
        if self.kind == Kind::List {
            return self.append(transaction, key, &term, random);
        }
        let (old, new) = (self.shape.pattern(key, "?old"), self.shape.pattern(key, &term));
        let request = if random.one_in(2) {
            format!("DELETE WHERE {{ {old} }} ; INSERT DATA {{ {new} }}")
        } else {
            format!("DELETE {{ {old} }} INSERT {{ {new} }} WHERE {{ OPTIONAL {{ {old} }} }}")
        };
        transaction.update(&request)?;
        Ok(())
    }

    fn append(self, transaction: &mut Transaction, key: u64, term: &str, random: &mut Random) -> Result<()> {
        let position = if random.one_in(2) {
            self.read(transaction, key, random)?.len() as u64
        } else {
            let pattern = self.shape.pattern(key, "?element");
            let solutions = transaction.select(&format!("SELECT (COUNT(*) AS ?n) {{ {pattern} }}"))?;
            let count = solutions.rows().next().map(|row| row.integer("n")).transpose()?.flatten();
            count.and_then(|count| u64::try_from(count).ok()).ok_or_else(|| unexpected("no count"))?
        };
        let mut request = match self.shape {
            StorageForm::Property => {
                format!("INSERT DATA {{ {} }}", self.shape.pattern(key, &format!("\"{position} {term}\"")))
            }
            _ => format!(
                "INSERT DATA {{ {} . {term} <urn:history:position> {position} }}",
                self.shape.pattern(key, term)
            ),
        };
        if self.has_length() {
            let length = format!("<{}> <urn:history:length>", vertex("key", key));
            request += &format!(
                " ; DELETE {{ {length} ?n }} INSERT {{ {length} {} }} WHERE {{ {length} ?n }}",
                position + 1
            );
        }
        transaction.update(&request)?;
        Ok(())
    }
}

/// The error if the database returned a value that no client wrote.
fn unexpected(what: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("not an element of a history: {what}"))
}
