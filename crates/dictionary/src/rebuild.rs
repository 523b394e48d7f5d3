//! The terms of a dictionary in a new builder, for a rebuild of the file. ([`crate::Extension`] adds terms to
//! a file without a rebuild.)

use crate::{Dictionary, DictionaryBuilder};
use vervet_model::{Id, Result, Watch};

impl DictionaryBuilder {
    /// A builder with the terms of `dictionary` under their ids; new terms get the following numbers.
    ///
    /// # Errors
    /// Damaged dictionary.
    pub fn from_dictionary(dictionary: &Dictionary) -> Result<Self> {
        Self::from_dictionary_watched(dictionary, &Watch::new("dictionary"))
    }

    /// [`DictionaryBuilder::from_dictionary`] with `watch`, which gets a step for each term.
    ///
    /// # Errors
    /// Damaged dictionary; those of `watch`.
    pub fn from_dictionary_watched(dictionary: &Dictionary, watch: &Watch<'_>) -> Result<Self> {
        let mut ticker = watch.ticker();
        let mut builder = Self::new();
        if dictionary.has_words() {
            builder.index_words();
        }
        let mut scratch = String::new();
        let vertices = (0..dictionary.vertex_count()).map(Id::vertex);
        for id in vertices.chain((0..dictionary.literal_count()).map(Id::literal)) {
            ticker.step()?;
            let mut interned = Ok(Id::UNBOUND);
            dictionary.read_term(id, &mut scratch, &mut |parts| interned = builder.intern_parts(parts))?;
            if interned? != id {
                return Err(dictionary.damaged(&format!("{id:?} has the term of another id")));
            }
        }
        Ok(builder)
    }
}
