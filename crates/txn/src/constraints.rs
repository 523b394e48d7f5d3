//! Incremental constraint checking: the rules that the changes of a transaction may have violated.
//!
//! # Shape
//! Rules: constraints with the ids of their IRIs, found by property and by class. For each change, look-ups
//! of both give the rules that it can violate for its subject; those are checked in the transaction's own
//! version.
//! # Why this is right
//! A violation is a set of existing statements, or a vertex with a class and without a value. If the rule
//! held before, one of the transaction's changes took part, and its subject was checked. All reads of the
//! check are in the read set, absence included, at either isolation level; validation shows that no commit
//! since the begin has changed any of them, so the result holds for the graph after the commit. A change
//! without an effect in the transaction's own version may have one by then; therefore changes are checked,
//! not effects.
//! # Cost
//! Nothing without rules. Otherwise two hash look-ups for each change. `unique`: the vertices with the new
//! value (of several properties: the one with the fewest such vertices) are listed, those of other classes
//! too; `required` and `single`: the values of the vertex.
//! # Not here
//! Checks of whole graphs (`constraint_scan`); adding and removing constraints (`schema`).

use crate::constraint::{Constraint, ConstraintKind};
use crate::mutation::Mutation;
use crate::reads::ReadSet;
use rustc_hash::FxHashMap;
use std::fmt::Write;
use std::sync::Arc;
use vervet_delta::Version;
use vervet_dictionary::Dictionary;
use vervet_model::{Direction, Error, ErrorKind, Id, Result, TermParts};
use vervet_snapshot::{EntryFilter, Snapshot};

/// See the header of this file.
#[derive(Debug, Default)]
pub(crate) struct Constraints {
    /// Ascending by constraint.
    rules: Vec<Rule>,
    type_id: Id,
    /// Positions of rules.
    by_property: FxHashMap<Id, Vec<usize>>,
    by_class: FxHashMap<Id, Vec<usize>>,
}

/// A constraint by ids, which stay valid for the lifetime of the graph.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) constraint: Constraint,
    pub(crate) class: Id,
    pub(crate) properties: Vec<Id>,
}

/// How a vertex violates a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Violation {
    pub(crate) vertices: Vec<Id>,
    pub(crate) values: Vec<Id>,
}

/// One check: this rule for this vertex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ConstraintCheck {
    rule: usize,
    vertex: Id,
    /// Restricts the check to this value of this property; `None`: all values of the vertex.
    of: Option<(Id, Id)>,
}

impl Constraints {
    /// The rules of `constraints`; `id` looks up or creates the ids of their IRIs.
    pub(crate) fn new(
        constraints: impl IntoIterator<Item = Constraint>,
        id: &mut dyn FnMut(&str) -> Result<Id>,
    ) -> Result<Self> {
        let mut set = Self::default();
        for constraint in constraints {
            let class = id(constraint.class().as_str())?;
            let properties =
                constraint.properties().iter().map(|iri| id(iri.as_str())).collect::<Result<_>>()?;
            set.rules.push(Rule { constraint, class, properties });
        }
        set.rules.sort_by(|a, b| a.constraint.cmp(&b.constraint));
        set.rules.dedup_by(|a, b| a.constraint == b.constraint);
        if !set.rules.is_empty() {
            set.type_id = id(vervet_model::vocab::RDF_TYPE)?;
        }
        for (at, rule) in set.rules.iter().enumerate() {
            set.by_class.entry(rule.class).or_default().push(at);
            for property in &rule.properties {
                set.by_property.entry(*property).or_default().push(at);
            }
        }
        Ok(set)
    }

    /// The constraints in a manifest or log, for a graph with this base and these terms.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`]: a text is not a constraint, or uses a term that does not exist.
    pub(crate) fn recovered(texts: &[String], version: &Version) -> Result<Arc<Self>> {
        let damaged = |what: String| {
            Error::new(ErrorKind::Corrupt, what).with_hint("restore this database from a backup")
        };
        let parse = |text: &String| {
            text.parse::<Constraint>().map_err(|error| damaged(format!("a constraint is damaged: {error}")))
        };
        let constraints = texts.iter().map(parse).collect::<Result<Vec<_>>>()?;
        let dictionary: &Dictionary = version.base().dictionary();
        let mut id = |iri: &str| -> Result<Id> {
            let term = oxrdf::NamedNodeRef::new_unchecked(iri).into();
            // Not through the version: a term may be unused by statements.
            let found = match dictionary.lookup(term)? {
                None => version.terms().lookup(term),
                found => found,
            };
            found.ok_or_else(|| damaged(format!("a constraint is about {term}, which does not exist")))
        };
        Self::new(constraints, &mut id).map(Arc::new)
    }

