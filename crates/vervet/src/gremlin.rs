//! Gremlin: the same graph as vertices, edges and properties, read and changed by traversals.
//!
//! Names map to IRIs as in the typed interface and the loaders (docs/loading.md), so SPARQL reads what a
//! traversal writes, and a traversal reads what was loaded as RDF. This module also exports the values of the
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
//! A read-only script runs on one snapshot of the graph. A script that may write is a transaction of its own
//! and is retried when it conflicts with others ([`Database::transact`]). In a [`Transaction`] it sees the
//! transaction's changes and adds to them; if it fails, the transaction is rolled back to the state before
//! it.
//! # Writes
//! A write step is a barrier: it consumes all its input before it changes anything, so `g.V().addV()`
//! terminates. Later steps see its changes.

mod files;
mod options;
mod run;
mod snapshot_host;
mod transaction_host;

pub use options::GremlinOptions;
pub use run::Each;
pub use vervet_gremlin::{
    Barrier, Bulk, Bytecode, Cardinality, Column, Comparison, Direction, Duration, Edge, EdgeDetail, EdgeKey,
    Extended, GType, Instruction, Lambda, Map, Merge, Metric, Metrics, Operator, Order, P, Path, Pick, Pop,
    Property, PropertyDetail, PropertyKey, Scope, Set, Span, Strategy, Subgraph, T, TextTest, TimeUnit,
    Token, Tree, Value, Vertex, VertexDetail, VertexProperty, text,
};
pub use vervet_traversal::{Materialize, VALUES_MAX};

use crate::query::run::seed;
use crate::{Database, Transaction};
use snapshot_host::SnapshotHost;
use std::borrow::Cow;
use text::Statement;
use vervet_env::Environment;
use vervet_kernel::Control;
use vervet_model::{Error, ErrorKind, Result};

/// The results of a traversal, run-length encoded: each with its number of consecutive occurrences.
///
/// # Invariants
/// At most 2^64 - 1 results.
/// # Cost
/// A value and 8 bytes for each run, which count against the memory cap while results are collected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GremlinResults {
    counted: Vec<(Value, u64)>,
    count: u64,
}

impl GremlinResults {
    /// Appends `count` equal results.
    fn push(&mut self, value: Value, count: u64) -> Result<()> {
        let Some(total) = self.count.checked_add(count) else {
            let message = format!("there are more than {} results", u64::MAX);
            return Err(Error::new(ErrorKind::Query, message).with_hint("count them with count()"));
        };
        self.count = total;
        self.counted.push((value, count));
        Ok(())
    }

    /// The number of results.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are no results.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counted.is_empty()
    }

    /// The results with their counts.
    #[must_use]
    pub fn counted(&self) -> &[(Value, u64)] {
        &self.counted
    }

    /// The results, repeated by their counts. One result may occur 2^60 times: iteration takes that many
    /// steps.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.counted.iter().flat_map(|(value, count)| (0..*count).map(move |_| value))
    }

    /// [`Self::values`], owned.
    ///
    /// # Errors
    /// [`ErrorKind::MemoryLimit`]: more than [`VALUES_MAX`] results; [`Self::counted`] still returns them.
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

/// Executable statements, parsed from a text or built from bytecode.
#[derive(Clone, Debug)]
pub struct GremlinScript {
    statements: Vec<Statement>,
    mutates: bool,
}

impl GremlinScript {
    /// Parses a script.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] with line, column and a caret. No randomness for `UUID()`.
    fn parse(text: &str, options: &GremlinOptions, environment: &Environment) -> Result<Self> {
        // Only `UUID()` needs randomness, and the system call is slow.
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

    /// Whether the script may change the graph.
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

/// A script of one traversal that returns all its results.
impl From<Bytecode> for GremlinScript {
    fn from(bytecode: Bytecode) -> Self {
        Self::new(vec![Statement::Traversal { source: 0, bytecode, terminal: None }])
    }
}

impl Database {
    /// Runs a Gremlin script. Several statements run in one transaction; the last one returns the results.
    ///
    /// # Errors
    /// [`ErrorKind::Query`]: a mistake in the text, with line, column and a caret, or a step that cannot be
    /// applied to its values. [`ErrorKind::Input`]: an element with the same id exists. Limits. Of writes:
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

    /// Parses a script without running it.
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

    /// Runs statements; returns the results of the last.
    ///
    /// # Errors
    /// As [`Database::gremlin`].
    pub fn run_gremlin(&self, script: &GremlinScript, options: &GremlinOptions) -> Result<GremlinResults> {
        let mut results = GremlinResults::default();
        self.each_result(script, options, true, &mut |value, count| results.push(value, count))?;
        Ok(results)
    }

    /// Runs statements, and calls `each` with every result of the last: during the run if the script is
    /// read-only, and after the commit if it may write. An error of `each` ends the iteration and is
    /// returned; it does not undo a write.
    ///
    /// # Errors
    /// As [`Database::gremlin`]; errors of `each`.
    pub fn gremlin_each(
        &self,
        script: &GremlinScript,
        options: &GremlinOptions,
        each: &mut Each<'_>,
    ) -> Result<()> {
        self.each_result(script, options, false, each)
    }

    /// Like [`Database::gremlin_each`]. With `keeps`, results count against the memory cap because `each`
    /// keeps them.
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
            let _limits = control.enter();
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
            let _limits = control.enter();
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
    /// Runs a Gremlin script on what this transaction sees; the last statement returns the results. If it
    /// fails half way, the transaction is rolled back to the state before it.
    ///
    /// # Errors
    /// As [`Database::gremlin`], except for errors of commits.
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

    /// Runs statements on what this transaction sees; returns the results of the last.
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

    /// Runs statements on what this transaction sees, and calls `each` with every result of the last during
    /// the run. After an error, also of `each`, the transaction is rolled back to the state before the call.
    ///
    /// # Errors
    /// As [`Transaction::gremlin`]; errors of `each`.
    pub fn gremlin_each(
        &mut self,
        script: &GremlinScript,
        options: &GremlinOptions,
        each: &mut Each<'_>,
    ) -> Result<()> {
        self.each_result(script, options, false, each)
    }

    /// Like [`Transaction::gremlin_each`]. With `keeps`, results count against the memory cap because `each`
    /// keeps them.
    fn each_result(
        &mut self,
        script: &GremlinScript,
        options: &GremlinOptions,
        keeps: bool,
        each: &mut Each<'_>,
    ) -> Result<()> {
        let limits = options.limits(self.started);
        let control = Control::with_gate(limits, self.database.driver().gate());
        let _limits = control.enter();
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
