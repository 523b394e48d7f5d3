//! One query or one load in every engine: are the values the same, and how long does it take?

use crate::engine::{Engine, ResultTable, Sink};
use crate::measure::{Budget, Timing, measure, once, process_cpu, resident_bytes};
use crate::report::{LoadFigures, QueryFigures};
use std::path::Path;
use std::time::{Duration, Instant};
use vervet_model::Result;

/// Our engine and a peer; either may be missing.
#[derive(Default)]
pub struct Contest {
    /// Vervet.
    pub ours: Option<Box<dyn Engine>>,
    /// Who it is compared with.
    pub peer: Option<Box<dyn Engine>>,
    /// How long each measurement may take.
    pub budget: Budget,
}

impl Contest {
    /// Loads `file` into every engine, one after the other.
    ///
    /// # Errors
    /// The first error of an engine: without data there is nothing to compare.
    pub fn load(&mut self, file: &Path) -> Result<Vec<LoadFigures>> {
        [&mut self.ours, &mut self.peer]
            .into_iter()
            .flatten()
            .map(|engine| load(engine.as_mut(), file))
            .collect()
    }

    /// Limits the time of a query.
    pub fn set_time_limit(&mut self, limit: Option<Duration>) {
        for engine in [&mut self.ours, &mut self.peer].into_iter().flatten() {
            engine.set_time_limit(limit);
        }
    }

    /// Names of our engine and of the peer.
    #[must_use]
    pub fn names(&self) -> (Option<String>, Option<String>) {
        let name = |engine: &Option<Box<dyn Engine>>| Some(engine.as_ref()?.name().to_owned());
        (name(&self.ours), name(&self.peer))
    }

    /// Runs a query in every engine, first for its values, then for its times.
    ///
    /// `check` gets each result and says what is wrong with it; results must agree with each other as well.
    /// An engine that fails is remarked upon and not timed.
    pub fn query(
        &self,
        name: &str,
        text: &str,
        mut check: impl FnMut(&ResultTable) -> Option<String>,
    ) -> QueryFigures {
        let mut figures = QueryFigures { query: name.to_owned(), ..QueryFigures::default() };
        let mut first: Option<ResultTable> = None;
        let mut values_of = |engine: &dyn Engine, figures: &mut QueryFigures| {
            let (table, timing) = figures.note(engine, values(engine, text))?;
            if let Some(what) = check(&table) {
                figures.wrong(format!("{}: {what}", engine.name()));
            }
            if let Some(what) = first.as_ref().and_then(|first| difference(first, &table, text)) {
                figures.wrong(format!("{} differs: {what}", engine.name()));
            }
            figures.rows = figures.rows.or(Some(table.rows.len() as u64));
            first.get_or_insert(table);
            Some(timing)
        };
        let timed = |engine: &dyn Engine, figures: &mut QueryFigures, once: Timing| {
            if self.budget.is_exceeded_by(&once) {
                return Some(once);
            }
            figures.note(engine, measure(&self.budget, || serialised(engine, text)))
        };
        if let Some(ours) = self.ours.as_deref()
            && let Some(once) = values_of(ours, &mut figures)
        {
            figures.ours = timed(ours, &mut figures, once);
            let rows_only = measure(&self.budget, || ours.query_rows(text));
            figures.ours_rows_only = figures.note(ours, rows_only);
            let prepared = figures.note(ours, ours.prepare(text)).flatten();
            if let Some(mut prepared) = prepared {
                figures.ours_prepared = figures.note(ours, measure(&self.budget, || prepared.rows()));
            }
        }
        if let Some(peer) = self.peer.as_deref()
            && let Some(once) = values_of(peer, &mut figures)
        {
            figures.peer = timed(peer, &mut figures, once);
        }
        figures
    }
}

impl QueryFigures {
    /// The value, or a remark with the name of the engine.
    fn note<T>(&mut self, engine: &dyn Engine, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.remarks.push(format!("{}: {error}", engine.name()))).ok()
    }
}

/// How two results of the same query differ.
///
/// Which rows a LIMIT leaves is up to the engine: then only their number counts.
fn difference(one: &ResultTable, other: &ResultTable, text: &str) -> Option<String> {
    if one.header != other.header {
        return Some(format!("headers {:?} and {:?}", one.header, other.header));
    }
    if one.rows.len() != other.rows.len() {
        return Some(format!("{} rows and {} rows", one.rows.len(), other.rows.len()));
    }
    if has_limit(text) {
        return None;
    }
    let (one, other) = one.rows.iter().zip(&other.rows).find(|(one, other)| one != other)?;
    Some(format!("rows {one:?} and {other:?}"))
}

/// Whether a query has a LIMIT.
#[must_use]
pub fn has_limit(text: &str) -> bool {
    text.to_ascii_uppercase().contains("LIMIT")
}

/// Loads `file` and says what it took.
///
/// # Errors
/// Those of the engine.
pub fn load(engine: &mut dyn Engine, file: &Path) -> Result<LoadFigures> {
    let (resident, cpu, begin) = (resident_bytes()?, process_cpu(), Instant::now());
    let statements = engine.load(file)?;
    Ok(LoadFigures {
        engine: engine.name().to_owned(),
        statements,
        seconds: begin.elapsed().as_secs_f64(),
        cpu_seconds: process_cpu().saturating_sub(cpu).as_secs_f64(),
        resident_bytes: Some(resident_bytes()?.saturating_sub(resident)),
    })
}

/// The result of a query as a table, and what it took the first time.
fn values(engine: &dyn Engine, text: &str) -> Result<(ResultTable, Timing)> {
    let mut sink = Sink::keeping();
    let (_, timing) = once(|| engine.query_tsv(text, &mut sink))?;
    Ok((sink.table()?, timing))
}

fn serialised(engine: &dyn Engine, text: &str) -> Result<u64> {
    let mut sink = Sink::counting();
    engine.query_tsv(text, &mut sink)?;
    Ok(sink.bytes())
}
