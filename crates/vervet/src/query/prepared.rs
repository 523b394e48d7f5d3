//! Prepared queries, and the cache of plans by query text.

use crate::database::{Database, lock};
use crate::query::cache::Cache;
use crate::query::construct;
use crate::query::execute::{Execution, MaterializedSolutions, control};
use crate::query::reading::{CachedPlan, PinnedVersion};
use crate::{Answer, QueryOptions, Solutions};
use oxrdf::Term;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;
use vervet_algebra::{Form, Node, Query};
use vervet_kernel::plan::Plan;
use vervet_kernel::{Control, Flow};
use vervet_model::{Error, ErrorKind, Result};
use vervet_txn::Published;

/// The maximum number of texts in the plan cache.
const PLAN_CACHE_MAX: usize = 1024;

/// The maximum length of a cached text, in bytes: longer texts (mostly inline data) rarely recur.
const PLAN_CACHE_TEXT_MAX: usize = 1 << 16;

/// The maximum number of terms in the tables of a cached query: larger tables rarely recur.
const PLAN_CACHE_TERMS_MAX: usize = 64;

/// A query in logical form, with its plan for the version of the graph that it last ran on.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub query: Query,
    pub optimize: bool,
    /// Whether it queries other endpoints, so that each run needs a new plan.
    pub is_federated: bool,
    plan: RwLock<Option<CachedPlan>>,
}

impl Compiled {
    /// A plan valid for a version of the graph; the time that `options` allow began at `started`.
    fn plan(&self, published: &Published, options: &QueryOptions, started: Instant) -> Result<Arc<Plan>> {
        if self.is_federated {
            let control = control(options, started, None);
            let query = crate::query::service::resolved(&self.query, options, &control)?;
            return Ok(CachedPlan::make(&query, published, self.optimize, &control)?.plan);
        }
        if let Some(cached) = &*self.plan.read().unwrap_or_else(PoisonError::into_inner)
            && cached.is_valid_for(published)
        {
            return Ok(Arc::clone(&cached.plan));
        }
        let control = control(options, started, None);
        let cached = CachedPlan::make(&self.query, published, self.optimize, &control)?;
        let plan = Arc::clone(&cached.plan);
        *self.plan.write().unwrap_or_else(PoisonError::into_inner) = Some(cached);
        Ok(plan)
    }
}

/// Parses a query.
pub(crate) fn compile(text: &str, options: &QueryOptions) -> Result<Compiled> {
    let names = options.parse_names();
    let query = vervet_sparql::parse(text, &names.options(options))?;
    let is_federated = crate::query::service::is_federated(&query.root);
    Ok(Compiled { query, optimize: options.optimize, is_federated, plan: RwLock::default() })
}

/// Compiled queries by text.
#[derive(Debug)]
pub(crate) struct PlanCache {
    by_text: Cache<str, Arc<Compiled>>,
}

impl Default for PlanCache {
    fn default() -> Self {
        Self { by_text: Cache::new(PLAN_CACHE_MAX) }
    }
}

impl PlanCache {
    pub(crate) fn find(&mut self, text: &str) -> Option<Arc<Compiled>> {
        self.by_text.find(text)
    }

    pub(crate) fn insert(&mut self, text: &str, query: Arc<Compiled>) {
        if text.len() <= PLAN_CACHE_TEXT_MAX {
            self.by_text.insert(text.into(), query);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.by_text.clear();
    }
}

/// Plans of the queries that begin traversals, each for the version of the graph that it last ran on.
#[derive(Debug)]
pub(crate) struct TraversalPlans {
    by_query: Cache<Query, CachedPlan>,
}

impl Default for TraversalPlans {
    fn default() -> Self {
        Self { by_query: Cache::new(PLAN_CACHE_MAX) }
    }
}

impl TraversalPlans {
    /// A plan valid for a version of the graph.
    pub(crate) fn plan(
        plans: &Mutex<Self>,
        query: &Query,
        published: &Published,
        control: &Control<'_>,
    ) -> Result<Arc<Plan>> {
        if let Some(cached) = lock(plans).by_query.find(query)
            && cached.is_valid_for(published)
        {
            return Ok(cached.plan);
        }
        let cached = CachedPlan::make(query, published, true, control)?;
        let plan = Arc::clone(&cached.plan);
        if weight(&query.root) <= PLAN_CACHE_TERMS_MAX {
            lock(plans).by_query.insert(Arc::new(query.clone()), cached);
        }
        Ok(plan)
    }

    pub(crate) fn clear(&mut self) {
        self.by_query.clear();
    }
}

/// The number of terms in tables of a query.
fn weight(node: &Node) -> usize {
    let mut terms = match node {
        Node::Values { rows, .. } => rows.iter().map(Vec::len).sum(),
        _ => 0,
    };
    node.for_each_child(&mut |child| terms += weight(child));
    terms
}

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
        let plan = self.compiled.plan(&published, options, started)?;
        let pinned = PinnedVersion::Published(published);
        let (database, snapshot) = (&self.database, pinned.version());
        run(&Execution { database, pinned: &pinned, snapshot, plan: &plan, options, started })
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
        let mut sink = |_: &vervet_expression::Evaluator<'_>, batch: &vervet_kernel::Batch| {
            Ok(if enough && batch.rows > 0 { Flow::Done } else { Flow::More })
        };
        self.execute(options, |execution| {
            let profile = if run { Some(execution.run(&mut sink)?.1) } else { None };
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
        let plan = self.compiled.plan(&self.database.published(), options, options.begin())?;
        Ok(vervet_driver_local::is_heavy(&plan, options.parallelism()))
    }

    /// Whether the result is a graph (`CONSTRUCT`, `DESCRIBE`) rather than rows or a truth value.
    #[must_use]
    pub fn is_graph(&self) -> bool {
        matches!(self.compiled.query.form, Form::Construct { .. } | Form::Describe(_))
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
            let (_, profile) = execution.run(&mut |_, batch| {
                found |= batch.rows > 0;
                Ok(if found { Flow::Done } else { Flow::More })
            })?;
            (Answer::Boolean(found), profile)
        }
        Form::Construct { statements, triples } => {
            let (graph, profile) = construct::construct(execution, query, statements, triples)?;
            (Answer::Graph(graph), profile)
        }
        Form::Describe(resources) => {
            let (graph, profile) = construct::describe(execution, resources)?;
            (Answer::Graph(graph), profile)
        }
    };
    Ok((answer, execution.options.profile.then(|| execution.explain_profile(&profile))))
}

/// Prefixes that shorten terms in plans.
pub(crate) fn prefixes() -> Vec<vervet_planner::Prefix<'static>> {
    vervet_sparql::well_known_prefixes().to_vec()
}

/// The parameter values of a plan, in its order.
pub(crate) fn parameter_values<'o>(plan: &Plan, options: &'o QueryOptions) -> Result<Vec<&'o Term>> {
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
    use crate::{ServiceAnswer, ServiceClient, Services};
    use std::time::Duration;

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
