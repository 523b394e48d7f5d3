//! What a load writes into: anything that numbers terms and takes statements.
//!
//! The consumer owns this trait (the loader asks for what it needs) and storage implements it in a few
//! lines, so the loader knows no storage.

pub use vervet_model::Statement;
use vervet_model::{Id, Inline, LiteralKind, Result};

/// A term in borrowed pieces, checked and unescaped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TermRef<'a> {
    /// An absolute IRI.
    Iri(&'a str),
    /// The label of a blank node without `_:`, already made unique for its file.
    Blank(&'a str),
    /// A literal.
    Literal {
        /// The lexical form.
        value: &'a str,
        /// Datatype or language (in lower case).
        kind: Kind<'a>,
    },
}

/// [`LiteralKind`] with a hash, so that tests and caches can use it as a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind<'a> {
    /// `xsd:string`.
    String,
    /// A language tag; a base direction follows it as `--ltr` or `--rtl`.
    Language(&'a str),
    /// Any other datatype, as an IRI.
    Typed(&'a str),
    /// A triple term, whose text is that of [`LiteralKind::Triple`].
    Triple,
}

impl<'a> From<Kind<'a>> for LiteralKind<'a> {
    fn from(kind: Kind<'a>) -> Self {
        match kind {
            Kind::String => Self::String,
            Kind::Language(tag) => Self::Language(tag),
            Kind::Typed(iri) => Self::Typed(iri),
            Kind::Triple => Self::Triple,
        }
    }
}

/// Numbers terms and takes statements; see the header of this file.
///
/// A load that fails leaves a target with part of the input: to be atomic is the business of the caller,
/// who drops a target whose load failed.
pub trait Target {
    /// How many vertices there are; by default none. New ones have numbers from there on.
    fn vertex_count(&self) -> u64 {
        0
    }

    /// The id of an IRI; the same IRI has the same id always.
    ///
    /// # Errors
    /// Whatever the target cannot do (its memory, its files).
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

    /// A number by which the target finds an IRI faster ([`Target::intern_iri_hashed`]); by default it means
    /// nothing.
    fn hash_iri(&self, _iri: &str) -> u64 {
        0
    }

    /// Says what IRIs will be asked for next, by their [`Target::hash_iri`], so that a target can bring what
    /// it needs for them into the cache; by default it does nothing.
    fn expect(&self, _hashes: &[u64]) {}

    /// As [`Target::intern_iri`] with the [`Target::hash_iri`] of the IRI.
    ///
    /// # Errors
    /// As [`Target::intern_iri`].
    fn intern_iri_hashed(&mut self, iri: &str, _hash: u64) -> Result<Id> {
        self.intern_iri(iri)
    }

    /// The id of a value, which is that of its literal.
    ///
    /// # Errors
    /// As [`Target::intern_iri`].
    fn intern_value(&mut self, value: Inline) -> Result<Id> {
        let mut lexical = String::new();
        value.write_lexical(&mut lexical);
        self.intern_literal(&lexical, LiteralKind::Typed(value.datatype()))
    }

    /// Appends the ids of `terms`, in their order, to `ids`. Called with the distinct terms of one block,
    /// so that a target can hash and prefetch many at once; by default one call for each term.
    ///
    /// # Errors
    /// As [`Target::intern_iri`].
    fn intern_all(&mut self, terms: &[TermRef<'_>], ids: &mut Vec<Id>) -> Result<()> {
        for term in terms {
            ids.push(match *term {
                TermRef::Iri(iri) => self.intern_iri(iri)?,
                TermRef::Blank(label) => self.intern_blank(label)?,
                TermRef::Literal { value, kind } => self.intern_literal(value, kind.into())?,
            });
        }
        Ok(())
    }

    /// A fresh edge id.
    ///
    /// # Errors
    /// As [`Target::intern_iri`].
    fn next_edge(&mut self) -> Result<Id>;

    /// Takes statements `[subject, predicate, object]` of the default graph without identity.
    ///
    /// # Errors
    /// As [`Target::intern_iri`].
    fn add_triples(&mut self, triples: &[[Id; 3]]) -> Result<()>;

    /// Takes statements of any kind.
    ///
    /// # Errors
    /// As [`Target::intern_iri`].
    fn add(&mut self, statements: &[Statement]) -> Result<()>;

    /// Gives every statement that this load has added to `each`, which may change it, or drop it by
    /// `false`. Called at the end of a load, and only if a name of an edge was used before the statement
    /// of that edge was known (see docs/loading.md).
    ///
    /// # Errors
    /// As [`Target::intern_iri`].
    fn rewrite(&mut self, each: &mut dyn FnMut(&mut Statement) -> bool) -> Result<()>;
}
