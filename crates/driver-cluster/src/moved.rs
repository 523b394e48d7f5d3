//! Rows that move between servers, with the terms that they name.
//!
//! # Shape
//! A computed id is a number of the server that computed its term. The first ones stand for the terms of the
//! job, at all servers. The terms of others move with the rows, which name them by the numbers that follow:
//! [`Terms::leave`] makes such rows, [`Terms::arrive`] gives them the ids of the server that receives them.
//! # Cost
//! None where nothing was computed. Else a look at each id; a copy of the rows, and for each term in them
//! that of its text, a look-up by hash at each end.

use crate::rows::{read_batch, write_batch};
use crate::wire::{Input, Wire, malformed};
use oxrdf::{Term, TermRef};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use vervet_expression::Evaluator;
use vervet_kernel::{Batch, Control};
use vervet_model::{Error, ErrorKind, Id, Result, Tag};

/// Bytes of terms from which on rows are cut: with the rows themselves they are below the largest request.
const TERMS_BYTES_CUT: usize = 2 << 20;

/// Maximum bytes of the terms of one row.
pub(crate) const ROW_TERMS_BYTES_MAX: usize = 5 << 20;

/// Terms from which on rows are cut, and those that are read.
const TERMS_CUT: usize = 1 << 16;
const TERMS_MAX: usize = TERMS_CUT + (1 << 16);

/// Rows, and the terms of the computed ids in them that are not those of the job. See the header.
#[derive(Clone, Debug, Default)]
pub(crate) struct MovedRows {
    batch: Batch,
    terms: Vec<Term>,
    /// Bytes of the terms in memory.
    terms_bytes: usize,
    /// Above all numbers of computed ids in the rows, if they were read.
    computed_end: u64,
}

impl PartialEq for MovedRows {
    fn eq(&self, other: &Self) -> bool {
        let of = |one: &Self| (one.batch.rows, one.batch.columns.clone(), one.batch.multiplicity.clone());
        of(self) == of(other) && self.terms == other.terms
    }
}

impl Wire for MovedRows {
    fn write(&self, out: &mut Vec<u8>) {
        self.write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        let variables = input.variables();
        Self::read(input, variables)
    }
}

impl MovedRows {
    /// Rows without computed ids but those of the job.
    pub(crate) fn plain(batch: Batch) -> Self {
        Self { batch, ..Self::default() }
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.batch.rows
    }

    /// Number of columns.
    pub(crate) fn columns(&self) -> usize {
        self.batch.columns.len()
    }

    /// Memory, in bytes.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.batch.size_bytes() + self.terms_bytes as u64
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        write_batch(&self.batch, out);
        self.terms.write(out);
    }

    /// # Errors
    /// Unavailable: the bytes are none.
    pub(crate) fn read(input: &mut Input<'_>, variables: usize) -> Result<Self> {
        let batch = read_batch(input, variables)?;
        let count = input.count()?;
        if count > TERMS_MAX {
            return Err(malformed("too many terms"));
        }
        let (mut terms, mut terms_bytes) = (Vec::with_capacity(count), 0);
        for _ in 0..count {
            let term = Term::read(input)?;
            terms_bytes += bytes_of(term.as_ref());
            terms.push(term);
        }
        let ids = batch.columns.iter().flatten().filter(|id| id.tag() == Tag::Computed);
        let computed_end = ids.map(|id| id.payload() + 1).max().unwrap_or(0);
        Ok(Self { batch, terms, terms_bytes, computed_end })
    }
}

/// Memory of a term, about.
fn bytes_of(term: TermRef<'_>) -> usize {
    let text = match term {
        TermRef::NamedNode(node) => node.as_str().len(),
        TermRef::BlankNode(node) => node.as_str().len(),
        TermRef::Literal(literal) => {
            literal.value().len() + literal.language().map_or(literal.datatype().as_str().len(), str::len)
        }
        TermRef::Triple(triple) => {
            triple.predicate.as_str().len()
                + bytes_of(triple.subject.as_ref().into())
                + bytes_of(triple.object.as_ref())
        }
    };
    size_of::<Term>() + text
}

/// The terms of one server, for the rows of one query.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'e> {
    evaluator: &'e Evaluator<'e>,
    /// Number of the terms of the job.
    known: usize,
}

impl<'e> Terms<'e> {
    /// `known`: the number of the terms of the job, which `evaluator` has.
    pub(crate) fn new(evaluator: &'e Evaluator<'e>, known: usize) -> Self {
        Self { evaluator, known }
    }

