//! Dictionary encoder: template selection and record encoding, from a builder to the bytes of a file.
//!
//! # Shape
//! Templates are chosen for terms level by level: the pattern of their numbers, the namespace of an IRI, the
//! kind alone. A pattern that enough terms share becomes a template; the remaining terms use the fallback
//! template of their kind, which always exists. A template that takes the rest of a text has a twin that
//! takes it as codes; each term uses the one where it is smaller. Terms that are added to those of a file try
//! the templates of the file first at each level.
//! # Cost
//! Each level walks the remaining terms, then one pass writes. Patterns and records are computed on several
//! threads; counting patterns and filling the index (vertices beside literals) are not split further. LUBM-40
//! (1.3 million terms): 0.37 to 0.51 µs for each term on one thread, 0.19 to 0.44 on two (2026-11-20, two
//! cores under load from others). Memory in addition to the image: 12 bytes for each term while templates are
//! chosen, then its record and 24 bytes, and 16 for each literal while they are sorted; 16 for each distinct
//! pattern.

use crate::builder::{ArenaRecord, DictionaryBuilder, KIND_BLANK, KIND_IRI, KIND_TRIPLE, TermChunk};
use crate::fsst::{Encoder, SAMPLE_BYTES, SymbolTable};
use crate::full_text::write_words;
use crate::header::{FileWriter, Header, Section, file_bytes};
use crate::index::IndexBuilder;
use crate::index_slots::slot_count;

use crate::key::Seed;
use crate::pattern::{CODED, Pattern, REST, SLOT, SplitPattern, namespace};
use crate::record_blocks::{RecordBlocks, offset_width};
use crate::template::{self, TEMPLATES_MAX, TemplateEntry, TemplateKind};
use crate::text_order::write_order;
use foldhash::quality::RandomState;
use std::collections::HashMap;
use vervet_codec::write_varint;
use vervet_model::{Result, Watch};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Minimum number of terms that share a pattern for it to become a template.
const SHARED_MIN: u32 = 4;

/// Minimum bytes of text for a symbol table, and for a twin of a template.
const CODED_BYTES_MIN: u64 = 1 << 11;
const TWIN_BYTES_MIN: u64 = 1 << 8;
/// Maximum bytes of one text that are taken into the sample.
const SAMPLE_TEXT_BYTES: usize = 1 << 9;

/// Seed of the pattern hash for this kind of term, so that kinds do not share patterns.
fn kind_seed(record: &ArenaRecord<'_>) -> u64 {
    u64::from(record.kind) ^ Seed::of_builders().0
}

/// Kind of pattern that is tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PatternKind {
    Numbers,
    Namespace,
    Kind,
}

/// Computes the pattern of `record` at `level`; `false` if it has none there.
fn pattern_at(level: PatternKind, record: &ArenaRecord<'_>, pattern: &mut Pattern) -> bool {
    match level {
        PatternKind::Numbers => pattern.take_numbers(record.text),
        PatternKind::Namespace => {
            let namespace = if record.kind == KIND_IRI { namespace(record.text) } else { None };
            namespace.inspect(|prefix| pattern.of_prefix(prefix)).is_some()
        }
        PatternKind::Kind => {
            // The others have their fallback template, which is equal.
            let own = record.kind > KIND_TRIPLE;
            pattern.of_prefix(b"");
            own
        }
    }
}

/// A template before the final numbering.
struct TemplateCandidate {
    kind: TemplateKind,
    detail: String,
    pattern: Vec<u8>,
    terms: u32,
    /// Bytes of text after the pattern, of all terms; 0 if it has numbers.
    rest_bytes: u64,
    /// Numbers of the template and of its twin, if they are in the file already.
    own: Option<u64>,
    coded: Option<u64>,
}

impl TemplateCandidate {
    fn new(kind: TemplateKind, detail: &str, pattern: Vec<u8>) -> Self {
        let detail = detail.to_owned();
        Self { kind, detail, pattern, terms: 0, rest_bytes: 0, own: None, coded: None }
    }

    /// The text before the slot, if the slot takes the rest.
    fn head(&self) -> Option<&[u8]> {
        self.pattern.strip_suffix(&[SLOT, REST])
    }
}

