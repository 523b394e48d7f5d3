//! Inverted index from words to literals, for full-text search, in the file and in memory.
//!
//! # Shape
//! In the file (if requested): number of words, bytes of their texts, bytes of their lists (8 bytes each);
//! the end of each text among the texts, the end of each list among the lists (as many bytes each as the last
//! one needs); the texts in byte order; the lists. A list is the number of its literals, then the number of
//! the first literal and the differences of the others, as varints. In memory, a tree from words to numbers.
//! # Invariants
//! 1. Strings, with and without language, are in the lists of all their words (`vervet_model::for_each_word`)
//!    once; no other literal is in any.
//! 2. [`candidates`] omits no literal that matches the search; it includes others: the test of the text
//!    checks phrases, exclusions, and words that are too common to be worth reading.
//! # Cost
//! A word: `log2` of their number text comparisons. A search: the lists of its words, shortest first; a list
//! that is [`COMMON`] times as long as the remaining candidates is not read. Building: 12 bytes for each word
//! of each literal. Extending a file: `full_text_merge.rs`.
//! # Not here
//! Values inside ids (short strings), which are found among the keys of a segment.

use crate::Dictionary;
use crate::builder::{DictionaryBuilder, KIND_STRING};
use crate::header::Section;
use crate::integers::{bytes_for, read_first_le, read_le};
use crate::key::Seed;
use hashbrown::HashTable;
use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use vervet_codec::{read_varint, write_varint};
use vervet_model::{
    Id, LiteralKind, METER_STEP, Meter, Result, SearchClause, TermParts, TextSearch, Watch, for_each_word,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Minimum ratio of the length of a list to the remaining candidates at which the list is not read.
const COMMON: u64 = 64;
/// Size of the counts before the ends in the section, in bytes.
const NUMBERS_BYTES: usize = 24;

/// A word, or all words with this prefix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordQuery<'a> {
    word: &'a str,
    is_prefix: bool,
}

/// PostingLists of literals by word.
pub(crate) trait PostingLists {
    /// Upper estimate of the number of literals in the lists of `wanted`.
    fn count(&self, wanted: WordQuery<'_>) -> Result<u64>;

    /// Appends the literals of these lists, in any order, possibly with duplicates.
    fn list(&self, wanted: WordQuery<'_>, out: &mut Vec<u64>, meter: &mut Meter<'_>) -> Result<()>;
}

/// Upper estimate of the number of results of [`candidates`].
pub(crate) fn candidate_count(lists: &dyn PostingLists, search: &TextSearch) -> Result<u64> {
    let mut sum = 0_u64;
    for parts in search.alternatives() {
        let mut least = u64::MAX;
        for wanted in wanted(parts) {
            least = least.min(lists.count(wanted)?);
        }
        sum = sum.saturating_add(least);
    }
    Ok(sum)
}

/// Appends the numbers of all literals that match `search`, and of possible matches; ascending, without
/// duplicates.
pub(crate) fn candidates(
    lists: &dyn PostingLists,
    search: &TextSearch,
    out: &mut Vec<u64>,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let first = out.len();
    for parts in search.alternatives() {
        let mut by_count = Vec::new();
        for wanted in wanted(parts) {
            by_count.push((lists.count(wanted)?, wanted));
        }
        by_count.sort_by_key(|(count, _)| *count);
        let mut left: Option<Vec<u64>> = None;
        for (count, wanted) in by_count {
            let before = left.as_ref().map(Vec::len);
            if before.is_some_and(|before| before as u64 * COMMON < count) {
                break;
            }
            let mut list = Vec::new();
            lists.list(wanted, &mut list, meter)?;
            if wanted.is_prefix {
                list.sort_unstable();
                list.dedup();
            }
            match &mut left {
                Some(left) => {
                    let mut list = list.as_slice();
                    left.retain(|number| {
                        list = &list[list.partition_point(|other| other < number)..];
                        list.first() == Some(number)
                    });
                }
                None => left = Some(list),
            }
        }
        out.extend(left.unwrap_or_default());
    }
    if search.alternatives().len() > 1 {
        out[first..].sort_unstable();
        let mut last = None;
        let mut place = 0;
        out.retain(|number| {
            place += 1;
            place <= first || last.replace(*number) != Some(*number)
        });
    }
    Ok(())
}

/// The words that a text must have to match these parts.
fn wanted(parts: &[SearchClause]) -> impl Iterator<Item = WordQuery<'_>> {
    parts.iter().filter(|part| !part.is_excluded).flat_map(|part| {
        let last = part.words.len() - 1;
        let words = part.words.iter().enumerate();
        words.map(move |(at, word)| WordQuery { word, is_prefix: part.is_prefix && at == last })
    })
}

