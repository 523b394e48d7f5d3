//! Limits on one query or one operation of an update, so that no text overflows the stack or a counter.

/// Groups, parentheses, brackets and unary operators inside each other.
pub const NESTING_MAX: usize = 100;

/// Operators in one query whose chains make the algebra deep: arithmetic, `OPTIONAL`, `MINUS`, `BIND`; and
/// `EXISTS`, each of which has a table of names of its own.
pub const CHAIN_MAX: usize = 1_500;

/// Patterns and operators that the paths of one query stand for: a path has some for each predicate in it,
/// and a path with several objects once more for each of these.
pub const PATH_PATTERNS_MAX: usize = 1 << 18;

/// Variables of one query, blank nodes and intermediate results included.
pub const VARIABLE_COUNT_MAX: usize = u16::MAX as usize;

/// Bytes of the text of a query.
pub const TEXT_BYTES_MAX: usize = 64 << 20;

/// Bytes of the text of an update. Positions of terms and blank nodes in it fit into 32 bits.
pub const UPDATE_BYTES_MAX: usize = 512 << 20;
