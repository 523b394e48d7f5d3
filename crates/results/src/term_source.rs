//! Terms of ids, as the writers read them.

use vervet_model::{Id, Result, TermParts};

/// Source of the terms of ids: a snapshot, and the terms computed by the query.
///
/// All requested ids are bound; the writer handles unbound positions.
pub trait TermSource {
    /// Appends the N-Triples forms of the terms of `ids` to `out` and the end of each in `out` to `ends`.
    ///
    /// # Errors
    /// Damaged dictionary; an unknown id.
    fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()>;

    /// Calls `read` once with the parts of the term of `id`; `scratch` is a reusable buffer.
    ///
    /// # Errors
    /// Damaged dictionary; an unknown id.
    fn read_term(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()>;
}