    /// Passes the rows of a batch to `send`, in parts that fit into a request.
    ///
    /// # Errors
    /// Unsupported: the computed texts of a row are too long to move. Those of `send`.
    pub(crate) fn leave(&self, batch: Batch, send: &mut dyn FnMut(MovedRows) -> Result<()>) -> Result<()> {
        if self.evaluator.computed().len() <= self.known {
            return send(MovedRows::plain(batch));
        }
        let known = self.known as u64;
        let mut part = Part::default();
        let mut start = 0;
        for row in 0..batch.rows {
            let before = part.bytes;
            for column in batch.columns.iter().filter(|column| column.len() == batch.rows) {
                let id = column[row];
                if id.tag() == Tag::Computed && id.payload() >= known {
                    part.add(id, self)?;
                }
            }
            if part.bytes - before > ROW_TERMS_BYTES_MAX {
                return Err(too_long(part.bytes - before));
            }
            if part.bytes > TERMS_BYTES_CUT || part.terms.len() >= TERMS_CUT {
                send(part.end(&batch, start..row + 1))?;
                (part, start) = (Part::default(), row + 1);
            }
        }
        // Also no rows: an outcome has them.
        if start < batch.rows || start == 0 {
            send(part.end(&batch, start..batch.rows))?;
        }
        Ok(())
    }

    /// The rows with the ids of this server.
    ///
    /// # Errors
    /// Unavailable: they name terms that have not come with them. The memory cap.
    pub(crate) fn arrive<'r>(&self, rows: &'r MovedRows, control: &Control<'_>) -> Result<Cow<'r, Batch>> {
        if rows.computed_end > (self.known + rows.terms.len()) as u64 {
            return Err(malformed("rows that name terms which have not come with them"));
        }
        if rows.terms.is_empty() {
            return Ok(Cow::Borrowed(&rows.batch));
        }
        control.work(16 * rows.terms.len())?;
        let intern = |term: &Term| self.evaluator.intern(term.as_ref());
        let ids = rows.terms.iter().map(intern).collect::<Result<Vec<Id>>>()?;
        control.count_computed(self.evaluator.computed().size_bytes() as u64)?;
        let mut batch = rows.batch.clone();
        for id in batch.columns.iter_mut().flatten().filter(|id| id.tag() == Tag::Computed) {
            let number = usize::try_from(id.payload()).unwrap_or(usize::MAX);
            if let Some(own) = number.checked_sub(self.known).and_then(|number| ids.get(number)) {
                *id = *own;
            }
        }
        Ok(Cow::Owned(batch))
    }
}

/// Rows that are about to leave: their terms, and the numbers that they get.
#[derive(Default)]
struct Part {
    terms: Vec<Term>,
    bytes: usize,
    numbers: FxHashMap<Id, u64>,
}

impl Part {
    fn add(&mut self, id: Id, terms: &Terms<'_>) -> Result<()> {
        if self.numbers.contains_key(&id) {
            return Ok(());
        }
        let term = terms.evaluator.term(id)?;
        let term = term.ok_or_else(|| Error::internal("a computed term has no value"))?;
        self.bytes += bytes_of(term.as_ref());
        self.numbers.insert(id, (terms.known + self.terms.len()) as u64);
        self.terms.push(term);
        Ok(())
    }

    fn end(self, batch: &Batch, rows: std::ops::Range<usize>) -> MovedRows {
        let mut part = Batch::new(batch.columns.len());
        part.copy_rows(batch, rows);
        for id in part.columns.iter_mut().flatten() {
            if let Some(number) = self.numbers.get(id) {
                *id = Id::new(Tag::Computed, *number);
            }
        }
        MovedRows { batch: part, terms: self.terms, terms_bytes: self.bytes, computed_end: 0 }
    }
}

