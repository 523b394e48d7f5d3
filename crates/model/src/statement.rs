//! A statement as ids.

use crate::Id;

/// A statement with its optional graph and edge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Statement {
    /// A vertex, or an edge that has this property.
    pub subject: Id,
    /// The predicate, key or edge label: a vertex.
    pub predicate: Id,
    /// A vertex or a value.
    pub object: Id,
    /// The named graph; [`Id::UNBOUND`] for the default graph.
    pub graph: Id,
    /// The identity of the statement; [`Id::UNBOUND`] without one.
    pub edge: Id,
}

/// Drops each statement without an edge (a *plain* one) where the same statement follows with one: it would
/// count twice. `sorted` is sorted by statement, then by edge, so the plain one comes first.
pub fn drop_plain_twins<T: Copy>(
    sorted: &mut Vec<T>,
    is_plain: impl Fn(&T) -> bool,
    is_same: impl Fn(&T, &T) -> bool,
) {
    let mut kept = 0;
    for index in 0..sorted.len() {
        let item = sorted[index];
        let has_twin = sorted.get(index + 1).is_some_and(|next| is_same(&item, next));
        if !(is_plain(&item) && has_twin) {
            sorted[kept] = item;
            kept += 1;
        }
    }
    sorted.truncate(kept);
}
