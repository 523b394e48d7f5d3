//! The first step of a traversal whose beginning is a query: rows of the query as traversers.

use crate::context::Context;
use crate::graph::literal;
use crate::graph::read::vertex_value;
use crate::native::{Native, Shape};
use crate::step::{Input, Pipeline, Step};
use crate::traverser::{Labels, Traverser};
use std::collections::VecDeque;
use std::rc::Rc;
use vervet_algebra::Query;
use vervet_gremlin::{Map, Value};
use vervet_model::{Error, Id, Result, Tag};

/// See the header of this file. Where the query does not fit the graph, or the host solves none, the same steps run as steps.
#[derive(Clone)]
pub(crate) struct Solve {
    native: Rc<Native>,
    /// The steps that the query stands for.
    otherwise: Pipeline,
    state: State,
}

#[derive(Clone)]
enum State {
    New,
    Rows {
        rows: VecDeque<Row>,
    },
    /// The only value, until it is given out.
    Map(Option<Value>),
    Steps,
}

/// A row: values of the path and of the traverser, and how often it is there.
#[derive(Clone)]
struct Row {
    ids: Box<[Id]>,
    times: u64,
}

impl Solve {
    pub(crate) fn new(native: Native, otherwise: Pipeline) -> Self {
        Self { native: Rc::new(native), otherwise, state: State::New }
    }

    pub(crate) fn query(&self) -> &Query {
        &self.native.query
    }

    fn begin(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<()> {
        let native = self.native.clone();
        let fits = context.read(|snapshot, names| native.fits(snapshot, names))?;
        if fits {
            let mut rows = VecDeque::new();
            let columns = native.columns();
            let control = context.control;
            let solved = context.host.solve(&native.query, control, &mut |found, count, times| {
                control.grow(count as u64 * (24 + 8 * columns.len() as u64))?;
                for row in 0..count {
                    let value = |column: &usize| {
                        found.get(*column).and_then(|column| column.get(row)).copied().unwrap_or(Id::UNBOUND)
                    };
                    let ids = columns.iter().map(value).collect();
                    rows.push_back(Row { ids, times: times.get(row).copied().unwrap_or(1) });
                }
                Ok(())
            })?;
            if solved {
                // The traverser that the source gives is used up.
                while input.next(context)?.is_some() {}
                self.state = match native.shape {
                    Shape::Counts(_) => State::Map(Some(counts(rows, context)?)),
                    Shape::Objects | Shape::Count => State::Rows { rows },
                };
                return Ok(());
            }
        }
        while let Some(start) = input.next(context)? {
            self.otherwise.start(start);
        }
        self.state = State::Steps;
        Ok(())
    }

    fn traverser(&self, row: &Row, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        let mut values = Vec::with_capacity(row.ids.len());
        let is_count = self.native.shape == Shape::Count;
        for id in &row.ids {
            match value_of(*id, context)? {
                // Counts of SPARQL are integers.
                Some(value) if is_count => values.push(Value::Long(value.as_integer().unwrap_or(0))),
                Some(value) => values.push(value),
                None => return Ok(None),
            }
        }
        let Some(current) = values.pop() else { return Ok(None) };
        let mut traverser = Traverser::new(Value::Null);
        traverser.bulk = row.times;
        traverser.sack = context.settings.sack.clone().map(Box::new);
        for (value, (_, labels)) in values.into_iter().zip(&self.native.path) {
            traverser.value = value;
            let labels: Labels = labels.clone().into();
            traverser.extend_path(&labels);
        }
        traverser.value = current;
        Ok(Some(traverser))
    }
}

/// What an id of a row stands for.
fn value_of(id: Id, context: &mut Context<'_>) -> Result<Option<Value>> {
    match id.tag() {
        Tag::Vertex => Ok(Some(vertex_value(id.bits()))),
        Tag::Unbound | Tag::Edge | Tag::Computed => {
            Err(Error::internal("a query of a traversal gave what is no vertex and no value"))
        }
        _ => context.read(|snapshot, _| literal::value(snapshot, id)),
    }
}

/// Rows of a key and a number as a map. Terms that are one value here (texts in two languages) are one key.
fn counts(rows: VecDeque<Row>, context: &mut Context<'_>) -> Result<Value> {
    let mut map = Map::default();
    for row in rows {
        let [key, count] = *row.ids else { continue };
        let Some(key) = value_of(key, context)? else { continue };
        let count = value_of(count, context)?.and_then(|count| count.as_integer()).unwrap_or(0);
        if let Value::Long(total) = map.entry(key).or_insert(Value::Long(0)) {
            *total = total.saturating_add(count);
        }
    }
    Ok(Value::map(map))
}

impl Step for Solve {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        if let State::New = self.state {
            self.begin(input, context)?;
        }
        loop {
            match &mut self.state {
                State::New => return Ok(None),
                State::Map(map) => {
                    let Some(value) = map.take() else { return Ok(None) };
                    return Ok(Some(Traverser::new(value)));
                }
                State::Steps => return self.otherwise.next(context),
                State::Rows { rows } => {
                    let Some(row) = rows.pop_front() else { return Ok(None) };
                    if let Some(traverser) = self.traverser(&row, context)? {
                        return Ok(Some(traverser));
                    }
                }
            }
        }
    }

    fn reset(&mut self) {
        self.state = State::New;
        self.otherwise.reset();
    }

    fn moves(&self) -> bool {
        // Its path is complete.
        false
    }
}
