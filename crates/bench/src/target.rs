//! A performance target with the figure reached, and tables of them.

use crate::table::{Table, figure};
use serde::Serialize;

/// One target.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub struct Target {
    /// The measured quantity, with its unit.
    pub what: String,
    /// The figure to reach.
    pub target: f64,
    /// Whether less is better.
    pub at_most: bool,
    /// The figure reached, or a bound of it.
    pub reached: f64,
    /// The true figure is at least [`Self::reached`]: the peer was cancelled.
    pub is_bound: bool,
}

impl Target {
    /// Whether the target is met; `None` if a bound is inconclusive.
    #[must_use]
    pub fn is_met(&self) -> Option<bool> {
        let met = if self.at_most { self.reached <= self.target } else { self.reached >= self.target };
        (met || !self.is_bound).then_some(met)
    }
}

/// Targets as a table.
#[must_use]
pub fn table(targets: &[Target]) -> Table {
    let mut table = Table::new(&["target", "asked", "reached", "met"]);
    for target in targets {
        table.row(vec![
            target.what.clone(),
            format!("{} {}", if target.at_most { "≤" } else { "≥" }, figure(target.target)),
            format!("{}{}", if target.is_bound { "> " } else { "" }, figure(target.reached)),
            match target.is_met() {
                Some(true) => "yes".to_owned(),
                Some(false) => "**no**".to_owned(),
                None => "open".to_owned(),
            },
        ]);
    }
    table
}
