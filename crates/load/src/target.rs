//! `Target`: the output interface of the loader, which numbers terms and stores statements.
//!
//! The loader defines this trait and storage implements it in a few lines, so the loader does not depend on
//! storage.

pub use vervet_model::Statement;
use vervet_model::{Id, Inline, LiteralKind, Result};

/// A borrowed term, validated and unescaped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TermRef<'a> {
    /// An absolute IRI.
    Iri(&'a str),
    /// The label of a blank node without `_:`, already unique for its file.
    Blank(&'a str),
    /// A literal.
    Literal {
        /// The lexical form.
        value: &'a str,
        /// Datatype or language (in lower case).
        kind: LiteralKind<'a>,
    },
}

/// Numbers terms and stores statements; see the header of this file.
///
/// A failed load leaves a part of the input in the target. The caller ensures atomicity: it drops the target
/// of a failed load.
pub trait Target {
    /// Number of existing vertices, by default 0. New vertices are numbered from there on.
    fn vertex_count(&self) -> u64 {
        0
    }

    /// The id of an IRI; equal IRIs have equal ids.
    ///
    /// # Errors
    /// Errors of the target (its memory, its files).
    fn intern_iri(&mut self, iri: &str) -> Result<Id>;

    /// The id of the blank node with this label.
    ///
    /// # Errors
    /// As [`Target::intern_iri`].
    fn intern_blank(&mut self, label: &str) -> Result<Id>;

    /// The id of a literal.
    ///
    /// # Errors
    /// As [`Target::intern_iri`].
    fn intern_literal(&mut self, value: &str, kind: LiteralKind<'_>) -> Result<Id>;

    /// A hash by which the target finds an IRI faster ([`Target::intern_iri_hashed`]); by default unused.
    fn hash_iri(&self, _iri: &str) -> u64 {
        0
    }

    /// Announces the [`Target::hash_iri`] of the next look-ups, so that a target can prefetch; by default a
    /// no-op.
    fn expect(&self, _hashes: &[u64]) {}

    /// As [`Target::intern_iri`] with the [`Target::hash_iri`] of the IRI.
    ///
    /// # Errors
    /// As [`Target::intern_iri`].
    fn intern_iri_hashed(&mut self, iri: &str, _hash: u64) -> Result<Id> {
        self.intern_iri(iri)
    }

    /// The id of an inline value, which is that of its literal.
    ///
    /// # Errors
    /// As [`Target::intern_iri`].
    fn intern_value(&mut self, value: Inline) -> Result<Id> {
        let mut lexical = String::new();
        value.write_lexical(&mut lexical);
        self.intern_literal(&lexical, LiteralKind::Typed(value.datatype()))
    }

    /// Appends the ids of `terms`, in their order, to `ids`. Called with the distinct terms of one block, so
    /// that a target can hash and prefetch many at once; by default one call per term.
    ///
    /// # Errors
    /// As [`Target::intern_iri`].
    fn intern_all(&mut self, terms: &[TermRef<'_>], ids: &mut Vec<Id>) -> Result<()> {
        for term in terms {
            ids.push(match *term {
                TermRef::Iri(iri) => self.intern_iri(iri)?,
                TermRef::Blank(label) => self.intern_blank(label)?,
                TermRef::Literal { value, kind } => self.intern_literal(value, kind)?,
            });
        }
        Ok(())
    }

    /// A fresh edge id.
    ///
    /// # Errors
    /// As [`Target::intern_iri`].
    fn next_edge(&mut self) -> Result<Id>;

    /// Stores statements `[subject, predicate, object]` of the default graph without identity.
    ///
    /// # Errors
    /// As [`Target::intern_iri`].
    fn add_triples(&mut self, triples: &[[Id; 3]]) -> Result<()>;

    /// Stores statements of any kind.
    ///
    /// # Errors
    /// As [`Target::intern_iri`].
    fn add(&mut self, statements: &[Statement]) -> Result<()>;

    /// Calls `each` with every statement that this load has added; `each` may change it, or drop it by
    /// returning `false`. Called at the end of a load, and only if the name of an edge was used before the
    /// statement of that edge was known (see docs/loading.md).
    ///
    /// # Errors
    /// As [`Target::intern_iri`].
    fn rewrite(&mut self, each: &mut dyn FnMut(&mut Statement) -> bool) -> Result<()>;
}
