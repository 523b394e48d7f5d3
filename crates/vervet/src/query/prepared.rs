//! Prepared queries.

use crate::database::Database;
use crate::options::QueryOptions;
use crate::query::adaptive::{AdaptivePlan, Lesson};
use crate::query::answer::{Answer, Solutions};
use crate::query::execute::{Execution, MaterializedSolutions};
use crate::query::graph_sink::{GraphSink, TripleList};
use crate::query::plans::Compiled;
use crate::query::reading::{PinnedVersion, watched};
use crate::query::{construct, describe};
use std::sync::Arc;
use vervet_algebra::{Form, Query};
use vervet_expression::Evaluator;
use vervet_kernel::plan::Profile;
use vervet_kernel::{Batch, Control, Flow};
use vervet_model::{Error, ErrorKind, Result};

/// The plan of a query, before or after a run.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Human-readable text.
    pub text: String,
    /// Structured steps.
    pub steps: Vec<vervet_planner::PlanStep>,
}

/// A parsed query. It is planned when it first runs on a version of the graph.
#[derive(Clone, Debug)]
pub struct Prepared {
    database: Database,
    compiled: Arc<Compiled>,
}

impl Database {
    /// Runs a query of any form.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] with line, column and a caret; limits; damaged data.
    pub fn query(&self, text: &str) -> Result<Answer> {
        self.query_with(text, &QueryOptions::default())
    }

    /// Runs a query of any form with options.
    ///
    /// # Errors
    /// As [`Database::query`].
    pub fn query_with(&self, text: &str, options: &QueryOptions) -> Result<Answer> {
        self.prepare_with(text, options)?.run_with(options)
    }

    /// Runs a `SELECT`.
    ///
    /// # Errors
    /// As [`Database::query`]; [`ErrorKind::Query`] for other query forms.
    pub fn select(&self, text: &str) -> Result<Solutions> {
        self.query(text)?.into_solutions().ok_or_else(|| {
            Error::new(ErrorKind::Query, "this query is not a SELECT").with_hint("use `query`")
        })
    }

    /// Parses and plans a query for repeated runs.
    ///
    /// # Errors
    /// As [`Database::query`].
    pub fn prepare(&self, text: &str) -> Result<Prepared> {
        self.prepare_with(text, &QueryOptions::default())
    }

    /// [`Database::prepare`] with a base IRI and names of parameters.
    ///
    /// # Errors
    /// As [`Database::query`].
    pub fn prepare_with(&self, text: &str, options: &QueryOptions) -> Result<Prepared> {
        Ok(Prepared::new(self.clone(), self.compiled(text, options)?))
    }

    /// The plan of a query as human-readable text.
    ///
    /// # Errors
    /// As [`Database::query`].
    pub fn explain(&self, text: &str, options: &QueryOptions) -> Result<String> {
        self.prepare_with(text, options)?.explain_with(options)
    }
}

impl Prepared {
    pub(crate) fn new(database: Database, compiled: Arc<Compiled>) -> Self {
        Self { database, compiled }
    }

    /// Runs the query on the current graph.
    ///
    /// # Errors
    /// Limits; damaged data.
    pub fn run(&self) -> Result<Answer> {
        self.run_with(&QueryOptions::default())
    }

    /// Runs the query with values for the parameters that it was prepared with, in any order.
    ///
    /// # Errors
    /// As [`Prepared::run`]; a parameter without a value.
    pub fn run_with(&self, options: &QueryOptions) -> Result<Answer> {
        Ok(self.answer(options)?.0)
    }

    /// Runs the query, of any form, and returns its plan with estimated and actual rows and times instead of
    /// the answer.
    ///
    /// # Errors
    /// As [`Prepared::run_with`].
    pub fn profile_with(&self, options: &QueryOptions) -> Result<String> {
        let options = QueryOptions { profile: true, ..options.clone() };
        let (answer, profile) = self.answer(&options)?;
        match (answer, profile) {
            (Answer::Solutions(solutions), _) => solutions.materialized.profile,
            (_, profile) => profile,
        }
        .ok_or_else(|| Error::internal("a profiled run has no profile"))
    }

    /// The answer, and the profile if requested. The profile of a `SELECT` is in its solutions.
    fn answer(&self, options: &QueryOptions) -> Result<(Answer, Option<String>)> {
        self.execute(options, |execution| answer(execution, &self.compiled.query))
    }

