//! Vervet: one embedded graph database for RDF with SPARQL and for property graphs.
//!
//! A [`Database`] lives in memory or in a directory. It supports bulk loads, and queries from any number of
//! threads; every query reads the snapshot of the graph at its begin.
//!
//! ```
//! use vervet::{Database, Direction, Format};
//!
//! # fn main() -> vervet::Result<()> {
//! let db = Database::in_memory();
//! db.load_text(
//!     Format::Turtle,
//!     r#"@prefix : <http://example.org/> .
//!        :ann a :Person ; :name "Ann" ; :knows :bob, :eve .
//!        :bob a :Person ; :name "Bob" ; :knows :eve .
//!        :eve a :Person ; :name "Eve" ."#,
//! )?;
//!
//! // SPARQL, with the solutions as typed rows.
//! let solutions = db.select(
//!     "PREFIX : <http://example.org/>
//!      SELECT ?name (COUNT(?friend) AS ?friends) WHERE {
//!        ?person :name ?name . OPTIONAL { ?person :knows ?friend }
//!      } GROUP BY ?name ORDER BY DESC(?friends)",
//! )?;
//! let first = solutions.rows().next().expect("there are three people");
//! assert_eq!(first.text("name")?.as_deref(), Some("Ann"));
//! assert_eq!(first.integer("friends")?, Some(2));
//!
//! // The same graph through the typed interface.
//! let snapshot = db.snapshot();
//! let graph = snapshot.graph();
//! let person = "http://example.org/Person";
//! let knows = "http://example.org/knows";
//! assert_eq!(graph.vertices_with_label(person)?.len(), 3);
//! let ann = graph.vertex("http://example.org/ann")?.expect("Ann was loaded");
//! assert_eq!(graph.degree(ann, knows, Direction::Out)?, 2);
//! # Ok(())
//! # }
//! ```
//!
//! # Limits
//! Queries fail at [`QUERY_TIMEOUT_DEFAULT`] and [`QUERY_MEMORY_DEFAULT_BYTES`] unless [`QueryOptions`]
//! overrides them.
//! # Threads
//! A light query runs on the calling thread. A heavy query, by estimated cost, also uses helper threads owned
//! by the database: see [`QueryOptions::threads`].
#![forbid(unsafe_code)]

pub mod algorithms;
mod database;
mod edit;
mod export;
mod feed;
pub mod gremlin;
mod loading;
mod options;
mod query;
mod status;
mod transaction;
pub mod update;
mod warnings;

/// The examples of the README and of the book run as doc tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guides/conflicts.md")]
    struct Conflicts;
    #[doc = include_str!("../../../docs/tutorial/rust.md")]
    struct RustTutorial;
}

pub use database::{ComponentSize, Database, GraphSnapshot};
pub use feed::{FeedFormat, FeedLimits};
pub use gremlin::{GremlinOptions, GremlinResults, GremlinScript};
pub use loading::{Share, read_share};
pub use options::{
    CancelToken, DatabaseOptions, HEAVY_FROM_DEFAULT, Placement, QUERY_MEMORY_DEFAULT_BYTES,
    QUERY_TIMEOUT_DEFAULT, QueryOptions, RowCounter, THREADS_MAX,
};
pub use query::answer::{Answer, Row, Solutions};
pub use query::plans::PlanCacheCounts;
pub use query::prepared::{Explanation, Prepared};
pub use query::service::{SERVICE_BYTES_MAX, ServiceAnswer, ServiceClient, Services};
pub use query::writing::{OutputFormat, Written};
pub use status::FileBytes;
pub use transaction::{ATTEMPTS_MAX, Savepoint, Transaction, TransactionOptions};
pub use warnings::Warning;

pub use vervet_driver_local::on_heavy;
pub use vervet_env::Environment;
pub use vervet_graph::{Edge, EdgeRange, Element, Graph, Vertex};
pub use vervet_load::{Format, LoadOptions, LoadReport, Mapping, Progress, Schema, Source, schema};
pub use vervet_model::{Direction, Error, ErrorKind, Id, Partitioning, Position, Result, Watch};
pub use vervet_txn::{
    Applied, CheckedLog, CheckpointStatus, ConflictCounts, Constraint, ConstraintKind, Counts, Damage,
    Durability, Feed, FeedPosition, FeedRefusal, Follower, Isolation, LogRecord, PendingCommit, RecordSource,
    SharedLog, Start, StorageStatus, Timestamp, Transactions, check_log, commit_timestamp,
};

pub use vervet_algebra::Dataset;
pub use vervet_planner::PlanStep;
pub use vervet_results::TableOptions;

/// RDF terms of the `oxrdf` crate.
pub use oxrdf::{BlankNode, Literal, NamedNode, Term, Triple};
