//! Gremlin: the same graph as vertices, edges and properties, walked and changed step by step.
//!
//! Names stand for IRIs as with the typed interface and the loaders (docs/loading.md), so SPARQL sees what a
//! traversal writes, and a traversal walks what was loaded as RDF. This module also has the values of the
//! language ([`Value`], [`Vertex`], [`Map`], …) and its [`Bytecode`].
//!
//! ```
//! use vervet::Database;
//! use vervet::gremlin::Value;
//!
//! # fn main() -> vervet::Result<()> {
//! let db = Database::in_memory();
//! db.gremlin(
//!     r#"g.addV("person").property("name", "marko").property("age", 29).as("marko").
//!          addV("person").property("name", "vadas").property("age", 27).as("vadas").
//!          addV("person").property("name", "josh").property("age", 32).as("josh").
//!          addV("software").property("name", "lop").property("lang", "java").as("lop").
//!          addE("knows").from("marko").to("vadas").property("weight", 0.5).
//!          addE("knows").from("marko").to("josh").property("weight", 1.0).
//!          addE("created").from("marko").to("lop").property("weight", 0.4).
//!          addE("created").from("josh").to("lop").property("weight", 0.4)"#,
//! )?;
//! let friends = db.gremlin(r#"g.V().has("name", "marko").out("knows").order().by("age").values("name")"#)?;
//! assert_eq!(friends.into_values()?, [Value::text("vadas"), Value::text("josh")]);
//!
//! // The same graph in the other language.
//! let creators = db.select(
//!     "PREFIX : <urn:vervet:key:>
//!      SELECT ?name { ?who :created ?what ; :name ?name . ?what :name \"lop\" } ORDER BY ?name",
//! )?;
//! assert_eq!(creators.rows().next().expect("two of them").text("name")?.as_deref(), Some("josh"));
//! # Ok(())
//! # }
//! ```
//!
//! # Transactions
//! A text that only reads sees one version of the graph. One that may write is a transaction of its own, and
//! runs again from its start when it conflicts with others ([`Database::transact`]). In a [`Transaction`] it
//! sees and adds to the changes of that; if it fails, the transaction is as it was before.
//! # Writes
//! A step that writes takes all that the steps before it find before it changes anything, so `g.V().addV()`
//! ends. A step behind it sees its changes.

mod files;
mod host;
mod run;
mod solve;

pub use vervet_gremlin::{
    Barrier, Bulk, Bytecode, Cardinality, Column, Comparison, Direction, Duration, Edge, EdgeDetail, EdgeKey,
    Extended, GType, Instruction, Lambda, Map, Merge, Metric, Metrics, Operator, Order, P, Path, Pick, Pop,
    Property, PropertyDetail, PropertyKey, Scope, Set, Span, Strategy, Subgraph, T, TextTest, TimeUnit,
    Token, Tree, Value, Vertex, VertexDetail, VertexProperty, text,
};
pub use vervet_traversal::{Materialize, VALUES_MAX};

use crate::execute::seed;
use crate::options::{CancelToken, QUERY_MEMORY_DEFAULT_BYTES, QUERY_TIMEOUT_DEFAULT};
use crate::{Database, Transaction};
use solve::SnapshotHost;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;
use text::Statement;
use vervet_env::Environment;
use vervet_kernel::{Control, Limits};
use vervet_model::{Error, ErrorKind, Result};

/// Limits and names of one text of Gremlin.
#[derive(Clone, Debug)]
pub struct GremlinOptions {
    /// When to give up; `None`: never.
    pub timeout: Option<std::time::Duration>,
    /// The most bytes that steps may hold; `None`: no cap.
    pub memory_limit_bytes: Option<u64>,
    /// Lets another thread end it.
    pub cancel: Option<CancelToken>,
    /// Values of variables.
    pub bindings: HashMap<String, Value>,
    /// Names of the traversal source; all of them mean this graph.
    pub sources: Vec<String>,
    /// How much of the elements among the results is told.
    pub materialize: Materialize,
    /// The folder that `io()` may read files of, and write files to; `None`: it is off. Names in a text are
    /// relative to it.
    pub files: Option<PathBuf>,
    /// On how many threads a heavy query in it and its algorithms run; `None`: as many as there are cores.
    pub threads: Option<usize>,
    /// Give up, as if the deadline had passed, before a query in it runs that is expected to be heavy
    /// ([`crate::Prepared::is_heavy`]): for those who have other room for such.
    pub refuse_heavy: bool,
    /// Whether kernels run what of a traversal is a query, in the order that the planner chooses. Without,
    /// every step runs as it stands; the results are the same, but for the order of those that have none.
    pub kernels: bool,
}

