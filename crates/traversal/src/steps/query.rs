//! The step that runs the translated prefix of a traversal as a query and outputs its rows as traversers.

use super::entries::entries;
use crate::bulk::Bulk;
use crate::context::Context;
use crate::graph::ahead::is_element;
use crate::graph::element::value_of;
use crate::graph::read::edge_value;
use crate::memory::Reservation;
use crate::semantic::add_counts;
use crate::step::{Input, Pipeline, Step};
use crate::translation::prefix::{OutputObject, QueryOutput, TranslatedPrefix};
use crate::traverser::{Labels, Traverser};
use indexmap::IndexMap;
use indexmap::map::Entry;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::rc::Rc;
use vervet_algebra::Query;
use vervet_gremlin::{EdgeKey, Hashing, Map, Value};
use vervet_model::{Error, Id, Result};

/// Rows whose elements are noted together, for later steps that read ahead.
const FOUND_TOGETHER: usize = 1 << 10;

/// See the header of this file. If the query does not fit the graph, or the host does not solve queries, the
/// original steps run.
#[derive(Clone)]
pub(crate) struct QueryStep {
    prefix: Rc<TranslatedPrefix>,
    /// The labels of the path objects.
    labels: Rc<[Labels]>,
    /// The original steps, for fallback.
    fallback: Pipeline,
    /// The label of the edges that rows end at, looked up lazily.
    label: Option<Id>,
    state: State,
}

#[derive(Clone)]
enum State {
    New,
    Rows(ResultRows),
    /// Values not output yet.
    Values(VecDeque<Value>),
    Steps,
}

/// Rows: path objects and current object, with the multiplicity of each row.
#[derive(Clone)]
struct ResultRows {
    ids: Vec<Id>,
    times: Vec<u64>,
    /// Number of columns.
    width: usize,
    next: usize,
}

impl ResultRows {
    fn iter(&self) -> impl Iterator<Item = (&[Id], u64)> {
        self.ids.chunks_exact(self.width).zip(self.times.iter().copied())
    }
}

impl QueryStep {
    pub(crate) fn new(prefix: TranslatedPrefix, fallback: Pipeline) -> Self {
        let labels = prefix.path.iter().map(|(_, labels)| labels.clone().into()).collect();
        Self { prefix: Rc::new(prefix), labels, fallback, label: None, state: State::New }
    }

    fn begin(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<()> {
        let prefix = self.prefix.clone();
        let is_applicable = !prefix.is_hidden(|name| context.side_effects.contains_key(name))
            && context.read(|snapshot, names| prefix.is_applicable(snapshot, names))?;
        if is_applicable {
            let columns = prefix.columns();
            let mut rows = ResultRows { ids: Vec::new(), times: Vec::new(), width: columns.len(), next: 0 };
            let control = context.control;
            let solved = context.host.solve(&prefix.query, control, &mut |found, count, times| {
                control.grow(count as u64 * 8 * (1 + columns.len() as u64))?;
                for row in 0..count {
                    rows.ids.extend(columns.iter().map(|column| {
                        found.get(*column).and_then(|column| column.get(row)).copied().unwrap_or(Id::UNBOUND)
                    }));
                    rows.times.push(times.get(row).copied().unwrap_or(1));
                }
                Ok(())
            })?;
            if solved {
                // Consumes the initial traverser.
                while input.next(context)?.is_some() {}
                self.state = match prefix.output {
                    QueryOutput::Counts(_) => State::Values([counts(&rows, context)?].into()),
                    QueryOutput::Lists(_) => State::Values([lists(&rows, context)?].into()),
                    QueryOutput::Entries(_) => State::Values(match &prefix.entries {
                        Some(taken) => entries(rows.iter().map(|(ids, _)| ids), taken, context)?,
                        None => VecDeque::new(),
                    }),
                    QueryOutput::Objects | QueryOutput::Count => State::Rows(rows),
                };
                return Ok(());
            }
        }
        while let Some(start) = input.next(context)? {
            self.fallback.start(start, context)?;
        }
        self.state = State::Steps;
        Ok(())
    }

    /// The traverser of the next row; `None`: no row is left. Skips rows with a term that has no value.
    fn row(&mut self, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        let State::Rows(rows) = &mut self.state else { return Ok(None) };
        let is_count = self.prefix.output == QueryOutput::Count;
        'rows: while let Some(&times) = rows.times.get(rows.next) {
            if rows.next.is_multiple_of(FOUND_TOGETHER) {
                let ids = rows.ids[rows.next * rows.width..].iter().take(FOUND_TOGETHER * rows.width);
                context.names.ahead.found(ids.copied().filter(|id| is_element(*id)));
            }
            let ids = &rows.ids[rows.next * rows.width..][..rows.width];
            rows.next += 1;
            let mut traverser = Traverser::new(Value::Null);
            let Some(bulk) = Bulk::new(times) else { continue };
            traverser.bulk = bulk;
            traverser.sack = context.settings.sack.clone().map(Box::new);
            let (ids, edge) = match (&self.prefix.current, ids) {
                (OutputObject::Edge { label, .. }, [before @ .., edge, source, target]) => {
                    let label = match self.label {
                        Some(label) => label,
                        None => {
                            context.read(|snapshot, names| names.key(snapshot, label))?.unwrap_or(Id::UNBOUND)
                        }
                    };
                    self.label = Some(label);
                    let [edge, source, label, target] = [edge, source, &label, target].map(|id| id.bits());
                    (before, Some(edge_value(EdgeKey { edge, source, label, target })))
                }
                _ => (ids, None),
            };
            for (column, id) in ids.iter().enumerate() {
                traverser.value = match value_of(*id, context)? {
                    // Counts of SPARQL are unbounded integers.
                    Some(value) if is_count => long(value)?,
                    Some(value) => value,
                    None => continue 'rows,
                };
                // The last column is the current object, unless that is an edge.
                if (column + 1 < ids.len() || edge.is_some())
                    && let Some(labels) = self.labels.get(column)
                {
                    traverser.extend_path(labels, &context.memory)?;
                }
            }
            if let Some(edge) = edge {
                traverser.value = edge;
            }
            return Ok(Some(traverser));
        }
        Ok(None)
    }
}