/// The templates, and the encoders of texts.
pub(crate) struct Scheme {
    choices: Vec<TemplateCandidate>,
    /// Number of the choice of each term, in order of first occurrence.
    of_term: Vec<u32>,
    /// Choices of templates in the file, by [`Scheme::key`].
    known: HashMap<Vec<u8>, u32, RandomState>,
    /// Number of templates in the file, twins included.
    in_file: usize,
    /// For texts of vertices and of literals.
    encoders: [Option<Encoder>; 2],
    /// Minimum bytes of text for a symbol table.
    coded_bytes_min: u64,
}

impl Scheme {
    /// A scheme with the fallback templates only.
    fn new(builder: &DictionaryBuilder) -> Self {
        let resorts = LAST_RESORTS.iter().filter(|kind| match kind {
            TemplateKind::Blank => builder.has_blanks(),
            TemplateKind::Triple => builder.has_triples(),
            _ => true,
        });
        Self {
            choices: resorts.map(|kind| TemplateCandidate::new(*kind, "", vec![SLOT, REST])).collect(),
            of_term: Vec::new(),
            known: HashMap::default(),
            in_file: 0,
            encoders: [None, None],
            coded_bytes_min: CODED_BYTES_MIN,
        }
    }

    /// The scheme of a file with these bytes of templates, for added terms; `None` if they are damaged.
    pub(crate) fn of_file(templates: &[u8], builder: &DictionaryBuilder) -> Option<Self> {
        let mut scheme = Self::new(builder);
        // A symbol table stays in the file, so it is trained only on a full sample.
        scheme.coded_bytes_min = SAMPLE_BYTES as u64;
        for at in (0..).take(scheme.choices.len()) {
            let choice = &scheme.choices[at as usize];
            scheme.known.insert(Self::key(choice.kind, "", &choice.pattern), at);
        }
        template::for_each(templates, |entry| {
            let (kind, detail, pattern) = match entry {
                TemplateEntry::Table(of, table) => {
                    scheme.encoders[of] = Some(Encoder::of(&SymbolTable::read(table)?));
                    return Some(());
                }
                TemplateEntry::Template(kind, detail, pattern) => (kind, detail, pattern),
            };
            let text_pattern =
                pattern.strip_suffix(&[SLOT, CODED]).map(|head| [head, &[SLOT, REST]].concat());
            let is_coded = text_pattern.is_some();
            let pattern = text_pattern.unwrap_or_else(|| pattern.to_owned());
            let next = u32::try_from(scheme.choices.len()).ok()?;
            let at = *scheme.known.entry(Self::key(kind, detail, &pattern)).or_insert(next);
            if at == next {
                scheme.choices.push(TemplateCandidate::new(kind, detail, pattern));
            }
            let choice = &mut scheme.choices[at as usize];
            let number = if is_coded { &mut choice.coded } else { &mut choice.own };
            *number = Some(scheme.in_file as u64);
            scheme.in_file += 1;
            Some(())
        })?;
        Some(scheme)
    }

    fn key(kind: TemplateKind, detail: &str, pattern: &[u8]) -> Vec<u8> {
        let mut key = Vec::new();
        template::write(kind, detail, pattern, &mut key);
        key
    }

    /// Number of templates that may be added. Two are reserved for the fallbacks of blank nodes and triple
    /// terms, which may occur later.
    fn room(&self) -> usize {
        let new = self.choices.iter().filter(|choice| choice.own.is_none()).count();
        TEMPLATES_MAX.saturating_sub(self.in_file + new + 2)
    }

    /// Assigns templates of the file to unassigned terms whose pattern at `level` they have.
    fn assign_known(
        &mut self,
        builder: &DictionaryBuilder,
        level: PatternKind,
        watch: &Watch<'_>,
    ) -> Result<()> {
        if self.known.is_empty() {
            return Ok(());
        }
        let mut ticker = watch.ticker();
        let (mut pattern, mut key) = (Pattern::default(), Vec::new());
        for (record, chosen) in builder.records().zip(&mut self.of_term) {
            ticker.step()?;
            if *chosen == NONE && pattern_at(level, &record, &mut pattern) {
                let (kind, detail) = template_kind(builder, record.kind);
                key.clear();
                template::write(kind, detail, &pattern.bytes, &mut key);
                if let Some(&known) = self.known.get(&key) {
                    *chosen = known;
                    let choice = &mut self.choices[known as usize];
                    choice.terms = choice.terms.saturating_add(1);
                }
            }
        }
        Ok(())
    }
}

const NONE: u32 = u32::MAX;
/// The first choices are the fallback templates, in this order; the last two only if there are such terms, so
/// that the templates of a file show it.
const LAST_RESORTS: [TemplateKind; 6] = [
    TemplateKind::Iri,
    TemplateKind::String,
    TemplateKind::OwnLanguage,
    TemplateKind::OwnType,
    TemplateKind::Blank,
    TemplateKind::Triple,
];

