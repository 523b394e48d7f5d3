//! A small world with classes and values, its model as a plain set, and constraints by definition.

use oxrdf::{Literal, NamedNode, Term};
use std::collections::BTreeSet;
use std::path::Path;
use vervet_delta::Version;
use vervet_env::{Environment, SeededRandom};
use vervet_model::{Id, Result, Statement, Watch};
use vervet_snapshot::Snapshot;
use vervet_store::{BuildOptions, StoreBuilder, Target};
use vervet_txn::{Constraint, ConstraintKind, ReplacementBase, Transactions, continued};

pub(crate) const DIR: &str = "/db";
pub(crate) const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// Subject, predicate, object, graph (empty: default), as texts of terms.
pub(crate) type Row = [String; 4];
pub(crate) type Model = BTreeSet<Row>;

pub(crate) fn iri(name: &str) -> NamedNode {
    if name.contains(':') {
        NamedNode::new_unchecked(name)
    } else {
        NamedNode::new_unchecked(format!("urn:{name}"))
    }
}

/// `5` and `"text"` are literals, anything else is an IRI.
pub(crate) fn term(text: &str) -> Term {
    if let Ok(number) = text.parse::<i64>() {
        return Literal::from(number).into();
    }
    match text.strip_prefix('"') {
        Some(text) => Literal::new_simple_literal(text.trim_end_matches('"')).into(),
        None => iri(text).into(),
    }
}

pub(crate) fn row(random: &SeededRandom) -> Row {
    let pick =
        |list: &[&str]| list[usize::try_from(random.below(list.len() as u64)).expect("small")].to_owned();
    let (predicate, object) = match random.below(5) {
        0 | 1 => (TYPE.to_owned(), pick(&["C", "D"])),
        2 | 3 => ("p".to_owned(), pick(&["1", "2", "\"a text that fills no id\"", "v1"])),
        _ => ("q".to_owned(), pick(&["1", "2", "3"])),
    };
    [pick(&["v1", "v2", "v3", "v4"]), predicate, object, pick(&["", "", "g"])]
}

pub(crate) fn constraint(random: &SeededRandom) -> Constraint {
    let class = iri(if random.below(3) == 0 { "D" } else { "C" });
    let (kind, properties) = match random.below(5) {
        0 | 1 => (ConstraintKind::Unique, vec!["p"]),
        2 => (ConstraintKind::Unique, vec!["q", "p"]),
        3 => (ConstraintKind::Required, vec![if random.below(2) == 0 { "p" } else { "q" }]),
        _ => (ConstraintKind::Single, vec![if random.below(2) == 0 { "p" } else { "q" }]),
    };
    Constraint::new(kind, class, properties.into_iter().map(iri)).expect("sound")
}

/// Whether a constraint holds, by its definition.
pub(crate) fn holds(model: &Model, constraint: &Constraint) -> bool {
    let class = constraint.class().as_str();
    let has_class =
        |s: &str| model.iter().any(|row| row[0] == s && row[1] == TYPE && iri(&row[2]).as_str() == class);
    let subjects: BTreeSet<&str> =
        model.iter().map(|row| row[0].as_str()).filter(|subject| has_class(subject)).collect();
    let values = |s: &str, property: &NamedNode| -> BTreeSet<&str> {
        let of = |row: &&Row| row[0] == s && iri(&row[1]) == *property;
        model.iter().filter(of).map(|row| row[2].as_str()).collect()
    };
    let first = &constraint.properties()[0];
    match constraint.kind() {
        ConstraintKind::Required => subjects.iter().all(|s| !values(s, first).is_empty()),
        ConstraintKind::Single => subjects.iter().all(|s| values(s, first).len() < 2),
        _ => subjects.iter().all(|a| {
            // Two vertices collide if they share a value of every property.
            let shares = |b: &str| {
                constraint
                    .properties()
                    .iter()
                    .all(|property| !values(a, property).is_disjoint(&values(b, property)))
            };
            subjects.iter().all(|b| a == b || !shares(b))
        }),
    }
}

pub(crate) fn statement(row: &Row, id: &mut dyn FnMut(&Term) -> Result<Id>) -> Result<Statement> {
    let [subject, predicate, object, graph] = row;
    Ok(Statement {
        subject: id(&term(subject))?,
        predicate: id(&term(predicate))?,
        object: id(&term(object))?,
        graph: if graph.is_empty() { Id::UNBOUND } else { id(&term(graph))? },
        edge: Id::UNBOUND,
    })
}

/// The graph of a version.
pub(crate) fn read(version: &Version) -> Model {
    let text = |id: Id| {
        if !id.is_bound() {
            return String::new();
        }
        let mut found = String::new();
        let mut read = |parts: vervet_model::TermParts<'_>| {
            found = match parts.to_term() {
                Term::Literal(literal) if literal.datatype() == oxrdf::vocab::xsd::INTEGER => {
                    literal.value().to_owned()
                }
                Term::Literal(literal) => literal.to_string(),
                Term::NamedNode(iri) if iri.as_str() == TYPE => TYPE.to_owned(),
                Term::NamedNode(iri) => iri.as_str().trim_start_matches("urn:").to_owned(),
                other => panic!("{other}"),
            }
        };
        version.read_term(id, &mut String::new(), &mut read).expect("known");
        found
    };
    let statements = version.statements().map(|statement| {
        let Statement { subject, predicate, object, graph, .. } = statement.expect("sound");
        [text(subject), text(predicate), text(object), text(graph)]
    });
    statements.collect()
}

/// Loads rows in bulk, as the facade does.
pub(crate) fn load(
    transactions: &Transactions,
    environment: &Environment,
    rows: &[Row],
    target: &Target,
) -> Result<()> {
    let build = |replacement: &ReplacementBase<'_>| {
        let version = replacement.version;
        let mut dictionary = {
            let terms = version.terms();
            continued(version, terms.vertex_end(), terms.literal_end(), &Watch::new("load"))?
        };
        let mut builder = StoreBuilder::new(BuildOptions {
            threads: 1,
            memory_bytes: 1 << 20,
            environment: environment.clone(),
            temp_dir: None,
            log: replacement.log,
            orders: Vec::new(),
        });
        for statement in version.statements() {
            builder.add(&[statement?])?;
        }
        for row in rows {
            builder.add(&[statement(row, &mut |term| dictionary.intern_term(term.as_ref()))?])?;
        }
        Ok((replacement.finish(builder, dictionary.finish()?, target, &Watch::new("load"))?, ()))
    };
    transactions.replace_graph(build)
}

pub(crate) fn in_directory() -> Target {
    Target::Directory(Path::new(DIR).to_owned())
}
