//! One query or one load in every engine: are the values the same, and how long does it take?

use crate::engine::{Engine, ResultTable, Sink};
use crate::measure::{Budget, Timing, measure, process_cpu, resident_bytes};
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
    /// `check` gets each result with the name of its engine and says what is wrong with it. An engine that
    /// fails is remarked upon and not timed.
    pub fn query(
        &self,
        name: &str,
        text: &str,
        mut check: impl FnMut(&ResultTable) -> Option<String>,
    ) -> (QueryFigures, Option<ResultTable>) {
        let mut figures = QueryFigures { query: name.to_owned(), ..QueryFigures::default() };
        let mut first: Option<ResultTable> = None;
        let mut values_of = |engine: &dyn Engine, figures: &mut QueryFigures| {
            let table = match values(engine, text) {
                Ok(table) => table,
                Err(error) => {
                    figures.remarks.push(format!("{}: {error}", engine.name()));
                    return false;
                }
            };
            if let Some(what) = check(&table) {
                figures.wrong(format!("{}: {what}", engine.name()));
            }
            figures.rows = figures.rows.or(Some(table.rows.len() as u64));
            first.get_or_insert(table);
            true
        };
        let budget = &self.budget;
        let run = |what: Result<Timing>, figures: &mut QueryFigures, engine: &dyn Engine| {
            what.map_err(|error| figures.remarks.push(format!("{}: {error}", engine.name()))).ok()
        };
        if let Some(ours) = self.ours.as_deref()
            && values_of(ours, &mut figures)
        {
            figures.ours = run(measure(budget, || serialised(ours, text)), &mut figures, ours);
            figures.ours_rows_only = run(measure(budget, || ours.query_rows(text)), &mut figures, ours);
            if let Ok(Some(mut prepared)) = ours.prepare(text) {
                figures.ours_prepared = run(measure(budget, || prepared.rows()), &mut figures, ours);
            }
        }
        if let Some(peer) = self.peer.as_deref()
            && values_of(peer, &mut figures)
        {
            figures.peer = run(measure(budget, || serialised(peer, text)), &mut figures, peer);
        }
        (figures, first)
    }
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

/// The result of a query as a table.
///
/// # Errors
/// Those of the engine.
pub fn values(engine: &dyn Engine, text: &str) -> Result<ResultTable> {
    let mut sink = Sink::keeping();
    engine.query_tsv(text, &mut sink)?;
    sink.table()
}

fn serialised(engine: &dyn Engine, text: &str) -> Result<u64> {
    let mut sink = Sink::counting();
    engine.query_tsv(text, &mut sink)?;
    Ok(sink.bytes())
}
