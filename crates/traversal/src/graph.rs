//! A snapshot as vertices, edges and properties with values of Gremlin.
//!
//! # Shape
//! * `names`: ids of labels and keys, and their names, remembered for a traversal.
//! * `ids`: `T.id` of elements, and elements by it.
//! * `literal`: values as they are stored.
//! * `read`: neighbours, edges, properties, scans.
//! * `between`: the edges from one vertex to another.
//! * `detail`: elements as clients see them; `batch`: what many of them have.
//! * `whole`: all of it, for files.
//! * `computed`: properties that algorithms have given to vertices, for the rest of a traversal.

pub(crate) mod batch;
pub(crate) mod between;
pub(crate) mod computed;
pub(crate) mod detail;
pub(crate) mod ids;
pub(crate) mod literal;
pub(crate) mod names;
pub(crate) mod read;
pub(crate) mod scan;
pub(crate) mod whole;

pub(crate) use names::Names;
