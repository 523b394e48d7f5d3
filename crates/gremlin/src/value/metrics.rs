//! What `profile()` gives.

use crate::Value;
use std::sync::Arc;

/// How long a traversal took, and its steps.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Nanoseconds in all.
    pub nanoseconds: u64,
    /// Its steps.
    pub steps: Vec<Metric>,
}

/// How long a step took, and what went through it.
#[derive(Clone, Debug, Default)]
pub struct Metric {
    /// Its place among all steps.
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
