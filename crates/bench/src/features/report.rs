//! Reports of the feature benchmark: readable tables, and JSON for archiving.

use super::feature_queries::{EXPORT, REACH};
use crate::measure::{Timing, geometric_mean};
use crate::report::{LightFigures, LoadFigures, machine, today};
use crate::sections::write;
use crate::table::{Table, count, figure, figure_or_dash};
use crate::target::{self, Target};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use vervet_model::{Error, Result};

const TIMES_FASTER: f64 = 15.0;
const NONE_SLOWER: f64 = 1.0;
const FEW_TIMES: f64 = 3.0;
const EXPORT_RATE: f64 = 3_000_000.0;
const REACH_CPU_MS: f64 = 20.0;
const LIGHT_FROM_TEXT: f64 = 25_000.0;
const LIGHT_PREPARED: f64 = 60_000.0;

/// The measurement of one engine.
#[derive(Clone, Copy, Default, Serialize, Debug)]
pub struct Side {
    /// From text to the last byte of TSV.
    pub timing: Option<Timing>,
    /// The query was cancelled after this time.
    pub cut_ms: Option<f64>,
}

impl Side {
    /// Its time, or the time until it was cancelled.
    fn wall_ms(&self) -> Option<f64> {
        self.timing.map(|timing| timing.median_ms).or(self.cut_ms)
    }

    fn cell(&self, limit: Option<Duration>) -> String {
        match (self.timing, self.cut_ms, limit) {
            (Some(timing), ..) => figure(timing.median_ms),
            // Cancellation is polled, so the limit is more informative than the time until it took effect.
            (None, Some(_), Some(limit)) => format!("over {} s", limit.as_secs_f64()),
            (None, Some(cut), None) => format!("> {}", figure(cut)),
            (None, None, _) => "-".to_owned(),
        }
    }
}

/// The measurements of one query in each engine.
#[derive(Default, Serialize, Debug)]
pub struct FeatureFigures {
    /// Its name.
    pub feature: String,
    /// Number of rows.
    pub rows: Option<u64>,
    /// Our engine.
    pub ours: Side,
    /// The peer.
    pub peer: Side,
    /// Discrepancies.
    pub remarks: Vec<String>,
    /// Whether values differ.
    pub wrong: bool,
}

impl FeatureFigures {
    /// Our engine for 0, else the peer.
    pub(super) fn side(&mut self, index: usize) -> &mut Side {
        if index == 0 { &mut self.ours } else { &mut self.peer }
    }

    /// The speed-up of our engine over the peer; a bound if one of the two was cancelled.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        if self.ours.timing.is_none() && self.peer.timing.is_none() {
            return None;
        }
        Some(self.peer.wall_ms()? / self.ours.wall_ms()?)
    }

    /// [`Self::ratio`] in CPU time.
    #[must_use]
    pub fn cpu_ratio(&self) -> Option<f64> {
        Some(self.peer.timing?.cpu_median_ms / self.ours.timing?.cpu_median_ms)
    }

    fn ratio_cell(&self) -> String {
        let mark = match (self.ours.cut_ms, self.peer.cut_ms) {
            (Some(_), _) => "< ",
            (_, Some(_)) => "> ",
            _ => "",
        };
        self.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{mark}{}", figure(ratio)))
    }
}

/// All queries on one set of data.
#[derive(Serialize, Debug)]
pub struct FeatureReport {
    /// The heading.
    pub title: String,
    /// The command-line arguments.
    pub command: String,
    /// The day (UTC).
    pub date: String,
    /// Processor, number of cores, load.
    pub machine: String,
    /// Whether the program is a release build.
    pub optimized: bool,
    /// Name of our engine.
    pub ours: Option<String>,
    /// Name of the peer.
    pub peer: Option<String>,
    /// The time limit of an answer.
    pub limit: Option<Duration>,
    /// The measurements of loads.
    pub loads: Vec<LoadFigures>,
    /// The measurements of queries.
    pub features: Vec<FeatureFigures>,
    /// Throughput of the light mix.
    pub light: Vec<LightFigures>,
    /// The targets.
    pub targets: Vec<Target>,
}

impl FeatureReport {
    /// An empty report with the current date and machine.
    #[must_use]
    pub fn new(
        title: String,
        (ours, peer): (Option<String>, Option<String>),
        limit: Option<Duration>,
    ) -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        Self {
            title,
            command: format!("vervet-bench {}", arguments.join(" ")),
            date: today(),
            machine: machine(),
            optimized: !cfg!(debug_assertions),
            ours,
            peer,
            limit,
            loads: Vec::new(),
            features: Vec::new(),
            light: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// Whether all values agree and our engine has answered every query.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.features.iter().all(|feature| !feature.wrong && feature.remarks.is_empty())
    }

