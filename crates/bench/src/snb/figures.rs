//! Tables and targets.

use super::network::Network;
use super::peer::PeerEnd;
use super::run::Outcome;
use super::workload::{Group, Operation};
use crate::measure::geometric_mean;
use crate::sections::{Section, SectionReport};
use crate::table::{count, figure, figure_or_dash};

/// The measurements of loads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    /// Vertices and edges.
    pub(super) rows: u64,
    /// Seconds of CPU and of wall time, into memory.
    pub(super) memory: (f64, f64),
    /// Seconds of CPU and of wall time, into a synced directory.
    pub(super) disk: (f64, f64),
    pub(super) disk_bytes: u64,
    /// After all queries, in a process that has opened the directory.
    pub(super) resident_bytes: Option<u64>,
}

/// Vertices and edges of a network of scale factor 0.1: the targets of times and bytes apply to it; those of
/// rates and ratios apply to any.
const ROWS_OF_TARGETS: std::ops::Range<u64> = 1_600_000..2_000_000;
/// Upper bounds of the median, in milliseconds of CPU.
const MEDIANS_MS: [(&str, f64); 12] = [
    ("point look-up", 0.01),
    ("IS1", 0.05),
    ("IS2", 0.3),
    ("IS3", 0.05),
    ("IS4", 0.05),
    ("IS5", 0.05),
    ("IS6", 0.05),
    ("IS7", 0.05),
    ("IC1", 1.5),
    ("IC2", 2.0),
    ("IC3", 3.0),
    ("IC4", 1.5),
];
const HOPS_P99_MS: f64 = 20.0;
const LOAD_RATE: f64 = 1e6;
const DISK_BYTES: f64 = 45e6;
const RESIDENT_BYTES: f64 = 100e6;
/// Minimum speed-ups over the peer: the short queries together, and each of IC1 to IC4.
const SHORT_RATIO: f64 = 10.0;
const COMPLEX_RATIO: f64 = 30.0;

/// One operation, as a progress line.
pub(super) fn line(operation: &Operation, outcome: &Outcome) -> String {
    let peer = match &outcome.peer.failure {
        Some(failure) => format!(", peer: {failure}"),
        None => {
            outcome.peer.times.median().map_or_else(String::new, |ms| format!(", peer {} ms", figure(ms)))
        }
    };
    format!(
        "{}: {} rows, Gremlin {} ms, SPARQL {} ms{peer}",
        operation.name,
        outcome.rows(),
        figure_or_dash(outcome.gremlin.median()),
        figure_or_dash(outcome.sparql.median())
    )
}

pub(super) fn report(
    network: &Network,
    stored: &Stored,
    operations: &[Operation],
    outcomes: &[Outcome],
    peer: Option<&PeerEnd>,
) -> SectionReport {
    let mut report = SectionReport::new(format!("Social network, {}", network.name()));
    report.push(load(stored, peer));
    for (group, title, note) in [
        (
            Group::Network,
            "IS1 to IS7, IC1 to IC14",
            "CPU milliseconds of all threads, from the text to values, over all parameters. Ratios are sums of \
             medians over the parameters that both engines have run.",
        ),
        (
            Group::Hops,
            "Look-ups and hops",
            "From a person, over `knows` in both directions unless the row says *any edge*.",
        ),
        (Group::Grasper, "Templates of Grasper", "SoCC 2019, Table 4, with labels and keys of this network."),
        (Group::GTran, "Templates of G-Tran", "arXiv 2105.04449, Table 5, in the Gremlin of TinkerPop 3.8."),
    ] {
        let mut section = Section::new(
            title,
            note,
            &["operation", "rows", "Gremlin", "p99", "SPARQL", "p99", "peer", "p99", "peer / Gremlin"],
        );
        let mut any = false;
        for (operation, outcome) in operations.iter().zip(outcomes).filter(|(o, _)| o.group == group) {
            any = true;
            let mut cells = vec![operation.name.clone(), count(outcome.rows())];
            for times in [&outcome.gremlin, &outcome.sparql, &outcome.peer.times] {
                cells.extend([0.5, 0.99].map(|share| figure_or_dash(times.quantile(share))));
            }
            cells.push(figure_or_dash(outcome.peer.times.ratio_to(&outcome.gremlin)));
            section.row(cells);
        }
        if any {
            report.push(section);
        }
    }
    targets(&mut report, stored, operations, outcomes);
    report
}

