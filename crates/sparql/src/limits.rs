//! Limits on one query or one operation of an update, so that no text overflows the stack or a counter.

/// Maximum nesting depth of groups, parentheses, brackets and unary operators.
pub const NESTING_MAX: usize = 100;

/// Maximum number of operators in one query whose chains make the algebra deep: arithmetic, `OPTIONAL`,
/// `MINUS`, `BIND`; and `EXISTS`, each of which has its own scope.
pub const CHAIN_MAX: usize = 1_500;

/// Maximum number of patterns and operators generated for the paths of one query: a path generates some for
/// each of its predicates, repeated for each of its objects.
pub const PATH_PATTERNS_MAX: usize = 1 << 18;

/// Maximum number of variables of one query, including blank nodes and intermediate results.
pub const VARIABLE_COUNT_MAX: usize = u16::MAX as usize;

/// Maximum length of the text of a query, in bytes.
pub const TEXT_BYTES_MAX: usize = 64 << 20;

/// Maximum length of the text of an update, in bytes. Positions of its terms and blank nodes fit into 32
/// bits.
pub const UPDATE_BYTES_MAX: usize = 512 << 20;
