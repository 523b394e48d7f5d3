//! Metrics: the result of `profile()`.

use crate::Value;
use std::sync::Arc;

/// Time of a traversal, and the metrics of its steps.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Total time in nanoseconds.
    pub nanoseconds: u64,
    /// Its steps.
    pub steps: Vec<Metric>,
}

/// Time and counts of a step.
#[derive(Clone, Debug, Default)]
pub struct Metric {
    /// The position among all steps.
    pub id: Arc<str>,
    /// The step as text.
    pub name: Arc<str>,
    /// Nanoseconds.
    pub nanoseconds: u64,
    /// `traverserCount`, `elementCount`, …
    pub counts: Vec<(Arc<str>, i64)>,
    /// `percentDur`, …
    pub annotations: Vec<(Arc<str>, Value)>,
    /// Steps of nested traversals.
    pub nested: Vec<Metric>,
}
