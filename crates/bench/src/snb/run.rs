//! Runs an operation: first for its rows, then for its times.

use super::network::input;
use super::workload::Operation;
use crate::measure::{process_cpu, quantile};
use std::hint::black_box;
use std::time::{Duration, Instant};
use vervet::Database;
use vervet::gremlin::{GremlinOptions, GremlinResults, Value};
use vervet_conformance::ldbc::Parameters;
use vervet_model::{Error, Result};

/// The measurement of an operation stops after this multiple of its time.
const PATIENCE: u32 = 8;

/// The result for one set of parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    pub(crate) rows: u64,
    /// Sum over the canonical texts of the results, independent of their order.
    pub(crate) hash: u64,
}

/// Times of one engine in one language, in milliseconds of CPU.
#[derive(Clone, Default, Debug)]
pub(super) struct Times {
    /// For each set of parameters the times of its runs; empty if the time was up before.
    pub(super) runs: Vec<Vec<f64>>,
}

impl Times {
    fn all(&self) -> Vec<f64> {
        self.runs.concat()
    }

    /// The median of all runs.
    pub(super) fn median(&self) -> Option<f64> {
        self.quantile(0.5)
    }

    /// A quantile of all runs.
    pub(super) fn quantile(&self, share: f64) -> Option<f64> {
        let all = self.all();
        (!all.is_empty()).then(|| quantile(&all, share))
    }

    /// The ratio to other times, over the parameters that both have run: sums of their medians.
    pub(super) fn ratio_to(&self, other: &Self) -> Option<f64> {
        let (mut own, mut others) = (0.0, 0.0);
        for (a, b) in self.runs.iter().zip(&other.runs).filter(|(a, b)| !a.is_empty() && !b.is_empty()) {
            own += quantile(a, 0.5);
            others += quantile(b, 0.5);
        }
        (others > 0.0).then(|| own / others)
    }
}

/// The results of the peer.
#[derive(Clone, Default, Debug)]
pub(super) struct PeerOutcome {
    /// For each set of parameters; `None`: cancelled before.
    pub(super) found: Vec<Option<Found>>,
    pub(super) times: Times,
    /// Why there are no figures.
    pub(super) failure: Option<String>,
}

/// The results of an operation.
#[derive(Clone, Default, Debug)]
pub(super) struct Outcome {
    pub(super) found: Vec<Found>,
    pub(super) gremlin: Times,
    pub(super) sparql: Times,
    pub(super) peer: PeerOutcome,
}

impl Outcome {
    /// Rows of all parameters.
    pub(super) fn rows(&self) -> u64 {
        self.found.iter().map(|found| found.rows).sum()
    }

    /// Checks that the peer has found the same.
    pub(super) fn check_peer(&self, operation: &Operation) -> Result<()> {
        for (i, (ours, theirs)) in self.found.iter().zip(&self.peer.found).enumerate() {
            if let Some(theirs) = theirs.filter(|theirs| theirs != ours) {
                let message = format!(
                    "{}, parameters {}: ours has {} rows (hash {:x}), the peer {} (hash {:x}): {:?}",
                    operation.name,
                    i,
                    ours.rows,
                    ours.hash,
                    theirs.rows,
                    theirs.hash,
                    operation.parameters[i]
                );
                return Err(Error::internal(message));
            }
        }
        Ok(())
    }
}

/// Runs an operation in Gremlin once with each of its parameters.
pub(crate) fn once(database: &Database, operation: &Operation) -> Result<Vec<Found>> {
    operation
        .parameters
        .iter()
        .map(|parameters| {
            let results = gremlin(database, operation, &options(parameters))?;
            let hash = results.values().map(|value| hash(&canonical(value))).fold(0, u64::wrapping_add);
            Ok(Found { rows: results.len(), hash })
        })
        .collect()
}

/// Runs an operation in Gremlin with the parameters of a number; returns the number of results.
pub(crate) fn run_once(database: &Database, operation: &Operation, parameters: usize) -> Result<u64> {
    let results = gremlin(database, operation, &options(&operation.parameters[parameters]))?;
    Ok(black_box(results).len())
}