    /// Plans the query for the current graph and passes the plan to `run`. Both share one deadline.
    pub(crate) fn execute<T>(
        &self,
        options: &QueryOptions,
        run: impl FnOnce(&Execution<'_>) -> Result<T>,
    ) -> Result<T> {
        let started = options.begin();
        let published = self.database.published();
        let query = self.compiled.resolved(options, started)?;
        let planning = watched(self.compiled.plan_options(&published), options);
        let plan = self.compiled.plan(&query, &published, &planning, options, started)?;
        let pinned = PinnedVersion::Published(published);
        let (database, snapshot) = (&self.database, pinned.version());
        let mut plan = AdaptivePlan::new(&query, snapshot, planning, plan);
        if self.compiled.is_proven() {
            plan = plan.proven();
        }
        let prefixes = &self.compiled.prefixes[..];
        let execution = Execution { database, pinned: &pinned, snapshot, plan, prefixes, options, started };
        let result = run(&execution);
        match (&pinned, execution.plan.lesson()) {
            (PinnedVersion::Published(published), Some(Lesson::New(plan, corrections))) => {
                self.compiled.learn(published, plan, corrections);
            }
            (_, Some(Lesson::AsExpected)) => self.compiled.prove(),
            _ => {}
        }
        result
    }

    /// The plan as human-readable text: steps with estimated rows.
    ///
    /// # Errors
    /// Damaged data.
    pub fn explain(&self) -> Result<String> {
        self.explain_with(&QueryOptions::default())
    }

    /// [`Prepared::explain`] under these options, which determine the parallelism.
    ///
    /// # Errors
    /// Damaged data.
    pub fn explain_with(&self, options: &QueryOptions) -> Result<String> {
        self.execute(options, |execution| Ok(execution.explain(None)))
    }

    /// A hash of the plan under these options, without its estimates: equal plans have the same hash in any
    /// process.
    ///
    /// # Errors
    /// Damaged data.
    pub fn plan_hash(&self, options: &QueryOptions) -> Result<u64> {
        self.execute(options, |execution| Ok(execution.plan_hash()))
    }

    /// The plan as text and as steps. With `run`, the query runs, its results are counted and dropped, and
    /// the plan has actual rows and times.
    ///
    /// # Errors
    /// As [`Prepared::run_with`].
    pub fn explanation(&self, options: &QueryOptions, run: bool) -> Result<Explanation> {
        let options = &QueryOptions { profile: run, ..options.clone() };
        let enough = matches!(self.compiled.query.form, Form::Ask);
        let mut sink = |_: &Evaluator<'_>, batch: &Batch| {
            Ok(if enough && batch.rows > 0 { Flow::Done } else { Flow::More })
        };
        self.execute(options, |execution| {
            let profile = match run {
                true => Some(execution.run_again(&execution.control(), &mut || {}, &mut sink)?.1),
                false => None,
            };
            let profile = profile.as_ref();
            Ok(Explanation { text: execution.explain(profile), steps: execution.explain_steps(profile) })
        })
    }

    /// Whether the query is heavy: its estimated time on one thread exceeds [`QueryOptions::heavy_from`]. For
    /// callers with admission control of heavy queries.
    ///
    /// # Errors
    /// Damaged data.
    pub fn is_heavy(&self, options: &QueryOptions) -> Result<bool> {
        let started = options.begin();
        let query = self.compiled.resolved(options, started)?;
        let published = self.database.published();
        let planning = self.compiled.plan_options(&published);
        let plan = self.compiled.plan(&query, &published, &planning, options, started)?;
        Ok(vervet_driver_local::is_heavy(&plan, options.parallelism()))
    }

    /// Whether the result is a graph (`CONSTRUCT`, `DESCRIBE`) rather than rows or a truth value.
    #[must_use]
    pub fn is_graph(&self) -> bool {
        matches!(self.compiled.query.form, Form::Construct { .. } | Form::Describe(_))
    }

    /// Whether the result is a truth value (`ASK`).
    #[must_use]
    pub fn is_truth_value(&self) -> bool {
        matches!(self.compiled.query.form, Form::Ask)
    }

    /// The logical form.
    #[must_use]
    pub fn query(&self) -> &Query {
        &self.compiled.query
    }

    pub(crate) fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }
}

