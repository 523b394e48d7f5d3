//! Small patterns in real and generated graphs: triangles, cliques, paths, reachability.
//!
//! Every query is a count, so serialization does not matter, and the loops provide the right count. Edges are
//! statements `<urn:v1> <urn:e> <urn:v2>`. Where an engine has no property paths, reachability uses its other
//! interface, and the report says so.

use crate::compare::{BenchmarkQuery, Contest};
use crate::data::PlainFile;
use crate::loops::PatternLoops;
use crate::measure::measure;
use crate::report::Report;
use crate::targets;
use vervet_generate::write_edges;
use vervet_model::Result;

/// A graph for pattern queries.
#[derive(Clone, Debug)]
pub struct EdgeList {
    /// What it is called.
    pub name: String,
    /// Distinct edges as (source, target).
    pub edges: Vec<(u32, u32)>,
}

/// The pattern that needs a property path.
const REACH: &str = "reach";

/// The queries, each with its hand-written loop.
pub const PATTERNS: [Pattern; 5] = [
    Pattern {
        name: "triangles",
        text: "SELECT (COUNT(*) AS ?n) { ?a <urn:e> ?b . ?b <urn:e> ?c . ?a <urn:e> ?c }",
        by_hand: |graph, _| graph.triangles(),
    },
    Pattern {
        name: "4-cliques",
        text: "SELECT (COUNT(*) AS ?n) { ?a <urn:e> ?b . ?a <urn:e> ?c . ?a <urn:e> ?d . \
               ?b <urn:e> ?c . ?b <urn:e> ?d . ?c <urn:e> ?d }",
        by_hand: |graph, _| graph.cliques(),
    },
    Pattern {
        name: "2-paths",
        text: "SELECT (COUNT(*) AS ?n) { ?a <urn:e> ?b . ?b <urn:e> ?c }",
        by_hand: |graph, _| graph.two_paths(),
    },
    Pattern {
        name: "2-hops, distinct",
        text: "SELECT (COUNT(*) AS ?n) { SELECT DISTINCT ?a ?c { ?a <urn:e> ?b . ?b <urn:e> ?c } }",
        by_hand: |graph, _| graph.two_hops(),
    },
    Pattern {
        name: REACH,
        text: "SELECT (COUNT(*) AS ?n) { <urn:v$START> <urn:e>+ ?x }",
        by_hand: PatternLoops::reach,
    },
];

/// One count.
pub struct Pattern {
    /// What it counts.
    pub name: &'static str,
    /// The query; `$START` is replaced by the number of a vertex.
    pub text: &'static str,
    /// The same count as a loop, from that vertex.
    pub by_hand: fn(&PatternLoops, u32) -> u64,
}

/// Counts every pattern in every graph, with engines created by `contest` for each; `each` gets each report
/// as soon as it is complete.
///
/// # Errors
/// As [`run`].
pub fn run_all(
    graphs: Vec<EdgeList>,
    contest: impl Fn() -> Result<Contest>,
    each: &mut dyn FnMut(&Report),
) -> Result<Vec<Report>> {
    let mut reports: Vec<Report> = Vec::new();
    for graph in graphs {
        let mut report = run(graph, &mut contest()?)?;
        if !reports.is_empty() {
            // Later graphs reuse memory freed by the first one.
            report.loads.iter_mut().for_each(|load| load.resident_bytes = None);
        }
        each(&report);
        reports.push(report);
    }
    Ok(reports)
}

/// Loads `graph` into the engines of `contest` and counts every pattern.
///
/// # Errors
/// An engine cannot load the graph. An engine that fails in a query gets a remark in the report.
pub fn run(graph: EdgeList, contest: &mut Contest) -> Result<Report> {
    let (ours, peer) = contest.names();
    let name = graph.name.clone();
    let mut report = Report::new(format!("Patterns, {name}"), ours, peer);
    let file = PlainFile::write(|out| write_edges(&graph.edges, out))?;
    report.loads = contest.load(file.path())?;
    let vertices = graph.edges.iter().map(|(source, target)| source.max(target) + 1).max().unwrap_or(0);
    let loops = PatternLoops::new(vertices as usize, graph.edges)?;
    let start = loops.largest();
    for pattern in PATTERNS {
        let text = pattern.text.replace("$START", &start.to_string());
        let count = (pattern.by_hand)(&loops, start);
        let from = format!("urn:v{start}");
        let reach = (pattern.name == REACH).then_some((from.as_str(), "urn:e"));
        let mut figures = contest.query(BenchmarkQuery { name: pattern.name, text: &text, reach }, |table| {
            match table.number() {
                Ok(number) if number == count => None,
                Ok(number) => Some(format!("counts {number}, not {count}")),
                Err(error) => Some(error.to_string()),
            }
        });
        figures.rows = Some(count);
        figures.by_hand = Some(measure(&contest.budget, || Ok((pattern.by_hand)(&loops, start)))?);
        report.queries.push(figures);
    }
    report.targets = targets::targets(&name, &report);
    Ok(report)
}
