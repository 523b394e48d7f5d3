//! Dictionary extension: makes a file with additional terms by copying an existing one.
//!
//! # Shape
//! New terms are in a builder of their own, numbered from 0. The sections of the new file are written in
//! order, each from the same section of the old one:
//!
//! | section | what is copied | what is made |
//! | --- | --- | --- |
//! | templates | all | templates that several new terms share, a table where there is none |
//! | records, offsets | all blocks but the last one, if that has room | blocks from there on |
//! | index | the slots (see `index.rs`) | new terms between them |
//! | order | the numbers | new literals between them (`text_order.rs`) |
//! | words | texts and lists | new words and longer lists (`full_text_merge.rs`) |
//! # Invariants
//! 1. Terms keep their numbers, new terms get the following ones.
//! 2. Data read from the old file has passed its checksums.
//! # Cost
//! Memory: that of the new terms, about as much as a builder needs for a file of them; the templates of the
//! file (16,384 at most); 1 MiB of the new file. Time: one sequential copy; a number of each literal and a
//! slot of each term are rewritten, 5 to 10 ns each. A new literal takes a search in the order.
//! # Not here
//! Better templates and tables for terms unlike those of the file: they are made by the next load, or when
//! there are as many new terms as old ones, since then a file is built from scratch.

use crate::builder::DictionaryBuilder;
use crate::dictionary::{Dictionary, TermTable};
use crate::encode::{EncodedRecords, Scheme, choose, write_records, write_templates};
use crate::full_text_merge::merge_words;
use crate::header::{FileWriter, Header, Section};
use crate::index;
use crate::record_blocks::{BLOCK_OF, RecordBlocks, offset_width};
use crate::text_order::merge_order;
use vervet_model::{Error, ErrorKind, Id, Result, Tag, TermParts, Watch};

/// A dictionary and new terms. See the header of this file.
#[derive(Debug)]
pub struct Extension<'d> {
    dictionary: &'d Dictionary,
    new: DictionaryBuilder,
    text: String,
}

impl<'d> Extension<'d> {
    /// An extension of a dictionary for this number of new terms. `None` if it should be built from scratch
    /// ([`DictionaryBuilder::from_dictionary`]), since most of its terms are new, or the file has an old
    /// version.
    #[must_use]
    pub fn new(dictionary: &'d Dictionary, new_terms: u64) -> Option<Self> {
        let terms = dictionary.vertex_count() + dictionary.literal_count();
        let extends = !dictionary.is_old() && new_terms < terms;
        extends.then(|| Self { dictionary, new: DictionaryBuilder::new(), text: String::new() })
    }

    /// Adds a term; returns its id. An existing term keeps its id.
    ///
    /// # Errors
    /// Damaged dictionary; too long a term, or too many.
    pub fn add(&mut self, parts: TermParts<'_>) -> Result<Id> {
        self.text.clear();
        parts.write_str(&mut self.text);
        if let Some(id) = self.dictionary.lookup_parts(parts, &self.text)? {
            return Ok(id);
        }
        let id = self.new.intern_parts(parts)?;
        let before = match id.tag() {
            Tag::Vertex => self.dictionary.vertex_count(),
            Tag::Literal => self.dictionary.literal_count(),
            _ => return Ok(id),
        };
        let number = before + id.payload();
        if number >= u64::from(u32::MAX) {
            let what = format!("a dictionary holds at most {} terms of a kind", u32::MAX);
            return Err(Error::new(ErrorKind::Unsupported, what));
        }
        Ok(if id.is_vertex() { Id::vertex(number) } else { Id::literal(number) })
    }

    /// Writes the bytes of the file to `sink`, in pieces.
    ///
    /// # Errors
    /// Damaged dictionary; those of `sink`; those of `watch`, which gets some steps for each term.
    pub fn write(self, sink: &mut dyn FnMut(&[u8]) -> Result<()>, watch: &Watch<'_>) -> Result<()> {
        let Self { dictionary, new, .. } = self;
        let body = dictionary.body();
        let templates = body.all(Section::Templates)?;
        let mut scheme = Scheme::of_file(templates, &new)
            .ok_or_else(|| dictionary.damaged("its templates cannot be read"))?;
        let pieces = new.pieces(1);
        choose(&new, &pieces, &mut scheme, watch)?;
        let mut more_templates = Vec::new();
        let numbers = write_templates(&new, &mut scheme, &mut more_templates);
        let mut tables = [Vec::new(), Vec::new()];
        for piece in &pieces {
            let records = write_records(&new, piece, &scheme, &numbers, dictionary.seed(), watch)?;
            tables.iter_mut().zip(records).for_each(|(table, records)| table.push(records));
        }
        drop(scheme);
        let mut file = FileWriter::new(sink, watch)?;
        file.write(Section::Templates, templates)?;
        file.write(Section::Templates, &more_templates)?;
        let mut slots = [0; 2];
        for (of, (table, id_of)) in dictionary.tables().into_iter().enumerate() {
            let records = std::mem::take(&mut tables[of]);
            write_blocks(dictionary, table, &records, &mut file)?;
            let hashes = records.iter().flat_map(EncodedRecords::iter).map(|(hash, _)| hash);
            let mut hashed: Vec<(u64, u64)> = hashes.zip(table.terms + 1..).collect();
            drop(records);
            watch.sort(&mut hashed, Ord::cmp)?;
            slots[of] = index::merge(dictionary, (table, id_of), &hashed, &mut file, watch)?;
        }
        merge_order(dictionary, &new, &mut file, watch)?;
        if dictionary.has_words() {
            merge_words(dictionary, &new, &mut file, watch)?;
        }
        file.finish(&Header {
            vertices: dictionary.vertex_count() + new.vertex_count(),
            literals: dictionary.literal_count() + new.literal_count(),
            slots,
            seed: dictionary.seed(),
            wraps: false,
        })
    }
}

/// Writes offsets and records of the terms of `table`, then of the new ones.
fn write_blocks(
    dictionary: &Dictionary,
    table: &TermTable,
    new: &[EncodedRecords],
    file: &mut FileWriter<'_>,
) -> Result<()> {
    let body = dictionary.body();
    let full = table.terms / BLOCK_OF;
    let kept = dictionary.block_start(table, full)?;
    let mut blocks = RecordBlocks::default();
    for number in full * BLOCK_OF..table.terms {
        blocks.push(dictionary.raw_record(table, number)?);
    }
    new.iter().flat_map(EncodedRecords::iter).for_each(|(_, record)| blocks.push(record));
    // Lossless: the section is in memory.
    let kept_records = body.get(table.records, 0, usize::try_from(kept).unwrap_or(usize::MAX))?;
    let width = offset_width(kept_records.len() + blocks.records.len());
    for block in 0..full {
        file.write(table.offsets, &dictionary.block_start(table, block)?.to_le_bytes()[..width])?;
    }
    for start in &blocks.starts {
        file.write(table.offsets, &(kept + start).to_le_bytes()[..width])?;
    }
    file.write(table.records, kept_records)?;
    file.write(table.records, &blocks.records)
}
