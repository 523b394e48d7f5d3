//! Options of queries and databases: limits, parameters, environment.

use crate::query::service::Services;
use oxrdf::Term;
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use vervet_algebra::Dataset;
use vervet_driver_local::{CutPolicy, Parallelism};
pub use vervet_driver_local::{HEAVY_FROM_DEFAULT, Placement, THREADS_MAX};
use vervet_env::Environment;
use vervet_model::Partitioning;
use vervet_results::TableOptions;
use vervet_txn::Durability;

/// The default query timeout. Long enough for any analysis, but finite.
pub const QUERY_TIMEOUT_DEFAULT: Duration = Duration::from_secs(3600);

/// The default cap on the tables of a query, in bytes: a quarter of a machine with 16 GB.
pub const QUERY_MEMORY_DEFAULT_BYTES: u64 = 4 << 30;

/// Cancels queries from another thread.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token that is not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels every query that runs with this token, now or later, within one batch of rows.
    pub fn cancel(&self) {
        // Relaxed: the flag carries no data; a delay of one batch is harmless.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the token is cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag, for `LoadOptions::cancelled`, [`Watch::cancelled_by`](crate::Watch::cancelled_by) and the
    /// caller's own code.
    ///
    /// ```
    /// # use vervet::{CancelToken, Database, Format, LoadOptions, Source};
    /// # fn main() -> vervet::Result<()> {
    /// let token = CancelToken::new(); // cancel() may come from another thread
    /// let options = LoadOptions { cancelled: Some(token.as_atomic()), ..LoadOptions::default() };
    /// Database::in_memory().load(vec![Source::bytes("a.nt", *b"<urn:a> <urn:b> <urn:c> .")], &options)?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn as_atomic(&self) -> &AtomicBool {
        &self.0
    }

    /// The flag, for lower layers.
    #[doc(hidden)]
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// Counts the solutions that a running query has found, for observers on other threads.
#[derive(Clone, Debug, Default)]
pub struct RowCounter(Arc<AtomicU64>);

impl RowCounter {
    /// Solutions found so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        // Relaxed, here and below: a reading is never exact while a query runs.
        self.0.load(Ordering::Relaxed)
    }

    /// Adds to the count.
    pub fn add(&self, rows: u64) {
        self.0.fetch_add(rows, Ordering::Relaxed);
    }
}

/// Options of opening a database.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// Files, clock and randomness.
    pub environment: Environment,
    /// When a commit counts as durable.
    pub durability: Durability,
    /// Whether a transaction reads commits that are validated but not yet durable; see
    /// [`vervet_txn::Options::pre_read`].
    pub pre_read: bool,
    /// Whether a background thread merges changes once there are enough.
    pub checkpoints: bool,
    /// Whether heavy queries take turns at the processors and yield to light ones; without it, only the
    /// scheduler of the operating system decides.
    pub gate: bool,
    /// The maximum memory of unmerged changes, in bytes: see [`vervet_txn::Options::delta_bytes_max`].
    pub delta_bytes_max: u64,
    /// The maximum bytes of log that recovery may have to read: see [`vervet_txn::Options::log_bytes_max`].
    pub log_bytes_max: u64,
    /// Whether to take ownership of a directory on opening rather than with the first transaction or load. A
    /// process that is going to write then reads the log once instead of twice.
    pub to_write: bool,
    /// Number of partitions of a database in memory: see [`vervet_txn::Options::partitioning`]. Every answer
    /// is the same for each number; one partition is the fastest in one process.
    pub partitioning: Partitioning,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self {
            environment: Environment::real(),
            durability: Durability::default(),
            pre_read: true,
            checkpoints: true,
            gate: true,
            delta_bytes_max: vervet_txn::DELTA_BYTES_MAX_DEFAULT,
            log_bytes_max: vervet_txn::LOG_BYTES_MAX_DEFAULT,
            to_write: false,
            partitioning: Partitioning::WHOLE,
        }
    }
}

impl DatabaseOptions {
    pub(crate) fn of_transactions(&self) -> vervet_txn::Options {
        let mut options = vervet_txn::Options::default();
        options.durability = self.durability;
        options.pre_read = self.pre_read;
        options.checkpoints = self.checkpoints;
        options.delta_bytes_max = self.delta_bytes_max;
        options.log_bytes_max = self.log_bytes_max;
        options.partitioning = self.partitioning;
        options
    }
}

