//! Runs a plan under limits.

use crate::options::{CancelToken, QueryOptions};
use oxrdf::Term;
use oxsdatatypes::DateTime;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use vervet_driver_local::Driver;
use vervet_env::Environment;
use vervet_expression::{ComputedTerms, Evaluator};
use vervet_kernel::plan::{Plan, Profile};
use vervet_kernel::{Batch, Control, Flow, Gate, Limits};
use vervet_model::{Error, ErrorKind, Id, Result, Tag};
use vervet_snapshot::Snapshot;

/// The limits of `options`, with a time budget that began at `started`. A heavy query passes `gate`.
pub(crate) fn control(
    options: &QueryOptions,
    started: Instant,
    gate: Option<Arc<dyn Gate>>,
) -> Control<'static> {
    let limits = Limits {
        cancelled: options.cancel.as_ref().map(CancelToken::flag),
        deadline: (options.timeout).and_then(|timeout| Some((started.checked_add(timeout)?, timeout))),
        memory_bytes: options.memory_limit_bytes,
        reads: options.profile.then(Arc::default),
    };
    Control::with_gate(limits, gate)
}

/// What a plan needs to run, besides the plan.
pub(crate) struct RunContext<'a> {
    pub environment: &'a Environment,
    /// `None`: the plan runs on the calling thread.
    pub driver: Option<&'a dyn Driver>,
    /// Seed of functions with a new value for each call.
    pub seed: u64,
}

/// Receives the results of a run, with an evaluator that reads their ids.
pub(crate) trait ResultSink {
    /// Receives a batch.
    fn batch(&mut self, evaluator: &Evaluator<'_>, batch: &Batch) -> Result<Flow>;

    /// There are no more batches.
    fn end(&mut self, _evaluator: &Evaluator<'_>) -> Result<()> {
        Ok(())
    }
}

impl<F: FnMut(&Evaluator<'_>, &Batch) -> Result<Flow>> ResultSink for F {
    fn batch(&mut self, evaluator: &Evaluator<'_>, batch: &Batch) -> Result<Flow> {
        self(evaluator, batch)
    }
}

/// Runs a plan on a snapshot for which it is valid; on many threads if the driver chooses to.
pub(crate) fn run(
    context: &RunContext<'_>,
    snapshot: &dyn Snapshot,
    plan: &Plan,
    options: &QueryOptions,
    control: &Control<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(ComputedTerms, Profile)> {
    let computed = ComputedTerms::new().with_seed(context.seed);
    let computed = match options.memory_limit_bytes {
        Some(limit) => computed.with_limit(usize::try_from(limit).unwrap_or(usize::MAX)),
        None => computed,
    };
    let evaluator = Evaluator::new(snapshot, &computed, now(context.environment), context.seed)
        .with_base(options.base_iri.clone())
        .with_solution(vervet_kernel::solution_column(plan))
        .with_interrupt(control);
    for (index, term) in (0_u64..).zip(&plan.computed) {
        // Counts as work, since the plan looks terms up in the dictionary rather than reading rows.
        control.work(16)?;
        let id = evaluator.intern(term.as_ref())?;
        if id != Id::new(Tag::Computed, index) {
            return Err(Error::internal(format!("the plan expects {term} to be new to the graph")));
        }
    }
    let mut input = Batch::unit(plan.variables.len());
    for (&variable, term) in plan.parameters.iter().zip(parameter_values(plan, options)?) {
        input.columns[variable.index()].push(evaluator.intern(term.as_ref())?);
    }
    let mut pass_on = |batch: &Batch| {
        if let Some(progress) = &options.progress {
            progress.add(batch.rows as u64);
        }
        sink.batch(&evaluator, batch)
    };
    let profile = match context.driver {
        Some(driver) => driver.execute(
            plan,
            snapshot,
            &evaluator,
            control,
            options.parallelism(),
            &mut input,
            options.profile,
            &mut pass_on,
        )?,
        None => vervet_kernel::execute(
            plan,
            snapshot,
            &evaluator,
            control,
            &mut input,
            options.profile,
            &mut pass_on,
        )?,
    };
    sink.end(&evaluator)?;
    drop(evaluator);
    Ok((computed, profile))
}

/// 64 random bits.
pub(crate) fn seed(environment: &Environment) -> Result<u64> {
    environment.random.next_u64().map_err(|error| Error::io("draw a seed", &error))
}

fn now(environment: &Environment) -> DateTime {
    let wall = environment.clock.wall();
    let since_epoch = wall.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    date_time(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}

/// The time of some milliseconds after 1970, in UTC. Computed from the bytes of two parsed times, which is
/// ten times as fast as parsing one for each query.
fn date_time(milliseconds: i64) -> DateTime {
    type Parsed = (i128, i128, [u8; 2]);
    static PARSED: OnceLock<Parsed> = OnceLock::new();
    let &(epoch, millisecond, offset) = PARSED.get_or_init(|| {
        let [epoch, later] = ["1970-01-01T00:00:00Z", "1970-01-01T00:00:00.001Z"].map(|text| {
            let bytes = text.parse().unwrap_or(DateTime::MIN).to_be_bytes();
            let (seconds, offset) = bytes.split_at(size_of::<i128>());
            let seconds = i128::from_be_bytes(seconds.try_into().unwrap_or_default());
            (seconds, offset.try_into().unwrap_or_default())
        });
        (epoch.0, later.0 - epoch.0, epoch.1)
    });
    let seconds = epoch.saturating_add(millisecond.saturating_mul(i128::from(milliseconds)));
    let mut bytes = [0; size_of::<i128>() + 2];
    let (of_seconds, of_offset) = bytes.split_at_mut(size_of::<i128>());
    of_seconds.copy_from_slice(&seconds.to_be_bytes());
    of_offset.copy_from_slice(&offset);
    DateTime::from_be_bytes(bytes)
}

/// The parameter values of a plan, in its order.
fn parameter_values<'o>(plan: &Plan, options: &'o QueryOptions) -> Result<Vec<&'o Term>> {
    plan.parameters
        .iter()
        .map(|parameter| {
            let name = &plan.variables[parameter.index()];
            let value = options.parameters.iter().find(|(other, _)| other == name);
            value.map(|(_, term)| term).ok_or_else(|| {
                Error::new(ErrorKind::Query, format!("the parameter ?{name} has no value"))
                    .with_hint(format!("give one, for example --param {name}=\"text\""))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_from_bytes_is_the_one_that_is_parsed() {
        for milliseconds in [0, 1, 999, 1_000, 951_782_399_999, 1_795_798_861_042, 253_402_300_799_999, -1] {
            let mut lexical = String::new();
            vervet_model::Inline::DateTime(milliseconds).write_lexical(&mut lexical);
            let parsed: DateTime = lexical.parse().expect("a time");
            let found = date_time(milliseconds);
            assert!(found.is_identical_with(parsed), "{lexical}: {found}");
            assert_eq!(found.to_string(), lexical);
        }
    }
}