/// Builds the section for the literals of `builder`.
pub(crate) fn write_words(builder: &DictionaryBuilder, watch: &Watch<'_>) -> Result<Vec<u8>> {
    gather(builder, watch)?.section(watch)
}

/// Collects the words of the literals of `builder`.
pub(crate) fn gather(builder: &DictionaryBuilder, watch: &Watch<'_>) -> Result<PostingsBuilder> {
    let mut ticker = watch.ticker();
    let mut gathered = PostingsBuilder::default();
    let mut scratch = String::new();
    for record in builder.records().filter(|record| !record.is_vertex()) {
        ticker.step()?;
        let is_text =
            record.kind == KIND_STRING || builder.own_kind(record.kind).is_some_and(|own| own.is_language);
        if is_text && let Ok(text) = std::str::from_utf8(record.text) {
            for_each_word(text, &mut scratch, |word| gathered.push(word, record.number));
        }
    }
    Ok(gathered)
}

/// Words come from clients, so their hash is seeded, too.
fn word_hash(word: &str) -> u64 {
    xxh3_64_with_seed(word.as_bytes(), Seed::of_builders().0)
}

/// Words in order of first occurrence, with their literals.
#[derive(Default)]
pub(crate) struct PostingsBuilder {
    words: Vec<Box<str>>,
    /// By word: 1 + the last literal that has it, and the number of such literals.
    seen: Vec<(u64, u32)>,
    numbers: HashTable<u32>,
    /// Pairs of word and literal, by literal.
    pairs: Vec<(u32, u32)>,
}

impl PostingsBuilder {
    fn push(&mut self, word: &str, literal: u32) {
        let hash = word_hash(word);
        let Self { words, seen, numbers, pairs } = self;
        let found = numbers.find(hash, |number| &*words[*number as usize] == word).copied();
        let number = match found {
            Some(number) => number,
            None => {
                // A builder holds less than 2^40 bytes of text, which is too little for 2^32 different words.
                let number = u32::try_from(words.len()).expect("less than 2^32 different words");
                words.push(word.into());
                seen.push((0, 0));
                numbers.insert_unique(hash, number, |number| word_hash(&words[*number as usize]));
                number
            }
        };
        let seen = &mut seen[number as usize];
        if seen.0 != u64::from(literal) + 1 {
            *seen = (u64::from(literal) + 1, seen.1 + 1);
            pairs.push((number, literal));
        }
    }

    /// The words in byte order.
    pub(crate) fn sorted(self, watch: &Watch<'_>) -> Result<SortedPostings> {
        watch.check()?;
        let mut order: Vec<u32> = (0..).take(self.words.len()).collect();
        order.sort_unstable_by(|a, b| self.words[*a as usize].cmp(&self.words[*b as usize]));
        watch.check()?;
        // Start of the literals of each word, by word.
        let mut starts = vec![0_usize; self.words.len()];
        let mut start = 0;
        for &word in &order {
            starts[word as usize] = start;
            start += self.seen[word as usize].1 as usize;
        }
        let mut literals = vec![0_u32; self.pairs.len()];
        let mut ends = starts.clone();
        for (word, literal) in self.pairs {
            let end = &mut ends[word as usize];
            literals[*end] = literal;
            *end += 1;
        }
        Ok(SortedPostings { words: self.words, order, starts, ends, literals })
    }

