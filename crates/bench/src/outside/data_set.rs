//! The interface to the benchmarks: data sets with their queries.

use crate::data::PlainFile;
use crate::digest::RowsDigest;
use std::io::{self, Write};
use vervet_generate::Prefixes;
use vervet_model::Result;

/// A benchmark designed by others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Benchmark {
    /// Conjunctions and stars of one-hop patterns over shop data (University of Waterloo).
    WatDiv,
    /// The SPARQL Performance Benchmark: publications.
    Sp2Bench,
    /// The Berlin SPARQL Benchmark: products, offers and reviews.
    Bsbm,
    /// One query for each feature of SPARQL.
    Sparqloscope,
    /// Conjunctions of regular paths over generated graphs.
    GMark,
    /// Shapes that reviews found slow, on the data of WatDiv.
    Shapes,
}

impl Benchmark {
    /// All of them, in the order in which they run.
    pub const ALL: [Self; 6] =
        [Self::WatDiv, Self::Sp2Bench, Self::Bsbm, Self::Sparqloscope, Self::GMark, Self::Shapes];

    /// Its name in options and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WatDiv => "watdiv",
            Self::Sp2Bench => "sp2bench",
            Self::Bsbm => "bsbm",
            Self::Sparqloscope => "sparqloscope",
            Self::GMark => "gmark",
            Self::Shapes => "shapes",
        }
    }
}

/// Data with its queries.
pub struct DataSet {
    /// The benchmark.
    pub benchmark: Benchmark,
    /// The name of the data, such as `social`.
    pub name: String,
    /// N-Triples.
    pub file: PlainFile,
    /// The queries.
    pub queries: Vec<OutsideQuery>,
    /// An independent source of the right results.
    pub reference: Option<Box<dyn Reference>>,
}

/// A query of a benchmark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutsideQuery {
    /// Its name, unique in its data set.
    pub name: String,
    /// SPARQL text with its prefixes.
    pub text: String,
    /// The compared aspect of results.
    pub compare: Compared,
}

impl OutsideQuery {
    /// A query whose rows are compared.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), compare: Compared::Rows }
    }
}

/// The compared aspect of two results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compared {
    /// The rows as a multiset.
    Rows,
    /// The number of rows: the choice is up to the engine (`LIMIT` without a complete order, `SAMPLE`).
    Number,
    /// Nothing: values depend on the engine (`NOW`, `RAND`).
    Nothing,
}

/// Computes right results without an engine.
pub trait Reference {
    /// The digest of the result of the query at `index` of the data set.
    ///
    /// # Errors
    /// The result is too large, or the query is not of the form that the reference evaluates.
    fn digest(&self, index: usize) -> Result<RowsDigest>;
}

/// How large data sets are, and which.
#[derive(Clone, PartialEq, Debug)]
pub struct DataOptions {
    /// Factor of the size of generated data; 1 is about a million statements.
    pub scale: f64,
    /// Seed of data and of the parameters of queries.
    pub seed: u64,
    /// The meaning of `(path){,3}` in gMark.
    pub counted: super::gmark::CountedPath,
}

impl DataOptions {
    /// The number of statements of generated data.
    pub(super) fn statements(&self) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a conversion from float saturates"
        )]
        let statements = (self.scale * 1e6) as u64;
        statements
    }
}

impl Default for DataOptions {
    fn default() -> Self {
        Self { scale: 1.0, seed: 0, counted: super::gmark::CountedPath::default() }
    }
}

/// A file with generated data.
pub(super) fn generated(write: impl FnOnce(&mut dyn Write) -> io::Result<u64>) -> Result<PlainFile> {
    PlainFile::write(|out| write(out).map(drop))
}

/// `text` after declarations of the prefixes that it uses.
pub(super) fn with_prefixes(prefixes: Prefixes, text: &str) -> String {
    let mut query = String::new();
    for (prefix, namespace) in prefixes {
        if text.contains(&format!("{prefix}:")) {
            query.push_str(&format!("PREFIX {prefix}: <{namespace}> "));
        }
    }
    query + text
}