#[cold]
fn too_long(bytes: usize) -> Error {
    let message = format!("the texts that a query computed for one row have {bytes} bytes");
    Error::new(ErrorKind::Unsupported, message).with_hint(format!(
        "at most {} MiB move between servers; select what is needed of them, such as SUBSTR or a hash",
        ROW_TERMS_BYTES_MAX >> 20
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::Literal;
    use oxsdatatypes::DateTime;
    use vervet_expression::ComputedTerms;
    use vervet_kernel::Limits;
    use vervet_model::Partitioning;
    use vervet_partition::PartitionedBase;

    fn text(text: &str) -> Term {
        Literal::from(text).into()
    }

    /// Calls `test` with the evaluator of a server that has computed these terms, in this order.
    fn server(terms: &[Term], test: &mut dyn FnMut(&Evaluator<'_>)) {
        let base = PartitionedBase::empty(Partitioning::WHOLE).expect("an empty graph");
        let computed = ComputedTerms::new();
        let evaluator = Evaluator::new(&base, &computed, DateTime::MIN, 0);
        for (number, term) in (0..).zip(terms) {
            let id = evaluator.intern(term.as_ref()).expect("a term");
            assert_eq!(id, Id::new(Tag::Computed, number));
        }
        test(&evaluator);
    }

    fn column(ids: Vec<Id>) -> Batch {
        Batch { rows: ids.len(), columns: vec![Vec::new(), ids], ..Batch::default() }
    }

    /// As they are after a way through their bytes.
    fn left(terms: &Terms<'_>, batch: Batch) -> Result<Vec<MovedRows>> {
        let mut all = Vec::new();
        terms.leave(batch, &mut |rows| {
            let mut bytes = Vec::new();
            rows.write(&mut bytes);
            assert!(bytes.len() < 16 << 20, "more than a request");
            let mut input = Input::new(&bytes);
            all.push(MovedRows::read(&mut input, 2)?);
            input.end()
        })?;
        Ok(all)
    }

    #[test]
    fn computed_ids_are_those_of_the_receiver() {
        let [of_job, one, two] = ["a term of the job", "the first text", "the second text"].map(text);
        let (control, stored) = (Control::new(Limits::default()), Id::vertex(7));
        let computed = |number| Id::new(Tag::Computed, number);
        server(&[of_job.clone(), one.clone(), two.clone()], &mut |sender| {
            let sender = Terms::new(sender, 1);
            let ids = vec![computed(2), stored, computed(0), computed(1), computed(2), Id::UNBOUND];
            let moved = left(&sender, column(ids)).expect("short texts");
            server(&[of_job.clone(), text("another text"), one.clone()], &mut |receiver| {
                let receiver = Terms::new(receiver, 1);
                let arrived = receiver.arrive(&moved[0], &control).expect("rows with their terms");
                let expected = [computed(3), stored, computed(0), computed(2), computed(3), Id::UNBOUND];
                assert_eq!((moved.len(), &arrived.columns[1][..]), (1, &expected[..]));
                assert_eq!(receiver.evaluator.term(computed(3)).expect("a term"), Some(two.clone()));
            });
        });
    }

    #[test]
    fn long_texts_are_cut_and_too_long_ones_refused() {
        let texts: Vec<Term> = (0..40).map(|number| text(&format!("{number}").repeat(250_000))).collect();
        let control = Control::new(Limits::default());
        server(&texts, &mut |sender| {
            let sender = Terms::new(sender, 0);
            let ids: Vec<Id> = (0..40).map(|number| Id::new(Tag::Computed, number)).collect();
            let moved = left(&sender, column(ids)).expect("rows that can be cut");
            assert!(moved.len() > 4, "{} parts", moved.len());
            server(&[], &mut |receiver| {
                let receiver = Terms::new(receiver, 0);
                let mut arrived = Vec::new();
                for rows in &moved {
                    let batch = receiver.arrive(rows, &control).expect("rows with their terms");
                    let terms = batch.columns[1].iter().map(|id| receiver.evaluator.term(*id));
                    arrived.extend(terms.map(|term| term.expect("a term").expect("bound")));
                }
                assert!(arrived == texts, "other texts arrived");
            });
        });
        server(&[text(&"x".repeat(ROW_TERMS_BYTES_MAX))], &mut |sender| {
            let refused = left(&Terms::new(sender, 0), column(vec![Id::new(Tag::Computed, 0)]));
            assert_eq!(refused.map(drop).map_err(|error| error.kind()), Err(ErrorKind::Unsupported));
        });
    }

    #[test]
    fn terms_that_have_not_come_are_refused() {
        let mut bytes = Vec::new();
        MovedRows::plain(column(vec![Id::new(Tag::Computed, 3)])).write(&mut bytes);
        let rows = MovedRows::read(&mut Input::new(&bytes), 2).expect("rows");
        server(&[text("a term of the job")], &mut |receiver| {
            let arrived = Terms::new(receiver, 1).arrive(&rows, &Control::new(Limits::default()));
            assert_eq!(arrived.map(drop).map_err(|error| error.kind()), Err(ErrorKind::Unavailable));
        });
    }
}