    /// The constraints, ascending.
    pub(crate) fn list(&self) -> impl Iterator<Item = &Constraint> {
        self.rules.iter().map(|rule| &rule.constraint)
    }

    pub(crate) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    pub(crate) fn type_id(&self) -> Id {
        self.type_id
    }

    /// The canonical texts for the log and the manifest.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.list().map(Constraint::to_string).collect()
    }

    /// Whether there are no rules.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Checks that `snapshot` satisfies all rules that `changes` can have violated. Reads are added to
    /// `reads`.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`]: a rule is violated. Damaged data.
    pub(crate) fn check(
        &self,
        snapshot: &dyn Snapshot,
        changes: &[Mutation],
        reads: &mut ReadSet,
    ) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let checks = self.checks(changes);
        let mut reader = Reader { snapshot, reads: Some(reads), type_id: self.type_id };
        for checks in checks.chunk_by(|a, b| a.rule == b.rule) {
            let Some(rule) = checks.first().and_then(|check| self.rules.get(check.rule)) else {
                continue;
            };
            let vertices: Vec<Id> = checks.iter().map(|check| check.vertex).collect();
            for row in reader.members(&vertices, rule.class)? {
                let Some(check) = checks.get(row as usize) else { continue };
                if let Some(violation) = reader.violation(rule, check.vertex, check.of)? {
                    let broken = violation.text(rule, snapshot)?;
                    let message = format!("the constraint {} is broken: {broken}", rule.constraint);
                    return Err(Error::new(ErrorKind::Constraint, message)
                        .with_hint("change the data of this transaction, or remove the constraint"));
                }
            }
        }
        Ok(())
    }

    /// The checks that these changes require, without duplicates, by rule.
    fn checks(&self, changes: &[Mutation]) -> Vec<ConstraintCheck> {
        let mut checks = Vec::new();
        for Mutation { statement, added } in changes {
            let vertex = statement.subject;
            for &rule in self.by_property.get(&statement.predicate).into_iter().flatten() {
                let of = match self.rules[rule].constraint.kind() {
                    ConstraintKind::Unique => Some((statement.predicate, statement.object)),
                    ConstraintKind::Required | ConstraintKind::Single => None,
                };
                // Removals can violate `required` and no other kind; additions the other kinds.
                if *added != (self.rules[rule].constraint.kind() == ConstraintKind::Required) {
                    checks.push(ConstraintCheck { rule, vertex, of });
                }
            }
            if *added && statement.predicate == self.type_id {
                let rules = self.by_class.get(&statement.object).into_iter().flatten();
                checks.extend(rules.map(|&rule| ConstraintCheck { rule, vertex, of: None }));
            }
        }
        checks.sort_unstable();
        checks.dedup();
        checks
    }
}

impl Violation {
    /// Description of a violation, such as `<a> and <b> both have "x"`.
    pub(crate) fn text(&self, rule: &Rule, snapshot: &dyn Snapshot) -> Result<String> {
        let list = |ids: &[Id]| -> Result<String> {
            let mut text = String::new();
            for (at, id) in ids.iter().enumerate() {
                text += if at == 0 { "" } else { " and " };
                text += &name(snapshot, *id)?;
            }
            Ok(text)
        };
        let (vertices, values) = (list(&self.vertices)?, list(&self.values)?);
        Ok(match rule.constraint.kind() {
            ConstraintKind::Unique => format!("{vertices} both have {values}"),
            ConstraintKind::Required => format!("{vertices} has no value"),
            ConstraintKind::Single => format!("{vertices} has {values}"),
        })
    }
}

/// A term as text for messages, truncated where it is long.
fn name(snapshot: &dyn Snapshot, id: Id) -> Result<String> {
    const CHARS_MAX: usize = 80;
    let mut bytes = Vec::new();
    snapshot.read_term(id, &mut String::new(), &mut |parts: TermParts<'_>| parts.write_nt(&mut bytes))?;
    let text = String::from_utf8_lossy(&bytes);
    let mut name: String = text.chars().take(CHARS_MAX).collect();
    if name.len() < text.len() {
        // Writing to a `String` cannot fail.
        let _ = write!(name, "…");
    }
    Ok(name)
}

/// Reads a graph; each read is added to the read set, if there is one, before its result is used.
pub(crate) struct Reader<'a> {
    pub(crate) snapshot: &'a dyn Snapshot,
    pub(crate) reads: Option<&'a mut ReadSet>,
    pub(crate) type_id: Id,
}