impl Default for GremlinOptions {
    fn default() -> Self {
        Self {
            timeout: Some(QUERY_TIMEOUT_DEFAULT),
            memory_limit_bytes: Some(QUERY_MEMORY_DEFAULT_BYTES),
            cancel: None,
            bindings: HashMap::new(),
            sources: vec!["g".to_owned()],
            materialize: Materialize::default(),
            files: None,
            threads: None,
            refuse_heavy: false,
            kernels: true,
        }
    }
}

impl GremlinOptions {
    /// The same options with a value for a variable.
    #[must_use]
    pub fn with_binding(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.bindings.insert(name.into(), value.into());
        self
    }

    /// The limits. Their time began at `started`, or begins now.
    fn limits(&self, started: Option<Instant>) -> Limits {
        let started = started.unwrap_or_else(Instant::now);
        Limits {
            cancelled: self.cancel.as_ref().map(CancelToken::flag),
            deadline: self.timeout.and_then(|timeout| Some((started.checked_add(timeout)?, timeout))),
            memory_bytes: self.memory_limit_bytes,
        }
    }
}

/// The results of a traversal, each with how many times in a row it comes.
///
/// # Invariants
/// There are at most 2^64 - 1.
/// # Cost
/// A value and 8 bytes for each, which count against the memory cap while they are gathered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GremlinResults {
    counted: Vec<(Value, u64)>,
    count: u64,
}

impl GremlinResults {
    /// Appends a result that comes `count` times.
    fn push(&mut self, value: Value, count: u64) -> Result<()> {
        let Some(total) = self.count.checked_add(count) else {
            let message = format!("there are more than {} results", u64::MAX);
            return Err(Error::new(ErrorKind::Query, message).with_hint("count them with count()"));
        };
        self.count = total;
        self.counted.push((value, count));
        Ok(())
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counted.is_empty()
    }

    /// The results with their counts.
    #[must_use]
    pub fn counted(&self) -> &[(Value, u64)] {
        &self.counted
    }

    /// The results, each as often as it comes. There may be 2^60 of one: the work is that of who goes through
    /// them.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.counted.iter().flat_map(|(value, count)| (0..*count).map(move |_| value))
    }

    /// The same, owned.
    ///
    /// # Errors
    /// [`ErrorKind::MemoryLimit`]: there are more than [`VALUES_MAX`]; then [`Self::counted`] has them.
    pub fn into_values(self) -> Result<Vec<Value>> {
        if self.count > VALUES_MAX {
            let message =
                format!("{} results are more than a list holds, {VALUES_MAX} (VALUES_MAX)", self.count);
            return Err(Error::new(ErrorKind::MemoryLimit, message)
                .with_hint("GremlinResults::counted() has each with its count"));
        }
        let mut all = Vec::with_capacity(usize::try_from(self.count).unwrap_or(0));
        for (value, count) in self.counted {
            all.extend((1..count).map(|_| value.clone()));
            all.push(value);
        }
        Ok(all)
    }
}

/// Statements that can run, read from a text or made of bytecode.
#[derive(Clone, Debug)]
pub struct GremlinScript {
    statements: Vec<Statement>,
    mutates: bool,
}

impl GremlinScript {
    /// Reads a text.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] with line, column and a caret. No randomness for `UUID()`.
    fn parse(text: &str, options: &GremlinOptions, environment: &Environment) -> Result<Self> {
        // Only `UUID()` asks for randomness, and the system takes its time to give any.
        let halves = if text.contains("UUID") { [seed(environment)?, seed(environment)?] } else { [0; 2] };
        let names = text::ParseOptions {
            sources: Cow::Borrowed(&options.sources),
            bindings: Cow::Borrowed(&options.bindings),
            now: environment.clock.wall().into(),
            seed: u128::from(halves[0]) << 64 | u128::from(halves[1]),
        };
        Ok(Self::new(text::parse(text, &names)?))
    }

