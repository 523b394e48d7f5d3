//! Limits on one query, so that no text overflows the stack or a counter.

/// Groups, parentheses, brackets and unary operators inside each other.
pub const NESTING_MAX: usize = 100;

/// Operators in one query whose chains make the algebra deep: arithmetic, `OPTIONAL`, `MINUS`, `BIND`.
pub const CHAIN_MAX: usize = 1_500;

/// Variables of one query, blank nodes and intermediate results included.
pub const VARIABLE_COUNT_MAX: usize = u16::MAX as usize;

/// Bytes of text.
pub const TEXT_BYTES_MAX: usize = 64 << 20;
