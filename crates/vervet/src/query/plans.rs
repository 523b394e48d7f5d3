//! Parsed queries, and the caches of their plans.

use crate::options::QueryOptions;
use crate::query::cache::Cache;
use crate::query::federation;
use crate::query::reading::{CachedPlan, plan_options};
use crate::query::run::control;
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;
use vervet_algebra::{Node, Query};
use vervet_kernel::Control;
use vervet_kernel::plan::Plan;
use vervet_model::{Result, lock};
use vervet_planner::{Corrections, PlanOptions};
use vervet_snapshot::Snapshot;
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
    /// The prefixes that the query declares and their IRIs.
    pub prefixes: Vec<(String, String)>,
    pub optimize: bool,
    /// Whether it queries other endpoints, so that each run needs a new plan.
    pub is_federated: bool,
    plan: RwLock<Option<CachedPlan>>,
    /// Whether the plan has run to its end, with about as many rows as expected.
    is_proven: AtomicBool,
    /// What its runs have taught about its joins.
    corrections: Mutex<Corrections>,
}

impl Compiled {
    /// The query to plan: itself, or with the answers of other endpoints as tables.
    pub(crate) fn resolved(&self, options: &QueryOptions, started: Instant) -> Result<Cow<'_, Query>> {
        if !self.is_federated {
            return Ok(Cow::Borrowed(&self.query));
        }
        let control = control(options, started, None);
        let _limits = control.enter();
        Ok(Cow::Owned(federation::resolved(&self.query, options, &control)?))
    }

    /// A plan of the query, as [resolved](Self::resolved), that is valid for a version of the graph; the time
    /// that `options` allow began at `started`.
    pub(crate) fn plan(
        &self,
        resolved: &Query,
        published: &Published,
        planning: &PlanOptions,
        options: &QueryOptions,
        started: Instant,
    ) -> Result<Arc<Plan>> {
        if self.is_federated || planning.unexpected_rows <= 0.0 {
            let control = control(options, started, None);
            let _limits = control.enter();
            return Ok(CachedPlan::make(resolved, published, planning, &control)?.plan);
        }
        if let Some(cached) = &*self.plan.read().unwrap_or_else(PoisonError::into_inner)
            && cached.is_valid_for(published)
        {
            return Ok(Arc::clone(&cached.plan));
        }
        let control = control(options, started, None);
        let _limits = control.enter();
        let cached = CachedPlan::make(&self.query, published, planning, &control)?;
        let plan = Arc::clone(&cached.plan);
        *self.plan.write().unwrap_or_else(PoisonError::into_inner) = Some(cached);
        self.is_proven.store(false, Relaxed);
        Ok(plan)
    }
}

impl Compiled {
    /// The options with which the query is planned for a version of the graph.
    pub(crate) fn plan_options(&self, published: &Published) -> PlanOptions {
        // Total counts change with every commit.
        let known_counts = published.version.delta_cells() == 0;
        let options = plan_options(self.optimize, known_counts);
        PlanOptions { corrections: lock(&self.corrections).clone(), ..options }
    }

    /// Whether the plan has run to its end, with about as many rows as expected.
    pub(crate) fn is_proven(&self) -> bool {
        // Relaxed, here and below: a hint.
        self.is_proven.load(Relaxed)
    }

    /// The plan has run to its end, with about as many rows as expected.
    pub(crate) fn prove(&self) {
        if !self.is_proven() {
            self.is_proven.store(true, Relaxed);
        }
    }

    /// Keeps what a run on a version of the graph has taught: a better plan for it, and corrections for
    /// later ones.
    pub(crate) fn learn(&self, published: &Published, plan: Arc<Plan>, corrections: Corrections) {
        *lock(&self.corrections) = corrections;
        if let Some(cached) = &mut *self.plan.write().unwrap_or_else(PoisonError::into_inner)
            && cached.is_valid_for(published)
        {
            cached.plan = plan;
        }
    }
}

/// A hash of the steps of a plan and their operands, without estimates: equal plans have equal hashes.
pub(crate) fn plan_hash(plan: &Plan, snapshot: &dyn Snapshot) -> u64 {
    let steps = vervet_planner::explain_steps(plan, &[], None, snapshot, &prefixes());
    let parts = steps.iter().flat_map(|step| [step.operator.as_bytes(), step.detail.as_bytes()]);
    // FNV-1a: stable across processes and versions.
    parts.fold(0xcbf2_9ce4_8422_2325, |hash, part| {
        let bytes = part.iter().chain(b"\n");
        bytes.fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
    })
}

/// Parses a query.
pub(crate) fn compile(text: &str, options: &QueryOptions) -> Result<Compiled> {
    let names = options.parse_names();
    let (query, prefixes) = vervet_sparql::parse_with_prefixes(text, &names.options(options))?;
    let is_federated = federation::is_federated(&query.root);
    Ok(Compiled {
        query,
        prefixes,
        optimize: options.optimize,
        is_federated,
        plan: RwLock::default(),
        is_proven: AtomicBool::new(false),
        corrections: Mutex::default(),
    })
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
        let known_counts = published.version.delta_cells() == 0;
        let cached = CachedPlan::make(query, published, &plan_options(true, known_counts), control)?;
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

/// Hits and misses of the cache of parsed queries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct PlanCacheCounts {
    /// Queries found in the cache.
    pub hits: u64,
    /// Queries not found in the cache.
    pub misses: u64,
}

/// Prefixes that shorten terms in plans.
pub(crate) fn prefixes() -> Vec<vervet_planner::Prefix<'static>> {
    vervet_sparql::well_known_prefixes().to_vec()
}
