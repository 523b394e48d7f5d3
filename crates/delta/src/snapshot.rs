//! `Snapshot` for [`Version`]: the read interface of query engines.
//!
//! # Cost
//! A segment: one search among the changed predicates, then the cost of the store. Terms: the store's
//! dictionary first, then the later terms.

use crate::Version;
use crate::predicate::segment;
use oxrdf::TermRef;
use std::ops::Range;
use std::sync::Arc;
use vervet_model::{Direction, Error, ErrorKind, Id, LiteralKind, Meter, Result, Tag, TermParts, TextSearch};
use vervet_snapshot::{ClassId, KeyEntries, Segment, Snapshot};

impl Version {
    /// [`Snapshot::segment`] as a shared pointer, for layers on top of this one.
    ///
    /// # Errors
    /// Damaged segment.
    pub fn segment_arc(&self, predicate: Id, direction: Direction) -> Result<Option<Arc<dyn Segment>>> {
        if let Some(ordered) = self.ordered(predicate, direction)? {
            let ordered: Arc<dyn Segment> = Arc::<crate::ordered::OrderOverlay>::clone(ordered);
            return Ok(Some(ordered));
        }
        self.plain_segment_arc(predicate, direction)
    }

    /// [`Version::segment_arc`] without the order.
    pub(crate) fn plain_segment_arc(
        &self,
        predicate: Id,
        direction: Direction,
    ) -> Result<Option<Arc<dyn Segment>>> {
        let Some(changed) = self.predicates.get(predicate) else {
            return self.base.segment_arc(predicate, direction);
        };
        let side = changed.side(direction);
        Ok((!side.is_empty()).then(|| -> Arc<dyn Segment> { Arc::<crate::Overlay>::clone(side) }))
    }

    /// Whether the term of an id was added after the store was built.
    fn is_new(&self, id: Id) -> bool {
        match id.tag() {
            Tag::Vertex => id.payload() >= self.base.vertex_count(),
            Tag::Literal => id.payload() >= self.base.literal_count(),
            _ => false,
        }
    }

    fn read_new(&self, id: Id, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        if self.terms.read_term(id, read) {
            return Ok(());
        }
        Err(Error::internal(format!("no term has the id {id:?}")))
    }
}

impl Snapshot for Version {
    fn lookup(&self, term: TermRef<'_>) -> Result<Option<Id>> {
        let found = match self.base.dictionary().lookup(term)? {
            None => self.terms.lookup(term),
            found => found,
        };
        let Some(id) = found else { return Ok(None) };
        let known = match id.tag() {
            Tag::Vertex => id.payload() < self.vertex_end,
            Tag::Literal => id.payload() < self.literal_end,
            Tag::Edge => self.find_edge(id)?.is_some(),
            _ => true,
        };
        Ok(known.then_some(id))
    }

    fn base_number(&self) -> Option<u64> {
        let dictionary = self.base.dictionary();
        let has_changes = self.delta_cells() > 0
            || self.vertex_end > dictionary.vertex_count()
            || self.literal_end > dictionary.literal_count();
        if has_changes { None } else { self.base.base_number() }
    }

    fn read_term(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        if self.is_new(id) { self.read_new(id, read) } else { self.base.read_term(id, scratch, read) }
    }

    fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
        for run in ids.chunk_by(|a, b| self.is_new(*a) == self.is_new(*b)) {
            if run.first().is_some_and(|id| !self.is_new(*id)) {
                self.base.write_terms(run, out, ends)?;
                continue;
            }
            for id in run {
                self.read_new(*id, &mut |parts| parts.write_nt(out))?;
                ends.push(out.len());
            }
        }
        Ok(())
    }

    fn is_plain_text(&self, id: Id) -> Result<bool> {
        if !self.is_new(id) {
            return self.base.is_plain_text(id);
        }
        let mut is_plain = false;
        self.read_new(id, &mut |parts| {
            is_plain = matches!(parts, TermParts::Literal { kind: LiteralKind::String, .. });
        })?;
        Ok(is_plain)
    }

    fn read_literal_kind(&self, id: Id, read: &mut dyn FnMut(Option<LiteralKind<'_>>)) -> Result<()> {
        if !self.is_new(id) {
            return self.base.read_literal_kind(id, read);
        }
        self.read_new(id, &mut |parts| {
            read(match parts {
                TermParts::Literal { kind, .. } => Some(kind),
                _ => None,
            });
        })
    }

    fn text_rank(&self, literal: Id) -> Result<Option<u64>> {
        if self.is_new(literal) { Ok(None) } else { self.base.text_rank(literal) }
    }

    fn may_have_triple_terms(&self) -> bool {
        self.base.may_have_triple_terms() || self.terms.may_have_triple_terms()
    }

    fn may_have_blanks(&self) -> bool {
        self.base.may_have_blanks() || self.terms.may_have_blanks()
    }

    fn is_blank(&self, id: Id) -> Result<bool> {
        if !self.is_new(id) {
            return self.base.is_blank(id);
        }
        if !id.is_vertex() {
            return Ok(false);
        }
        self.terms.is_blank(id).ok_or_else(|| Error::internal(format!("no term has the id {id:?}")))
    }

    fn segment(&self, predicate: Id, direction: Direction) -> Result<Option<&dyn Segment>> {
        if let Some(ordered) = self.ordered(predicate, direction)? {
            return Ok(Some(&**ordered));
        }
        segment(self.predicates.get(predicate), &*self.base, predicate, direction)
    }

    fn entries_together(
        &self,
        segments: &[(Id, Direction)],
        keys: &[Id],
        limit: usize,
    ) -> Result<Option<Vec<KeyEntries>>> {
        let Some(mut lists) = self.base.entries_together(segments, keys, limit)? else { return Ok(None) };
        for (list, (predicate, direction)) in lists.iter_mut().zip(segments) {
            if let Some(changed) = self.predicates.get(*predicate) {
                changed.side(*direction).change_entries(keys, list)?;
            }
        }
        Ok(Some(lists))
    }

    fn predicates(&self) -> &[(Id, u64)] {
        self.predicate_list()
    }

    fn graphs(&self) -> &[(Id, u64)] {
        self.graph_list()
    }

    fn type_predicate(&self) -> Option<Id> {
        match self.predicates.get(self.type_id) {
            Some(changed) => Some(self.type_id).filter(|_| changed.entries() > 0),
            None => self.base.type_predicate(),
        }
    }

    fn vertex_count(&self) -> u64 {
        self.vertex_end
    }

    fn edge_count(&self) -> u64 {
        self.edge_end
    }

    fn literal_count(&self) -> u64 {
        self.literal_end
    }

    fn statement_count(&self) -> u64 {
        self.statements
    }

    fn edge(&self, edge: Id) -> Result<[Id; 4]> {
        let row = self.find_edge(edge)?;
        row.ok_or_else(|| Error::new(ErrorKind::Input, format!("{edge:?} is not an edge of this graph")))
    }

    fn classes_of_type(&self, type_id: Id) -> &[ClassId] {
        self.base.classes_of_type(type_id)
    }

    fn class_size(&self, class: ClassId) -> u64 {
        self.base.class_size(class)
    }

    fn classes_are_exact(&self) -> bool {
        self.predicates.get(self.type_id).is_none()
    }

    /// The order is that of the store, so positions agree for all versions over it.
    fn literal_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<Option<Range<u64>>> {
        self.base.literal_range(from, to)
    }

    fn unordered_literals(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        out: &mut Vec<Id>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        if self.literal_end > self.base.literal_count() {
            self.terms.literals_between(from, to, self.literal_end, out, meter)?;
        }
        Ok(())
    }

    fn unordered_literal_count(&self, from: &[u8], to: Option<&[u8]>) -> Result<u64> {
        if self.literal_end <= self.base.literal_count() {
            return Ok(0);
        }
        Ok(self.terms.literals_between_count(from, to, self.literal_end))
    }

    fn search_count(&self, search: &TextSearch, meter: &mut Meter<'_>) -> Result<Option<u64>> {
        let Some(count) = self.base.search_count(search, meter)? else { return Ok(None) };
        if self.literal_end <= self.base.literal_count() {
            return Ok(Some(count));
        }
        Ok(Some(count + self.terms.search_count(search, self.literal_end, meter)?))
    }

    fn search(&self, search: &TextSearch, out: &mut Vec<Id>, meter: &mut Meter<'_>) -> Result<()> {
        self.base.search(search, out, meter)?;
        if self.literal_end > self.base.literal_count() {
            self.terms.search(search, self.literal_end, out, meter)?;
        }
        Ok(())
    }

    fn literals_in_order(&self, positions: Range<u64>, out: &mut Vec<Id>) -> Result<()> {
        self.base.literals_in_order(positions, out)
    }
}
