//! Iterator over all statements of a version, for export and for building a new store.

use crate::Version;
use vervet_model::{Direction, Id, Result, Statement};
use vervet_snapshot::{Segment, Snapshot};

/// Number of keys, and of entries of a key, that are read ahead.
const AHEAD: usize = 1024;

/// Iterator over the statements of a version: by predicate, subject, object, graph, edge.
pub struct Statements<'a> {
    version: &'a Version,
    /// The next predicate.
    next: usize,
    predicate: Id,
    segment: Option<&'a dyn Segment>,
    /// Where the list of keys continues.
    from: Option<Id>,
    /// Keys that have not been read yet, last first.
    keys: Vec<Id>,
    subject: Id,
    /// Entries of `subject` that have not been returned yet, last first.
    entries: Vec<[Id; 3]>,
    /// Where the entries of `subject` continue, if there are more.
    rest: Option<[Id; 3]>,
    failed: bool,
}

impl std::fmt::Debug for Statements<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Statements").field("predicate", &self.predicate).finish_non_exhaustive()
    }
}

impl Version {
    /// All statements without duplicates, ascending by predicate, subject, object, graph, edge: the order
    /// that [`vervet_store::StoreBuilder::add`] takes.
    ///
    /// An item is an error if a segment is damaged; it is then the last one.
    #[must_use]
    pub fn statements(&self) -> Statements<'_> {
        Statements {
            version: self,
            next: 0,
            predicate: Id::UNBOUND,
            segment: None,
            from: None,
            keys: Vec::new(),
            subject: Id::UNBOUND,
            entries: Vec::new(),
            rest: None,
            failed: false,
        }
    }
}

impl Statements<'_> {
    /// Reads the next entries; `false` at the end.
    fn advance(&mut self) -> Result<bool> {
        if let (Some(segment), Some(from)) = (self.segment, self.rest.take()) {
            segment.entries(self.subject, from, AHEAD, &mut self.entries)?;
            if let (Some([neighbour, graph, edge]), true) = (self.entries.last(), self.entries.len() == AHEAD)
            {
                let behind = Id::from_bits(edge.bits().saturating_add(1));
                self.rest = Some([*neighbour, *graph, behind]);
            }
            self.entries.reverse();
        } else if let Some(subject) = self.keys.pop() {
            self.subject = subject;
            self.rest = Some([Id::UNBOUND; 3]);
        } else if let (Some(segment), Some(from)) = (self.segment, self.from) {
            self.from = segment.keys(from, AHEAD, &mut self.keys)?;
            self.keys.reverse();
        } else {
            let Some((predicate, _)) = self.version.predicates().get(self.next) else { return Ok(false) };
            self.predicate = *predicate;
            self.segment = self.version.segment(*predicate, Direction::Out)?;
            self.from = Some(Id::UNBOUND);
            self.next += 1;
        }
        Ok(true)
    }
}

impl Iterator for Statements<'_> {
    type Item = Result<Statement>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some([object, graph, edge]) = self.entries.pop() {
                let (subject, predicate) = (self.subject, self.predicate);
                return Some(Ok(Statement { subject, predicate, object, graph, edge }));
            }
            if self.failed {
                return None;
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => {
                    self.failed = true;
                    return None;
                }
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
    }
}