    /// Writes reports as a JSON array.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_json(reports: &[Self], file: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(reports)
            .map_err(|error| Error::internal(format!("a report has no JSON form: {error}")))?;
        write(file, &(text + "\n"))
    }

    /// Writes reports as Markdown.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_markdown(reports: &[Self], file: &Path) -> Result<()> {
        let sections: Vec<String> = reports.iter().map(Self::to_string).collect();
        write(file, &format!("# Benchmark\n\n{}", sections.join("\n")))
    }

    /// Sets the targets and the figures reached.
    pub(super) fn set_targets(&mut self) {
        self.machine = machine();
        let ratios = self.ratios();
        let any_bound = self.features.iter().any(|feature| feature.peer.cut_ms.is_some());
        let feature = |name: &str| self.features.iter().find(|feature| feature.feature == name);
        let mut targets = Vec::new();
        let mut add = |what: &str, at_most: bool, target: f64, reached: Option<f64>, is_bound: bool| {
            let what = what.to_owned();
            targets.extend(reached.map(|reached| Target { what, target, at_most, reached, is_bound }));
        };
        let mean = geometric_mean(&ratios);
        add("geometric mean of times faster than the peer", false, TIMES_FASTER, mean, any_bound);
        let least = ratios.iter().copied().reduce(f64::min);
        add("least of times faster than the peer", false, NONE_SLOWER, least, false);
        let export = feature(EXPORT)
            .and_then(|export| Some(export.rows? as f64 / (export.ours.timing?.cpu_median_ms / 1e3)));
        add("export as TSV, one thread, rows/CPU s", false, EXPORT_RATE, export, false);
        let reach = feature(REACH).and_then(|reach| Some(reach.ours.timing?.cpu_median_ms));
        add("p+ from one vertex to nearly all, ms of CPU", true, REACH_CPU_MS, reach, false);
        for (way, target) in [("from text", LIGHT_FROM_TEXT), ("prepared, constant given", LIGHT_PREPARED)] {
            let light = self.light.iter().find(|light| light.ours && light.way == way);
            let [wall, cpu] = ["s", "CPU s"].map(|unit| format!("light mix, {way}, queries/{unit}"));
            add(&wall, false, target, light.map(|light| light.queries_a_second), false);
            add(&cpu, false, target, light.map(|light| light.queries_a_cpu_second), false);
        }
        self.targets = targets;
    }

    fn ratios(&self) -> Vec<f64> {
        self.features.iter().filter_map(FeatureFigures::ratio).collect()
    }

    /// The queries for which `wanted` holds.
    fn table(&self, wanted: impl Fn(&FeatureFigures) -> bool) -> Option<Table> {
        let (ours, peer) = (self.ours.as_deref().unwrap_or("-"), self.peer.as_deref().unwrap_or("-"));
        let mut table = Table::new(&[
            "feature",
            "rows",
            &format!("{ours} ms"),
            "p95",
            "CPU",
            &format!("{peer} ms"),
            "p95",
            "CPU",
            "ratio",
            "CPU ratio",
        ]);
        let mut any = false;
        for feature in self.features.iter().filter(|feature| wanted(feature)) {
            any = true;
            let mut row = vec![feature.feature.clone(), feature.rows.map_or_else(|| "-".to_owned(), count)];
            for side in [&feature.ours, &feature.peer] {
                row.push(side.cell(self.limit));
                row.push(figure_or_dash(side.timing.map(|timing| timing.p95_ms)));
                row.push(figure_or_dash(side.timing.map(|timing| timing.cpu_median_ms)));
            }
            row.extend([feature.ratio_cell(), figure_or_dash(feature.cpu_ratio())]);
            table.row(row);
        }
        any.then_some(table)
    }

    fn light_table(&self) -> Table {
        let mut table =
            Table::new(&["light mix, one thread", "way", "queries/s", "queries/CPU s", "rows/query"]);
        for light in &self.light {
            table.row(vec![
                light.engine.clone(),
                light.way.clone(),
                figure(light.queries_a_second),
                figure(light.queries_a_cpu_second),
                figure(light.rows_a_query),
            ]);
        }
        table
    }

    fn write_ratios(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratios = self.ratios();
        let Some(mean) = geometric_mean(&ratios) else { return Ok(()) };
        let cut = |side: fn(&FeatureFigures) -> &Side| {
            self.features.iter().filter(|feature| side(feature).cut_ms.is_some()).count()
        };
        write!(f, "Geometric mean of {} ratios: {}", ratios.len(), figure(mean))?;
        if cut(|feature| &feature.peer) > 0 {
            write!(f, ", a lower bound: the peer was stopped in {}", cut(|feature| &feature.peer))?;
        }
        if cut(|feature| &feature.ours) > 0 {
            write!(f, "; Vervet was stopped in {}", cut(|feature| &feature.ours))?;
        }
        let cpu: Vec<f64> = self.features.iter().filter_map(FeatureFigures::cpu_ratio).collect();
        if let Some(mean) = geometric_mean(&cpu) {
            write!(f, ". Ratios of CPU time, of the {} that both completed: {}", cpu.len(), figure(mean))?;
        }
        writeln!(f, ".\n")?;
        let under = |feature: &FeatureFigures| {
            feature.ratio().is_some_and(|ratio| ratio < FEW_TIMES) || feature.ours.cut_ms.is_some()
        };
        match self.table(under) {
            Some(table) => writeln!(f, "Ratios below {FEW_TIMES}:\n\n{table}"),
            None => writeln!(f, "No ratio is below {FEW_TIMES}.\n"),
        }
    }
}