/// Runs an operation in both languages for `time` each, after checking its rows.
pub(super) fn run(database: &Database, operation: &Operation, time: Duration) -> Result<Outcome> {
    let found = once(database, operation)?;
    let options: Vec<GremlinOptions> = operation.parameters.iter().map(options).collect();
    let times = rounds(options.len(), time, |i| {
        black_box(gremlin(database, operation, &options[i])?);
        Ok(())
    })?;
    let mut outcome = Outcome { found, gremlin: times, ..Outcome::default() };
    let texts: Option<Vec<String>> =
        operation.parameters.iter().map(|parameters| operation.sparql_text(parameters)).collect();
    if let Some(texts) = texts {
        for (i, text) in texts.iter().enumerate() {
            let rows = sparql(database, text)?;
            // A count is one row in both languages.
            if rows != outcome.found[i].rows {
                let message = format!(
                    "{}, parameters {i}: {} rows in Gremlin, {rows} in SPARQL",
                    operation.name, outcome.found[i].rows
                );
                return Err(Error::internal(message));
            }
        }
        outcome.sparql = rounds(texts.len(), time, |i| sparql(database, &texts[i]).map(drop))?;
    }
    Ok(outcome)
}

fn options(parameters: &Parameters) -> GremlinOptions {
    GremlinOptions { bindings: parameters.bindings(), timeout: None, ..GremlinOptions::default() }
}

fn gremlin(database: &Database, operation: &Operation, options: &GremlinOptions) -> Result<GremlinResults> {
    database
        .gremlin_with(&operation.gremlin, options)
        .map_err(|error| input(format!("{}: {error}", operation.name)))
}

/// Runs a text, reads all its terms, and counts its rows.
fn sparql(database: &Database, text: &str) -> Result<u64> {
    let found = database.select(text)?;
    for row in found.rows() {
        for name in found.variables() {
            black_box(row.get(name)?);
        }
    }
    Ok(found.len() as u64)
}

/// Rounds over all parameters until the time is up, at least one; fewer where that would take much longer.
fn rounds(count: usize, time: Duration, mut one: impl FnMut(usize) -> Result<()>) -> Result<Times> {
    let mut times = Times { runs: vec![Vec::new(); count] };
    let begin = Instant::now();
    loop {
        for i in 0..count {
            let cpu = process_cpu();
            one(i)?;
            times.runs[i].push(process_cpu().saturating_sub(cpu).as_secs_f64() * 1e3);
            if time > Duration::ZERO && begin.elapsed() > time * PATIENCE {
                return Ok(times);
            }
        }
        if begin.elapsed() >= time {
            return Ok(times);
        }
    }
}

/// A result as canonical text, the same in every engine: whole numbers without fraction, the entries of lists
/// and maps in the order of their texts, elements by their ids.
pub(crate) fn canonical(value: &Value) -> String {
    let sorted = |mut texts: Vec<String>, ends: [&str; 2]| {
        texts.sort_unstable();
        format!("{}{}{}", ends[0], texts.join(","), ends[1])
    };
    match value {
        Value::Null => "null".to_owned(),
        Value::Boolean(value) => value.to_string(),
        Value::String(text) => text.to_string(),
        Value::Double(number) if number.fract() == 0.0 && number.abs() < 9e15 => format!("{number:.0}"),
        Value::Double(number) => number.to_string(),
        Value::List(values) => sorted(values.iter().map(canonical).collect(), ["[", "]"]),
        Value::Map(map) => sorted(
            map.iter().map(|(key, value)| format!("{}={}", canonical(key), canonical(value))).collect(),
            ["{", "}"],
        ),
        Value::Vertex(vertex) => match &vertex.detail {
            Some(detail) => format!("v[{}]", canonical(&detail.id)),
            None => "v[]".to_owned(),
        },
        other => match other.as_integer() {
            Some(number) => number.to_string(),
            None => other.type_name().to_owned(),
        },
    }
}

/// FNV-1a of the UTF-8 bytes.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_do_not_depend_on_types_and_order() {
        let list = |values: &[Value]| Value::list(values.to_vec());
        assert_eq!(canonical(&list(&[Value::Int(2), Value::Double(1.0)])), "[1,2]");
        assert_eq!(canonical(&list(&[Value::Long(1), Value::Double(2.0)])), "[1,2]");
        assert_eq!(canonical(&Value::Double(0.5)), "0.5");
        // A published value of the function.
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn ratios_cover_queries_that_both_engines_ran() {
        let ours = Times { runs: vec![vec![1.0, 1.0], vec![2.0], vec![9.0]] };
        let theirs = Times { runs: vec![vec![10.0], vec![20.0], Vec::new()] };
        assert_eq!(theirs.ratio_to(&ours), Some(10.0));
        assert_eq!(Times::default().median(), None);
    }
}
