//! What a caller may choose, how it follows the load, and what it learns at the end.

use crate::{Format, Mapping};
use oxrdf::NamedNode;
use std::fmt;
use std::sync::atomic::AtomicBool;

/// Follows a load, for a progress bar.
pub trait Progress: Sync {
    /// Called every few MB with sums since the start: bytes read (compressed ones, where the input is
    /// compressed), bytes in all if known, statements added.
    fn advance(&self, bytes_read: u64, bytes_total: Option<u64>, statements: u64);
}

/// Choices for one load.
#[derive(Clone)]
pub struct LoadOptions<'a> {
    /// The format of every source; `None`: by the extension of its name.
    pub format: Option<Format>,
    /// Where statements go that name no graph, and all statements of property graphs.
    pub graph: Option<NamedNode>,
    /// Relative IRIs are resolved against it (Turtle, TriG, RDF/XML, JSON-LD).
    pub base_iri: Option<String>,
    /// Number of threads, the calling one included; 0 counts as 1.
    pub threads: usize,
    /// Go on after a malformed statement where the format permits it.
    pub skip_errors: bool,
    /// Is told how far the load is.
    pub progress: Option<&'a dyn Progress>,
    /// Stops the load with [`vervet_model::ErrorKind::Cancelled`] soon after it becomes `true`.
    pub cancelled: Option<&'a AtomicBool>,
    /// Start of all blank-node labels of this load; letters and digits only. Labels of file `n` become
    /// `{blank_scope}{n}_{label}`, so labels of different files never meet. Choose another scope for
    /// each load into the same target.
    pub blank_scope: String,
    /// CSV and Parquet: the file name says label or relation and header names like `Person.id` are ids, as in the
    /// files of the LDBC social network.
    pub names_from_files: bool,
    /// What the columns of tables are, where their headers do not say it.
    pub mapping: Option<Mapping>,
    /// Predicates whose entries can be listed in an order: each with the property that orders them, of its
    /// edges if one of them has it, else of the neighbours. Names of keys, or IRIs. For targets that keep
    /// orders; reading does nothing with it.
    pub orders: Vec<(String, String)>,
    /// Whether the words of texts get an index, for full-text search; a database that has one keeps it. For whoever makes
    /// the dictionary; reading does nothing with it.
    pub text_index: bool,
}

impl Default for LoadOptions<'_> {
    fn default() -> Self {
        Self {
            format: None,
            graph: None,
            base_iri: None,
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            skip_errors: false,
            progress: None,
            cancelled: None,
            blank_scope: "f".to_owned(),
            names_from_files: false,
            mapping: None,
            orders: Vec::new(),
            text_index: false,
        }
    }
}

impl fmt::Debug for LoadOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadOptions")
            .field("format", &self.format)
            .field("graph", &self.graph)
            .field("base_iri", &self.base_iri)
            .field("threads", &self.threads)
            .field("skip_errors", &self.skip_errors)
            .field("blank_scope", &self.blank_scope)
            .field("names_from_files", &self.names_from_files)
            .field("mapping", &self.mapping)
            .field("orders", &self.orders)
            .field("text_index", &self.text_index)
            .finish_non_exhaustive()
    }
}

/// What a load has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LoadReport {
    /// Statements added, duplicates counted.
    pub statements: u64,
    /// Malformed statements passed over.
    pub skipped: u64,
    /// Bytes read (compressed ones, where the input is compressed).
    pub bytes: u64,
}
