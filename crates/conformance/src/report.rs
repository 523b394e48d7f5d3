//! Results of a suite.

use std::collections::BTreeMap;
use std::fmt;

/// The outcome of one case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The expected behaviour.
    Passed,
    /// Other behaviour; the reason.
    Failed(String),
    /// It needs a feature that the engine reports as unsupported; the engine's message.
    Unsupported(String),
    /// It was left out on purpose.
    NotRun,
    /// It does not apply to engines of this kind, or to any; why.
    LeftOut(String),
}

/// Cases of one category.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Counts {
    passed: usize,
    failed: usize,
    unsupported: usize,
    not_run: usize,
    left_out: usize,
}

/// Counts by category, failures, and unsupported features.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    categories: BTreeMap<String, Counts>,
    failures: Vec<(String, String)>,
    unsupported: BTreeMap<String, usize>,
    left_out: BTreeMap<String, usize>,
}

impl Report {
    /// Counts one case.
    pub fn add(&mut self, category: &str, name: &str, result: Result<(), String>) {
        self.add_outcome(category, name, result.map_or_else(Outcome::Failed, |()| Outcome::Passed));
    }

    /// Counts one case with its outcome.
    pub fn add_outcome(&mut self, category: &str, name: &str, outcome: Outcome) {
        let counts = self.categories.entry(category.to_owned()).or_default();
        match outcome {
            Outcome::Passed => counts.passed += 1,
            Outcome::Failed(reason) => {
                counts.failed += 1;
                self.failures.push((format!("{category}: {name}"), reason));
            }
            Outcome::Unsupported(reason) => {
                counts.unsupported += 1;
                *self.unsupported.entry(reason).or_default() += 1;
            }
            Outcome::NotRun => counts.not_run += 1,
            Outcome::LeftOut(reason) => {
                counts.left_out += 1;
                *self.left_out.entry(reason).or_default() += 1;
            }
        }
    }

    /// The number of failed cases.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.failures.len()
    }

    /// The number of passed cases.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.sum(|counts| counts.passed)
    }

    /// The number of cases that need unsupported features.
    #[must_use]
    pub fn unsupported(&self) -> usize {
        self.sum(|counts| counts.unsupported)
    }

    /// The number of cases left out on purpose.
    #[must_use]
    pub fn not_run(&self) -> usize {
        self.sum(|counts| counts.not_run)
    }

    /// The failures: `category: name`, and the reason.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.failures.iter().map(|(name, reason)| (name.as_str(), reason.as_str()))
    }

    fn sum(&self, count: impl Fn(&Counts) -> usize) -> usize {
        self.categories.values().map(count).sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, reason) in &self.failures {
            writeln!(f, "FAILED {name}\n    {}", reason.replace('\n', "\n    "))?;
        }
        for (reason, count) in &self.unsupported {
            writeln!(f, "not supported yet, {count:>4} times: {reason}")?;
        }
        for (reason, count) in &self.left_out {
            writeln!(f, "left out, {count:>4} times: {reason}")?;
        }
        let width = self.categories.keys().map(String::len).max().unwrap_or(0);
        // Suites without such cases keep a narrow table.
        let wide = self.unsupported() + self.not_run() > 0;
        for (category, counts) in &self.categories {
            let Counts { passed, failed, unsupported, not_run, left_out } = counts;
            write!(f, "{category:width$}  {passed:>6} passed  {failed:>6} failed")?;
            if wide {
                write!(f, "  {unsupported:>6} not supported yet  {not_run:>6} not run: later")?;
            }
            if !self.left_out.is_empty() {
                write!(f, "  {left_out:>6} left out")?;
            }
            writeln!(f)?;
        }
        if wide {
            writeln!(f, "{} not supported yet, {} not run: later", self.unsupported(), self.not_run())?;
        }
        write!(f, "{} passed, {} failed", self.passed(), self.failed())
    }
}