/// The answer of a query whose plan is about to run, and the profile if requested. The profile of a `SELECT`
/// is in its solutions.
pub(crate) fn answer(execution: &Execution<'_>, query: &Query) -> Result<(Answer, Option<String>)> {
    let (answer, profile) = match &query.form {
        Form::Select(columns) => {
            let names: Vec<String> =
                columns.iter().map(|column| query.variables[column.index()].clone()).collect();
            let materialized = Box::new(MaterializedSolutions::collect(execution, columns, names)?);
            return Ok((Answer::Solutions(Solutions { materialized }), None));
        }
        Form::Ask => {
            let mut found = false;
            let control = execution.control();
            let (_, profile) =
                execution.run_again(&control, &mut || {}, &mut |_: &Evaluator<'_>, batch: &Batch| {
                    found |= batch.rows > 0;
                    Ok(if found { Flow::Done } else { Flow::More })
                })?;
            (Answer::Boolean(found), profile)
        }
        Form::Construct { .. } | Form::Describe(_) => {
            let control = execution.control();
            let mut list = TripleList::new(&control);
            let profile = graph(execution, query, &control, &mut list)?;
            (Answer::Graph(list.triples), profile)
        }
    };
    Ok((answer, execution.options.profile.then(|| execution.explain_profile(&profile))))
}

/// Passes the graph of a `CONSTRUCT` or `DESCRIBE` to `sink` while it is made.
pub(crate) fn graph(
    execution: &Execution<'_>,
    query: &Query,
    control: &Control<'_>,
    sink: &mut dyn GraphSink,
) -> Result<Profile> {
    match &query.form {
        Form::Construct { statements, triples } => {
            construct::construct(execution, query, statements, triples, control, sink)
        }
        Form::Describe(resources) => describe::describe(execution, resources, control, sink),
        Form::Select(_) | Form::Ask => {
            Err(Error::internal("a graph is the result of CONSTRUCT and DESCRIBE"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ServiceAnswer, ServiceClient, Services};
    use std::sync::Mutex;
    use std::time::{Duration, Instant};
    use vervet_model::lock;

    /// An endpoint that answers late and records the time that it was given.
    #[derive(Debug, Default)]
    struct Late(Mutex<Vec<Duration>>);

    const LATE: Duration = Duration::from_millis(5);

    impl ServiceClient for Late {
        fn ask(&self, _endpoint: &str, _query: &str, timeout: Option<Duration>) -> Result<ServiceAnswer> {
            lock(&self.0).extend(timeout);
            std::thread::sleep(LATE);
            let body = br#"{"head":{"vars":["x"]},"results":{"bindings":[]}}"#.to_vec();
            Ok(ServiceAnswer { media_type: "application/sparql-results+json".to_owned(), body })
        }
    }

    /// Regression: planning (with all its endpoint requests) and running had the whole timeout each.
    #[test]
    fn planning_and_running_share_one_deadline() {
        let database = Database::in_memory();
        let client = Arc::new(Late::default());
        let timeout = Duration::from_secs(60);
        let mut options = QueryOptions {
            timeout: Some(timeout),
            services: Some(Services { endpoints: vec!["urn:e".to_owned()], client: client.clone() }),
            ..QueryOptions::default()
        };
        let text = "SELECT * { { SERVICE <urn:e> { ?x ?p ?o } } UNION { SERVICE <urn:e> { ?x ?q ?o } } }";
        let prepared = database.prepare_with(text, &options).expect("a query");
        let left =
            prepared.execute(&options, |execution| Ok(execution.control().time_left())).expect("cached");
        assert!(left.is_some_and(|left| left <= timeout - 2 * LATE), "{left:?} for the run");
        let given = std::mem::take(&mut *lock(&client.0));
        assert!(given.len() == 2 && given[0] <= timeout && given[1] <= timeout - LATE, "{given:?}");
        // In a transaction as well.
        let transaction = database.begin().expect("begins");
        let run = |execution: &Execution<'_>| Ok(execution.control().time_left());
        let left = transaction.execute(&prepared, &options, run).expect("cached");
        assert!(left.is_some_and(|left| left <= timeout - 2 * LATE), "{left:?} for the run");
        // A time budget that began before, for several calls.
        options.started = Instant::now().checked_sub(2 * timeout);
        let error = prepared.run_with(&options).expect_err("out of time");
        assert_eq!(error.kind(), ErrorKind::Deadline, "{error}");
        lock(&client.0).clear();
        assert!(
            prepared.is_heavy(&options).is_err() && lock(&client.0).is_empty(),
            "no endpoint was queried"
        );
    }
}
