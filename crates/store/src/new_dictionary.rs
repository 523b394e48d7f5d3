//! Dictionary of a store under construction: an image in memory, or a sequentially written file.

use vervet_dictionary::Extension;
use vervet_env::Bytes;
use vervet_model::{Result, Watch};

/// The dictionary of a store under construction.
#[derive(Debug)]
pub enum NewDictionary<'d> {
    /// The image of its file.
    Image(Bytes),
    /// The dictionary of another store with more terms. It is copied sequentially; an image exists only for a
    /// store in memory.
    Extension(Box<Extension<'d>>),
}

impl NewDictionary<'_> {
    /// Writes the bytes of the file to `sink`.
    pub(crate) fn write(self, sink: &mut dyn FnMut(&[u8]) -> Result<()>, watch: &Watch<'_>) -> Result<()> {
        match self {
            Self::Image(image) => sink(&image),
            Self::Extension(extension) => extension.write(sink, watch),
        }
    }

    /// The bytes of the file.
    pub(crate) fn into_image(self, watch: &Watch<'_>) -> Result<Bytes> {
        if let Self::Image(image) = self {
            return Ok(image);
        }
        let mut image = Vec::new();
        let mut sink = |bytes: &[u8]| {
            image.extend_from_slice(bytes);
            Ok(())
        };
        self.write(&mut sink, watch)?;
        // The image lives as long as the store.
        image.shrink_to_fit();
        Ok(image.into())
    }
}

impl From<Bytes> for NewDictionary<'_> {
    fn from(image: Bytes) -> Self {
        Self::Image(image)
    }
}

impl From<Vec<u8>> for NewDictionary<'_> {
    fn from(image: Vec<u8>) -> Self {
        Self::Image(image.into())
    }
}

impl<'d> From<Extension<'d>> for NewDictionary<'d> {
    fn from(extension: Extension<'d>) -> Self {
        Self::Extension(Box::new(extension))
    }
}
