//! A model of a graph as plain sets, and the conversion of its rows to statements.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of this module")]

use oxrdf::{BlankNode, Literal, NamedNode, Term};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use vervet_delta::Version;
use vervet_model::{Id, Result, Statement, Tag};
use vervet_snapshot::Snapshot;

/// The seed of this run, printed.
pub fn seed() -> u64 {
    let seed = std::env::var("VERVET_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_121_u64);
    println!("VERVET_SEED={seed}");
    seed
}

/// A term of the small universe, or an edge ([`EDGE`] and more); 0: none.
pub type T = u64;
/// A [`T`] from here on is an edge.
pub const EDGE: T = 1000;
/// Terms are below this.
const TERMS: T = 400;

/// The term with this number: IRIs, then long texts, numbers inside ids, blank nodes.
pub fn term(t: T) -> Term {
    match t / 100 {
        0 => NamedNode::new_unchecked(format!("http://example.org/{t}")).into(),
        1 if t.is_multiple_of(2) => {
            Literal::new_simple_literal(format!("a text longer than an id {t}")).into()
        }
        1 => Literal::new_language_tagged_literal_unchecked(format!("un texte plus long {t}"), "fr").into(),
        2 => Literal::from(t as i64).into(),
        _ => BlankNode::new_unchecked(format!("blank{t}")).into(),
    }
}

fn number(term: &Term) -> T {
    static NUMBERS: OnceLock<BTreeMap<String, T>> = OnceLock::new();
    let numbers = NUMBERS.get_or_init(|| (1..TERMS).map(|t| (self::term(t).to_string(), t)).collect());
    *numbers.get(&term.to_string()).unwrap_or_else(|| panic!("{term} was never added"))
}

/// A row: subject, predicate, object, graph, edge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Row {
    pub s: T,
    pub p: T,
    pub o: T,
    pub g: T,
    pub e: T,
}

/// Refusal of a change by the model: an edge with another statement, an edge in use, or an edge that does not
/// exist.
#[derive(Debug)]
pub struct Refused;

/// A graph.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Model(pub BTreeSet<Row>);

impl Model {
    fn edge(&self, e: T) -> Option<&Row> {
        self.0.iter().find(|row| e != 0 && row.e == e)
    }

    pub fn insert(&mut self, row: Row) -> std::result::Result<bool, Refused> {
        // A statement may be about itself.
        let gone = |t: T| t >= EDGE && t != row.e && self.edge(t).is_none();
        if gone(row.s) || gone(row.o) {
            return Err(Refused);
        }
        self.put(row)
    }

    /// [`Model::insert`] without a check of the edges that the row is about.
    fn put(&mut self, row: Row) -> std::result::Result<bool, Refused> {
        if let Some(other) = self.edge(row.e) {
            return if *other == row { Ok(false) } else { Err(Refused) };
        }
        if row.e == 0 && self.0.iter().any(|other| Row { e: 0, ..*other } == row) {
            return Ok(false);
        }
        self.0.remove(&Row { e: 0, ..row });
        Ok(self.0.insert(row))
    }

    pub fn remove(&mut self, row: Row) -> std::result::Result<bool, Refused> {
        if !self.0.contains(&row) {
            return Ok(false);
        }
        if row.e != 0 && self.0.iter().any(|other| other != &row && (other.s == row.e || other.o == row.e)) {
            return Err(Refused);
        }
        Ok(self.0.remove(&row))
    }

    /// Adds several rows at once, which may be about each other.
    pub fn insert_all(&mut self, rows: &[Row]) -> std::result::Result<(), Refused> {
        let new: BTreeSet<T> = rows.iter().map(|row| row.e).collect();
        let is_there = |t: &T| *t < EDGE || new.contains(t) || self.edge(*t).is_some();
        if !rows.iter().flat_map(|row| [row.s, row.o]).all(|t| is_there(&t)) {
            return Err(Refused);
        }
        rows.iter().try_for_each(|row| self.put(*row).map(drop))
    }

    pub fn change(&mut self, row: Row, added: bool) -> std::result::Result<bool, Refused> {
        if added { self.insert(row) } else { self.remove(row) }
    }
}

/// The statement of a row.
pub fn statement(row: Row, id: &mut dyn FnMut(&Term) -> Result<Id>) -> Result<Statement> {
    let mut id = |t: T| match t {
        0 => Ok(Id::UNBOUND),
        EDGE.. => Ok(Id::edge(t - EDGE)),
        _ => id(&term(t)),
    };
    Ok(Statement {
        subject: id(row.s)?,
        predicate: id(row.p)?,
        object: id(row.o)?,
        graph: id(row.g)?,
        edge: id(row.e)?,
    })
}

/// The graph of a version, by the texts of its terms; checks every count and list against the statements.
pub fn read(version: &Version) -> Model {
    let mut rows = BTreeSet::new();
    let mut edge_end = 0;
    for statement in version.statements() {
        let Statement { subject, predicate, object, graph, edge } = statement.expect("sound");
        let t = |id: Id| {
            if !id.is_bound() {
                return 0;
            }
            if id.tag() == Tag::Edge {
                return EDGE + id.payload();
            }
            let mut found = None;
            version
                .read_term(id, &mut String::new(), &mut |parts| found = Some(parts.to_term()))
                .expect("known");
            let found = found.expect("read");
            assert_eq!(version.lookup(found.as_ref()).expect("sound"), Some(id), "{found}");
            number(&found)
        };
        if edge.is_bound() {
            edge_end = edge_end.max(edge.payload() + 1);
            assert_eq!(version.edge(edge).expect("there"), [subject, predicate, object, graph]);
        }
        let row = Row { s: t(subject), p: t(predicate), o: t(object), g: t(graph), e: t(edge) };
        assert!(rows.insert(row), "{row:?} is duplicated");
    }
    assert_eq!(version.statement_count(), rows.len() as u64);
    assert!(version.edge_count() >= edge_end);
    Model(rows)
}
