//! What a suite found.

use std::collections::BTreeMap;
use std::fmt;

/// Counts by category, and failures.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    categories: BTreeMap<String, [usize; 2]>,
    failures: Vec<(String, String)>,
}

impl Report {
    /// Counts one case.
    pub fn add(&mut self, category: &str, name: &str, result: Result<(), String>) {
        let counts = self.categories.entry(category.to_owned()).or_default();
        match result {
            Ok(()) => counts[0] += 1,
            Err(reason) => {
                counts[1] += 1;
                self.failures.push((format!("{category}: {name}"), reason));
            }
        }
    }

    /// Number of cases that failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.failures.len()
    }

    /// Number of cases that passed.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.categories.values().map(|counts| counts[0]).sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, reason) in &self.failures {
            writeln!(f, "FAILED {name}\n    {}", reason.replace('\n', "\n    "))?;
        }
        let width = self.categories.keys().map(String::len).max().unwrap_or(0);
        for (category, [passed, failed]) in &self.categories {
            writeln!(f, "{category:width$}  {passed:>6} passed  {failed:>6} failed")?;
        }
        write!(f, "{} passed, {} failed", self.passed(), self.failed())
    }
}
