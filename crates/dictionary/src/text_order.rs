//! Text order of the literals of a dictionary file: ranges and prefixes without a scan.
//!
//! # Shape
//! The numbers of all literals of the dictionary, of any language or datatype, ascending by the bytes of
//! their text (which is the order of code points), then by number. Each is packed in the bits that the
//! largest number needs; number `i` begins at bit `i * width`, low bits first.
//! # Invariants
//! Every number occurs once; [`Dictionary::validate`] reads them all and compares their texts.
//! # Cost
//! `ceil(log2 n)` bits for each of `n` literals. A bound: `log2 n` records, about 2 to 4 µs for a million; a
//! range of few literals costs little more. Sorting takes 16 bytes for each literal, and reads each text once
//! for every 8 bytes that it shares with another: a radix sort whose digits are 8 bytes long, with a
//! comparison sort of each run.
//! # Source
//! Sinha and Zobel, "Cache-Conscious Sorting of Large Sets of Strings with Dynamic Tries", JEA 2004: texts
//! are sorted by prefixes stored beside the pointers. Difference: no trie, a stack of runs.

use crate::Dictionary;
use crate::builder::DictionaryBuilder;
use crate::header::{FileWriter, Section, order_bytes, order_width};
use crate::integers::read_le;
use std::cmp::Ordering;
use std::ops::Range;
use vervet_model::{Id, Result, TermParts, Watch};

/// Number of text bytes compared at once.
const PIECE_BYTES: usize = 8;
/// Number of section bytes passed on at once.
const WRITTEN_BYTES: usize = 1 << 12;

/// A literal that is being sorted.
#[derive(Clone, Copy)]
struct OrderItem {
    /// The piece of its text at the depth of its run, first byte highest, zero padded.
    piece: u64,
    /// Offset of its record in the arena.
    at: u64,
}

/// The sorted literals of `builder`, as offsets in its arena.
fn sorted(builder: &DictionaryBuilder, watch: &Watch<'_>) -> Result<Vec<OrderItem>> {
    let mut items: Vec<OrderItem> =
        Vec::with_capacity(usize::try_from(builder.literal_count()).expect("they are in memory"));
    items.extend(builder.literal_places().map(|at| OrderItem { piece: 0, at }));
    sort(&mut items, builder, watch)?;
    Ok(items)
}

/// The section for the literals of `builder`.
pub(crate) fn write_order(builder: &DictionaryBuilder, watch: &Watch<'_>) -> Result<Vec<u8>> {
    let items = sorted(builder, watch)?;
    let width = order_width(builder.literal_count());
    let mut packed = BitWriter::default();
    packed.bytes.reserve_exact(order_bytes(builder.literal_count()).expect("they are in memory"));
    items.iter().for_each(|item| packed.push(u64::from(builder.number_at(item.at)), width));
    Ok(packed.finish())
}

/// Merges the literals of `dictionary` and those of `new`, which get the following numbers, into one section.
pub(crate) fn merge_order(
    dictionary: &Dictionary,
    new: &DictionaryBuilder,
    file: &mut FileWriter<'_>,
    watch: &Watch<'_>,
) -> Result<()> {
    let before = dictionary.literal_count();
    let width = order_width(before + new.literal_count());
    let mut packed = BitWriter::default();
    let mut ticker = watch.ticker();
    let (mut position, mut scratch) = (0, String::new());
    let mut copy = |positions: Range<u64>, packed: &mut BitWriter, file: &mut FileWriter<'_>| {
        for position in positions {
            ticker.step()?;
            packed.push(dictionary.literal_at(position)?.payload(), width);
            if packed.bytes.len() >= WRITTEN_BYTES {
                file.write(Section::LiteralOrder, &packed.bytes)?;
                packed.bytes.clear();
            }
        }
        Ok(())
    };
    for item in sorted(new, watch)? {
        let text = new.text_at(item.at);
        // After equal texts, which have smaller numbers.
        let end = dictionary
            .first_from(position, |id| Ok(dictionary.compare_text(id, text, &mut scratch)?.is_gt()))?;
        copy(position..end, &mut packed, file)?;
        position = end;
        packed.push(before + u64::from(new.number_at(item.at)), width);
    }
    copy(position..before, &mut packed, file)?;
    file.write(Section::LiteralOrder, &packed.finish())
}