    fn new(statements: Vec<Statement>) -> Self {
        let mutates = statements.iter().any(|statement| match statement {
            Statement::Traversal { bytecode, .. } => vervet_traversal::mutates(bytecode),
            _ => false,
        });
        Self { statements, mutates }
    }

    /// Whether it may change the graph.
    #[must_use]
    pub fn mutates(&self) -> bool {
        self.mutates
    }

    /// The statements, in order.
    #[must_use]
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }
}

impl From<Vec<Statement>> for GremlinScript {
    fn from(statements: Vec<Statement>) -> Self {
        Self::new(statements)
    }
}

/// All results of a traversal.
impl From<Bytecode> for GremlinScript {
    fn from(bytecode: Bytecode) -> Self {
        Self::new(vec![Statement::Traversal { source: 0, bytecode, terminal: None }])
    }
}

/// Called with every result, and how many times it comes.
pub type Each<'e> = dyn FnMut(Value, u64) -> Result<()> + 'e;

impl Database {
    /// Runs a text of Gremlin; of several statements in one transaction the results of the last.
    ///
    /// # Errors
    /// [`ErrorKind::Query`]: a mistake in the text, with line, column and a caret, or what the steps cannot
    /// do with their values. [`ErrorKind::Input`]: an element with the same id is there. Limits. Of writes:
    /// [`ErrorKind::Conflict`] after [`crate::ATTEMPTS_MAX`] attempts, [`ErrorKind::Constraint`], and as
    /// [`Database::begin`].
    pub fn gremlin(&self, text: &str) -> Result<GremlinResults> {
        self.gremlin_with(text, &GremlinOptions::default())
    }

    /// [`Database::gremlin`] with options.
    ///
    /// # Errors
    /// As [`Database::gremlin`].
    pub fn gremlin_with(&self, text: &str, options: &GremlinOptions) -> Result<GremlinResults> {
        self.run_gremlin(&self.gremlin_script(text, options)?, options)
    }

    /// Reads a text without running it.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] with line, column and a caret.
    pub fn gremlin_script(&self, text: &str, options: &GremlinOptions) -> Result<GremlinScript> {
        GremlinScript::parse(text, options, self.environment())
    }

    /// Runs bytecode.
    ///
    /// # Errors
    /// As [`Database::gremlin`].
    pub fn traverse(&self, bytecode: &Bytecode, options: &GremlinOptions) -> Result<GremlinResults> {
        self.run_gremlin(&bytecode.clone().into(), options)
    }

    /// Runs statements; the results of the last.
    ///
    /// # Errors
    /// As [`Database::gremlin`].
    pub fn run_gremlin(&self, script: &GremlinScript, options: &GremlinOptions) -> Result<GremlinResults> {
        let mut results = GremlinResults::default();
        self.each_result(script, options, true, &mut |value, count| results.push(value, count))?;
        Ok(results)
    }

    /// Runs statements, and calls `each` with every result of the last: while it runs if it only reads, and
    /// once it is committed if it may write. An error of `each` ends it, and is returned; a write is not
    /// undone by it.
    ///
    /// # Errors
    /// As [`Database::gremlin`]; those of `each`.
    pub fn gremlin_each(
        &self,
        script: &GremlinScript,
        options: &GremlinOptions,
        each: &mut Each<'_>,
    ) -> Result<()> {
        self.each_result(script, options, false, each)
    }

