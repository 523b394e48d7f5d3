//! `SERVICE`: a pattern that another database solves.

use crate::{Slot, Variable};

/// A pattern for another endpoint, as text, since only that understands all of it.
///
/// Whoever runs a query replaces it by a table of the solutions before planning; see `vervet::service`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Service {
    /// The IRI of the endpoint, or a variable that a table beside the pattern binds to it.
    pub endpoint: Slot,
    /// A failure counts as one empty solution.
    pub silent: bool,
    /// The query that asks for all solutions, complete.
    pub text: String,
    /// The variables that its solutions may bind, by their names in the text.
    pub variables: Vec<(String, Variable)>,
}

impl Service {
    /// All variables that a solution may bind.
    pub fn bound(&self) -> impl Iterator<Item = Variable> + '_ {
        self.variables.iter().map(|(_, variable)| *variable).chain(self.endpoint.variable())
    }
}
