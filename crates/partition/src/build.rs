//! Building a base, whole or in partitions.

use crate::PartitionedBase;
use std::sync::Arc;
use vervet_model::{Error, ErrorKind, Partitioning, Result};
use vervet_store::{Base, NewDictionary, StoreBuilder, Target};

/// Checks a base before it is published.
type Check<'a> = &'a mut dyn FnMut(&dyn Base) -> Result<()>;

/// Builds the base of a version, if `check` accepts it: a store, or with several partitions a
/// [`PartitionedBase`].
///
/// # Errors
/// Those of `check`; as [`StoreBuilder::finish`]. Unsupported: several partitions in a directory.
pub fn finish<'d>(
    builder: StoreBuilder<'_>,
    dictionary: impl Into<NewDictionary<'d>>,
    target: &Target,
    partitioning: Partitioning,
    check: Option<Check<'_>>,
) -> Result<Arc<dyn Base>> {
    if partitioning.is_whole() {
        let store = match check {
            Some(check) => builder.finish_checked(dictionary, target, &mut |store| check(store))?,
            None => builder.finish(dictionary, target)?,
        };
        return Ok(Arc::new(store));
    }
    if *target != Target::Memory {
        return Err(Error::new(ErrorKind::Unsupported, "several partitions in one directory")
            .with_hint("use one partition, or a database in memory"));
    }
    let base = PartitionedBase::new(partitioning, builder.finish_parts(dictionary, partitioning)?)?;
    check.map_or(Ok(()), |check| check(&base))?;
    Ok(Arc::new(base))
}
