//! Limits and names of Gremlin scripts.

use crate::options::{CancelToken, QUERY_MEMORY_DEFAULT_BYTES, QUERY_TIMEOUT_DEFAULT};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use vervet_gremlin::Value;
use vervet_kernel::Limits;
use vervet_traversal::Materialize;

/// Limits and names of one Gremlin script.
#[derive(Clone, Debug)]
pub struct GremlinOptions {
    /// Deadline; `None`: none.
    pub timeout: Option<std::time::Duration>,
    /// The maximum number of bytes that steps may hold; `None`: no cap.
    pub memory_limit_bytes: Option<u64>,
    /// Cancels the script from another thread.
    pub cancel: Option<CancelToken>,
    /// Bindings: values of variables.
    pub bindings: HashMap<String, Value>,
    /// Names of the traversal source; all of them refer to this graph.
    pub sources: Vec<String>,
    /// The level of detail of elements in the results.
    pub materialize: Materialize,
    /// The folder that `io()` may read from and write to; `None`: `io()` is off. File names in a script are
    /// relative to it.
    pub files: Option<PathBuf>,
    /// The number of threads of a heavy query in the script and of its algorithms; `None`: the number of
    /// cores.
    pub threads: Option<usize>,
    /// Whether the script fails, as at an expired deadline, before it runs a query that is estimated as heavy
    /// ([`crate::Prepared::is_heavy`]). For callers that run heavy queries elsewhere.
    pub refuse_heavy: bool,
    /// Whether kernels run the part of a traversal that is a query, in the order that the planner chooses.
    /// Otherwise every step runs as written. The results are equal except for the order of unordered results.
    pub kernels: bool,
}

impl Default for GremlinOptions {
    fn default() -> Self {
        Self {
            timeout: Some(QUERY_TIMEOUT_DEFAULT),
            memory_limit_bytes: Some(QUERY_MEMORY_DEFAULT_BYTES),
            cancel: None,
            bindings: HashMap::new(),
            sources: vec!["g".to_owned()],
            materialize: Materialize::default(),
            files: None,
            threads: None,
            refuse_heavy: false,
            kernels: true,
        }
    }
}

impl GremlinOptions {
    /// The same options with one more binding.
    #[must_use]
    pub fn with_binding(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.bindings.insert(name.into(), value.into());
        self
    }

    /// The limits. The time budget began at `started`, or begins now.
    pub(super) fn limits(&self, started: Option<Instant>) -> Limits {
        let started = started.unwrap_or_else(Instant::now);
        Limits {
            cancelled: self.cancel.as_ref().map(CancelToken::flag),
            deadline: self.timeout.and_then(|timeout| Some((started.checked_add(timeout)?, timeout))),
            memory_bytes: self.memory_limit_bytes,
            // Any statement may end with `profile()`.
            reads: Some(Arc::default()),
        }
    }
}
