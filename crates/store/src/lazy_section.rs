//! A section of a store that is opened, and its checksum verified, on first use.

use std::sync::OnceLock;
use vervet_env::Bytes;
use vervet_model::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

/// A section that is opened and verified on first use.
#[derive(Debug)]
pub(crate) struct LazySection<T> {
    name: String,
    bytes: Bytes,
    /// `None`: this process has made the bytes itself and kept them in memory.
    checksum: Option<u64>,
    content: OnceLock<Result<T>>,
}

impl<T> LazySection<T> {
    pub(crate) fn new(name: String, bytes: Bytes, checksum: Option<u64>) -> Self {
        Self { name, bytes, checksum, content: OnceLock::new() }
    }

    /// The content, verified.
    pub(crate) fn get(&self, open: impl FnOnce(Bytes, &String) -> Result<T>) -> Result<&T> {
        let content = self.content.get_or_init(|| {
            if let Some(expected) = self.checksum {
                let found = xxh3_64(&self.bytes);
                if found != expected {
                    let what = format!("it has checksum {found:016x}, expected {expected:016x}");
                    return Err(Error::corrupt(&self.name, what));
                }
            }
            open(self.bytes.clone(), &self.name)
        });
        content.as_ref().map_err(Clone::clone)
    }
}
