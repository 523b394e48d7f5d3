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

    /// Called many times once everything is read, while the target makes the graph of it (by
    /// `vervet::Database`: a third to a half of the time of a load), from any thread: steps done, steps in
    /// all. By default it does nothing.
    fn build(&self, _done: u64, _total: u64) {}
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
    /// Stops the load with [`vervet_model::ErrorKind::Cancelled`] soon after it becomes `true`. A load that
    /// has been published by then ends as if nothing had happened.
    pub cancelled: Option<&'a AtomicBool>,
    /// Start of all blank-node labels of this load; letters and digits only. Labels of file `n` become
    /// `{blank_scope}{n}_{label}`, so labels of different files never meet. Choose another scope for
    /// each load into the same target.
    pub blank_scope: String,
    /// CSV and Parquet: the file name says label or relation and header names like `Person.id` are ids, as in
    /// the files of the LDBC social network.
    pub names_from_files: bool,
    /// What the columns of tables are, where their headers do not say it. An entry that fits none of the
    /// sources is an error.
    pub mapping: Option<Mapping>,
    /// CSV and Parquet: the column that is the id of vertices, in tables whose header names none; in any case
    /// of letters.
    pub id_column: Option<String>,
    /// CSV and Parquet: rows of vertices without an id column get their number as id, in a space named as the
    /// file.
    pub row_ids: bool,
    /// Keys that are labels: of GraphML by name or id, and columns of tables that have no other label column.
    pub label_keys: Vec<String>,
    /// Whether an undirected edge (GraphML, and the column `Type` of Gephi) becomes two edges, one in each
    /// direction, in place of one in the direction in which it is written. [`LoadReport::undirected_edges`]
    /// counts them.
    pub both_directions: bool,
    /// Predicates whose entries can be listed in an order: each with the property that orders them, of its
    /// edges if one of them has it, else of the neighbours. Names of keys, or IRIs. For targets that keep
    /// orders; reading does nothing with it.
    pub orders: Vec<(String, String)>,
    /// Whether the words of texts get an index, for full-text search; a database that has one keeps it. For
    /// whoever makes the dictionary; reading does nothing with it.
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
            id_column: None,
            row_ids: false,
            label_keys: Vec::new(),
            both_directions: false,
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
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LoadReport {
    /// Statements added, duplicates counted.
    pub statements: u64,
    /// Malformed statements passed over.
    pub skipped: u64,
    /// Bytes read (compressed ones, where the input is compressed).
    pub bytes: u64,
    /// Vertices of property graphs with an id that an earlier one of this load had: they are one vertex.
    pub merged_vertices: u64,
    /// Vertices that only edges of this load name: they have no label and no properties.
    pub missing_vertices: u64,
    /// Edges that their file calls undirected; see [`LoadOptions::both_directions`].
    pub undirected_edges: u64,
    /// What else a person may want to know, such as a column that became text because of one value; at most
    /// [`NOTES_MAX`].
    pub notes: Vec<String>,
}

/// The most notes in a [`LoadReport`].
pub const NOTES_MAX: usize = 100;

impl LoadReport {
    /// Adds a note, unless there are many.
    pub(crate) fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        }
    }
}