fn sort(items: &mut [OrderItem], builder: &DictionaryBuilder, watch: &Watch<'_>) -> Result<()> {
    let mut ticker = watch.ticker();
    // Runs that are equal up to a depth. An explicit stack, since the recursion depth would grow with the
    // texts.
    let mut runs = vec![(0..items.len(), 0_usize)];
    while let Some((range, depth)) = runs.pop() {
        let start = range.start;
        let run = &mut items[range];
        for item in &mut *run {
            ticker.step()?;
            item.piece = piece(builder.text_at(item.at), depth);
        }
        watch.sort(run, |a, b| a.piece.cmp(&b.piece))?;
        let mut from = 0;
        while from < run.len() {
            let length = run[from..].iter().take_while(|item| item.piece == run[from].piece).count();
            let equal = &mut run[from..from + length];
            if length > 1 {
                let ended = ended_first(equal, builder, depth);
                if length - ended > 1 {
                    runs.push((start + from + ended..start + from + length, depth + PIECE_BYTES));
                }
            }
            from += length;
        }
    }
    Ok(())
}

/// Moves the items of equal pieces whose text ends in this piece to the front, sorted, and returns their
/// number; the others are sorted by the next piece.
fn ended_first(equal: &mut [OrderItem], builder: &DictionaryBuilder, depth: usize) -> usize {
    let mut ended = 0;
    for at in 0..equal.len() {
        if builder.text_at(equal[at].at).len() <= depth + PIECE_BYTES {
            equal.swap(ended, at);
            ended += 1;
        }
    }
    // Such texts are prefixes of the others; of two, the shorter one is less.
    equal[..ended].sort_unstable_by_key(|item| (builder.text_at(item.at).len(), builder.number_at(item.at)));
    ended
}

fn piece(text: &[u8], depth: usize) -> u64 {
    let rest = text.get(depth..).unwrap_or_default();
    match rest.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; PIECE_BYTES];
            bytes[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(bytes)
        }
    }
}

/// Writer of packed numbers of a fixed width.
#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    waiting: u128,
    bits: u32,
}

impl BitWriter {
    fn push(&mut self, number: u64, width: u32) {
        self.waiting |= u128::from(number) << self.bits;
        self.bits += width;
        while self.bits >= 8 {
            self.bytes.push(self.waiting.to_le_bytes()[0]);
            self.waiting >>= 8;
            self.bits -= 8;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.bits > 0 {
            self.bytes.push(self.waiting.to_le_bytes()[0]);
        }
        self.bytes
    }
}

impl Dictionary {
    /// The literal of the dictionary at this position in the order of texts.
    ///
    /// # Errors
    /// Damaged file; no such position.
    pub fn literal_at(&self, position: u64) -> Result<Id> {
        let count = self.literal_count();
        let width = order_width(count);
        if position >= count {
            return Err(self.damaged(&format!("it has no literal at position {position} of its order")));
        }
        let bit = position * u64::from(width);
        // Lossless: the section is in memory.
        let at = usize::try_from(bit / 8).unwrap_or(usize::MAX);
        let length = self.body().length(Section::LiteralOrder).saturating_sub(at).min(8);
        let window = read_le(self.body().get(Section::LiteralOrder, at, length)?);
        let number = window >> (bit % 8) & ((1 << width) - 1);
        if number >= count {
            return Err(self.damaged("its order of literals names a literal that does not exist"));
        }
        Ok(Id::literal(number))
    }