fn last_resort(builder: &DictionaryBuilder, kind: u32) -> u32 {
    match (kind, builder.own_kind(kind)) {
        (KIND_IRI, _) => 0,
        (KIND_BLANK, _) => 4,
        (KIND_TRIPLE, _) => 4 + u32::from(builder.has_blanks()),
        (_, Some(own)) => {
            if own.is_language {
                2
            } else {
                3
            }
        }
        (_, None) => 1,
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

/// Runs `job` on each piece, each on a thread of its own, and returns the results in order.
fn on_threads<T: Send>(pieces: &[TermChunk], job: impl Fn(&TermChunk) -> Result<T> + Sync) -> Result<Vec<T>> {
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

/// Assigns a template to each term of `builder`, and trains symbol tables.
pub(crate) fn choose(
    builder: &DictionaryBuilder,
    pieces: &[TermChunk],
    scheme: &mut Scheme,
    watch: &Watch<'_>,
) -> Result<()> {
    scheme.of_term = vec![NONE; pieces.last().map_or(0, |piece| piece.terms.end)];
    for level in [PatternKind::Numbers, PatternKind::Namespace, PatternKind::Kind] {
        scheme.assign_known(builder, level, watch)?;
        choose_pattern_kind(builder, pieces, level, scheme, watch)?;
    }
    let mut ticker = watch.ticker();
    for (record, chosen) in builder.records().zip(&mut scheme.of_term) {
        ticker.step()?;
        if *chosen == NONE {
            *chosen = last_resort(builder, record.kind);
            scheme.choices[*chosen as usize].terms += 1;
        }
        let choice = &mut scheme.choices[*chosen as usize];
        if let Some(head) = choice.head() {
            choice.rest_bytes += record.text.len().saturating_sub(head.len()) as u64;
        }
    }
    Ok(())
}

/// Assigns templates to unassigned terms whose pattern at `level` is shared.
fn choose_pattern_kind(
    builder: &DictionaryBuilder,
    pieces: &[TermChunk],
    level: PatternKind,
    scheme: &mut Scheme,
    watch: &Watch<'_>,
) -> Result<()> {
    let room = scheme.room();
    let Scheme { choices, of_term, .. } = scheme;
    if !of_term.contains(&NONE) {
        return watch.advance(of_term.len() as u64);
    }
    // Patterns are distinguished by their hash alone; `encode` checks for equality.
    let hashes = on_threads(pieces, |piece| pattern_hashes(builder, piece, level, of_term, watch))?;
    let mut numbers: HashMap<u64, u32, RandomState> = HashMap::default();
    let mut counts: Vec<u32> = Vec::new();
    let mut tried = vec![NONE; of_term.len()];
    let mut last = (NO_HASH, NONE);
    for (hash, tried) in hashes.iter().flatten().zip(&mut tried) {
        if *hash == NO_HASH {
            continue;
        }
        if *hash != last.0 {
            // At most as many patterns as terms of a builder: 2^33. Those beyond 2^32 are not counted.
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
    // Half of the remaining templates for this level, to leave some for later levels.
    winners.truncate(room / 2);
    let mut pattern = Pattern::default();
    let mut chosen = vec![NONE; counts.len()];
    for (choice, &winner) in (choices.len()..).zip(&winners) {
        chosen[winner as usize] = u32::try_from(choice).expect("at most `TEMPLATES_MAX`");
        choices.push(TemplateCandidate::new(TemplateKind::Iri, "", Vec::new()));
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

/// The hash of the pattern of each term of a piece at this level; [`NO_HASH`] for terms that have a template,
/// or no pattern.
fn pattern_hashes(
    builder: &DictionaryBuilder,
    piece: &TermChunk,
    level: PatternKind,
    of_term: &[u32],
    watch: &Watch<'_>,
) -> Result<Vec<u64>> {
    let mut pattern = Pattern::default();
    let mut ticker = watch.ticker();
    let terms = builder.records_of(piece).zip(&of_term[piece.terms.clone()]);
    let hash = |(record, chosen): (ArenaRecord<'_>, &u32)| {
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

/// The image of the file of `builder`, made on several threads.
///
/// # Errors
/// Those of `watch`, which gets about [`DictionaryBuilder::finish_steps`] steps.
pub(crate) fn encode(builder: &DictionaryBuilder, threads: usize, watch: &Watch<'_>) -> Result<Vec<u8>> {
    let pieces = builder.pieces(threads);
    let mut scheme = Scheme::new(builder);
    choose(builder, &pieces, &mut scheme, watch)?;
    let mut templates = Vec::new();
    let numbers = write_templates(builder, &mut scheme, &mut templates);
    watch.check()?;
    let seed = builder.seed();
    let records = on_threads(&pieces, |piece| write_records(builder, piece, &scheme, &numbers, seed, watch))?;
    drop(scheme);
    let half = |of: usize, terms: u64| -> Result<_> {
        let (mut blocks, mut index) = (RecordBlocks::default(), IndexBuilder::new(terms));
        let mut ticker = watch.ticker();
        let all = records.iter().flat_map(|piece| piece[of].iter());
        for (number, (hash, record)) in (0..).zip(all) {
            ticker.step()?;
            blocks.push(record);
            index.push(hash, number);
        }
        let width = offset_width(blocks.records.len());
        let offsets = blocks.starts.iter().flat_map(|start| start.to_le_bytes().into_iter().take(width));
        Ok([offsets.collect(), blocks.records, index.bytes()])
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
    drop(records);
    let [vertex_offsets, vertex_records, vertex_index] = vertices;
    let [literal_offsets, literal_records, literal_index] = literals;
    let sections: [(Section, Vec<u8>); _] = [
        (Section::Templates, templates),
        (Section::VertexOffsets, vertex_offsets),
        (Section::VertexRecords, vertex_records),
        (Section::VertexIndex, vertex_index),
        (Section::LiteralOffsets, literal_offsets),
        (Section::LiteralRecords, literal_records),
        (Section::LiteralIndex, literal_index),
        (Section::LiteralOrder, order),
        (Section::LiteralWords, words),
    ];
    let body: usize = sections.iter().map(|(_, bytes)| bytes.len()).sum();
    let mut image = Vec::with_capacity(file_bytes(body));
    let mut sink = |bytes: &[u8]| {
        image.extend_from_slice(bytes);
        Ok(())
    };
    let mut file = FileWriter::new(&mut sink, watch)?;
    for (section, bytes) in sections {
        file.write(section, &bytes)?;
    }
    file.finish(&Header {
        vertices: vertex_count,
        literals: literal_count,
        slots: [slot_count(vertex_count), slot_count(literal_count)],
        seed,
        wraps: false,
    })?;
    debug_assert_eq!(image.len(), file_bytes(body));
    Ok(image)
}

/// Trains the symbol tables that the file lacks on a sample of the texts outside templates; returns which are
/// new.
fn train(builder: &DictionaryBuilder, scheme: &mut Scheme) -> [bool; 2] {
    let mut all = [0_u64; 2];
    for choice in &scheme.choices {
        all[choice.kind.table()] += choice.rest_bytes;
    }
    let is_new = [0, 1].map(|of| scheme.encoders[of].is_none() && all[of] >= scheme.coded_bytes_min);
    if is_new == [false; 2] {
        return is_new;
    }
    // Texts spread over the whole input, up to the size of the sample.
    let mut samples = [Vec::new(), Vec::new()];
    let (mut passed, mut taken) = ([0_u64; 2], [0_u64; 2]);
    for (record, &choice) in builder.records().zip(&scheme.of_term) {
        let choice = &scheme.choices[choice as usize];
        // A term whose pattern only has the same hash may contribute any part of its text.
        let Some(rest) = choice.head().and_then(|head| record.text.get(head.len()..)) else { continue };
        let of = choice.kind.table();
        if taken[of] * all[of] <= passed[of] * SAMPLE_BYTES as u64 {
            let text = &rest[..rest.len().min(SAMPLE_TEXT_BYTES)];
            taken[of] += text.len() as u64;
            samples[of].push(text);
        }
        passed[of] += rest.len() as u64;
    }
    for of in [0, 1].into_iter().filter(|of| is_new[*of]) {
        scheme.encoders[of] = Some(Encoder::train(&samples[of]));
    }
    is_new
}

/// The numbers of a template and of its twin.
#[derive(Clone, Copy, Default)]
pub(crate) struct TemplateNumbers {
    own: u64,
    coded: Option<u64>,
}

/// Appends tables and templates that are not in the file yet, and numbers all templates, by choice.
pub(crate) fn write_templates(
    builder: &DictionaryBuilder,
    scheme: &mut Scheme,
    out: &mut Vec<u8>,
) -> Vec<TemplateNumbers> {
    let is_new = train(builder, scheme);
    for (of, encoder) in scheme.encoders.iter().enumerate() {
        if let (Some(encoder), true) = (encoder, is_new[of]) {
            template::write_table(of, &encoder.table(), out);
        }
    }
    let choices = &scheme.choices;
    let mut by_terms: Vec<usize> = (0..choices.len()).collect();
    by_terms.sort_by_key(|at| std::cmp::Reverse(choices[*at].terms));
    let mut order: Vec<(u32, usize, bool)> = Vec::new();
    let mut room = scheme.room();
    for at in by_terms {
        let TemplateCandidate { kind, terms, rest_bytes, own, coded, .. } = choices[at];
        let has_twin = coded.is_none()
            && room > 0
            && rest_bytes >= TWIN_BYTES_MIN
            && scheme.encoders[kind.table()].is_some();
        if has_twin {
            room -= 1;
            order.push((terms, at, true));
        }
        if own.is_none() {
            // Most texts are smaller as codes, so the twin gets most terms.
            order.push((if has_twin { terms / 8 } else { terms }, at, false));
        }
    }
    // The most frequent templates get the numbers with one-byte encodings.
    order.sort_by_key(|(terms, ..)| std::cmp::Reverse(*terms));
    let mut numbers: Vec<TemplateNumbers> = choices
        .iter()
        .map(|choice| TemplateNumbers { own: choice.own.unwrap_or(0), coded: choice.coded })
        .collect();
    for (number, &(_, at, is_coded)) in (scheme.in_file as u64..).zip(&order) {
        let TemplateCandidate { kind, detail, pattern, .. } = &choices[at];
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
pub(crate) struct EncodedRecords {
    bytes: Vec<u8>,
    /// The hash of each term, and the end of its record.
    terms: Vec<(u64, usize)>,
}

impl EncodedRecords {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut start = 0;
        self.terms
            .iter()
            .map(move |&(hash, end)| (hash, &self.bytes[std::mem::replace(&mut start, end)..end]))
    }
}

/// The records of the vertices and of the literals of a piece, with their hashes under `seed`.
pub(crate) fn write_records(
    builder: &DictionaryBuilder,
    piece: &TermChunk,
    scheme: &Scheme,
    numbered: &[TemplateNumbers],
    seed: Seed,
    watch: &Watch<'_>,
) -> Result<[EncodedRecords; 2]> {
    let mut ticker = watch.ticker();
    let mut halves = [EncodedRecords::default(), EncodedRecords::default()];
    let mut numbers = Vec::new();
    let forms: Vec<Option<SplitPattern>> =
        scheme.choices.iter().map(|choice| SplitPattern::new(&choice.pattern)).collect();
    for (record, &choice) in builder.records_of(piece).zip(&scheme.of_term[piece.terms.clone()]) {
        ticker.step()?;
        let EncodedRecords { bytes, terms } = &mut halves[usize::from(!record.is_vertex())];
        let found = &scheme.choices[choice as usize];
        let (kind, detail) = template_kind(builder, record.kind);
        // Two patterns with one hash: terms of the second one are stored as text.
        let same_kind = found.kind.is_own() || (found.kind, found.detail.as_str()) == (kind, detail);
        let fits =
            same_kind && fits(&found.pattern, forms[choice as usize].as_ref(), record.text, &mut numbers);
        let choice = if fits { choice } else { last_resort(builder, record.kind) };
        let (number, choice) = (numbered[choice as usize], &scheme.choices[choice as usize]);
        let start = bytes.len();
        let Some(head) = choice.head() else {
            write_varint(number.own, bytes);
            numbers.iter().for_each(|&number| write_varint(number, bytes));
            terms.push((builder.hash_of(&record, seed), bytes.len()));
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
        if let (Some(number), Some(encoder)) = (number.coded, &scheme.encoders[choice.kind.table()]) {
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
        terms.push((builder.hash_of(&record, seed), bytes.len()));
    }
    Ok(halves)
}

/// Whether `text` has this pattern, which is `form` if it has numbers; `numbers` then receives those of
/// `text`.
fn fits(pattern: &[u8], form: Option<&SplitPattern>, text: &[u8], numbers: &mut Vec<u64>) -> bool {
    match form {
        Some(form) => form.take_numbers(text, numbers).is_some(),
        None => pattern.strip_suffix(&[SLOT, REST]).is_some_and(|head| text.starts_with(head)),
    }
}