impl Reader<'_> {
    /// Positions of the vertices that have the class, ascending.
    pub(crate) fn members(&mut self, vertices: &[Id], class: Id) -> Result<Vec<u32>> {
        self.with_value(vertices, self.type_id, class)
    }

    /// Positions of the vertices with this value of the property, ascending.
    fn with_value(&mut self, vertices: &[Id], property: Id, value: Id) -> Result<Vec<u32>> {
        if let Some(reads) = &mut self.reads {
            reads.add_entries(property, Direction::Out, vertices.iter().map(|vertex| (*vertex, value)));
        }
        let mut rows = Vec::new();
        if let Some(segment) = self.snapshot.segment(property, Direction::Out)? {
            segment.check_constant(vertices, value, EntryFilter::ANY_GRAPH, &mut rows)?;
        }
        Ok(rows)
    }

    /// The distinct values of a property of a vertex, or the vertices with a value, ascending.
    fn neighbours(&mut self, property: Id, direction: Direction, key: Id) -> Result<Vec<Id>> {
        if let Some(reads) = &mut self.reads {
            reads.add_keys(property, direction, &[key]);
        }
        let mut neighbours = Vec::new();
        if let Some(segment) = self.snapshot.segment(property, direction)? {
            segment.neighbours(key, EntryFilter::ANY_GRAPH, &mut neighbours)?;
            // A statement may be in several graphs.
            neighbours.dedup();
        }
        Ok(neighbours)
    }

    /// The violation of a rule by a vertex of its class; `of` restricts the check to this value of this
    /// property.
    fn violation(&mut self, rule: &Rule, vertex: Id, of: Option<(Id, Id)>) -> Result<Option<Violation>> {
        if rule.constraint.kind() == ConstraintKind::Unique {
            // The statement may have been removed in the same transaction.
            if let Some((property, value)) = of
                && self.with_value(&[vertex], property, value)?.is_empty()
            {
                return Ok(None);
            }
            let mut values = Vec::with_capacity(rule.properties.len());
            return self.duplicate(rule, vertex, of, &mut values);
        }
        let Some(property) = rule.properties.first() else { return Ok(None) };
        let mut values = self.neighbours(*property, Direction::Out, vertex)?;
        values.truncate(2);
        let sound = match rule.constraint.kind() {
            ConstraintKind::Required => !values.is_empty(),
            _ => values.len() < 2,
        };
        Ok((!sound).then(|| Violation { vertices: vec![vertex], values }))
    }

    /// Another vertex of the class with the same values. `values` are those of the first properties; each
    /// combination with values of the others is checked.
    fn duplicate(
        &mut self,
        rule: &Rule,
        vertex: Id,
        of: Option<(Id, Id)>,
        values: &mut Vec<Id>,
    ) -> Result<Option<Violation>> {
        let Some(property) = rule.properties.get(values.len()).copied() else {
            return self.other_vertex(rule, vertex, values);
        };
        let candidates = match of {
            Some((changed, value)) if changed == property => vec![value],
            _ => self.neighbours(property, Direction::Out, vertex)?,
        };
        for value in candidates {
            values.push(value);
            let found = self.duplicate(rule, vertex, of, values)?;
            values.pop();
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Another vertex of the class with exactly these values.
    fn other_vertex(&mut self, rule: &Rule, vertex: Id, values: &[Id]) -> Result<Option<Violation>> {
        let mut rarest = (u64::MAX, 0);
        for (at, (property, value)) in rule.properties.iter().zip(values).enumerate() {
            // Not a read: the choice of the start changes no result.
            let mut degrees = Vec::new();
            if let Some(segment) = self.snapshot.segment(*property, Direction::In)? {
                segment.degrees(&[*value], EntryFilter::ANY_GRAPH, &mut degrees)?;
            }
            rarest = rarest.min((degrees.first().copied().unwrap_or(0), at));
        }
        let Some((property, value)) = rule.properties.get(rarest.1).zip(values.get(rarest.1)) else {
            return Ok(None);
        };
        let mut others = self.neighbours(*property, Direction::In, *value)?;
        others.retain(|other| *other != vertex);
        for (at, (property, value)) in rule.properties.iter().zip(values).enumerate() {
            if at != rarest.1 && !others.is_empty() {
                others = select_rows(&others, &self.with_value(&others, *property, *value)?);
            }
        }
        if others.is_empty() {
            return Ok(None);
        }
        let members = select_rows(&others, &self.members(&others, rule.class)?);
        Ok(members.first().map(|other| Violation { vertices: vec![vertex, *other], values: values.to_vec() }))
    }
}

/// The ids at these positions.
pub(crate) fn select_rows(ids: &[Id], rows: &[u32]) -> Vec<Id> {
    rows.iter().filter_map(|row| ids.get(*row as usize)).copied().collect()
}
