//! The result of a translation: a query, the meaning of its rows, and its requirements on the graph.

use crate::graph::Names;
use crate::graph::ids::EVERY;
use crate::graph::literal::{equal_literals, literal};
use crate::graph::names::{
    has_edge_terms, has_integers_only, has_one_type_of_integers, has_other_numbers, has_values,
    has_vertex_objects,
};
use std::sync::Arc;
use vervet_algebra::{Query, Variable};
use vervet_gremlin::{P, Value};
use vervet_model::{Direction, Id, Result};
use vervet_snapshot::Snapshot;

/// A query equivalent to the first steps of a traversal.
#[derive(Clone, Debug)]
pub(crate) struct TranslatedPrefix {
    pub(crate) query: Query,
    /// The columns of a row: the objects of the path.
    pub(crate) path: Vec<(Variable, Vec<Arc<str>>)>,
    /// The column of the current object, or the columns of an edge.
    pub(crate) current: OutputObject,
    pub(crate) output: QueryOutput,
    pub(crate) entries: Option<Entries>,
    pub(super) requirements: Requirements,
    /// Names that are labels, unless a side effect has the same name.
    pub(super) names: Vec<Arc<str>>,
}

/// The object of a traverser after the query.
#[derive(Clone, Debug)]
pub(crate) enum OutputObject {
    /// A vertex or a value.
    One(Variable),
    /// An edge with an identity: the edge, its ends and its label.
    Edge { edge: Variable, source: Variable, target: Variable, label: Arc<str> },
}

/// The output of the query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum QueryOutput {
    /// Traversers.
    Objects,
    /// One traverser with a count.
    Count,
    /// One traverser with a map from this column to counts.
    Counts(Variable),
    /// One traverser with a map from this column to lists of current objects.
    Lists(Variable),
    /// The entries that [`TranslatedPrefix::entries`] builds from the groups; this column has their keys.
    Entries(Variable),
}

impl QueryOutput {
    /// The key column of a map.
    pub(crate) fn key(self) -> Option<Variable> {
        match self {
            Self::Counts(key) | Self::Lists(key) | Self::Entries(key) => Some(key),
            Self::Objects | Self::Count => None,
        }
    }
}

impl TranslatedPrefix {
    /// The columns of a row.
    pub(crate) fn columns(&self) -> Vec<usize> {
        let before = self.path.iter().map(|(variable, _)| *variable);
        let current = match &self.current {
            OutputObject::One(current) => vec![*current],
            OutputObject::Edge { edge, source, target, .. } => vec![*edge, *source, *target],
        };
        let last = match &self.entries {
            None => current,
            Some(entries) => entries.columns.iter().map(|(column, _)| *column).collect(),
        };
        before.chain(self.output.key()).chain(last).map(Variable::index).collect()
    }

    /// Whether a side effect hides one of the labels.
    pub(crate) fn is_hidden(&self, is_side_effect: impl Fn(&str) -> bool) -> bool {
        self.names.iter().any(|name| is_side_effect(name))
    }

    /// Whether the query and the steps are equivalent on this graph.
    pub(crate) fn is_applicable(&self, snapshot: &dyn Snapshot, names: &mut Names) -> Result<bool> {
        self.requirements.hold(snapshot, names)
    }
}

/// Requirements on the graph for the equivalence of the query and the steps.
#[derive(Clone, Debug, Default)]
pub(super) struct Requirements {
    pub(super) edge_keys: Vec<Arc<str>>,
    /// Whether only a label pattern restricts the results to vertices.
    pub(super) labels_alone: bool,
    /// Keys with at most one value per vertex.
    pub(super) single_keys: Vec<Arc<str>>,
    pub(super) value_keys: Vec<Arc<str>>,
    /// Keys with integer values, which both languages order alike.
    pub(super) integer_keys: Vec<Arc<str>>,
    /// Subset of the integer keys whose values all have one type.
    pub(super) uniform_keys: Vec<Arc<str>>,
    /// Keys, and the literals that represent their comparison values.
    pub(super) compared: Vec<(Arc<str>, Value)>,
    /// Keys whose values are compared with numbers.
    pub(super) number_keys: Vec<Arc<str>>,
}

impl Requirements {
    /// Whether a graph satisfies all requirements.
    fn hold(&self, snapshot: &dyn Snapshot, names: &mut Names) -> Result<bool> {
        if !snapshot.graphs().is_empty() {
            return Ok(false);
        }
        if self.labels_alone
            && let Some(types) = snapshot.type_predicate()
            && has_edge_terms(snapshot, types)?
        {
            return Ok(false);
        }
        for key in &self.edge_keys {
            if let Some(id) = names.key(snapshot, key)?
                && (has_values(snapshot, id)? || has_edge_terms(snapshot, id)?)
            {
                return Ok(false);
            }
        }
        for key in self.value_keys.iter().chain(&self.single_keys) {
            if let Some(id) = names.key(snapshot, key)?
                && has_vertex_objects(snapshot, id)?
            {
                return Ok(false);
            }
        }
        for key in &self.single_keys {
            let Some(id) = names.key(snapshot, key)? else { continue };
            if let Some(segment) = snapshot.segment(id, Direction::Out)? {
                let statistics = segment.statistics();
                if !statistics.exact || statistics.keys != statistics.entries {
                    return Ok(false);
                }
            }
        }
        for key in &self.integer_keys {
            if let Some(id) = names.key(snapshot, key)?
                && !has_integers_only(snapshot, id)?
            {
                return Ok(false);
            }
        }
        for (key, value) in &self.compared {
            let Some(key) = names.key(snapshot, key)? else { continue };
            if has_other_literals(snapshot, key, value)? {
                return Ok(false);
            }
        }
        for key in &self.number_keys {
            if let Some(id) = names.key(snapshot, key)?
                && has_other_numbers(snapshot, id)?
            {
                return Ok(false);
            }
        }
        for key in &self.uniform_keys {
            if let Some(id) = names.key(snapshot, key)?
                && !has_one_type_of_integers(snapshot, id)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The processing of the rows of grouped entries, which `steps/entries.rs` executes (see `entries.rs`).
#[derive(Clone, Debug)]
pub(crate) struct Entries {
    /// The aggregates of the query, beside the group key.
    pub(crate) columns: Vec<(Variable, Fold)>,
    /// Filters on entries.
    pub(crate) tests: Vec<(EntryPart, P)>,
    /// The map that each entry becomes (`project`); `None`: it remains an entry.
    pub(crate) names: Option<Vec<(Value, EntryPart)>>,
    /// Sort keys; `true`: descending.
    pub(crate) order: Vec<(EntryPart, bool)>,
    /// Offset and limit.
    pub(crate) range: (usize, Option<usize>),
}

/// Merge operation for groups whose keys are equal values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fold {
    Count,
    Min,
    Max,
}

/// A part of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EntryPart {
    Key,
    /// Index in [`Entries::columns`].
    Column(usize),
}

/// Whether a key has values that equal this one in Gremlin but not in SPARQL: language-tagged strings.
fn has_other_literals(snapshot: &dyn Snapshot, key: Id, value: &Value) -> Result<bool> {
    let Some(segment) = snapshot.segment(key, Direction::In)? else { return Ok(false) };
    let Some(mut others) = equal_literals(snapshot, value)? else { return Ok(true) };
    if let Ok(own) = literal(value) {
        let own = snapshot.lookup(own.as_ref().into())?;
        others.retain(|id| Some(*id) != own);
    }
    let mut degrees = Vec::new();
    segment.degrees(&others, EVERY, &mut degrees)?;
    Ok(degrees.iter().any(|degree| *degree > 0))
}
