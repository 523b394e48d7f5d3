//! From a builder to the bytes of a file: the calls around `encode`.

use crate::encode::encode;
use crate::{Dictionary, DictionaryBuilder};
use vervet_env::Bytes;
use vervet_model::{Result, Watch};

impl DictionaryBuilder {
    /// The image of the file.
    ///
    /// # Errors
    /// None so far; reserved for images that outgrow the format.
    pub fn finish(self) -> Result<Vec<u8>> {
        self.finish_with(1)
    }

    /// [`DictionaryBuilder::finish`] on several threads; the image does not depend on their number.
    ///
    /// # Errors
    /// As [`DictionaryBuilder::finish`].
    pub fn finish_with(self, threads: usize) -> Result<Vec<u8>> {
        self.finish_watched(threads, &Watch::new("dictionary"))
    }

    /// [`DictionaryBuilder::finish_with`] with `watch`, which gets about [`DictionaryBuilder::finish_steps`]
    /// steps.
    ///
    /// # Errors
    /// As [`DictionaryBuilder::finish`]; those of `watch`.
    pub fn finish_watched(self, threads: usize, watch: &Watch<'_>) -> Result<Vec<u8>> {
        encode(&self, threads, watch)
    }

    /// Estimated number of steps of a [`Watch`] for making the image.
    #[must_use]
    pub fn finish_steps(&self) -> u64 {
        let words = if self.has_words() { 4 * self.literal_count() } else { 0 };
        6 * self.vertex_count() + 7 * self.literal_count() + words
    }
}

impl Dictionary {
    /// A dictionary without terms.
    #[must_use]
    pub fn empty() -> Self {
        let image = DictionaryBuilder::new().finish().expect("nothing to outgrow the format");
        Self::open(Bytes::from(image), "empty dictionary").expect("an image just written is whole")
    }
}
