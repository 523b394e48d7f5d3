//! From a builder to the bytes of a file: choosing templates, writing records, filling the index.
//!
//! # Shape
//! Terms try for a template level by level: the pattern of their numbers, the namespace of an IRI, the
//! kind alone. A pattern that enough terms share becomes a template; terms that are left at the end
//! take the template of last resort of their kind, which is always there. A template that takes the rest of a text has a
//! twin that takes it as codes; each term goes to the one where it is smaller.
//! # Cost
//! Each level walks the terms that are left, then one pass writes. Patterns and records are made on
//! several threads; counting patterns and filling the index (vertices beside literals) are not split
//! further. LUBM-40 (1.3 million terms): 0.37 to 0.51 µs for each term on one thread, 0.19 to 0.44 on two
//! (2026-11-20, two cores under load from others). Memory beside the image: 12 bytes for each term while
//! templates are chosen, then its record and 24 bytes, and 16 for each literal while they are put in order;
//! 16 for each different pattern.

use crate::builder::{DictionaryBuilder, KIND_BLANK, KIND_IRI, KIND_TRIPLE, Piece, Record};
use crate::header;
use crate::number::{bytes_for, write_varint};
use crate::order::write_order;
use crate::pattern::{CODED, Form, Pattern, REST, SLOT, namespace};
use crate::symbols::{Encoder, SAMPLE_BYTES};
use crate::template::{self, TEMPLATES_MAX, TemplateKind};
use crate::words::write_words;
use rustc_hash::FxHashMap;
use vervet_model::{Result, Watch};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// So many terms have to share a pattern before it becomes a template.
const SHARED_MIN: u32 = 4;
/// Terms of one block; their lengths stand before them.
pub(crate) const BLOCK_TERMS: usize = 16;
/// In place of a length: the record starts with its length as a varint.
pub(crate) const LONG: u8 = 255;
/// Of seven slots of the index, at most six are full.
const FULL_OF_SEVEN: u64 = 6;

/// Fewer bytes of text are not worth a table of symbols, nor a twin of a template.
const CODED_BYTES_MIN: u64 = 1 << 11;
const TWIN_BYTES_MIN: u64 = 1 << 8;
/// Of a text no more bytes are taken into the sample.
const SAMPLE_TEXT_BYTES: usize = 1 << 9;

/// Patterns that only this kind of term has: the seed of their hash.
fn kind_seed(record: &Record<'_>) -> u64 {
    u64::from(record.kind)
}

/// Which pattern a term tries at one level.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Numbers,
    Namespace,
    Kind,
}

/// Makes the pattern of `record` at `level`; `false` if it has none there.
fn pattern_at(level: Level, record: &Record<'_>, pattern: &mut Pattern) -> bool {
    match level {
        Level::Numbers => pattern.take_numbers(record.text),
        Level::Namespace => {
            let namespace = if record.kind == KIND_IRI { namespace(record.text) } else { None };
            namespace.inspect(|prefix| pattern.of_prefix(prefix)).is_some()
        }
        Level::Kind => {
            // The others have their template of last resort, which is the same.
            let own = record.kind > KIND_TRIPLE;
            pattern.of_prefix(b"");
            own
        }
    }
}

/// A template before it has its final number.
struct Choice {
    kind: TemplateKind,
    detail: String,
    pattern: Vec<u8>,
    terms: u32,
    /// Bytes of text behind the pattern, of all terms; 0 if it has numbers.
    rest_bytes: u64,
}

impl Choice {
    fn new(kind: TemplateKind, pattern: Vec<u8>) -> Self {
        Self { kind, detail: String::new(), pattern, terms: 0, rest_bytes: 0 }
    }

    /// The text before the slot, if that takes the rest.
    fn head(&self) -> Option<&[u8]> {
        self.pattern.strip_suffix(&[SLOT, REST])
    }
}

/// Number of the template of each term, in order of first sight.
struct Chosen {
    choices: Vec<Choice>,
    of_term: Vec<u32>,
}

