//! Merge of a file's word index with that of new literals, without loading the file's index.
//!
//! # Shape
//! A binary search finds the position of each new word among the words of the file: a word whose list gets
//! longer, or a gap. Everything between these positions is copied. The section has four arrays
//! (`full_text.rs`), so the positions are walked four times.
//! # Cost
//! Memory: the words of the new literals. Time: a copy, the ends of all words, and reading the lists that get
//! longer.

use crate::Dictionary;
use crate::builder::DictionaryBuilder;
use crate::full_text::{FullTextIndex, SortedPostings, gather, section_numbers, write_list};
use crate::header::{FileWriter, Section};
use crate::integers::bytes_for;
use std::ops::Range;
use vervet_codec::write_varint;
use vervet_model::{Result, Watch};

/// A new word.
struct WordPosition {
    /// FullTextIndex of the equal word of the file, or of the first one after it.
    at: u64,
    is_known: bool,
    /// In [`Merge::lists`]: the total number of its literals, and its list (`list`), which for a word of the
    /// file is only the appended part.
    count: Range<usize>,
    list: Range<usize>,
    /// Size of the number of literals in the file's list, in bytes.
    count_before: usize,
}

/// A step of the merge in the order of words.
#[derive(Clone, Copy)]
enum MergeStep<'a> {
    /// These words of the file.
    Known(u64, u64),
    /// A new word, which may also be in the file.
    New(usize, &'a WordPosition),
}

struct Merge<'a, 'd> {
    index: FullTextIndex<'d>,
    new: &'a SortedPostings,
    positions: Vec<WordPosition>,
    lists: Vec<u8>,
}

/// Writes the section for the literals of `dictionary` and those of `new`, which get the following numbers.
pub(crate) fn merge_words(
    dictionary: &Dictionary,
    new: &DictionaryBuilder,
    file: &mut FileWriter<'_>,
    watch: &Watch<'_>,
) -> Result<()> {
    let new = gather(new, watch)?.sorted(watch)?;
    let index = FullTextIndex::open(dictionary)?;
    let mut merge = Merge { index, new: &new, positions: Vec::new(), lists: Vec::new() };
    merge.find_positions(dictionary.literal_count(), watch)?;
    merge.write(file, watch)
}

impl Merge<'_, '_> {
    /// Finds the position of each new word; literals are numbered from `first`.
    fn find_positions(&mut self, first: u64, watch: &Watch<'_>) -> Result<()> {
        let mut ticker = watch.ticker();
        let mut at = 0;
        for number in 0..self.new.len() {
            ticker.step()?;
            let (word, literals) = self.new.get(number);
            at = self.index.first_not(at, |text| text < word.as_bytes())?;
            let is_known = at < self.index.words && self.index.text(at)? == word.as_bytes();
            let (mut known, mut last, mut count_before) = (0, 0, 0);
            if is_known {
                count_before = self.index.for_each(at, |literal| {
                    (known, last) = (known + 1, literal);
                    Ok(())
                })?;
            }
            let start = self.lists.len();
            write_varint(known + literals.len() as u64, &mut self.lists);
            let middle = self.lists.len();
            write_list(last, literals.iter().map(|literal| first + u64::from(*literal)), &mut self.lists);
            let (count, list) = (start..middle, middle..self.lists.len());
            self.positions.push(WordPosition { at, is_known, count, list, count_before });
        }
        Ok(())
    }

    /// All words in order.
    fn steps(&self) -> impl Iterator<Item = MergeStep<'_>> {
        let mut next = 0;
        let positions = self.positions.iter().enumerate().flat_map(move |(number, position)| {
            let before = next;
            next = position.at + u64::from(position.is_known);
            [MergeStep::Known(before, position.at), MergeStep::New(number, position)]
        });
        let behind = self.positions.last().map_or(0, |position| position.at + u64::from(position.is_known));
        positions.chain([MergeStep::Known(behind, self.index.words)])
    }

    /// The text (0) or list (1) of a new word, in pieces.
    fn new_piece(&self, of: usize, number: usize, position: &WordPosition) -> Result<[&[u8]; 3]> {
        if of == 0 {
            return Ok([self.new.get(number).0.as_bytes(), &[], &[]]);
        }
        let before =
            if position.is_known { &self.index.encoded(position.at)?[position.count_before..] } else { &[] };
        Ok([&self.lists[position.count.clone()], before, &self.lists[position.list.clone()]])
    }

    /// Total size of the texts (0) or lists (1), in bytes.
    fn length(&self, of: usize) -> Result<u64> {
        let mut length = self.index.length(of);
        for (number, position) in self.positions.iter().enumerate() {
            length +=
                self.new_piece(of, number, position)?.iter().map(|piece| piece.len() as u64).sum::<u64>();
            if position.is_known {
                length = length.saturating_sub(self.index.range(of, position.at)?.len() as u64);
            }
        }
        Ok(length)
    }

    fn write(&self, file: &mut FileWriter<'_>, watch: &Watch<'_>) -> Result<()> {
        let mut write = |bytes: &[u8]| file.write(Section::LiteralWords, bytes);
        let added = self.positions.iter().filter(|position| !position.is_known).count() as u64;
        let lengths = [self.length(0)?, self.length(1)?];
        write(&section_numbers([self.index.words + added, lengths[0], lengths[1]]))?;
        let mut ticker = watch.ticker();
        for of in [0, 1] {
            let width = bytes_for(lengths[of]);
            let mut end = 0_u64;
            for step in self.steps() {
                match step {
                    MergeStep::Known(from, to) => {
                        for word in from..to {
                            ticker.step()?;
                            end += self.index.range(of, word)?.len() as u64;
                            write(&end.to_le_bytes()[..width])?;
                        }
                    }
                    MergeStep::New(number, position) => {
                        let pieces = self.new_piece(of, number, position)?;
                        end += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
                        write(&end.to_le_bytes()[..width])?;
                    }
                }
            }
            if end != lengths[of] {
                return Err(self.index.damaged());
            }
        }
        for of in [0, 1] {
            for step in self.steps() {
                match step {
                    MergeStep::Known(from, to) => write(self.index.piece(of, from..to)?)?,
                    MergeStep::New(number, position) => {
                        self.new_piece(of, number, position)?.into_iter().try_for_each(&mut write)?;
                    }
                }
            }
        }
        Ok(())
    }
}