/// Limits and parameters of one query.
#[derive(Clone, Debug)]
pub struct QueryOptions {
    /// Deadline; `None`: none. Planning and running share this time.
    pub timeout: Option<Duration>,
    /// Start of the time of `timeout`; `None`: each call with these options starts it. For callers that plan
    /// and run in several calls.
    pub started: Option<Instant>,
    /// The maximum bytes of the tables of the query; `None`: no cap.
    pub memory_limit_bytes: Option<u64>,
    /// Cancels the query from another thread.
    pub cancel: Option<CancelToken>,
    /// Counter of solutions found so far.
    pub progress: Option<RowCounter>,
    /// Values of variables, by name without `?`.
    pub parameters: Vec<(String, Term)>,
    /// The base of relative IRIs in the query.
    pub base_iri: Option<String>,
    /// The dataset that the query reads instead of its own `FROM` clauses (SPARQL 1.1 Protocol, §2.1.4). In
    /// an update: the dataset of the patterns; a request with `USING` or `WITH` of its own is then an error.
    pub dataset: Option<Dataset>,
    /// Prefixes (without the colon) and their IRIs, for prefixes that the query does not declare.
    pub prefixes: Vec<(String, String)>,
    /// Whether to measure every step, for [`crate::Solutions::profile`].
    pub profile: bool,
    /// The maximum number of threads of a heavy query, the calling one included; `None`: as many as the
    /// process may use at once. Light queries run on the calling thread alone.
    pub threads: Option<usize>,
    /// The estimated single-thread time from which on a query is heavy. Zero, for tests: every query that can
    /// run in parallel is heavy, and every query with more rows than estimated is planned again.
    pub heavy_from: Duration,
    /// Whether parts of a plan may run on a device, if the database has one
    /// ([`crate::Database::with_driver`]).
    pub placement: Placement,
    /// Whether to optimize the plan. Without it, patterns run in the order of the text with the simplest
    /// operators. The answers are the same; tests compare both.
    pub optimize: bool,
    /// The endpoints that `SERVICE` may query; `None`: `SERVICE` is off.
    pub services: Option<Services>,
    /// Width and prefixes of results in the format [`crate::OutputFormat::Table`].
    pub table: TableOptions,
}

impl Default for QueryOptions {
    fn default() -> Self {
        Self {
            timeout: Some(QUERY_TIMEOUT_DEFAULT),
            started: None,
            memory_limit_bytes: Some(QUERY_MEMORY_DEFAULT_BYTES),
            cancel: None,
            progress: None,
            parameters: Vec::new(),
            base_iri: None,
            dataset: None,
            prefixes: Vec::new(),
            profile: false,
            threads: None,
            heavy_from: HEAVY_FROM_DEFAULT,
            placement: Placement::default(),
            optimize: true,
            services: None,
            table: TableOptions::default(),
        }
    }
}

/// Names predefined for the parser, borrowed from options.
pub(crate) struct ParseNames<'o> {
    parameters: Vec<&'o str>,
    prefixes: Vec<(&'o str, &'o str)>,
    dataset: Option<&'o Dataset>,
}

impl ParseNames<'_> {
    pub(crate) fn options<'s>(&'s self, options: &'s QueryOptions) -> vervet_sparql::ParseOptions<'s> {
        vervet_sparql::ParseOptions {
            base_iri: options.base_iri.as_deref(),
            parameters: &self.parameters,
            prefixes: &self.prefixes,
            dataset: self.dataset,
        }
    }
}

impl QueryOptions {
    pub(crate) fn parse_names(&self) -> ParseNames<'_> {
        ParseNames {
            parameters: self.parameters.iter().map(|(name, _)| name.as_str()).collect(),
            prefixes: self.prefixes.iter().map(|(prefix, iri)| (prefix.as_str(), iri.as_str())).collect(),
            dataset: self.dataset.as_ref(),
        }
    }

    /// The same options with a value for the variable `name` (without `?`).
    #[must_use]
    pub fn with_parameter(mut self, name: impl Into<String>, value: impl Into<Term>) -> Self {
        self.parameters.push((name.into(), value.into()));
        self
    }

    /// The same options with another number of threads (at least one).
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }

    /// The plan-cache key of a text under these options; `None`: no plan of it is cached.
    pub(crate) fn cache_key<'t>(&self, text: &'t str) -> Option<Cow<'t, str>> {
        if !self.optimize {
            return None;
        }
        let is_plain = self.base_iri.is_none() && self.dataset.is_none();
        if is_plain && self.parameters.is_empty() && self.prefixes.is_empty() {
            return Some(Cow::Borrowed(text));
        }
        // NUL separates the parts; no query contains it. Names and IRIs of options may, so they have lengths.
        let mut key = String::from(text);
        let mut add = |kind: char, part: &str| {
            let _ = write!(key, "\0{kind}{}:{part}", part.len());
        };
        self.base_iri.iter().for_each(|base| add('b', base));
        // A plan receives the values of parameters with its first row, so it does not depend on them.
        let mut names: Vec<&str> = self.parameters.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.into_iter().for_each(|name| add('?', name));
        for (prefix, iri) in &self.prefixes {
            add('p', prefix);
            add('i', iri);
        }
        if let Some(dataset) = &self.dataset {
            for graphs in [&dataset.default, &dataset.named] {
                key.push('\0');
                for graph in graphs.iter().flatten() {
                    key.push_str(graph.as_str());
                    key.push(' ');
                }
                key.push(if graphs.is_some() { '.' } else { '*' });
            }
        }
        Some(Cow::Owned(key))
    }

    /// Start of the time of `timeout`.
    pub(crate) fn begin(&self) -> Instant {
        self.started.unwrap_or_else(Instant::now)
    }

    /// How parallel the query may run.
    pub(crate) fn parallelism(&self) -> Parallelism {
        let heavy_from = self.heavy_from;
        let cut_policy = if heavy_from.is_zero() { CutPolicy::EAGER } else { CutPolicy::default() };
        let threads = self.threads.map(|threads| threads.max(1));
        Parallelism { threads, heavy_from, cut_policy, placement: self.placement }
    }

    /// The same options with another timeout.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The same options with a cancel token.
    #[must_use]
    pub fn with_cancel(mut self, token: &CancelToken) -> Self {
        self.cancel = Some(token.clone());
        self
    }
}