const NONE: u32 = u32::MAX;
/// The first choices are the templates of last resort, in this order; the last one only where there are triple terms.
const LAST_RESORTS: [TemplateKind; 6] = [
    TemplateKind::Iri,
    TemplateKind::Blank,
    TemplateKind::String,
    TemplateKind::OwnLanguage,
    TemplateKind::OwnType,
    TemplateKind::Triple,
];

fn last_resort(builder: &DictionaryBuilder, kind: u32) -> u32 {
    match (kind, builder.own_kind(kind)) {
        (KIND_IRI, _) => 0,
        (KIND_BLANK, _) => 1,
        (KIND_TRIPLE, _) => 5,
        (_, Some(own)) => {
            if own.is_language {
                3
            } else {
                4
            }
        }
        (_, None) => 2,
    }
}

fn template_kind(builder: &DictionaryBuilder, kind: u32) -> (TemplateKind, &str) {
    match (kind, builder.own_kind(kind)) {
        (KIND_IRI, _) => (TemplateKind::Iri, ""),
        (KIND_BLANK, _) => (TemplateKind::Blank, ""),
        (KIND_TRIPLE, _) => (TemplateKind::Triple, ""),
        (_, Some(own)) if own.is_language => (TemplateKind::Language, &own.detail),
        (_, Some(own)) => (TemplateKind::Typed, &own.detail),
        (_, None) => (TemplateKind::String, ""),
    }
}

/// Runs `job` on each piece, each on a thread of its own, and gives back the results in their order.
fn on_threads<T: Send>(pieces: &[Piece], job: impl Fn(&Piece) -> Result<T> + Sync) -> Result<Vec<T>> {
    if let [piece] = pieces {
        return Ok(vec![job(piece)?]);
    }
    std::thread::scope(|scope| {
        let job = &job;
        let threads: Vec<_> = pieces.iter().map(|piece| scope.spawn(move || job(piece))).collect();
        let results = threads.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        results.collect()
    })
}

fn choose(builder: &DictionaryBuilder, pieces: &[Piece], watch: &Watch<'_>) -> Result<Chosen> {
    let rest = vec![SLOT, REST];
    let resorts = LAST_RESORTS.iter().filter(|kind| **kind != TemplateKind::Triple || builder.has_triples());
    let mut choices: Vec<Choice> = resorts.map(|kind| Choice::new(*kind, rest.clone())).collect();
    let mut of_term = vec![NONE; pieces.last().map_or(0, |piece| piece.terms.end)];
    for level in [Level::Numbers, Level::Namespace, Level::Kind] {
        choose_level(builder, pieces, level, (&mut choices, &mut of_term), watch)?;
    }
    let mut ticker = watch.ticker();
    for (record, chosen) in builder.records().zip(&mut of_term) {
        ticker.step()?;
        if *chosen == NONE {
            *chosen = last_resort(builder, record.kind);
            choices[*chosen as usize].terms += 1;
        }
        let choice = &mut choices[*chosen as usize];
        if let Some(head) = choice.head() {
            choice.rest_bytes += record.text.len().saturating_sub(head.len()) as u64;
        }
    }
    Ok(Chosen { choices, of_term })
}