fn load(stored: &Stored, peer: Option<&PeerEnd>) -> Section {
    let mut section = Section::new(
        "Load",
        "Rows are vertices and edges. Resident: the memory of a process that has opened the directory and run \
         every query, including the pages of its files.",
        &["figure", "value"],
    );
    let rate = |seconds: f64| count_of(stored.rows as f64 / seconds.max(1e-9));
    for (name, value) in [
        ("rows", count(stored.rows)),
        ("into memory: s of the CPU", figure(stored.memory.0)),
        ("into memory: rows per s of the CPU", rate(stored.memory.0)),
        ("into a directory: s of the CPU", figure(stored.disk.0)),
        ("into a directory: s", figure(stored.disk.1)),
        ("into a directory: rows per s of the CPU", rate(stored.disk.0)),
        ("bytes on disk", count(stored.disk_bytes)),
        ("bytes resident", stored.resident_bytes.map_or_else(|| "-".to_owned(), count)),
        ("peer, into memory: s of the CPU", figure_or_dash(peer.map(|peer| peer.load_cpu_seconds))),
        (
            "peer: bytes of its heap in use",
            peer.map_or_else(|| "-".to_owned(), |peer| count(peer.heap_bytes)),
        ),
    ] {
        section.row(vec![name.to_owned(), value]);
    }
    section
}

fn count_of(value: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is positive and small"
    )]
    count(value as u64)
}

fn targets(report: &mut SectionReport, stored: &Stored, operations: &[Operation], outcomes: &[Outcome]) {
    let of = |name: &str| operations.iter().position(|o| o.name == name).map(|place| &outcomes[place]);
    let absolute = ROWS_OF_TARGETS.contains(&stored.rows);
    for (name, target) in MEDIANS_MS.into_iter().filter(|_| absolute) {
        if let Some(reached) = of(name).and_then(|outcome| outcome.gremlin.median()) {
            report.target(format!("{name}: ms of the CPU, median"), reached, target, true);
        }
    }
    let hops = of("3 hops").filter(|_| absolute);
    if let Some(reached) = hops.and_then(|outcome| outcome.gremlin.quantile(0.99)) {
        report.target("3 hops, distinct: ms of the CPU, p99", reached, HOPS_P99_MS, true);
    }
    let rate = stored.rows as f64 / stored.disk.0.max(1e-9);
    report.target("load into a directory: rows per s of the CPU", rate, LOAD_RATE, false);
    if absolute {
        report.target("bytes on disk", stored.disk_bytes as f64, DISK_BYTES, true);
    }
    if let Some(bytes) = stored.resident_bytes.filter(|_| absolute) {
        report.target("bytes resident", bytes as f64, RESIDENT_BYTES, true);
    }
    let ratio = |name: &str| of(name).and_then(|outcome| outcome.peer.times.ratio_to(&outcome.gremlin));
    let mean = |names: &[String]| {
        let ratios: Option<Vec<f64>> = names.iter().map(|name| ratio(name)).collect();
        ratios.and_then(|ratios| geometric_mean(&ratios))
    };
    let [short, complex] = [("IS", 7), ("IC", 4)]
        .map(|(kind, last)| (1..=last).map(|i| format!("{kind}{i}")).collect::<Vec<String>>());
    if let Some(mean) = mean(&short) {
        report.target("IS1 to IS7: times faster than the peer, geometric mean", mean, SHORT_RATIO, false);
    }
    if let Some(mean) = mean(&complex) {
        report.target("IC1 to IC4: times faster than the peer, geometric mean", mean, COMPLEX_RATIO, false);
    }
    for name in &complex {
        if let Some(ratio) = ratio(name) {
            report.target(format!("{name} alone: times faster than the peer"), ratio, COMPLEX_RATIO, false);
        }
    }
}
