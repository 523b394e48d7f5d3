//! Iterator over all statements of a store, for export and for building a new store from it.

use crate::locate::SegmentEntry;
use crate::{BaseSegment, Statement, Store};
use vervet_model::{Direction, Id, Result};
use vervet_snapshot::{EntryFilter, Segment};

/// Number of keys that are read ahead.
const KEYS: usize = 1024;

/// Iterator over the statements of a store: by predicate, subject, object, graph, edge.
#[derive(Debug)]
pub struct Statements<'a> {
    store: &'a Store,
    /// The next predicate.
    next: usize,
    predicate: Id,
    segment: Option<&'a BaseSegment>,
    /// Where the list of keys continues.
    from: Option<Id>,
    /// Keys that have not been read yet, last first.
    keys: Vec<Id>,
    subject: Id,
    /// Entries of `subject`, last first.
    entries: Vec<SegmentEntry>,
    failed: bool,
}

impl Store {
    /// All statements without duplicates, ascending by predicate, subject, object, graph, edge.
    ///
    /// An item is an error if a segment is damaged; it is then the last one.
    #[must_use]
    pub fn statements(&self) -> Statements<'_> {
        Statements {
            store: self,
            next: 0,
            predicate: Id::UNBOUND,
            segment: None,
            from: None,
            keys: Vec::new(),
            subject: Id::UNBOUND,
            entries: Vec::new(),
            failed: false,
        }
    }
}

impl Statements<'_> {
    /// Reads the entries of the next key into `entries`; `false` at the end.
    fn advance(&mut self) -> Result<bool> {
        loop {
            if let Some(subject) = self.keys.pop() {
                if let Some(segment) = self.segment {
                    let filter = EntryFilter::ALL;
                    self.subject = subject;
                    segment.entries_of(subject, filter, &mut self.entries);
                    self.entries.reverse();
                    return Ok(true);
                }
            } else if let (Some(segment), Some(from)) = (self.segment, self.from) {
                self.from = segment.keys(from, KEYS, &mut self.keys)?;
                self.keys.reverse();
            } else {
                let Some((predicate, _)) = self.store.toc.predicates.get(self.next) else { return Ok(false) };
                self.predicate = *predicate;
                self.segment = self.store.base_segment(*predicate, Direction::Out)?.map(|segment| &**segment);
                self.from = Some(Id::UNBOUND);
                self.next += 1;
            }
        }
    }
}

impl Iterator for Statements<'_> {
    type Item = Result<Statement>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(SegmentEntry { neighbour, graph, edge, .. }) = self.entries.pop() {
                let (subject, predicate) = (self.subject, self.predicate);
                return Some(Ok(Statement { subject, predicate, object: neighbour, graph, edge }));
            }
            if self.failed {
                return None;
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
    }
}