    fn section(self, watch: &Watch<'_>) -> Result<Vec<u8>> {
        let sorted = self.sorted(watch)?;
        let (mut texts, mut lists) = (Vec::new(), Vec::new());
        let (mut text_ends, mut list_ends) = (Vec::new(), Vec::new());
        let mut ticker = watch.ticker();
        for at in 0..sorted.len() {
            ticker.step()?;
            let (word, list) = sorted.get(at);
            texts.extend_from_slice(word.as_bytes());
            text_ends.push(texts.len() as u64);
            write_varint(list.len() as u64, &mut lists);
            write_list(0, list.iter().map(|literal| u64::from(*literal)), &mut lists);
            list_ends.push(lists.len() as u64);
        }
        let mut section = section_numbers([sorted.len() as u64, texts.len() as u64, lists.len() as u64]);
        for (ends, all) in [(text_ends, texts.len()), (list_ends, lists.len())] {
            let width = bytes_for(all as u64);
            section.extend(ends.iter().flat_map(|end| end.to_le_bytes().into_iter().take(width)));
        }
        section.extend_from_slice(&texts);
        section.extend_from_slice(&lists);
        Ok(section)
    }
}

/// Encodes the counts at the start of a section.
pub(crate) fn section_numbers(numbers: [u64; 3]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Appends the differences of `literals`, the first one to `last`.
pub(crate) fn write_list(mut last: u64, literals: impl Iterator<Item = u64>, out: &mut Vec<u8>) {
    for literal in literals {
        write_varint(literal - last, out);
        last = literal;
    }
}

/// Words in byte order, with their literals.
pub(crate) struct SortedPostings {
    words: Vec<Box<str>>,
    order: Vec<u32>,
    /// Start and end of the literals of each word, by word.
    starts: Vec<usize>,
    ends: Vec<usize>,
    literals: Vec<u32>,
}

impl SortedPostings {
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// A word and its literals, ascending.
    pub(crate) fn get(&self, at: usize) -> (&str, &[u32]) {
        let word = self.order[at] as usize;
        (&self.words[word], &self.literals[self.starts[word]..self.ends[word]])
    }
}

/// The section of a file.
#[derive(Clone, Copy)]
pub(crate) struct FullTextIndex<'d> {
    dictionary: &'d Dictionary,
    pub(crate) words: u64,
    /// Sizes of the end of a text and of a list, in bytes.
    widths: [usize; 2],
    /// Start of the ends of texts and of lists, of the texts and of the lists, and their end.
    starts: [usize; 5],
}

impl<'d> FullTextIndex<'d> {
    pub(crate) fn open(dictionary: &'d Dictionary) -> Result<Self> {
        let header = dictionary.sections().get(Section::LiteralWords, 0, NUMBERS_BYTES)?;
        let [words, texts, lists] = [0, 8, 16].map(|at| read_le(&header[at..at + 8]));
        let widths = [bytes_for(texts), bytes_for(lists)];
        let mut at = NUMBERS_BYTES as u64;
        let mut starts = [0; 5];
        let lengths = [
            words.checked_mul(widths[0] as u64),
            words.checked_mul(widths[1] as u64),
            Some(texts),
            Some(lists),
        ];
        for (start, length) in starts.iter_mut().zip(lengths.into_iter().chain([Some(0)])) {
            *start = usize::try_from(at).unwrap_or(usize::MAX);
            at = length.and_then(|length| at.checked_add(length)).unwrap_or(u64::MAX);
        }
        if at != dictionary.sections().length(Section::LiteralWords) as u64 {
            return Err(dictionary.damaged("the length of its index of words does not match its header"));
        }
        Ok(Self { dictionary, words, widths, starts })
    }