impl fmt::Display for FeatureReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "## Features, {}\n", self.title)?;
        let build = if self.optimized { "release" } else { "debug" };
        writeln!(f, "`{}`, {}, {}, {build} build\n", self.command, self.date, self.machine)?;
        for load in &self.loads {
            let (statements, seconds) = (count(load.statements), figure(load.seconds));
            writeln!(f, "* {}: {statements} statements loaded in {seconds} s", load.engine)?;
        }
        if let Some(table) = self.table(|_| true) {
            writeln!(f, "\n{table}")?;
        }
        writeln!(
            f,
            "Times are medians in ms on one thread. Each run parses and plans the text and writes the whole result \
             as TSV into a sink; the engines alternate. Queries of more than two seconds ran once. `ratio`: the \
             time of the peer divided by that of Vervet.\n"
        )?;
        self.write_ratios(f)?;
        for feature in &self.features {
            for remark in &feature.remarks {
                let mark = if feature.wrong { "WRONG: " } else { "" };
                writeln!(f, "* {mark}{}: {remark}", feature.feature)?;
            }
        }
        let wrong = self.features.iter().filter(|feature| feature.wrong).count();
        let compared =
            self.features.iter().filter(|one| one.ours.timing.is_some() && one.peer.timing.is_some()).count();
        writeln!(f, "* {} of {compared} results of both engines are equal", compared.saturating_sub(wrong))?;
        if !self.light.is_empty() {
            writeln!(f, "\n{}", self.light_table())?;
        }
        if !self.targets.is_empty() {
            writeln!(f, "\n{}", target::table(&self.targets))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_may_be_bounds() {
        let timing =
            |median_ms| Some(Timing { repeats: 1, median_ms, p95_ms: median_ms, cpu_median_ms: median_ms });
        let side = |timing| Side { timing, cut_ms: None };
        let cut = Side { timing: None, cut_ms: Some(10_017.0) };
        let of = |ours, peer| FeatureFigures { ours, peer, ..FeatureFigures::default() };
        let limit = Some(Duration::from_secs(10));
        let mut report = FeatureReport::new("data".into(), (Some("a".into()), Some("b".into())), limit);
        report.features.push(of(side(timing(2.0)), side(timing(8.0))));
        report.features.push(of(side(timing(100.17)), cut));
        assert_eq!(report.features[0].ratio_cell(), "4.00");
        assert_eq!(report.features[1].ratio_cell(), "> 100");
        let text = report.to_string();
        assert!(text.contains("over 10 s") && text.contains("No ratio is below 3."), "{text}");
        assert!(text.contains("Geometric mean of 2 ratios: 20.0, a lower bound"), "{text}");
        report.features.push(of(cut, side(timing(5.0))));
        assert!(report.to_string().contains("Ratios below 3:"));
        report.set_targets();
        let met: Vec<_> = report.targets.iter().map(Target::is_met).collect();
        assert_eq!(met, [None, Some(false)]);
        report.features.push(of(cut, cut));
        assert_eq!(report.features[3].ratio(), None);
        assert!(report.is_right());
        report.features[3].wrong = true;
        assert!(!report.is_right());
    }
}
