//! Tables of q-errors.

use super::audit::{Audit, AuditedStep};
use crate::measure::quantile;
use crate::sections::{Section, SectionReport};
use crate::table::{count, figure};

/// Target of the 95th percentile of all steps.
const P95_MAX: f64 = 10.0;

/// Target of the largest error.
const MAX: f64 = 1_000.0;

/// The q-errors of one benchmark.
#[derive(Clone, Debug)]
pub struct EstimateFigures {
    /// Number of queries that finished.
    pub queries: usize,
    /// Number of their steps.
    pub steps: usize,
    /// Median of the q-errors.
    pub median: f64,
    /// 95th percentile.
    pub p95: f64,
    /// The largest.
    pub max: f64,
    /// Queries that exceeded a limit.
    pub unfinished: Vec<String>,
}

/// The q-errors of all benchmarks.
#[derive(Debug)]
pub struct EstimateReport {
    benchmarks: Vec<(String, EstimateFigures)>,
    errors: Vec<f64>,
    worst: Vec<Section>,
    /// Number of the worst steps that are listed.
    listed: usize,
}

impl EstimateReport {
    pub(super) fn new(listed: usize) -> Self {
        Self { benchmarks: Vec::new(), errors: Vec::new(), worst: Vec::new(), listed }
    }

    /// The figures of each benchmark.
    #[must_use]
    pub fn benchmarks(&self) -> &[(String, EstimateFigures)] {
        &self.benchmarks
    }

    pub(super) fn push(&mut self, name: String, mut audit: Audit) {
        let errors: Vec<f64> = audit.steps.iter().map(|step| step.q_error).collect();
        let figures =
            EstimateFigures { queries: audit.queries, unfinished: audit.unfinished, ..figures_of(&errors) };
        eprintln!(
            "{name}: {} queries, {} steps, q-error median {}, 95 % {}, max {}",
            figures.queries,
            figures.steps,
            figure(figures.median),
            figure(figures.p95),
            figure(figures.max)
        );
        audit.steps.sort_by(|a, b| b.q_error.total_cmp(&a.q_error));
        self.worst.push(worst(&name, &audit.steps, self.listed));
        self.errors.extend(errors);
        self.benchmarks.push((name, figures));
    }

    /// The tables, which go to standard error at once.
    #[must_use]
    pub fn sections(&self) -> SectionReport {
        let mut report = SectionReport::new("Estimated rows".to_owned());
        let columns = ["benchmark", "queries", "unfinished", "steps", "median", "95th percentile", "maximum"];
        let note = "The q-error of a step is max(estimate / rows, rows / estimate), both at least 1.";
        let mut section = Section::new("q-errors of the steps of all plans", note, &columns);
        let all = EstimateFigures {
            queries: self.benchmarks.iter().map(|(_, figures)| figures.queries).sum(),
            unfinished: self.benchmarks.iter().flat_map(|(_, figures)| figures.unfinished.clone()).collect(),
            ..figures_of(&self.errors)
        };
        report.target("95th percentile of the q-error of all steps", all.p95, P95_MAX, true);
        report.target("largest q-error", all.max, MAX, true);
        for (name, figures) in &self.benchmarks {
            section.row(row(name, figures));
        }
        section.row(row("all", &all));
        report.push(section);
        let unfinished: Vec<String> = self
            .benchmarks
            .iter()
            .filter(|(_, figures)| !figures.unfinished.is_empty())
            .map(|(name, figures)| format!("{name}: {}", figures.unfinished.join(", ")))
            .collect();
        if !unfinished.is_empty() {
            let mut section = Section::new("Queries that exceeded a limit", "", &["queries"]);
            unfinished.into_iter().for_each(|line| section.row(vec![line]));
            report.push(section);
        }
        self.worst.iter().cloned().for_each(|section| report.push(section));
        report
    }
}

fn figures_of(errors: &[f64]) -> EstimateFigures {
    let of = |share| if errors.is_empty() { 1.0 } else { quantile(errors, share) };
    EstimateFigures {
        queries: 0,
        steps: errors.len(),
        median: of(0.5),
        p95: of(0.95),
        max: of(1.0),
        unfinished: Vec::new(),
    }
}

fn row(name: &str, figures: &EstimateFigures) -> Vec<String> {
    vec![
        name.to_owned(),
        count(figures.queries as u64),
        count(figures.unfinished.len() as u64),
        count(figures.steps as u64),
        figure(figures.median),
        figure(figures.p95),
        figure(figures.max),
    ]
}

/// The first `listed` of `steps`.
fn worst(name: &str, steps: &[AuditedStep], listed: usize) -> Section {
    let mut section =
        Section::new(format!("{name}: worst steps"), "", &["step", "query", "estimate", "rows", "q-error"]);
    for step in steps.iter().take(listed).filter(|step| step.q_error > 1.0) {
        section.row(vec![
            format!("`{}`", step.text.replace('|', "¦")),
            step.query.clone(),
            figure(step.estimated),
            count(step.rows),
            figure(step.q_error),
        ]);
    }
    section
}