/// Rows of key and count as a map. Terms that are one value (language-tagged strings) share a key.
fn counts(rows: &ResultRows, context: &mut Context<'_>) -> Result<Value> {
    let mut map = Map::default();
    for (ids, _) in rows.iter() {
        let [key, count] = *ids else { continue };
        let Some(key) = value_of(key, context)? else { continue };
        context.control.work(1)?;
        let count = long(value_of(count, context)?.unwrap_or_default())?;
        match map.entry(key) {
            Entry::Vacant(entry) => _ = entry.insert(count),
            Entry::Occupied(mut entry) => *entry.get_mut() = add_counts(entry.get(), &count)?,
        }
    }
    Ok(Value::map(map))
}

/// A count in the type of `count()`: a long, or an integer of arbitrary precision beyond 64 bits.
fn long(count: Value) -> Result<Value> {
    match count {
        Value::BigInteger(_) => Ok(count),
        count => count
            .as_integer()
            .map(Value::Long)
            .ok_or_else(|| Error::internal("a query counted something that is no integer")),
    }
}

/// Rows of key and value as a map from keys to lists. Each key is read once, as in [`counts`].
fn lists(rows: &ResultRows, context: &mut Context<'_>) -> Result<Value> {
    let mut places: FxHashMap<Id, Option<usize>> = FxHashMap::default();
    let mut held = Reservation::default();
    let mut lists: IndexMap<Value, Vec<Value>, Hashing> = IndexMap::default();
    for (ids, times) in rows.iter() {
        let [key, value] = *ids else { continue };
        let place = match places.get(&key) {
            Some(place) => *place,
            None => {
                let place = value_of(key, context)?.map(|key| {
                    let entry = lists.entry(key);
                    let place = entry.index();
                    entry.or_default();
                    place
                });
                places.insert(key, place);
                place
            }
        };
        let Some(list) = place.and_then(|place| lists.get_index_mut(place)) else { continue };
        let Some(value) = value_of(value, context)? else { continue };
        context.expand(&value, times, list.1, &mut held)?;
    }
    Ok(Value::map(lists.into_iter().map(|(key, list)| (key, Value::list(list))).collect()))
}

impl Step for QueryStep {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        if let State::New = self.state {
            self.begin(input, context)?;
        }
        match &mut self.state {
            State::New => Ok(None),
            State::Values(values) => Ok(values.pop_front().map(Traverser::new)),
            State::Steps => self.fallback.next(context),
            State::Rows(_) => self.row(context),
        }
    }

    fn reset(&mut self) {
        self.state = State::New;
        self.fallback.reset();
    }

    fn moves(&self) -> bool {
        // Rows already contain the complete path.
        false
    }

    fn query(&self) -> Option<&Query> {
        Some(&self.prefix.query)
    }
}
