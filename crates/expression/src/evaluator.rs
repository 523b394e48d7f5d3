//! Evaluator: the per-query environment of expressions (snapshot, computed terms, time, randomness, base
//! IRI).

use crate::computed::{ComputedKind, ComputedTerms};
use crate::pattern_cache::PatternCache;
use crate::text_cache::TextCache;
use oxrdf::{BlankNodeRef, LiteralRef, NamedNodeRef, Term, TermRef};
use oxsdatatypes::DateTime;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use vervet_algebra::Variable;
use vervet_model::{
    Error, ErrorKind, Id, LiteralKind, Result, TRIPLE_DEPTH_MAX, Tag, TermParts, inline_id, lock,
    triple_term, triple_text,
};
use vervet_snapshot::Snapshot;

const XSD_STRING: &str = "http://www.w3.org/2001/XMLSchema#string";

/// Limits of the running query. A batch of expensive expressions takes any time, so the evaluation checks
/// them within a batch, after a fixed amount of work.
pub trait Interrupt: Sync {
    /// Fails if the query was cancelled or has passed its deadline.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`], [`ErrorKind::Deadline`].
    fn check(&self) -> Result<()>;

    /// Fails if temporary values of `bytes` would exceed the memory cap.
    ///
    /// # Errors
    /// [`ErrorKind::MemoryLimit`].
    fn check_room(&self, bytes: u64) -> Result<()>;
}

/// The environment of the expressions of a query.
///
/// The caller supplies `now` and `seed`, so that runs are reproducible.
pub struct Evaluator<'a> {
    snapshot: &'a dyn Snapshot,
    computed: &'a ComputedTerms,
    now: DateTime,
    base: Option<String>,
    solution: Option<Variable>,
    seed: u64,
    random: Arc<AtomicU64>,
    interrupt: Option<&'a dyn Interrupt>,
    patterns: Arc<PatternCache>,
    /// Between two batches.
    texts: Mutex<Option<Box<TextCache>>>,
}

impl<'a> Evaluator<'a> {
    /// An evaluator over `snapshot`; `now` is the value of `NOW()`, `seed` initialises the random numbers.
    #[must_use]
    pub fn new(snapshot: &'a dyn Snapshot, computed: &'a ComputedTerms, now: DateTime, seed: u64) -> Self {
        let random = Arc::new(AtomicU64::new(mix(seed)));
        let patterns = Arc::default();
        Self {
            snapshot,
            computed,
            now,
            base: None,
            solution: None,
            seed,
            random,
            interrupt: None,
            patterns,
            texts: Mutex::default(),
        }
    }

    /// Sets the limits (default: none).
    #[must_use]
    pub fn with_interrupt(self, interrupt: &'a dyn Interrupt) -> Self {
        Self { interrupt: Some(interrupt), ..self }
    }