    /// Number of literals of the dictionary, of any language or datatype, whose text is below `text` (UTF-8
    /// or a prefix of UTF-8).
    ///
    /// # Errors
    /// Damaged file.
    pub fn literals_below(&self, text: &[u8]) -> Result<u64> {
        let mut scratch = String::new();
        let (mut low, mut high) = (0, self.literal_count());
        while low < high {
            let middle = low.midpoint(high);
            if self.compare_text(self.literal_at(middle)?, text, &mut scratch)?.is_lt() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Positions of the literals whose text is at least `from`, and below `to` if given. A short range takes
    /// one search.
    ///
    /// # Errors
    /// Damaged file.
    pub fn literals_between(&self, from: &[u8], to: Option<&[u8]>) -> Result<Range<u64>> {
        let (start, count) = (self.literals_below(from)?, self.literal_count());
        let Some(to) = to else { return Ok(start..count) };
        let mut scratch = String::new();
        Ok(start..self.first_from(start, |id| Ok(self.compare_text(id, to, &mut scratch)?.is_ge()))?)
    }

    /// The first position from `start` on whose literal is `behind` a bound in the order, as all later ones
    /// are; the number of literals if there is none. Galloping search: cheap if the position is near.
    fn first_from(&self, start: u64, mut behind: impl FnMut(Id) -> Result<bool>) -> Result<u64> {
        let (mut low, mut high, mut step) = (start, self.literal_count(), 1);
        // Doubles the step until a literal is behind the bound.
        while let at = low.saturating_add(step - 1)
            && at < high
        {
            if behind(self.literal_at(at)?)? {
                high = at;
                break;
            }
            (low, step) = (at + 1, step * 2);
        }
        while low < high {
            let middle = low.midpoint(high);
            if behind(self.literal_at(middle)?)? {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }

    /// Compares the text of a literal with `text`.
    fn compare_text(&self, id: Id, text: &[u8], scratch: &mut String) -> Result<Ordering> {
        let mut order = Ordering::Equal;
        self.read_term(id, scratch, &mut |parts| {
            if let TermParts::Literal { head, tail, .. } = parts {
                let head = head.as_bytes();
                let (front, back) = text.split_at(head.len().min(text.len()));
                order = head.cmp(front).then_with(|| tail.as_bytes().cmp(back));
            }
        })?;
        Ok(order)
    }

    /// Checks that the order has every literal once, ascending by text and number.
    pub(crate) fn validate_order(&self) -> Result<()> {
        let (mut scratch, mut before, mut text) = (String::new(), String::new(), String::new());
        let mut last: Option<Id> = None;
        for position in 0..self.literal_count() {
            let id = self.literal_at(position)?;
            self.read_term(id, &mut scratch, &mut |parts| {
                text.clear();
                parts.write_str(&mut text);
            })?;
            // Ascending numbers are distinct, and as many distinct numbers below the count are all of them.
            if last.is_some_and(|last| (before.as_bytes(), last) >= (text.as_bytes(), id)) {
                return Err(self.damaged("its literals are not in order"));
            }
            last = Some(id);
            std::mem::swap(&mut before, &mut text);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::ORDER_WIDTH_MAX;

    #[test]
    fn numbers_come_back_at_every_width() {
        assert_eq!([0, 1, 2, 3, 4, 5].map(order_width), [0, 0, 1, 2, 2, 3]);
        assert_eq!(order_bytes(u64::MAX), None);
        for width in 1..=ORDER_WIDTH_MAX {
            let numbers: Vec<u64> =
                (0..40_u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - width)).collect();
            let mut writer = BitWriter::default();
            numbers.iter().for_each(|number| writer.push(*number, width));
            let bytes = writer.finish();
            assert_eq!(bytes.len(), (40 * width as usize).div_ceil(8));
            for (i, number) in (0..).zip(numbers) {
                let bit = i * width as usize;
                let window = read_le(&bytes[bit / 8..bytes.len().min(bit / 8 + 8)]);
                assert_eq!(window >> (bit % 8) & ((1 << width) - 1), number, "{width}");
            }
        }
    }
}
