//! Property-graph view of a snapshot: vertices, edges and properties with Gremlin values.
//!
//! # Shape
//! * `names`: ids and names of labels and keys, cached for a traversal.
//! * `ids`: `T.id` of elements, and elements by `T.id`.
//! * `literal`: conversion between values and stored literals.
//! * `read`: neighbours, edges, properties, scans.
//! * `between`: the edges from one vertex to another.
//! * `detail`: elements as clients see them; `batch`: prefetched properties of many elements.
//! * `ahead`: entries read ahead from a graph over several servers.
//! * `export`: the whole graph, for file output.
//! * `element`: ids, labels, keys and values of elements; values of the ids in query rows.
//! * `computed`: properties that algorithms have computed, for the rest of a traversal.

pub(crate) mod ahead;
pub(crate) mod batch;
pub(crate) mod between;
pub(crate) mod computed;
pub(crate) mod detail;
pub(crate) mod element;
pub(crate) mod export;
pub(crate) mod ids;
pub(crate) mod literal;
pub(crate) mod names;
pub(crate) mod read;
pub(crate) mod scan;

pub(crate) use names::Names;