    /// The evaluator of another thread of the same query, with the limits of that thread.
    #[must_use]
    pub fn for_thread<'b>(&self, interrupt: &'b dyn Interrupt) -> Evaluator<'b>
    where
        'a: 'b,
    {
        Evaluator {
            snapshot: self.snapshot,
            computed: self.computed,
            now: self.now,
            base: self.base.clone(),
            solution: self.solution,
            seed: self.seed,
            random: Arc::clone(&self.random),
            interrupt: Some(interrupt),
            patterns: Arc::clone(&self.patterns),
            texts: Mutex::default(),
        }
    }

    /// The cache of texts; only one context has it at a time.
    pub(crate) fn take_texts(&self) -> Box<TextCache> {
        lock(&self.texts).take().unwrap_or_default()
    }

    /// Keeps a cache of texts for the next context.
    pub(crate) fn keep_texts(&self, texts: Box<TextCache>) {
        *lock(&self.texts) = Some(texts);
    }

    /// [`Interrupt::check`], if there are limits.
    pub(crate) fn check(&self) -> Result<()> {
        self.interrupt.map_or(Ok(()), Interrupt::check)
    }

    /// [`Interrupt::check_room`], if there are limits.
    pub(crate) fn check_room(&self, bytes: usize) -> Result<()> {
        self.interrupt.map_or(Ok(()), |interrupt| interrupt.check_room(bytes as u64))
    }

    /// The compiled patterns of the query.
    pub(crate) fn patterns(&self) -> &PatternCache {
        &self.patterns
    }

    /// Sets the base IRI for relative IRIs in expressions that specify none.
    #[must_use]
    pub fn with_base(mut self, base: Option<String>) -> Self {
        self.base = base;
        self
    }

    /// Sets the column of solution numbers. `BNODE("x")` creates one blank node for each solution and text;
    /// without this column, solutions that bind all variables of the batch to the same terms count as one.
    #[must_use]
    pub fn with_solution(mut self, solution: Option<Variable>) -> Self {
        self.solution = solution;
        self
    }

    /// The snapshot.
    #[must_use]
    pub fn snapshot(&self) -> &'a dyn Snapshot {
        self.snapshot
    }

    /// The computed terms of the query.
    #[must_use]
    pub fn computed(&self) -> &'a ComputedTerms {
        self.computed
    }

    /// The value of `NOW()`.
    #[must_use]
    pub fn now(&self) -> DateTime {
        self.now
    }

    /// The base IRI of [`Evaluator::with_base`].
    #[must_use]
    pub fn base(&self) -> Option<&str> {
        self.base.as_deref()
    }

    /// The column of [`Evaluator::with_solution`].
    #[must_use]
    pub fn solution(&self) -> Option<Variable> {
        self.solution
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// 64 random bits (SplitMix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
    /// Generators", OOPSLA 2014).
    pub(crate) fn random(&self) -> u64 {
        mix(self.random.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed))
    }

    /// The term of `id`; `None` if `id` is unbound.
    ///
    /// # Errors
    /// Damaged dictionary; an id that does not exist.
    pub fn term(&self, id: Id) -> Result<Option<Term>> {
        if !id.is_bound() {
            return Ok(None);
        }
        let mut term = None;
        self.read_term(id, &mut String::new(), &mut |parts| term = Some(parts.to_term()))?;
        Ok(term)
    }

    /// [`Snapshot::read_term`] for stored and computed terms.
    ///
    /// # Errors
    /// Damaged dictionary; an id that does not exist.
    pub fn read_term(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        match id.tag() {
            Tag::Computed => self.computed.read(id, scratch, read),
            _ => self.snapshot.read_term(id, scratch, read),
        }
    }

    /// [`Snapshot::read_literal_kind`] for stored and computed terms.
    pub(crate) fn read_literal_kind(
        &self,
        id: Id,
        read: &mut dyn FnMut(Option<LiteralKind<'_>>),
    ) -> Result<()> {
        if id.tag() != Tag::Computed {
            return self.snapshot.read_literal_kind(id, read);
        }
        self.computed.read(id, &mut String::new(), &mut |parts| {
            read(match parts {
                TermParts::Literal { kind, .. } => Some(kind),
                _ => None,
            });
        })
    }

    /// [`Snapshot::write_terms`] for stored and computed terms. Unbound ids get an empty text.
    ///
    /// # Errors
    /// Damaged dictionary; an id that does not exist.
    pub fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
        let stored = |id: &Id| !matches!(id.tag(), Tag::Computed | Tag::Unbound);
        let mut scratch = String::new();
        let mut rest = ids;
        while !rest.is_empty() {
            let run = rest.iter().take_while(|id| stored(id)).count();
            if run > 0 {
                self.snapshot.write_terms(&rest[..run], out, ends)?;
            }
            rest = &rest[run..];
            while let Some(&id) = rest.first().filter(|id| !stored(id)) {
                if id.is_bound() {
                    self.computed.read(id, &mut scratch, &mut |parts| parts.write_nt(out))?;
                }
                ends.push(out.len());
                rest = &rest[1..];
            }
        }
        Ok(())
    }

    /// The id of `term`: inline, of the snapshot, or computed.
    ///
    /// # Errors
    /// Damaged dictionary; too many or too long terms; triple terms nested too deep.
    pub fn intern(&self, term: TermRef<'_>) -> Result<Id> {
        match term {
            TermRef::NamedNode(node) => self.intern_parts(ComputedKind::Iri, node.as_str(), ""),
            TermRef::BlankNode(node) => self.intern_parts(ComputedKind::Blank, node.as_str(), ""),
            TermRef::Literal(literal) => match (literal.language(), literal.direction()) {
                (Some(tag), None) => self.intern_parts(ComputedKind::Language, literal.value(), tag),
                (Some(tag), Some(direction)) => {
                    self.intern_parts(ComputedKind::Language, literal.value(), &format!("{tag}--{direction}"))
                }
                (None, _) => {
                    self.intern_parts(ComputedKind::Typed, literal.value(), literal.datatype().as_str())
                }
            },
            TermRef::Triple(triple) => {
                let text = triple_text(triple.as_ref()).ok_or_else(too_deep)?;
                self.intern_parts(ComputedKind::Triple, &text, "")
            }
        }
    }

    /// The id of the term with these parts, as [`Evaluator::intern`].
    ///
    /// # Errors
    /// As [`Evaluator::intern`].
    pub fn intern_term_parts(&self, parts: TermParts<'_>) -> Result<Id> {
        let mut text = String::new();
        parts.write_str(&mut text);
        match parts {
            TermParts::Iri { .. } | TermParts::Edge(_) => self.intern_parts(ComputedKind::Iri, &text, ""),
            TermParts::Blank(_) => self.intern_parts(ComputedKind::Blank, &text, ""),
            TermParts::Literal { kind: LiteralKind::String, .. } => {
                self.intern_parts(ComputedKind::String, &text, "")
            }
            TermParts::Literal { kind: LiteralKind::Language(tag), .. } => {
                self.intern_parts(ComputedKind::Language, &text, tag)
            }
            TermParts::Literal { kind: LiteralKind::Typed(datatype), .. } => {
                self.intern_parts(ComputedKind::Typed, &text, datatype)
            }
            TermParts::Literal { kind: LiteralKind::Triple, .. } => {
                self.intern_parts(ComputedKind::Triple, &text, "")
            }
        }
    }

    pub(crate) fn intern_parts(&self, kind: ComputedKind, text: &str, extra: &str) -> Result<Id> {
        let kind = match kind {
            ComputedKind::Typed if extra == XSD_STRING => ComputedKind::String,
            kind => kind,
        };
        let inline = match kind {
            ComputedKind::String => inline_id(text, XSD_STRING),
            ComputedKind::Typed => inline_id(text, extra),
            _ => None,
        };
        if let Some(id) = inline {
            return Ok(id);
        }
        let stored = match kind {
            ComputedKind::Triple => match triple_term(text) {
                Some(term) => self.snapshot.lookup(term.as_ref())?,
                None => return Err(too_deep()),
            },
            kind => self.snapshot.lookup(term_ref(kind, text, extra))?,
        };
        if let Some(id) = stored {
            return Ok(id);
        }
        self.computed.intern(kind, text, if kind == ComputedKind::String { "" } else { extra })
    }

    /// A fresh blank node, unique among calls and not in the snapshot.
    pub(crate) fn fresh_blank(&self) -> Result<Id> {
        loop {
            let label = format!("q{:016x}{:08x}", self.random(), self.random() >> 32);
            let node = TermRef::BlankNode(BlankNodeRef::new_unchecked(&label));
            if self.snapshot.lookup(node)?.is_none() {
                return self.computed.intern(ComputedKind::Blank, &label, "");
            }
        }
    }
}

