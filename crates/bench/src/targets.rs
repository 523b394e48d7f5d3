//! Performance targets, with the figures reached, so that shortfalls are visible at once.

use crate::measure::Timing;
use crate::report::{QueryFigures, Report};
use crate::target::Target;

/// Ratios to the peer, by data and query.
const RATIOS: [(&str, &str, f64); 13] = [
    ("lubm-10", "q1", 600.0),
    ("lubm-10", "q2", 20.0),
    ("lubm-10", "q3", 600.0),
    ("lubm-10", "q4", 8.0),
    ("lubm-10", "q5", 8.0),
    ("lubm-10", "q6", 25.0),
    ("lubm-10", "q7", 100.0),
    ("lubm-40", "q1", 500.0),
    ("lubm-40", "q2", 30.0),
    ("lubm-40", "q3", 1_000.0),
    ("lubm-40", "q7", 80.0),
    ("power-law", "triangles", 20.0),
    ("power-law", "2-paths", 500.0),
];

/// Upper bounds of execution without serialization in milliseconds, by data and query.
const MILLISECONDS: [(&str, &str, f64); 7] = [
    ("lubm-10", "q4", 0.008),
    ("lubm-10", "q5", 0.003),
    ("lubm-10", "q6", 0.027),
    ("lubm-40", "q1", 0.71),
    ("lubm-40", "q2", 3.15),
    ("lubm-40", "q3", 0.53),
    ("lubm-40", "q7", 8.8),
];

const TIMES_THE_LOOP: f64 = 2.5;
const LOAD_RATIO: f64 = 5.0;
const DURABLE_LOAD_RATIO: f64 = 3.0;
const LOAD_RATE: f64 = 2_500_000.0;
const MEMORY_BYTES: f64 = 30.0;
const DISK_BYTES: f64 = 20.0;
const COLD_CPU_MS: f64 = 50.0;
const Q5_TEXT_US: f64 = 25.0;
const Q5_PREPARED_US: f64 = 5.0;

/// The targets that apply to `report`, which is about `data`.
#[must_use]
pub fn targets(data: &str, report: &Report) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut add = |what: String, at_most: bool, target: f64, reached: Option<f64>, is_bound: bool| {
        targets.extend(reached.map(|reached| Target { what, target, at_most, reached, is_bound }));
    };
    let query = |name: &str| report.queries.iter().find(|query| query.query == name);
    let on = |list: &'static [(&'static str, &'static str, f64)]| {
        list.iter().filter(move |(of, ..)| *of == data).filter_map(|&(_, name, limit)| {
            report.queries.iter().find(|query| query.query == name).map(|query| (query, limit))
        })
    };
    for (query, target) in on(&RATIOS) {
        let bound = query.ratio_at_least();
        let what = format!("{}: times faster than the peer", query.query);
        add(what, false, target, bound.or_else(|| query.ratio()), bound.is_some());
        let what = format!("{}: the same with the plan cache", query.query);
        add(what, false, target, query.ratio_with_plan_cache(), false);
    }
    for (query, target) in on(&MILLISECONDS) {
        let what = format!("{}: execution, ms", query.query);
        add(what, true, target, execution(query).map(|timing| timing.median_ms), false);
    }
    if data == "lubm-40" {
        for name in ["q1", "q2", "q3", "q7"] {
            let times =
                query(name).and_then(|query| Some(execution(query)?.median_ms / query.by_hand?.median_ms));
            add(format!("{name}: execution, times the loop"), true, TIMES_THE_LOOP, times, false);
        }
    }
    if data.starts_with("lubm") {
        let micros = |timing: Option<Timing>| timing.map(|timing| timing.median_ms * 1e3);
        let q5 = query("q5");
        let text = micros(q5.and_then(|query| query.ours_rows_only));
        add("q5: parse, plan and run, µs".to_owned(), true, Q5_TEXT_US, text, false);
        let prepared = micros(q5.and_then(|query| query.ours_prepared));
        add("q5: prepared, µs".to_owned(), true, Q5_PREPARED_US, prepared, false);

        let load = |durable| {
            report.process_loads.iter().find(|load| load.threads == Some(2) && load.durable == durable)
        };
        let peer = report.process_loads.iter().find(|load| load.is_of(report.peer.as_deref()));
        for (durable, target) in [(false, LOAD_RATIO), (true, DURABLE_LOAD_RATIO)] {
            let place = if durable { "into a directory, synced" } else { "into memory" };
            let ratio =
                load(durable).zip(peer).map(|(ours, peer)| peer.figures.seconds / ours.figures.seconds);
            let what = format!("load {place}, two threads: times faster than the peer");
            add(what, false, target, ratio, false);
        }
        let rate = load(false).map(|load| load.figures.rate());
        add("load into memory, two threads: statements/s (aim)".to_owned(), false, LOAD_RATE, rate, false);
    }
    if data == "lubm-40" {
        let memory = report.process_loads.iter().filter(|load| load.threads == Some(2) && !load.durable);
        let memory = memory.filter_map(|load| load.figures.bytes_a_statement()).next();
        add("memory after load, bytes/statement".to_owned(), true, MEMORY_BYTES, memory, false);
        let statements = report.loads.first().map(|load| load.statements as f64);
        let files = report.sizes.iter().find(|size| size.part == "all files");
        let disk = files.zip(statements).map(|(files, statements)| files.bytes as f64 / statements);
        add("on disk, bytes/statement".to_owned(), true, DISK_BYTES, disk, false);
        let cold = report.cold.as_ref().map(|cold| cold.cpu_ms);
        add("open and answer q4 in a fresh process, ms of CPU".to_owned(), true, COLD_CPU_MS, cold, false);
    }
    targets
}

/// The time without parsing, planning and serialization.
fn execution(query: &QueryFigures) -> Option<Timing> {
    query.ours_prepared.or(query.ours_rows_only)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::table;

    #[test]
    fn a_bound_may_leave_a_target_open() {
        let timing =
            |median_ms| Timing { repeats: 1, median_ms, p95_ms: median_ms, cpu_median_ms: median_ms };
        let mut report = Report::new("title".into(), None, None);
        for (name, cut) in [("triangles", 100.0), ("2-paths", 100.0)] {
            report.queries.push(QueryFigures {
                query: name.into(),
                ours: Some(timing(1.0)),
                peer_cut_ms: Some(cut),
                ..QueryFigures::default()
            });
        }
        let targets = targets("power-law", &report);
        let met: Vec<_> = targets.iter().map(Target::is_met).collect();
        assert_eq!(met, [Some(true), None]);
        assert!(table(&targets).to_string().contains("> 100"));
        assert!(super::targets("grqc", &report).is_empty());
    }
}
