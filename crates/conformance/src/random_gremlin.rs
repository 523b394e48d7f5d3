//! Random differential testing of traversals: on kernels, with every step as a step, and in TinkerGraph.
//!
//! # Shape
//! A case is a small graph and a traversal, both generated from one seed; `GRAPH_CASES` consecutive cases
//! share a graph. Results are compared as bags of canonical texts, and as lists where the traversal defines
//! their order. Two refusals agree, whatever their messages; a refusal and an answer do not.
//!
//! `graph`: the graph. `traversal`, `steps`, `argument`: the traversal. `canonical`: results as texts.
//! `answer`: answers and their limits. `peer`: TinkerGraph.

mod answer;
mod argument;
mod canonical;
mod graph;
mod peer;
mod steps;
mod traversal;

use crate::random_terms::Random;
use answer::{Answer, RESULTS_MAX, TIMEOUT};
use canonical::show;
use graph::Graph;
use peer::Peer;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use traversal::{Traversal, Unit, text};
use vervet::{Database, ErrorKind, Format, GremlinOptions};

/// Consecutive cases with the same graph.
const GRAPH_CASES: u64 = 32;
const MEMORY_BYTES_MAX: u64 = 1 << 28;

/// The outcome of a case without a difference.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// Too many results, or too slow, in one of the engines.
    TooLong,
    /// All engines reject it.
    RefusedByAll,
    /// Equal answers, which are empty.
    Empty,
    /// Equal results.
    Compared,
}

impl Verdict {
    /// The label in the counts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TooLong => "left out: too long",
            Self::RefusedByAll => "refused by all",
            Self::Empty => "compared: no results",
            Self::Compared => "compared",
        }
    }
}

/// Modifies an answer, to test that the difference is noticed: the text, and whether it ran on kernels.
type FaultInjection = fn(&str, bool, &mut Vec<String>);

/// Runs cases.
pub struct Suite {
    with_changes: bool,
    peer: Option<Peer>,
    generated: Option<GeneratedGraph>,
    plant: Option<FaultInjection>,
}

/// The graph of some cases.
struct GeneratedGraph {
    number: u64,
    graph: Graph,
    database: crate::cluster::Spread,
}

impl Suite {
    /// `with_changes`: the graph is a base with changes. `peer`: the script that starts TinkerGraph
    /// (`--answers` is added).
    ///
    /// # Errors
    /// The script does not start.
    pub fn new(with_changes: bool, peer: Option<&Path>) -> Result<Self, String> {
        Ok(Self { with_changes, peer: peer.map(Peer::start).transpose()?, generated: None, plant: None })
    }

    /// Runs the case of a seed.
    ///
    /// # Errors
    /// A difference: the seed, the graph, the minimized traversal, and the answers; or a peer that has ended.
    pub fn case(&mut self, seed: u64) -> Result<Verdict, String> {
        let number = seed / GRAPH_CASES;
        if self.generated.as_ref().is_none_or(|made| made.number != number) {
            self.generated = Some(self.make(number).map_err(|error| format!("seed {seed}: {error}"))?);
        }
        let Some(made) = self.generated.take() else { return Err("there is no graph".to_owned()) };
        let mut random = Random::new(seed ^ 0x06E1_0000_0000);
        let traversal = Traversal::new(&mut random, &made.graph);
        let verdict = self.compare(&made, &traversal).map_err(|difference| {
            let (shorter, difference) = self.shorten(&made, traversal.clone(), difference);
            let graph = made.graph.statements().join("\n");
            let long = traversal.text();
            format!("seed {seed}\n{}\nmade shorter from\n{long}\n{difference}\non\n{graph}", shorter.text())
        });
        self.generated = Some(made);
        verdict
    }