/// The error for a triple term that is nested too deep.
#[cold]
fn too_deep() -> Error {
    let message = format!("a triple term is nested deeper than {TRIPLE_DEPTH_MAX} (TRIPLE_DEPTH_MAX)");
    Error::new(ErrorKind::Unsupported, message).with_hint("name the inner triples by reifiers")
}

/// A term of any kind except triple terms.
fn term_ref<'t>(kind: ComputedKind, text: &'t str, extra: &'t str) -> TermRef<'t> {
    match kind {
        ComputedKind::Iri => NamedNodeRef::new_unchecked(text).into(),
        ComputedKind::Blank => BlankNodeRef::new_unchecked(text).into(),
        ComputedKind::String | ComputedKind::Triple => LiteralRef::new_simple_literal(text).into(),
        ComputedKind::Typed => LiteralRef::new_typed_literal(text, NamedNodeRef::new_unchecked(extra)).into(),
        ComputedKind::Language => match extra.split_once("--") {
            None => LiteralRef::new_language_tagged_literal_unchecked(text, extra),
            Some((tag, direction)) => LiteralRef::new_directional_language_tagged_literal_unchecked(
                text,
                tag,
                if direction == "rtl" { oxrdf::BaseDirection::Rtl } else { oxrdf::BaseDirection::Ltr },
            ),
        }
        .into(),
    }
}

/// A 64-bit finaliser: each output bit depends on each input bit.
pub(crate) fn mix(bits: u64) -> u64 {
    let bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}