/// Gives templates to those terms without one whose pattern at `level` is shared.
fn choose_level(
    builder: &DictionaryBuilder,
    pieces: &[Piece],
    level: Level,
    (choices, of_term): (&mut Vec<Choice>, &mut [u32]),
    watch: &Watch<'_>,
) -> Result<()> {
    if !of_term.contains(&NONE) {
        return watch.advance(of_term.len() as u64);
    }
    // Patterns are told apart by their hash alone; `encode` looks whether they are the same.
    let hashes = on_threads(pieces, |piece| pattern_hashes(builder, piece, level, of_term, watch))?;
    let mut numbers: FxHashMap<u64, u32> = FxHashMap::default();
    let mut counts: Vec<u32> = Vec::new();
    let mut tried = vec![NONE; of_term.len()];
    let mut last = (NO_HASH, NONE);
    for (hash, tried) in hashes.iter().flatten().zip(&mut tried) {
        if *hash == NO_HASH {
            continue;
        }
        if *hash != last.0 {
            // No more patterns than terms of a builder: 2^33. Those past 2^32 are not counted.
            let next = u32::try_from(counts.len()).unwrap_or(NONE);
            let number = *numbers.entry(*hash).or_insert(next);
            if number == next && next != NONE {
                counts.push(0);
            }
            last = (*hash, number);
        }
        if let Some(count) = counts.get_mut(last.1 as usize) {
            *count = count.saturating_add(1);
            *tried = last.1;
        }
    }
    watch.check()?;
    drop(hashes);
    drop(numbers);
    let mut winners: Vec<u32> =
        (0..).zip(&counts).filter(|(_, count)| **count >= SHARED_MIN).map(|(i, _)| i).collect();
    winners.sort_by_key(|&number| std::cmp::Reverse(counts[number as usize]));
    // Half of what is left for this level, so that later levels get their turn.
    winners.truncate((TEMPLATES_MAX - choices.len()) / 2);
    let mut pattern = Pattern::default();
    let mut chosen = vec![NONE; counts.len()];
    for (choice, &winner) in (choices.len()..).zip(&winners) {
        chosen[winner as usize] = u32::try_from(choice).expect("at most `TEMPLATES_MAX`");
        choices.push(Choice::new(TemplateKind::Iri, Vec::new()));
    }
    for (i, record) in builder.records().enumerate() {
        let Some(&choice) = chosen.get(tried[i] as usize) else { continue };
        if choice == NONE {
            continue;
        }
        let Some(entry) = choices.get_mut(choice as usize) else { continue };
        if entry.terms == 0 {
            pattern_at(level, &record, &mut pattern);
            let (kind, detail) = template_kind(builder, record.kind);
            entry.kind = kind;
            detail.clone_into(&mut entry.detail);
            entry.pattern.clone_from(&pattern.bytes);
        }
        entry.terms = entry.terms.saturating_add(1);
        of_term[i] = choice;
    }
    watch.check()
}

/// The hash of the pattern of each term of a piece at this level; [`NO_HASH`] for those that have a
/// template, or no pattern.
fn pattern_hashes(
    builder: &DictionaryBuilder,
    piece: &Piece,
    level: Level,
    of_term: &[u32],
    watch: &Watch<'_>,
) -> Result<Vec<u64>> {
    let mut pattern = Pattern::default();
    let mut ticker = watch.ticker();
    let terms = builder.records_of(piece).zip(&of_term[piece.terms.clone()]);
    let hash = |(record, chosen): (Record<'_>, &u32)| {
        ticker.step()?;
        Ok(if *chosen == NONE && pattern_at(level, &record, &mut pattern) {
            xxh3_64_with_seed(&pattern.bytes, kind_seed(&record)).max(NO_HASH + 1)
        } else {
            NO_HASH
        })
    };
    terms.map(hash).collect()
}

const NO_HASH: u64 = 0;