    fn make(&mut self, number: u64) -> Result<GeneratedGraph, String> {
        let mut random = Random::new(number ^ 0x6A09_E667_F3BC);
        let graph = Graph::new(&mut random);
        let written = |database: &Database, statements: &[String]| {
            let text: Vec<String> = statements.iter().map(|text| format!("{text}.iterate()")).collect();
            database.gremlin(&text.join("\n")).map_err(|error| error.to_string())
        };
        let [base, later] = match self.with_changes {
            true => graph.staged(&mut random),
            false => [graph.statements(), Vec::new()],
        };
        let source = Database::in_memory();
        written(&source, &base)?;
        let mut quads = Vec::new();
        source.export(Format::NQuads, &mut quads).map_err(|error| error.to_string())?;
        let database = crate::partitions::database(number);
        let quads = String::from_utf8(quads).map_err(|error| error.to_string())?;
        database.load_text(Format::NQuads, &quads).map_err(|error| error.to_string())?;
        for statement in later {
            written(&database, std::slice::from_ref(&statement))?;
        }
        if let Some(peer) = &mut self.peer {
            peer.make(&graph.statements())?;
        }
        let database = crate::cluster::spread(database)?;
        Ok(GeneratedGraph { number, graph, database })
    }

    /// Compares the answers of all engines.
    fn compare(&mut self, made: &GeneratedGraph, traversal: &Traversal) -> Result<Verdict, String> {
        let [steps, kernels] = [false, true].map(|kernels| {
            let mut answer = ours(&made.database, traversal, kernels);
            if let (Some(plant), Answer::Results(results)) = (self.plant, &mut answer) {
                plant(&traversal.text(), kernels, results);
            }
            answer
        });
        let mut late = [&steps, &kernels].contains(&&Answer::TooLong);
        if !steps.agrees(&kernels) {
            return Err(difference(("steps", &steps), ("kernels", &kernels)));
        }
        if let Some(peer) = &mut self.peer {
            let theirs = peer.answer(&traversal.text(), traversal.ordered, traversal.bags)?;
            late |= theirs == Answer::TooLong;
            if !steps.agrees(&theirs) {
                return Err(difference(("vervet", &steps), ("tinkergraph", &theirs)));
            }
        }
        Ok(match steps {
            _ if late => Verdict::TooLong,
            Answer::Refused(_) => Verdict::RefusedByAll,
            Answer::Results(results) if results.is_empty() => Verdict::Empty,
            _ => Verdict::Compared,
        })
    }

    /// Minimizes a failing traversal: removes units while a difference remains; returns the last difference.
    fn shorten(
        &mut self,
        made: &GeneratedGraph,
        traversal: Traversal,
        difference: String,
    ) -> (Traversal, String) {
        let (mut best, mut best_difference) = (traversal, difference);
        'again: loop {
            for units in shorter(&best.units) {
                let orders = |units: &[Unit]| units.iter().filter(|unit| unit.makes_order).count();
                let ordered = best.ordered && orders(&units) == orders(&best.units);
                let candidate = Traversal { units, ordered, bags: best.bags };
                if !candidate.has_its_names() {
                    continue;
                }
                if let Err(found) = self.compare(made, &candidate) {
                    (best, best_difference) = (candidate, found);
                    continue 'again;
                }
            }
            return (best, best_difference);
        }
    }
}

/// The traversals with one unit less, or with one unit replaced by its nested traversals.
fn shorter(units: &[Unit]) -> Vec<Vec<Unit>> {
    let mut all = Vec::new();
    for at in 0..units.len() {
        if at > 0 || units.len() > 1 && !text(&units[..1]).starts_with(['V', 'E', 'i']) {
            let mut less = units.to_vec();
            less.remove(at);
            all.push(less);
        }
        for (place, nested) in units[at].nested.iter().enumerate() {
            let mut inner = units.to_vec();
            inner.splice(at..=at, nested.iter().cloned());
            all.push(inner);
            // A reducing unit stays last: a modulator takes one value.
            let reduces = |units: &[Unit]| {
                let last = units.last().map_or("", |last| &last.template);
                ["count()", "sum()", "mean()", "min()", "max()", "groupCount()", "fold()"]
                    .iter()
                    .any(|end| last.ends_with(end))
            };
            for less in shorter(nested) {
                if !less.is_empty() && (reduces(&less) || !reduces(nested)) {
                    let mut less_inside = units.to_vec();
                    less_inside[at].nested[place] = less;
                    all.push(less_inside);
                }
            }
        }
    }
    all
}

