//! Options, progress and report of a load.

use crate::header::Names;
use crate::{Format, Mapping};
use oxrdf::NamedNode;
use std::fmt;
use std::sync::atomic::AtomicBool;

/// Receiver of progress reports, such as a progress bar.
pub trait Progress: Sync {
    /// Called every few MB with totals since the start: bytes read (compressed bytes for compressed input),
    /// total bytes if known, statements added.
    fn advance(&self, bytes_read: u64, bytes_total: Option<u64>, statements: u64);

    /// Called repeatedly after all input is read, while the target builds the graph (in `vervet::Database`: a
    /// third to a half of the time of a load), from any thread: steps done, total steps. By default a no-op.
    fn build(&self, _done: u64, _total: u64) {}
}

/// Options of a load.
#[derive(Clone)]
pub struct LoadOptions<'a> {
    /// The format of every source; `None`: by the extension of its name.
    pub format: Option<Format>,
    /// The graph of statements without one, and of all statements of property graphs.
    pub graph: Option<NamedNode>,
    /// Base for relative IRIs (Turtle, TriG, RDF/XML, JSON-LD).
    pub base_iri: Option<String>,
    /// Number of threads, the calling one included; 0 counts as 1.
    pub threads: usize,
    /// Continue after a malformed statement if the format permits it.
    pub skip_errors: bool,
    /// Receiver of progress reports.
    pub progress: Option<&'a dyn Progress>,
    /// Stops the load with [`vervet_model::ErrorKind::Cancelled`] soon after it becomes `true`. A load that
    /// is already published then completes normally.
    pub cancelled: Option<&'a AtomicBool>,
    /// Prefix of all blank-node labels of this load; letters and digits only. Labels of file `n` become
    /// `{blank_scope}{n}_{label}`, so labels of different files are distinct. Use a new scope for each load
    /// into the same target.
    pub blank_scope: String,
    /// CSV and Parquet: the file name defines the label or relation, and header names like `Person.id` are
    /// ids, as in the files of the LDBC social network.
    pub names_from_files: bool,
    /// Roles of table columns that headers do not define. An entry that matches none of the sources is an
    /// error.
    pub mapping: Option<Mapping>,
    /// CSV and Parquet: the id column of vertices in tables without one in the header; case-insensitive.
    pub id_column: Option<String>,
    /// CSV and Parquet: row numbers become ids of vertices without an id column, in an id space with the name
    /// of the file.
    pub row_ids: bool,
    /// Keys with labels: of GraphML by name or id, and columns of tables without another label column.
    pub label_keys: Vec<String>,
    /// CSV and Parquet: the label of vertices and edges to which neither the table nor the name of its file
    /// gives one.
    pub default_label: Option<String>,
    /// Whether an undirected edge (GraphML, and the column `Type` of Gephi) becomes two edges, one per
    /// direction, instead of one in its written direction. [`LoadReport::undirected_edges`] counts them.
    pub both_directions: bool,
    /// Predicates with ordered entries: each with the property that orders them, of its edges if one of them
    /// has it, else of the neighbours. Names of keys, or IRIs. Used by targets that store orders; the loader
    /// ignores it.
    pub orders: Vec<(String, String)>,
    /// Whether the words of literals are indexed for full-text search; a database with such an index keeps
    /// it. Used by the builder of the dictionary; the loader ignores it.
    pub text_index: bool,
}

impl LoadOptions<'_> {
    /// The options for the header of the file with this stem; `from_files`: file names define labels and
    /// relations.
    pub(crate) fn header_names<'a>(&'a self, stem: &'a str, from_files: bool) -> Names<'a> {
        Names {
            stem,
            from_files,
            id: self.id_column.as_deref(),
            labels: &self.label_keys,
            default_label: self.default_label.as_deref(),
            row_ids: self.row_ids,
        }
    }
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
            default_label: None,
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

/// Report of a load.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LoadReport {
    /// Statements read, including those that occur twice or were there before.
    pub statements: u64,
    /// Statements that a database did not have before. Set by the database; 0 from the loader alone.
    pub added: u64,
    /// Malformed statements skipped.
    pub skipped: u64,
    /// Bytes read (compressed bytes for compressed input).
    pub bytes: u64,
    /// Vertices of property graphs merged with an earlier one of this load, because their ids are equal.
    pub merged_vertices: u64,
    /// Vertices that occur only as ends of edges: they have no label and no properties.
    pub missing_vertices: u64,
    /// Edges that are undirected in their file; see [`LoadOptions::both_directions`].
    pub undirected_edges: u64,
    /// Remarks for the user, such as a column that became text because of one value; at most [`NOTES_MAX`].
    pub notes: Vec<String>,
}

/// Maximum number of notes in a [`LoadReport`].
pub const NOTES_MAX: usize = 100;

impl LoadReport {
    /// The notes, and the meaning of the counts in words. `both_directions`: of the options; `digits`: the
    /// form of numbers.
    #[must_use]
    pub fn remarks(&self, both_directions: bool, digits: impl Fn(u64) -> String) -> Vec<String> {
        let mut remarks = self.notes.clone();
        let mut count = |number: u64, one: &str, many: &str| {
            if number > 0 {
                remarks.push(format!("{} {}", digits(number), if number == 1 { one } else { many }));
            }
        };
        count(
            self.merged_vertices,
            "vertex has an id that an earlier one had: they became one",
            "vertices have ids that earlier ones had: they became one each",
        );
        count(
            self.missing_vertices,
            "vertex is named by edges alone, and has no label and no properties",
            "vertices are named by edges alone, and have no labels and no properties",
        );
        match both_directions {
            true => count(
                self.undirected_edges,
                "undirected edge was loaded in both directions",
                "undirected edges were loaded in both directions",
            ),
            false => count(
                self.undirected_edges,
                "undirected edge was loaded in the direction in which it is written",
                "undirected edges were loaded in the direction in which they are written",
            ),
        }
        if self.statements == 0 && self.bytes > 0 && self.skipped == 0 {
            remarks.push(
                "the files hold no statements; keys of JSON-LD mean something only by a @context".to_owned(),
            );
        }
        remarks
    }

    /// Adds a note, up to the maximum.
    pub(crate) fn add_note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        }
    }
}