    /// As [`Database::gremlin_each`]. `keeps`: `each` keeps the results, so they count against the memory
    /// cap.
    fn each_result(
        &self,
        script: &GremlinScript,
        options: &GremlinOptions,
        keeps: bool,
        each: &mut Each<'_>,
    ) -> Result<()> {
        let limits = options.limits(None);
        if !script.mutates {
            let snapshot = self.snapshot();
            let control = Control::with_gate(limits, self.driver().gate());
            let mut host = SnapshotHost { database: self, snapshot, options };
            return run::all(&script.statements, &mut host, &control, options, &mut |value, count| {
                if keeps {
                    control.grow(run::result_bytes(&value, &control)?)?;
                }
                each(value, count)
            });
        }
        let results = self.transact(|transaction| {
            let control = Control::with_gate(limits.clone(), self.driver().gate());
            let mut results = Vec::new();
            run::all_in(transaction, &script.statements, &control, options, &mut |value, count| {
                control.grow(run::result_bytes(&value, &control)?)?;
                results.push((value, count));
                Ok(())
            })?;
            Ok(results)
        })?;
        results.into_iter().try_for_each(|(value, count)| each(value, count))
    }
}

impl Transaction {
    /// Runs a text of Gremlin on what this transaction sees; of several statements the results of the last.
    /// If it fails half way, the transaction is as it was before.
    ///
    /// # Errors
    /// As [`Database::gremlin`], but for those of commits.
    pub fn gremlin(&mut self, text: &str) -> Result<GremlinResults> {
        self.gremlin_with(text, &GremlinOptions::default())
    }

    /// [`Transaction::gremlin`] with options.
    ///
    /// # Errors
    /// As [`Transaction::gremlin`].
    pub fn gremlin_with(&mut self, text: &str, options: &GremlinOptions) -> Result<GremlinResults> {
        let script = self.database.gremlin_script(text, options)?;
        self.run_gremlin(&script, options)
    }

    /// Runs bytecode on what this transaction sees.
    ///
    /// # Errors
    /// As [`Transaction::gremlin`].
    pub fn traverse(&mut self, bytecode: &Bytecode, options: &GremlinOptions) -> Result<GremlinResults> {
        self.run_gremlin(&bytecode.clone().into(), options)
    }

    /// Runs statements on what this transaction sees; the results of the last.
    ///
    /// # Errors
    /// As [`Transaction::gremlin`].
    pub fn run_gremlin(
        &mut self,
        script: &GremlinScript,
        options: &GremlinOptions,
    ) -> Result<GremlinResults> {
        let mut results = GremlinResults::default();
        self.each_result(script, options, true, &mut |value, count| results.push(value, count))?;
        Ok(results)
    }

    /// Runs statements on what this transaction sees, and calls `each` with every result of the last while it
    /// runs. After an error, also of `each`, the transaction is as it was before.
    ///
    /// # Errors
    /// As [`Transaction::gremlin`]; those of `each`.
    pub fn gremlin_each(
        &mut self,
        script: &GremlinScript,
        options: &GremlinOptions,
        each: &mut Each<'_>,
    ) -> Result<()> {
        self.each_result(script, options, false, each)
    }

    /// As [`Transaction::gremlin_each`]. `keeps`: `each` keeps the results, so they count against the memory
    /// cap.
    fn each_result(
        &mut self,
        script: &GremlinScript,
        options: &GremlinOptions,
        keeps: bool,
        each: &mut Each<'_>,
    ) -> Result<()> {
        let limits = options.limits(self.started);
        let control = Control::with_gate(limits, self.database.driver().gate());
        let mut counted = |value: Value, count: u64| {
            if keeps {
                control.grow(run::result_bytes(&value, &control)?)?;
            }
            each(value, count)
        };
        if !script.mutates {
            return run::all_in(self, &script.statements, &control, options, &mut counted);
        }
        let before = self.inner.savepoint();
        let done = run::all_in(self, &script.statements, &control, options, &mut counted);
        if done.is_err() {
            self.inner.roll_back_to(&before)?;
        }
        done
    }
}

/// `g.tx()` where there is no session.
fn not_here(action: text::Transaction) -> Error {
    let name = match action {
        text::Transaction::Begin => "begin",
        text::Transaction::Commit => "commit",
        text::Transaction::Rollback => "rollback",
    };
    let message = format!("g.tx().{name}() has no transaction to act on here");
    Error::new(ErrorKind::Query, message)
        .with_hint("a text is a transaction of its own; use `Database::begin`, or a session of the server")
}
