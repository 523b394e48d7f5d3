//! Small random graphs with random queries in the notation of gMark, for checks of values without its data.

use super::{CountedPath, Edges, data_set};
use crate::outside::data_set::DataSet;
use fastrand::Rng;
use std::fmt::Write;
use vervet_model::Result;

const VERTICES: u32 = 40;
const PREDICATES: u32 = 4;
const EDGES: usize = 90;

/// A data set with `count` queries. The same seed gives the same data set.
///
/// # Errors
/// The data cannot be written.
pub fn random_data_set(seed: u64, count: usize, counted: CountedPath) -> Result<DataSet> {
    let mut random = Rng::with_seed(seed);
    let mut edges: Edges = (0..EDGES)
        .map(|_| (random.u32(..VERTICES), random.u32(..PREDICATES), random.u32(..VERTICES)))
        .collect();
    edges.sort_unstable();
    edges.dedup();
    let texts = (0..count).map(|index| (format!("r{index:03}"), query(&mut random))).collect();
    data_set(format!("random {seed}"), &edges, texts, counted)
}

fn query(random: &mut Rng) -> String {
    let conjuncts = random.u32(1..=4);
    let mut body = String::new();
    let mut variables = 1;
    for _ in 0..conjuncts {
        // Mostly trees, as in gMark, and some cycles.
        let source = random.u32(..variables);
        let target = if random.u32(..5) == 0 { random.u32(..variables) } else { variables };
        variables = variables.max(target + 1);
        let path = path(random);
        write!(body, "?x{source} {path} ?x{target} . ").unwrap_or_default();
    }
    let head: Vec<String> =
        (0..variables).filter(|_| random.bool()).map(|variable| format!("?x{variable}")).collect();
    let empty = if random.u32(..4) == 0 { " UNION { }" } else { "" };
    let form =
        if head.is_empty() { "ASK".to_owned() } else { format!("SELECT DISTINCT {} WHERE", head.join(" ")) };
    format!("PREFIX : <{}> {form} {{ {{ {body}}}{empty} }}", super::NAMESPACE)
}

fn path(random: &mut Rng) -> String {
    let branches: Vec<String> = (0..random.u32(1..=3))
        .map(|_| {
            let steps: Vec<String> = (0..random.u32(1..=3))
                .map(|_| {
                    let inverse = if random.bool() { "^" } else { "" };
                    format!("{inverse}:p{}", random.u32(..PREDICATES))
                })
                .collect();
            format!("({})", steps.join("/"))
        })
        .collect();
    let path = format!("({})", branches.join("|"));
    if random.u32(..3) == 0 { format!("({path}){{,3}}") } else { path }
}