    fn bytes(&self, start: usize, length: usize) -> Result<&'d [u8]> {
        self.dictionary.sections().get(Section::LiteralWords, start, length)
    }

    /// Total size of the texts (0) or lists (1), in bytes.
    pub(crate) fn length(&self, of: usize) -> u64 {
        (self.starts[of + 3] - self.starts[of + 2]) as u64
    }

    /// The bytes of the texts (0) or lists (1) of these words.
    pub(crate) fn piece(&self, of: usize, words: Range<u64>) -> Result<&'d [u8]> {
        if words.is_empty() {
            return Ok(&[]);
        }
        let (first, last) = (self.range(of, words.start)?, self.range(of, words.end - 1)?);
        self.bytes(self.starts[of + 2] + first.start, last.end.saturating_sub(first.start))
    }

    /// The byte range of the `which`-th text (0) or list (1).
    pub(crate) fn range(&self, of: usize, which: u64) -> Result<Range<usize>> {
        let width = self.widths[of];
        let end = |which: u64| -> Result<usize> {
            // Lossless: the section is in memory.
            let at = self.starts[of] + usize::try_from(which).unwrap_or(usize::MAX).saturating_mul(width);
            Ok(usize::try_from(read_first_le(self.bytes(at, width)?, width)).unwrap_or(usize::MAX))
        };
        let start = if which == 0 { 0 } else { end(which - 1)? };
        let end = end(which)?;
        if start > end || end > self.starts[of + 3] - self.starts[of + 2] {
            return Err(self.dictionary.damaged("its index of words has an offset out of bounds"));
        }
        Ok(start..end)
    }

    pub(crate) fn text(&self, word: u64) -> Result<&'d [u8]> {
        self.piece(0, word..word + 1)
    }

    pub(crate) fn encoded(&self, word: u64) -> Result<&'d [u8]> {
        self.piece(1, word..word + 1)
    }

    /// The first word from `low` on that is not `below`.
    pub(crate) fn first_not(&self, mut low: u64, below: impl Fn(&[u8]) -> bool) -> Result<u64> {
        let mut high = self.words;
        while low < high {
            let middle = low.midpoint(high);
            if below(self.text(middle)?) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Indices of the words that match `wanted`.
    fn places(&self, wanted: WordQuery<'_>) -> Result<Range<u64>> {
        let word = wanted.word.as_bytes();
        let start = self.first_not(0, |text| text < word)?;
        let end = if wanted.is_prefix {
            self.first_not(start, |text| text.starts_with(word))?
        } else {
            let found = start < self.words && self.text(start)? == word;
            start + u64::from(found)
        };
        Ok(start..end)
    }

    pub(crate) fn damaged(&self) -> vervet_model::Error {
        self.dictionary.damaged("its index of words has a list that cannot be read")
    }

    /// Appends a list.
    fn decode(&self, word: u64, out: &mut Vec<u64>, meter: &mut Meter<'_>) -> Result<()> {
        let mut counted = out.len();
        self.for_each(word, |literal| {
            if out.len() - counted == METER_STEP {
                counted = out.len();
                meter(METER_STEP)?;
            }
            out.push(literal);
            Ok(())
        })?;
        meter(out.len() - counted)
    }

    /// Calls `each` with the literals of a list; returns the size of their count, which precedes them.
    pub(crate) fn for_each(&self, word: u64, mut each: impl FnMut(u64) -> Result<()>) -> Result<usize> {
        let mut bytes = self.encoded(word)?;
        let length = bytes.len();
        let count = read_varint(&mut bytes).ok_or_else(|| self.damaged())?;
        let count_bytes = length - bytes.len();
        let mut last = 0_u64;
        for at in 0..count {
            let difference = read_varint(&mut bytes).ok_or_else(|| self.damaged())?;
            last = last.checked_add(difference).ok_or_else(|| self.damaged())?;
            if last >= self.dictionary.literal_count() || (difference == 0 && at > 0) {
                return Err(self.damaged());
            }
            each(last)?;
        }
        if bytes.is_empty() { Ok(count_bytes) } else { Err(self.damaged()) }
    }
}

impl PostingLists for FullTextIndex<'_> {
    fn count(&self, wanted: WordQuery<'_>) -> Result<u64> {
        let places = self.places(wanted)?;
        if places.is_empty() {
            return Ok(0);
        }
        if !wanted.is_prefix {
            return read_varint(&mut self.encoded(places.start)?).ok_or_else(|| self.damaged());
        }
        // At least one byte for each literal.
        let (first, last) = (self.range(1, places.start)?, self.range(1, places.end - 1)?);
        Ok(last.end.saturating_sub(first.start) as u64)
    }

    fn list(&self, wanted: WordQuery<'_>, out: &mut Vec<u64>, meter: &mut Meter<'_>) -> Result<()> {
        self.places(wanted)?.into_iter().try_for_each(|word| self.decode(word, out, meter))
    }
}

impl Dictionary {
    /// Whether there is an index of words.
    #[must_use]
    pub fn has_words(&self) -> bool {
        self.sections().length(Section::LiteralWords) > 0
    }

