//! Results of bytecode: values with their multiplicities.

use vervet_gremlin::Value;

/// A result of bytecode: a value with its multiplicity.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Traverser {
    /// The multiplicity of the value.
    pub bulk: i64,
    /// The value.
    pub value: Value,
}

/// An item of a response's result list.
pub(crate) enum Item {
    Value(Value),
    Traverser(Traverser),
}
