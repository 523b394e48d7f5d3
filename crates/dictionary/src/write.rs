//! Batch output of terms in N-Triples form, for result writers.
//!
//! # Shape
//! Terms are written one after the other into a buffer with spare room, so that pieces can be copied in
//! blocks of a fixed size and the next piece overwrites the excess. A term with numbers is written in place;
//! any other term (a text, a value inside an id) is formatted separately and copied.
//! # Invariants
//! Before each term of a batch there is room for the largest term with numbers of this dictionary.
//! # Cost
//! Instructions for a term of LUBM-40 Q2 (2026-11-21; ids near each other, half of them IRIs with three
//! numbers): 340.

use crate::Dictionary;
use crate::dictionary::EncodedTerm;
use crate::record_blocks::{BLOCK_OF, RecordBlock};
use vervet_model::{Id, Inline, Result, Tag};

/// Number of terms whose blocks are prefetched before the first of them is written, so that their misses
/// overlap.
const WRITE_BATCH: usize = 16;
/// Maximum reserve of the buffer, in bytes: beyond the need it grows by its own length, up to this.
const AHEAD_BYTES_MAX: usize = 1 << 12;

impl Dictionary {
    /// Appends the N-Triples forms of the terms of `ids` to `out` and the end of each to `ends`.
    ///
    /// # Errors
    /// As [`Dictionary::read_term`]; `out` may then have some of the terms before the one at fault, and
    /// `ends` their ends.
    pub fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
        ends.reserve(ids.len());
        let at = out.len();
        let mut writer =
            Writer { dictionary: self, out, at, last: None, text: Vec::new(), scratch: String::new() };
        let result = ids.chunks(WRITE_BATCH).try_for_each(|batch| writer.batch(batch, ends));
        let at = writer.at;
        out.truncate(at);
        result
    }

    /// Appends the N-Triples form of the term of an id that contains its value.
    fn append_inside(&self, id: Id, scratch: &mut String, out: &mut Vec<u8>) -> Result<()> {
        if id.tag() == Tag::ShortString
            && let Some(value) = Inline::from_id(id)
            && let Some(text) = value.as_str()
            && text.bytes().all(|byte| byte > b'\\' && byte < 0x7F || byte.is_ascii_alphanumeric())
        {
            // Nothing to escape.
            out.push(b'"');
            out.extend_from_slice(text.as_bytes());
            out.push(b'"');
            return Ok(());
        }
        self.read_inside(id, scratch, &mut |parts| parts.write_nt(out))
    }
}

struct Writer<'d, 'o> {
    dictionary: &'d Dictionary,
    out: &'o mut Vec<u8>,
    /// End of the written bytes; `out` is longer.
    at: usize,
    /// The last block read, and the common part of its ids: adjacent ids are often in one block.
    last: Option<(u64, RecordBlock<'d>)>,
    text: Vec<u8>,
    scratch: String,
}

impl Writer<'_, '_> {
    fn batch(&mut self, batch: &[Id], ends: &mut Vec<usize>) -> Result<()> {
        if is_scattered(batch) {
            self.dictionary.touch(batch);
        }
        let room = batch.len() * self.dictionary.nt_bytes_max();
        self.make_room(room);
        for &id in batch {
            self.at = self.put(id, room)?;
            ends.push(self.at);
        }
        Ok(())
    }

    fn make_room(&mut self, bytes: usize) {
        if self.out.len() - self.at < bytes {
            self.out.resize(self.at + bytes + self.at.min(AHEAD_BYTES_MAX), 0);
        }
    }

    /// Writes one term; returns the position after it. There are `room` bytes, enough for the following terms
    /// too.
    #[inline]
    fn put(&mut self, id: Id, room: usize) -> Result<usize> {
        let dictionary = self.dictionary;
        self.text.clear();
        if matches!(id.tag(), Tag::Vertex | Tag::Literal) {
            let block = match self.last {
                Some((of, block)) if of == id.bits() / BLOCK_OF && dictionary.has(id) => block,
                _ => dictionary.block_of(id)?,
            };
            self.last = Some((id.bits() / BLOCK_OF, block));
            let EncodedTerm { template, payload } = dictionary.record_of(&block, id.payload())?;
            if template.has_numbers() {
                let end = template.put_nt(payload, self.out, self.at);
                return end.ok_or_else(|| dictionary.damaged_record(id));
            }
            let appended = template.append_nt(payload, &mut self.scratch, &mut self.text);
            appended.ok_or_else(|| dictionary.damaged_record(id))?;
        } else {
            dictionary.append_inside(id, &mut self.scratch, &mut self.text)?;
        }
        let end = self.at + self.text.len();
        self.make_room(self.text.len() + room);
        self.out[self.at..end].copy_from_slice(&self.text);
        Ok(end)
    }
}

/// Whether these ids are probably far apart: the hardware prefetches adjacent ones by itself.
fn is_scattered(batch: &[Id]) -> bool {
    const FAR: u64 = 64 * BLOCK_OF;
    match batch {
        [first, .., last] => first.bits().abs_diff(last.bits()) > FAR,
        _ => false,
    }
}
