//! Backups of clusters in object storage: the store that an argument names.

use std::io::Write;
use std::path::Path;
use vervet::{Error, ErrorKind};
use vervet_cluster::{BackupStore, StoredObject, StoredText};
use vervet_model::Result;
use vervet_object::{Bucket, Location, Object, Settings, Stored};

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct BucketStore(Bucket);

/// The store that an argument names as a URL; `None`: it is a path.
pub(crate) fn store_of(argument: &Path) -> Result<Option<BucketStore>> {
    let Some(text) = argument.to_str().filter(|text| Location::is_url(text)) else { return Ok(None) };
    let location: Location = text.parse()?;
    let variable = |name: &str| std::env::var(name).ok();
    let settings = Settings::from_variables(&location, &variable)?;
    Ok(Some(BucketStore(Bucket::new(location, settings)?)))
}

/// Refuses a URL where a path is expected. `way`: what to do in its place.
pub(crate) fn expect_path(argument: &Path, way: &str) -> Result<()> {
    match argument.to_str().filter(|text| Location::is_url(text)) {
        None => Ok(()),
        Some(text) => {
            Err(Error::new(ErrorKind::Input, format!("{text} is a URL, not a directory")).with_hint(way))
        }
    }
}

impl BackupStore for BucketStore {
    fn location(&self) -> String {
        self.0.location().to_string()
    }

    fn list(&self, begin: &str) -> Result<Vec<StoredObject>> {
        let stored = |Object { name, size_bytes }| StoredObject { name, size_bytes };
        Ok(self.0.list(begin)?.into_iter().map(stored).collect())
    }

    fn read(&self, name: &str, bytes_max: u64) -> Result<Option<StoredText>> {
        Ok(self.0.read(name, bytes_max)?.map(|Stored { bytes, tag }| StoredText { bytes, tag }))
    }

    fn download(
        &self,
        object: &StoredObject,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let object = Object { name: object.name.clone(), size_bytes: object.size_bytes };
        self.0.download(&object, out, progress)
    }

    fn upload(&self, name: &str, file: &Path, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        self.0.upload(name, file, progress)
    }

    fn replace(&self, name: &str, bytes: &[u8], before: Option<&str>) -> Result<bool> {
        self.0.replace(name, bytes, before)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.0.remove(name)
    }
}
