//! `SERVICE` (SPARQL 1.1 Federated Query): a pattern that a remote endpoint evaluates.

use crate::{Slot, Variable};

/// A pattern for a remote endpoint, as query text, since only the endpoint supports all of it.
///
/// The facade replaces this node by a table of the solutions before planning; see `vervet::service`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Service {
    /// The IRI of the endpoint, or a variable that a sibling table binds to it.
    pub endpoint: Slot,
    /// `SILENT`: a failure counts as a single empty solution.
    pub silent: bool,
    /// The complete query text sent to the endpoint.
    pub text: String,
    /// The variables that its solutions may bind, with their names in the text.
    pub variables: Vec<(String, Variable)>,
}

impl Service {
    /// All variables that a solution may bind.
    pub fn bound(&self) -> impl Iterator<Item = Variable> + '_ {
        self.variables.iter().map(|(_, variable)| *variable).chain(self.endpoint.variable())
    }
}