/// The image of the file of `builder`, made on so many threads.
///
/// # Errors
/// Those of `watch`, which gets [`DictionaryBuilder::finish_steps`] steps, roughly.
pub(crate) fn encode(builder: &DictionaryBuilder, threads: usize, watch: &Watch<'_>) -> Result<Vec<u8>> {
    let pieces = builder.pieces(threads);
    let chosen = choose(builder, &pieces, watch)?;
    let encoders = encoders(builder, &chosen);
    watch.check()?;
    let mut templates = Vec::new();
    for (of, encoder) in encoders.iter().enumerate() {
        if let Some(encoder) = encoder {
            template::write_table(of, &encoder.table(), &mut templates);
        }
    }
    let numbers = write_templates(&chosen, &encoders, &mut templates);
    let records =
        on_threads(&pieces, |piece| write_records(builder, piece, (&chosen, &numbers, &encoders), watch))?;
    let half = |of: usize, terms: u64| -> Result<_> {
        let mut writer = HalfWriter::new(terms);
        let mut ticker = watch.ticker();
        for piece in &records {
            for (hash, record) in piece[of].iter() {
                ticker.step()?;
                writer.push(hash, record);
            }
        }
        Ok(writer.finish())
    };
    let (vertex_count, literal_count) = (builder.vertex_count(), builder.literal_count());
    let literals = || -> Result<_> {
        let words = if builder.has_words() { write_words(builder, watch)? } else { Vec::new() };
        Ok((half(1, literal_count)?, write_order(builder, watch)?, words))
    };
    let (vertices, (literals, order, words)) = if pieces.len() == 1 {
        (half(0, vertex_count)?, literals()?)
    } else {
        std::thread::scope(|scope| {
            let literals = scope.spawn(literals);
            let vertices = half(0, vertex_count);
            match literals.join() {
                Ok(literals) => Ok((vertices?, literals?)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })?
    };
    let [vertex_offsets, vertex_records, vertex_index] = vertices;
    let [literal_offsets, literal_records, literal_index] = literals;
    let sections = [
        templates,
        vertex_offsets,
        vertex_records,
        vertex_index,
        literal_offsets,
        literal_records,
        literal_index,
        order,
        words,
    ];
    let version = if builder.has_triples() { header::VERSION } else { header::VERSION_WITHOUT_TRIPLES };
    Ok(header::write(version, vertex_count, literal_count, sections))
}

/// What texts are coded with: those of vertices, those of literals.
type Encoders = [Option<Encoder>; 2];

/// Tables for the texts that templates leave, made from a sample of them.
fn encoders(builder: &DictionaryBuilder, chosen: &Chosen) -> Encoders {
    let mut all = [0_u64; 2];
    for choice in &chosen.choices {
        all[choice.kind.table()] += choice.rest_bytes;
    }
    if all.iter().all(|bytes| *bytes < CODED_BYTES_MIN) {
        return [None, None];
    }
    // Texts from all over, as many bytes of them as the sample may have.
    let mut samples = [Vec::new(), Vec::new()];
    let (mut passed, mut taken) = ([0_u64; 2], [0_u64; 2]);
    for (record, &choice) in builder.records().zip(&chosen.of_term) {
        let choice = &chosen.choices[choice as usize];
        // A term that does not have its pattern, only the hash of it, may be here with any part of its text.
        let Some(rest) = choice.head().and_then(|head| record.text.get(head.len()..)) else { continue };
        let of = choice.kind.table();
        if taken[of] * all[of] <= passed[of] * SAMPLE_BYTES as u64 {
            let text = &rest[..rest.len().min(SAMPLE_TEXT_BYTES)];
            taken[of] += text.len() as u64;
            samples[of].push(text);
        }
        passed[of] += rest.len() as u64;
    }
    let train = |of: usize| (all[of] >= CODED_BYTES_MIN).then(|| Encoder::train(&samples[of]));
    [train(0), train(1)]
}

/// The numbers of a template and of its twin.
#[derive(Clone, Copy, Default)]
struct Numbered {
    own: u64,
    coded: Option<u64>,
}

/// Appends the templates, and numbers them, by choice.
fn write_templates(chosen: &Chosen, encoders: &Encoders, out: &mut Vec<u8>) -> Vec<Numbered> {
    let choices = &chosen.choices;
    // The most frequent templates get the numbers that are one byte long.
    let mut order: Vec<(u32, usize, bool)> =
        choices.iter().enumerate().map(|(at, choice)| (choice.terms, at, false)).collect();
    order.sort_by_key(|(terms, ..)| std::cmp::Reverse(*terms));
    let mut twins: Vec<(u32, usize, bool)> = Vec::new();
    // As many as there is room for.
    for (entry, _) in order.iter_mut().zip(choices.len()..TEMPLATES_MAX) {
        let choice = &choices[entry.1];
        if choice.rest_bytes >= TWIN_BYTES_MIN && encoders[choice.kind.table()].is_some() {
            twins.push((entry.0, entry.1, true));
            // Most texts get smaller.
            entry.0 /= 8;
        }
    }
    order.extend(twins);
    order.sort_by_key(|(terms, ..)| std::cmp::Reverse(*terms));
    let mut numbers = vec![Numbered::default(); choices.len()];
    for (number, &(_, at, is_coded)) in (0..).zip(&order) {
        let Choice { kind, detail, pattern, .. } = &choices[at];
        match choices[at].head().filter(|_| is_coded) {
            Some(head) => {
                numbers[at].coded = Some(number);
                template::write(*kind, detail, &[head, &[SLOT, CODED]].concat(), out);
            }
            None => {
                numbers[at].own = number;
                template::write(*kind, detail, pattern, out);
            }
        }
    }
    numbers
}

/// Records of some vertices or literals, with their hashes.
#[derive(Default)]
struct Records {
    bytes: Vec<u8>,
    /// Hash of each, and where its record ends.
    terms: Vec<(u64, usize)>,
}

impl Records {
    fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut start = 0;
        self.terms
            .iter()
            .map(move |&(hash, end)| (hash, &self.bytes[std::mem::replace(&mut start, end)..end]))
    }
}

/// The records of the vertices and of the literals of a piece.
fn write_records(
    builder: &DictionaryBuilder,
    piece: &Piece,
    (chosen, numbered, encoders): (&Chosen, &[Numbered], &Encoders),
    watch: &Watch<'_>,
) -> Result<[Records; 2]> {
    let mut ticker = watch.ticker();
    let mut halves = [Records::default(), Records::default()];
    let mut numbers = Vec::new();
    let forms: Vec<Option<Form>> = chosen.choices.iter().map(|choice| Form::new(&choice.pattern)).collect();
    for (record, &choice) in builder.records_of(piece).zip(&chosen.of_term[piece.terms.clone()]) {
        ticker.step()?;
        let Records { bytes, terms } = &mut halves[usize::from(!record.is_vertex())];
        let found = &chosen.choices[choice as usize];
        let (kind, detail) = template_kind(builder, record.kind);
        // Two patterns with one hash: the one that came second falls back to text.
        let same_kind = found.kind.is_own() || (found.kind, found.detail.as_str()) == (kind, detail);
        let fits =
            same_kind && fits(&found.pattern, forms[choice as usize].as_ref(), record.text, &mut numbers);
        let choice = if fits { choice } else { last_resort(builder, record.kind) };
        let (number, choice) = (numbered[choice as usize], &chosen.choices[choice as usize]);
        let start = bytes.len();
        let Some(head) = choice.head() else {
            write_varint(number.own, bytes);
            numbers.iter().for_each(|&number| write_varint(number, bytes));
            terms.push((builder.hash_of(&record), bytes.len()));
            continue;
        };
        let rest = &record.text[head.len()..];
        let begin = |number, bytes: &mut Vec<u8>| {
            write_varint(number, bytes);
            if choice.kind.is_own() {
                write_varint(detail.len() as u64, bytes);
                bytes.extend_from_slice(detail.as_bytes());
            }
        };
        if let (Some(number), Some(encoder)) = (number.coded, &encoders[choice.kind.table()]) {
            begin(number, bytes);
            encoder.encode(rest, bytes);
        }
        let coded = bytes.len() - start;
        begin(number.own, bytes);
        if coded > 0 && coded < bytes.len() - start - coded + rest.len() {
            bytes.truncate(start + coded);
        } else {
            bytes.extend_from_slice(rest);
            bytes.drain(start..start + coded);
        }
        terms.push((builder.hash_of(&record), bytes.len()));
    }
    Ok(halves)
}

/// Whether `text` has this pattern, which is `form` if it has numbers; `numbers` then has those of `text`.
fn fits(pattern: &[u8], form: Option<&Form>, text: &[u8], numbers: &mut Vec<u64>) -> bool {
    match form {
        Some(form) => form.take_numbers(text, numbers).is_some(),
        None => pattern.strip_suffix(&[SLOT, REST]).is_some_and(|head| text.starts_with(head)),
    }
}

/// Slots of an index for so many terms; at least one stays empty.
pub(crate) fn slot_count(terms: u64) -> u64 {
    // A count that a damaged file could name must not overflow; its index then has the wrong length.
    if terms == 0 { 0 } else { terms.saturating_add(terms / FULL_OF_SEVEN).saturating_add(1) }
}

/// The slot where the search for a hash starts.
#[inline]
pub(crate) fn home_slot(hash: u64, slots: u64) -> u64 {
    // The upper half of the product: below `slots`.
    u64::try_from((u128::from(hash) * u128::from(slots)) >> 64).unwrap_or_default()
}

/// The byte of a slot that says whether a closer look pays.
#[inline]
pub(crate) fn fingerprint(hash: u64) -> u8 {
    hash.to_le_bytes()[0]
}

/// Bytes of a number in the index of so many terms; a slot is one byte longer.
pub(crate) fn index_width(terms: u64) -> usize {
    bytes_for(terms)
}

/// Bytes of an offset into records of this length.
pub(crate) fn offset_width(records_bytes: usize) -> usize {
    bytes_for(records_bytes as u64)
}

/// The three sections of vertices or literals.
struct HalfWriter {
    terms: u64,
    pushed: u64,
    block_starts: Vec<u64>,
    records: Vec<u8>,
    lengths_at: usize,
    index: Vec<u8>,
}

impl HalfWriter {
    fn new(terms: u64) -> Self {
        let slot_bytes = index_width(terms) + 1;
        let slots = usize::try_from(slot_count(terms)).unwrap_or(usize::MAX);
        let index = vec![0; slots * slot_bytes];
        Self { terms, pushed: 0, block_starts: Vec::new(), records: Vec::new(), lengths_at: 0, index }
    }

    fn push(&mut self, hash: u64, record: &[u8]) {
        let place = usize::try_from(self.pushed % BLOCK_TERMS as u64).unwrap_or_default();
        if place == 0 {
            self.lengths_at = self.records.len();
            self.block_starts.push(self.lengths_at as u64);
            self.records.resize(self.lengths_at + BLOCK_TERMS, 0);
        }
        let length = u8::try_from(record.len()).unwrap_or(LONG);
        self.records[self.lengths_at + place] = length;
        if length == LONG {
            write_varint(record.len() as u64, &mut self.records);
        }
        self.records.extend_from_slice(record);
        self.index_term(hash, self.pushed + 1);
        self.pushed += 1;
    }

    fn index_term(&mut self, hash: u64, stored: u64) {
        let width = index_width(self.terms);
        let slots = slot_count(self.terms);
        let mut slot = home_slot(hash, slots);
        loop {
            let at = usize::try_from(slot).unwrap_or(usize::MAX) * (width + 1);
            let bytes = &mut self.index[at..at + width + 1];
            if bytes[1..].iter().all(|&byte| byte == 0) {
                bytes[0] = fingerprint(hash);
                bytes[1..].copy_from_slice(&stored.to_le_bytes()[..width]);
                return;
            }
            slot = if slot + 1 == slots { 0 } else { slot + 1 };
        }
    }

    fn finish(self) -> [Vec<u8>; 3] {
        debug_assert_eq!(self.pushed, self.terms);
        let width = offset_width(self.records.len());
        let offsets = self.block_starts.iter().flat_map(|start| start.to_le_bytes().into_iter().take(width));
        [offsets.collect(), self.records, self.index]
    }
}
