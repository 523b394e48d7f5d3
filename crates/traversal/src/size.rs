//! Size limits of values that steps create. Nested lists share their items, so without limits a short query
//! could create a value that takes years to hash, or a nesting so deep that recursion overflows the stack.

use std::sync::Arc;
use vervet_gremlin::{Tree, Value, Vertex, VertexProperty};
use vervet_kernel::Control;
use vervet_model::{Error, ErrorKind, Result};

/// Maximum nesting depth of a value.
pub const NESTING_MAX: usize = 100;
/// Maximum number of values in one value, shared parts counted repeatedly.
pub const VALUES_MAX: u64 = 1 << 24;

/// Accounted size of an item of a collection, including spare capacity.
pub(crate) const VALUE_BYTES: u64 = 48;

/// Checks the size of a value that a step has made.
///
/// # Cost
/// A walk over a collection; nothing for any other value.
/// # Errors
/// [`ErrorKind::MemoryLimit`]: the value exceeds a limit; cancellation.
pub(crate) fn check(value: &Value, control: &Control<'_>) -> Result<()> {
    match value {
        Value::List(_)
        | Value::Set(_)
        | Value::Map(_)
        | Value::Entry(_)
        | Value::Bulk(_)
        | Value::Path(_)
        | Value::Tree(_) => {}
        _ => return Ok(()),
    }
    let mut walk = Check { left: VALUES_MAX, control };
    if walk.fits(value, NESTING_MAX)? {
        return Ok(());
    }
    Err(match walk.left {
        0 => too_many(),
        _ => too_deep(),
    })
}

/// The error for more than [`VALUES_MAX`] values.
pub(crate) fn too_many() -> Error {
    let message = format!("a value would hold more than {VALUES_MAX} values (VALUES_MAX)");
    Error::new(ErrorKind::MemoryLimit, message).with_hint("gather less in one value")
}

/// The error for more than [`NESTING_MAX`] levels.
pub(crate) fn too_deep() -> Error {
    let message = format!("a value would be nested deeper than {NESTING_MAX} (NESTING_MAX)");
    Error::new(ErrorKind::MemoryLimit, message).with_hint("gather less in one value")
}

struct Check<'c> {
    left: u64,
    control: &'c Control<'c>,
}

impl Check<'_> {
    fn fits(&mut self, value: &Value, depth: usize) -> Result<bool> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || depth == 0 {
            return Ok(false);
        }
        let depth = depth - 1;
        match value {
            Value::List(values) => self.all(values.iter(), depth),
            Value::Set(values) => self.all(values.iter(), depth),
            Value::Map(map) => Ok(self.all(map.keys(), depth)? && self.all(map.values(), depth)?),
            Value::Entry(entry) => Ok(self.fits(&entry.0, depth)? && self.fits(&entry.1, depth)?),
            Value::Bulk(bulk) => self.all(bulk.keys(), depth),
            Value::Path(path) => self.all(path.objects.iter(), depth),
            Value::Tree(tree) => self.fits_tree(tree, depth),
            _ => Ok(true),
        }
    }

    fn all<'v>(&mut self, values: impl ExactSizeIterator<Item = &'v Value>, depth: usize) -> Result<bool> {
        self.control.work(values.len())?;
        for value in values {
            if !self.fits(value, depth)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn fits_tree(&mut self, tree: &Tree, depth: usize) -> Result<bool> {
        if depth == 0 {
            return Ok(false);
        }
        self.control.work(tree.children.len())?;
        for (value, below) in &tree.children {
            if !self.fits(value, depth - 1)? || !self.fits_tree(below, depth - 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Size against the memory cap in bytes, without the inline part. A shared part counts proportionally for
/// each of its owners.
///
/// # Cost
/// A walk over a collection; nothing for any other value.
/// # Errors
/// The limits of `control`, except its memory cap.
pub fn bytes(value: &Value, control: &Control<'_>) -> Result<u64> {
    Ok(match value {
        Value::String(text) => share(text.len() as u64, text),
        Value::BigInteger(number) => share(number.bits() / 8, number),
        Value::BigDecimal(number) => share(number.as_bigint_and_scale().0.bits() / 8, number),
        Value::List(values) => share(of_all(values.iter(), control)?, values),
        Value::Set(values) => share(of_all(values.iter(), control)?, values),
        Value::Map(map) => share(of_all(map.keys(), control)? + of_all(map.values(), control)?, map),
        Value::Entry(entry) => {
            share(2 * VALUE_BYTES + bytes(&entry.0, control)? + bytes(&entry.1, control)?, entry)
        }
        Value::Bulk(bulk) => share(of_all(bulk.keys(), control)?, bulk),
        Value::Path(path) => share(of_all(path.objects.iter(), control)?, path),
        Value::Tree(tree) => share(of_tree(tree, control)?, tree),
        Value::Subgraph(graph) => {
            share((graph.vertices.len() + graph.edges.len()) as u64 * VALUE_BYTES, graph)
        }
        Value::Vertex(Vertex { detail: Some(detail), .. }) => {
            let mut total = 2 * VALUE_BYTES;
            for property in &detail.properties {
                total += of_property(property, control)?;
            }
            share(total, detail)
        }
        Value::Edge(edge) => {
            let mut total = 2 * VALUE_BYTES;
            for property in edge.detail.iter().flat_map(|detail| &detail.properties) {
                total += 3 * VALUE_BYTES + bytes(&property.value, control)?;
            }
            share(total, edge)
        }
        Value::VertexProperty(property) => share(of_property(property, control)?, property),
        Value::Property(property) => share(3 * VALUE_BYTES + bytes(&property.value, control)?, property),
        _ => 0,
    })
}

fn share<T: ?Sized>(bytes: u64, owned: &Arc<T>) -> u64 {
    bytes / Arc::strong_count(owned) as u64
}

fn of_all<'v>(values: impl ExactSizeIterator<Item = &'v Value>, control: &Control<'_>) -> Result<u64> {
    control.work(values.len())?;
    let mut total = 0;
    for value in values {
        total += VALUE_BYTES + bytes(value, control)?;
    }
    Ok(total)
}

fn of_property(property: &VertexProperty, control: &Control<'_>) -> Result<u64> {
    let mut total = 3 * VALUE_BYTES + bytes(&property.value, control)?;
    for about in property.detail.iter().flat_map(|detail| &detail.properties) {
        total += 3 * VALUE_BYTES + bytes(&about.value, control)?;
    }
    Ok(total)
}

fn of_tree(tree: &Tree, control: &Control<'_>) -> Result<u64> {
    control.work(tree.children.len())?;
    let mut total = 0;
    for (value, below) in &tree.children {
        total += 2 * VALUE_BYTES + bytes(value, control)? + of_tree(below, control)?;
    }
    Ok(total)
}
