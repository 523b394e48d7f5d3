//! gMark: conjunctions of regular paths over generated graphs, checked by an independent evaluator.
//!
//! # Shape
//! The published workloads `social` and `test`, of 50 queries each, on the published instances. Both are read
//! from `conformance/gmark` in the folder of test data; without it there is nothing to run, and [`data_sets`]
//! says so. The queries use `(path){,3}` of a draft of SPARQL 1.1; [`CountedPath`] selects its meaning.
//! # Source
//! Bagan, Bonifati, Ciucanu, Fletcher, Lemay, Advokaat, "gMark: Schema-Driven Generation of Graphs and
//! Queries", TKDE 29(4), 2017.

mod evaluate;
mod parse;
mod random;
mod relation;

pub use evaluate::{EdgesByPredicate, PathGraph};
pub use parse::{CountedPath, PathQuery, as_sparql, parse};
pub use random::random_data_set;
pub use relation::Relation;

use super::data_set::{Benchmark, DataOptions, DataSet, OutsideQuery, Reference};
use crate::data::{self, PlainFile};
use crate::digest::{RowsDigest, cell_hash};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use vervet_model::{Error, ErrorKind, Result};

/// The namespace of the queries.
const NAMESPACE: &str = "http://example.org/gmark/";

/// The published workloads.
const WORKLOADS: [&str; 2] = ["social", "test"];

/// The number of queries of a workload.
const QUERIES: usize = 50;

/// A result with more rows is not evaluated independently.
const ROWS_MAX: u64 = 100_000_000;

/// The folder of the published data; `None` if it does not exist.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    let folder = data::test_data()?.join("conformance/gmark");
    folder.is_dir().then_some(folder)
}

/// Passes the data sets to `each`, one after the other.
///
/// # Errors
/// The data is missing or unreadable; as `each`.
pub fn data_sets(options: &DataOptions, each: &mut dyn FnMut(DataSet) -> Result<()>) -> Result<()> {
    let Some(folder) = folder() else {
        println!("gmark is skipped: neither VERVET_TEST_DATA nor ../shared has conformance/gmark");
        return Ok(());
    };
    for name in WORKLOADS {
        let graph = read_graph(&folder.join(format!("graphs/{name}-graph.txt.zst")))?;
        let texts = (0..QUERIES)
            .map(|index| {
                let file = folder.join(format!("demo/{name}/translated/query-{index}.sparql"));
                Ok((format!("g{index:02}"), data::read(&file)?))
            })
            .collect::<Result<Vec<_>>>()?;
        each(data_set(name.to_owned(), &graph, texts, options.counted)?)?;
    }
    Ok(())
}

/// Edges as (source, predicate, target), distinct.
type Edges = Vec<(u32, u32, u32)>;

/// A data set over `edges` with queries in the notation of gMark.
fn data_set(
    name: String,
    edges: &Edges,
    texts: Vec<(String, String)>,
    counted: CountedPath,
) -> Result<DataSet> {
    let file = PlainFile::write(|out| {
        for (source, predicate, target) in edges {
            let (source, target) = (vertex(*source), vertex(*target));
            writeln!(out, "{source} <{NAMESPACE}p{predicate}> {target} .")?;
        }
        Ok(())
    })?;
    let parsed = texts.iter().map(|(_, text)| parse(text)).collect::<Result<Vec<_>>>()?;
    let queries =
        texts.into_iter().map(|(name, text)| OutsideQuery::new(name, as_sparql(&text, counted))).collect();
    let reference = Workload { graph: path_graph(edges, counted), queries: parsed };
    let reference: Option<Box<dyn Reference>> = Some(Box::new(reference));
    Ok(DataSet { benchmark: Benchmark::GMark, name, file, queries, reference })
}

fn vertex(number: u32) -> String {
    format!("<{NAMESPACE}v{number}>")
}

/// The graph for the evaluator, with vertices numbered densely.
fn path_graph(edges: &Edges, counted: CountedPath) -> PathGraph {
    let (mut numbers, mut cells) = (FxHashMap::default(), Vec::new());
    let mut dense = |number: u32| {
        *numbers.entry(number).or_insert_with(|| {
            cells.push(cell_hash(&vertex(number)));
            u32::try_from(cells.len() - 1).unwrap_or(u32::MAX)
        })
    };
    let mut by_predicate = EdgesByPredicate::default();
    for &(source, predicate, target) in edges {
        let pair = (dense(source), dense(target));
        by_predicate.entry(predicate).or_default().push(pair);
    }
    PathGraph::new(by_predicate, cells, counted, ROWS_MAX)
}

struct Workload {
    graph: PathGraph,
    queries: Vec<PathQuery>,
}

impl Reference for Workload {
    fn digest(&self, index: usize) -> Result<RowsDigest> {
        match self.queries.get(index) {
            Some(query) => self.graph.evaluate(query),
            None => Err(Error::internal(format!("there is no query {index}"))),
        }
    }
}

/// The distinct edges of a packed file with lines `source predicate target`.
fn read_graph(file: &Path) -> Result<Edges> {
    let failed = |error: io::Error| Error::io(format_args!("read {}", file.display()), &error);
    let packed = zstd::Decoder::new(File::open(file).map_err(failed)?).map_err(failed)?;
    let text = io::read_to_string(packed).map_err(failed)?;
    let mut edges = Edges::new();
    for (index, line) in text.lines().enumerate() {
        let mut numbers = line.split(' ').map(str::parse);
        let (Some(Ok(source)), Some(Ok(predicate)), Some(Ok(target))) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            let what = format!("{}:{}: no edge in {line:?}", file.display(), index + 1);
            return Err(Error::new(ErrorKind::Input, what));
        };
        edges.push((source, predicate, target));
    }
    edges.sort_unstable();
    edges.dedup();
    Ok(edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All published queries are of the form that the parser and the evaluator support.
    #[test]
    fn published_queries_are_read() {
        let Some(folder) = folder() else {
            println!("skipped: no conformance/gmark at ../shared nor in VERVET_TEST_DATA");
            return;
        };
        let mut asks = 0;
        for name in WORKLOADS {
            for index in 0..QUERIES {
                let file = folder.join(format!("demo/{name}/translated/query-{index}.sparql"));
                let text = data::read(&file).unwrap();
                let query = parse(&text).unwrap();
                assert!(!query.bodies.is_empty(), "{name} {index}");
                asks += usize::from(query.is_ask);
                for counted in [CountedPath::Star, CountedPath::Three] {
                    let sparql = as_sparql(&text, counted);
                    assert!(!sparql.contains("{,") && !sparql.contains("{ }"), "{sparql}");
                }
            }
        }
        assert_eq!(asks, 23);
    }
}