    /// Upper estimate of the number of results of [`Dictionary::search`]; `None` without an index.
    ///
    /// # Errors
    /// Damaged file.
    pub fn search_count(&self, search: &TextSearch) -> Result<Option<u64>> {
        if !self.has_words() {
            return Ok(None);
        }
        Ok(Some(candidate_count(&FullTextIndex::open(self)?, search)?.min(self.literal_count())))
    }

    /// Appends all literals that match `search`, and possibly others, ascending: see `full_text.rs`.
    ///
    /// # Errors
    /// Damaged file; there is no index; those of `meter`.
    pub fn search(&self, search: &TextSearch, out: &mut Vec<Id>, meter: &mut Meter<'_>) -> Result<()> {
        let mut numbers = Vec::new();
        candidates(&FullTextIndex::open(self)?, search, &mut numbers, meter)?;
        meter(numbers.len())?;
        out.extend(numbers.into_iter().map(Id::literal));
        Ok(())
    }

    /// Checks that the index has exactly the words of each text.
    pub(crate) fn validate_words(&self) -> Result<()> {
        if !self.has_words() {
            return Ok(());
        }
        let index = FullTextIndex::open(self)?;
        let mut gathered = PostingsBuilder::default();
        let (mut scratch, mut text, mut words) = (String::new(), String::new(), String::new());
        for number in (0..).take(usize::try_from(self.literal_count()).unwrap_or(usize::MAX)) {
            text.clear();
            self.read_term(Id::literal(u64::from(number)), &mut scratch, &mut |parts| {
                if let TermParts::Literal { kind: LiteralKind::String | LiteralKind::Language(_), .. } = parts
                {
                    parts.write_str(&mut text);
                }
            })?;
            for_each_word(&text, &mut words, |word| gathered.push(word, number));
        }
        let length = self.sections().length(Section::LiteralWords);
        if gathered.section(&Watch::new("check"))? != index.bytes(0, length)? {
            return Err(self.damaged("its index of words does not match its literals"));
        }
        Ok(())
    }
}

/// The index of literals added after the file was written; built on the first search.
#[derive(Debug, Default)]
pub(crate) struct MutableFullText {
    lists: BTreeMap<Box<str>, Vec<u64>>,
    /// Numbers below this are in the lists; 0 if the lists are empty.
    end: u64,
}

impl MutableFullText {
    /// Adds the missing literals from `first` to `end`; `text_of` returns the text of a searchable literal.
    pub(crate) fn up_to<'t>(
        &mut self,
        first: u64,
        end: u64,
        text_of: impl Fn(u64) -> Option<&'t str>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let mut scratch = String::new();
        for number in self.end.max(first)..end {
            if number % METER_STEP as u64 == 0 {
                // Later calls continue here. The lists are shared by all searches.
                self.end = self.end.max(number);
                meter(0)?;
            }
            for_each_word(text_of(number).unwrap_or_default(), &mut scratch, |word| {
                match self.lists.get_mut(word) {
                    Some(list) if list.last() == Some(&number) => {}
                    Some(list) => list.push(number),
                    None => {
                        self.lists.insert(word.into(), vec![number]);
                    }
                }
            });
        }
        self.end = self.end.max(end);
        Ok(())
    }

    fn places(&self, wanted: WordQuery<'_>) -> impl Iterator<Item = &Vec<u64>> {
        let from = (Bound::Included(wanted.word), Bound::Unbounded);
        let all = self.lists.range::<str, _>(from);
        all.take_while(
            move |(word, _)| {
                if wanted.is_prefix { word.starts_with(wanted.word) } else { &***word == wanted.word }
            },
        )
        .map(|(_, list)| list)
    }
}

impl PostingLists for MutableFullText {
    fn count(&self, wanted: WordQuery<'_>) -> Result<u64> {
        Ok(self.places(wanted).map(|list| list.len() as u64).sum())
    }

    fn list(&self, wanted: WordQuery<'_>, out: &mut Vec<u64>, meter: &mut Meter<'_>) -> Result<()> {
        for part in self.places(wanted).flat_map(|list| list.chunks(METER_STEP)) {
            meter(part.len())?;
            out.extend_from_slice(part);
        }
        Ok(())
    }
}