fn ours(database: &Database, traversal: &Traversal, kernels: bool) -> Answer {
    let options = GremlinOptions {
        timeout: Some(TIMEOUT),
        memory_limit_bytes: Some(MEMORY_BYTES_MAX),
        kernels,
        ..GremlinOptions::default()
    };
    let text = traversal.text();
    match catch_unwind(AssertUnwindSafe(|| database.gremlin_with(&text, &options))) {
        // An answer that no other engine has.
        Err(_) => Answer::Results(vec!["a panic".to_owned()]),
        Ok(Ok(results)) if results.len() > RESULTS_MAX as u64 => Answer::TooLong,
        Ok(Ok(results)) => {
            let mut shown: Vec<String> = results.values().map(|value| show(value, traversal.bags)).collect();
            if !traversal.ordered {
                shown.sort_unstable();
            }
            Answer::Results(shown)
        }
        Ok(Err(error)) => match error.kind() {
            ErrorKind::Deadline | ErrorKind::MemoryLimit => Answer::TooLong,
            ErrorKind::Internal => Answer::Results(vec![format!("a defect: {error}")]),
            _ => Answer::Refused(error.to_string()),
        },
    }
}

/// The first results that only one of two has.
fn difference((our_name, ours): (&str, &Answer), (their_name, theirs): (&str, &Answer)) -> String {
    const SHOWN_MAX: usize = 5;
    let show = |answer: &Answer, other: &Answer| match (answer, other) {
        (Answer::Results(results), Answer::Results(others)) => {
            let mut rest = others.clone();
            let mut only: Vec<&String> = Vec::new();
            for result in results {
                match rest.iter().position(|other| other == result) {
                    Some(at) => drop(rest.swap_remove(at)),
                    None => only.push(result),
                }
            }
            let some: Vec<String> = only.iter().take(SHOWN_MAX).map(|text| format!("\n    {text}")).collect();
            match only.is_empty() && results.len() == others.len() {
                true => format!("in this order: {results:?}"),
                false => {
                    format!("{} results, of which only here {}:{}", results.len(), only.len(), some.concat())
                }
            }
        }
        (Answer::Results(results), _) => {
            format!("{} results: {:?}", results.len(), &results[..results.len().min(SHOWN_MAX)])
        }
        (other, _) => format!("{other:?}"),
    };
    format!("{our_name}: {}\n{their_name}: {}", show(ours, theirs), show(theirs, ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(name: &str, default: u64) -> u64 {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    }

    /// Set VERVET_RANDOM_SEED to start elsewhere and VERVET_RANDOM_CASES to run more.
    #[test]
    fn kernels_and_steps_agree() {
        let (start, count) = (number("VERVET_RANDOM_SEED", 1), number("VERVET_RANDOM_CASES", 400));
        println!("cases {start} to {}", start + count - 1);
        for with_changes in [false, true] {
            let mut suite = Suite::new(with_changes, None).expect("it needs no peer");
            let mut compared = 0;
            for seed in start..start + count {
                match suite.case(seed) {
                    Ok(verdict) => compared += u64::from(verdict == Verdict::Compared),
                    Err(difference) => panic!("{difference}"),
                }
            }
            assert!(compared * 2 > count, "only {compared} of {count} cases compared results");
        }
    }

    #[test]
    fn injected_differences_are_found_and_shortened() {
        let mut suite = Suite::new(false, None).expect("it needs no peer");
        suite.plant = Some(|text, kernels, results| {
            if kernels && text.contains("both(") {
                results.pop();
            }
        });
        let found: Vec<String> = (0..300).filter_map(|seed| suite.case(seed).err()).collect();
        assert!(!found.is_empty());
        for difference in found {
            let text = difference.lines().nth(1).unwrap_or_default();
            assert!(text.contains("both(") && text.len() < 120, "{difference}");
        }
    }
}
