//! Symbol tables (FSST): string compression with random access to each text.
//!
//! # Shape
//! A *symbol* is 1 to 8 bytes; a table has at most 255, and a code is the index of one. Code 255 is an
//! escape: the next byte is a literal byte. In the file a table is the number of symbols (1 byte), their
//! lengths (1 byte each), and their bytes. The encoder has a hash table by three bytes for longer symbols,
//! one symbol in each bucket, and a table by two bytes for the others.
//! # Invariants
//! 1. Decoding restores the encoded text exactly, whatever the text.
//! 2. No codes and no table make reading panic, or produce more than 8 bytes of text for each code.
//! 3. Equal samples give equal tables.
//! # Cost
//! Decoding: a load and a store of 8 bytes for each code. Encoding: one or two table look-ups for each code.
//! Training: five passes over [`SAMPLE_BYTES`], and over a million bytes of counts. The 65,438 contents of a
//! social network (2026-11-22, a machine under load, the best of three): 6.3 MB become 1.8, 33 ms to write,
//! 50 ns to read each, 1.5 ms to train. Texts of schema.org and of a music catalogue, and the last parts of
//! their IRIs: between 1.8 and 1.9 times smaller.
//! # Source
//! P. Boncz, T. Neumann, V. Leis, "FSST: Fast Random Access String Compression", VLDB 2020, §4 and §5.
//! Difference: every round uses the whole sample, which is short.

use rustc_hash::FxHashMap;

/// Maximum length of a symbol.
const SYMBOL_BYTES_MAX: usize = 8;
/// Maximum number of symbols of a table.
const SYMBOLS_MAX: usize = 255;
/// Escape code: the next byte is a literal byte.
const ESCAPE: u8 = 255;
/// Size of the training sample, in bytes.
pub(crate) const SAMPLE_BYTES: usize = 1 << 15;
const ROUNDS: usize = 5;
/// Minimum number of occurrences of a pair in the sample for it to become a symbol.
const COUNT_MIN: u32 = 3;
/// Weight of a single byte as a candidate, which exceeds its byte count: an escape takes two bytes.
const BYTE_GAIN: u64 = 8;
/// Number of codes decoded before the output is extended.
const PIECE_CODES: usize = 64;

/// Up to eight bytes, first one lowest, zero padded.
fn load(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => {
            let mut bytes = [0; 8];
            bytes[..text.len()].copy_from_slice(text);
            u64::from_le_bytes(bytes)
        }
    }
}

/// A byte sequence that is common in texts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
struct Symbol {
    /// First one lowest, zero padded.
    bytes: u64,
    /// At most [`SYMBOL_BYTES_MAX`]; 0: there is no symbol.
    length: u8,
}

impl Symbol {
    fn of_byte(byte: u8) -> Self {
        Self { bytes: u64::from(byte), length: 1 }
    }

    /// The concatenation; `None` if that is too long.
    fn followed_by(self, other: Self) -> Option<Self> {
        let length = self.length + other.length;
        (usize::from(length) <= SYMBOL_BYTES_MAX)
            .then(|| Self { bytes: self.bytes | other.bytes << (8 * self.length), length })
    }

    /// Whether a text of `left` bytes that starts with `word` begins with the symbol.
    #[inline]
    fn begins(self, word: u64, left: usize) -> bool {
        let differing = (word ^ self.bytes) << ((64 - 8 * u32::from(self.length)) & 63);
        differing == 0 && self.length > 0 && usize::from(self.length) <= left
    }
}

/// A symbol table for decoding.
#[derive(Debug)]
pub(crate) struct SymbolTable {
    /// By code.
    table: Box<[Symbol; 256]>,
}

impl SymbolTable {
    /// Parses a table; `None` if the bytes are invalid.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (&count, rest) = bytes.split_first()?;
        let (lengths, mut texts) = rest.split_at_checked(usize::from(count))?;
        let mut table = Box::new([Symbol::default(); 256]);
        for (symbol, &length) in table.iter_mut().zip(lengths) {
            let (text, rest) = texts.split_at_checked(usize::from(length))?;
            if text.is_empty() || text.len() > SYMBOL_BYTES_MAX {
                return None;
            }
            *symbol = Symbol { bytes: load(text), length };
            texts = rest;
        }
        texts.is_empty().then_some(Self { table })
    }

    /// Appends the text of these codes; `None` if they belong to another table, and then the appended bytes
    /// are meaningless.
    pub(crate) fn decode(&self, codes: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let mut codes = codes.iter();
        while !codes.as_slice().is_empty() {
            let start = out.len();
            out.resize(start + PIECE_CODES * SYMBOL_BYTES_MAX, 0);
            let room = &mut out[start..];
            let (mut at, mut is_whole) = (0, true);
            for _ in 0..PIECE_CODES {
                let Some(&code) = codes.next() else { break };
                let symbol = if code == ESCAPE {
                    Symbol::of_byte(*codes.next()?)
                } else {
                    self.table[usize::from(code)]
                };
                if let Some(slot) = room.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
                    *slot = symbol.bytes.to_le_bytes();
                }
                at += usize::from(symbol.length);
                is_whole &= symbol.length > 0;
            }
            out.truncate(start + at);
            if !is_whole {
                return None;
            }
        }
        Some(())
    }

    /// Whether these codes decode to `text`; `None` if they belong to another table.
    pub(crate) fn is(&self, codes: &[u8], text: &[u8]) -> Option<bool> {
        let (mut codes, mut text) = (codes.iter(), text);
        while let Some(&code) = codes.next() {
            let symbol =
                if code == ESCAPE { Symbol::of_byte(*codes.next()?) } else { self.table[usize::from(code)] };
            if symbol.length == 0 {
                return None;
            }
            if !symbol.begins(load(text), text.len()) {
                return Some(false);
            }
            text = &text[usize::from(symbol.length)..];
        }
        Some(text.is_empty())
    }
}

/// Number of buckets for symbols of three bytes and more; a power of two.
const HASHED: usize = 1 << 11;
/// First code of bytes without a symbol.
const BYTES_FROM: u16 = 256;
/// Position of the symbol's length in a combined number of code and length.
const LENGTH_SHIFT: u32 = 12;

/// A symbol table for encoding.
pub(crate) struct Encoder {
    symbols: Vec<Symbol>,
    /// SymbolTable of three bytes and more, by the hash of their first three bytes.
    hashed: Box<[(Symbol, u16)]>,
    /// The longest symbol of one or two bytes that matches these two bytes: code and length.
    pairs: Box<[u16]>,
    /// The same for the last byte of a text.
    bytes: [u16; 256],
}

fn hashed_slot(word: u64) -> usize {
    let hash = (word & 0xFF_FFFF).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - HASHED.trailing_zeros());
    usize::try_from(hash).unwrap_or_default()
}

fn with_length(code: u16, length: u16) -> u16 {
    code | length << LENGTH_SHIFT
}

impl Encoder {
    /// An encoder without symbols.
    fn new() -> Self {
        let mut encoder = Self {
            symbols: Vec::new(),
            hashed: vec![(Symbol::default(), 0); HASHED].into(),
            pairs: vec![0; 1 << 16].into(),
            bytes: [0; 256],
        };
        encoder.clear();
        encoder
    }

    fn clear(&mut self) {
        self.symbols.clear();
        self.hashed.fill((Symbol::default(), 0));
        for (byte, entry) in (BYTES_FROM..).zip(&mut self.bytes) {
            *entry = with_length(byte, 1);
        }
        for row in self.pairs.chunks_exact_mut(256) {
            row.copy_from_slice(&self.bytes);
        }
    }

    /// The encoder of a table in a file. Codes are indices in that table, which may include symbols that the
    /// encoder never uses.
    pub(crate) fn of(symbols: &SymbolTable) -> Self {
        let mut encoder = Self::new();
        for (code, symbol) in symbols.table.iter().take_while(|symbol| symbol.length > 0).enumerate() {
            encoder.add(*symbol);
            if encoder.symbols.len() == code {
                encoder.symbols.push(*symbol);
            }
        }
        encoder
    }

    /// Adds a symbol, unless its bucket has a better one.
    fn add(&mut self, symbol: Symbol) {
        let code = u16::try_from(self.symbols.len()).unwrap_or(BYTES_FROM);
        let [first, second, ..] = symbol.bytes.to_le_bytes();
        let entry = with_length(code, u16::from(symbol.length));
        match symbol.length {
            0 => return,
            1 => {
                self.bytes[usize::from(first)] = entry;
                for pair in self.pairs[usize::from(first)..].iter_mut().step_by(256) {
                    if *pair >> LENGTH_SHIFT == 1 {
                        *pair = entry;
                    }
                }
            }
            2 => self.pairs[usize::from(first) | usize::from(second) << 8] = entry,
            _ => {
                let slot = &mut self.hashed[hashed_slot(symbol.bytes)];
                if slot.0.length > 0 {
                    return;
                }
                *slot = (symbol, code);
            }
        }
        self.symbols.push(symbol);
    }

    /// The code and length of the longest symbol that matches the start of a text; `word` are its first
    /// bytes, `left` is its length, which is not 0.
    #[inline]
    fn find(&self, word: u64, left: usize) -> (u16, usize) {
        let (symbol, code) = self.hashed[hashed_slot(word)];
        if symbol.begins(word, left) {
            return (code, usize::from(symbol.length));
        }
        let [first, second, ..] = word.to_le_bytes();
        let entry = if left > 1 {
            self.pairs[usize::from(first) | usize::from(second) << 8]
        } else {
            self.bytes[usize::from(first)]
        };
        (entry & ((1 << LENGTH_SHIFT) - 1), usize::from(entry >> LENGTH_SHIFT))
    }

    /// Trains a table on these texts.
    pub(crate) fn train(sample: &[&[u8]]) -> Self {
        let mut encoder = Self::new();
        let mut counts = Counts::new();
        for _ in 0..ROUNDS {
            counts.clear();
            sample.iter().for_each(|text| counts.count(text, &encoder));
            let chosen = counts.best(&encoder);
            encoder.clear();
            for symbol in chosen {
                if encoder.symbols.len() == SYMBOLS_MAX {
                    break;
                }
                encoder.add(symbol);
            }
        }
        encoder
    }

    /// Appends the codes of `text`.
    pub(crate) fn encode(&self, text: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + 2 * text.len(), 0);
        let room = &mut out[start..];
        let (mut from, mut at) = (0, 0);
        while from < text.len() {
            let rest = &text[from..];
            let (code, length) = self.find(load(rest), rest.len());
            // At most two bytes for each input byte, so there is room for all.
            let Some(slot) = room.get_mut(at..at + 1 + usize::from(code >= BYTES_FROM)) else { break };
            let byte = code.to_le_bytes()[0];
            match slot {
                [one] => *one = byte,
                [escape, one] => (*escape, *one) = (ESCAPE, byte),
                _ => {}
            }
            at += slot.len();
            from += length;
        }
        out.truncate(start + at);
    }

    /// The bytes of the table for the file.
    pub(crate) fn table(&self) -> Vec<u8> {
        let mut bytes = vec![u8::try_from(self.symbols.len()).unwrap_or(ESCAPE)];
        bytes.extend(self.symbols.iter().map(|symbol| symbol.length));
        for symbol in &self.symbols {
            bytes.extend_from_slice(&symbol.bytes.to_le_bytes()[..usize::from(symbol.length)]);
        }
        bytes
    }
}

/// Number of codes of an encoder, including bytes without a symbol.
const CODES: usize = 512;

/// Number of occurrences of codes, and of pairs of them, in the sample.
struct Counts {
    codes: Vec<u32>,
    pairs: Vec<u32>,
}

impl Counts {
    fn new() -> Self {
        Self { codes: vec![0; CODES], pairs: vec![0; CODES * CODES] }
    }

    fn clear(&mut self) {
        self.codes.fill(0);
        self.pairs.fill(0);
    }

    fn count(&mut self, text: &[u8], encoder: &Encoder) {
        let mut last = None;
        let mut from = 0;
        while from < text.len() {
            let rest = &text[from..];
            let (code, length) = encoder.find(load(rest), rest.len());
            let code = usize::from(code);
            self.codes[code] += 1;
            if let Some(last) = last {
                self.pairs[last * CODES + code] += 1;
            }
            if length > 1 {
                // Counts the byte as well: otherwise single bytes could never become symbols again.
                let byte = usize::from(BYTES_FROM) + usize::from(rest[0]);
                self.codes[byte] += 1;
                if let Some(last) = last {
                    self.pairs[last * CODES + byte] += 1;
                }
            }
            last = Some(code);
            from += length;
        }
    }

    /// Candidates for the next table, best first.
    fn best(&self, encoder: &Encoder) -> Vec<Symbol> {
        let symbol_of = |code: usize| match encoder.symbols.get(code) {
            Some(symbol) => *symbol,
            None => Symbol::of_byte(code.to_le_bytes()[0]),
        };
        let mut gains: FxHashMap<Symbol, u64> = FxHashMap::default();
        for (code, &count) in self.codes.iter().enumerate().filter(|(_, count)| **count > 0) {
            let symbol = symbol_of(code);
            let each = if symbol.length == 1 { BYTE_GAIN } else { u64::from(symbol.length) };
            *gains.entry(symbol).or_default() += u64::from(count) * each;
            let row = &self.pairs[code * CODES..(code + 1) * CODES];
            for (next, &count) in row.iter().enumerate().filter(|(_, count)| **count >= COUNT_MIN) {
                if let Some(both) = symbol.followed_by(symbol_of(next)) {
                    *gains.entry(both).or_default() += u64::from(count) * u64::from(both.length);
                }
            }
        }
        let mut candidates: Vec<(u64, Symbol)> =
            gains.into_iter().map(|(symbol, gain)| (gain, symbol)).collect();
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        candidates.into_iter().map(|(_, symbol)| symbol).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(encoder: &Encoder, symbols: &SymbolTable, text: &[u8]) -> usize {
        let mut codes = vec![1, 2];
        encoder.encode(text, &mut codes);
        assert_eq!(&codes[..2], [1, 2]);
        let codes = &codes[2..];
        assert!(codes.len() <= 2 * text.len());
        let mut out = b"before".to_vec();
        symbols.decode(codes, &mut out).expect("codes of this table");
        assert_eq!(out.strip_prefix(b"before"), Some(text));
        assert_eq!(symbols.is(codes, text), Some(true));
        let mut other = text.to_vec();
        other.push(b'x');
        assert_eq!(symbols.is(codes, &other), Some(false));
        other.truncate(text.len());
        if let Some(last) = other.last_mut() {
            *last = last.wrapping_add(1);
            assert_eq!(symbols.is(codes, &other), Some(false));
            assert_eq!(symbols.is(codes, &other[..text.len() - 1]), Some(false));
        }
        codes.len()
    }

    /// Random texts of random words, bytes that are not text, and texts unlike the training sample.
    #[test]
    fn texts_round_trip() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for round in 0..60 {
            let alphabet = [2, 26, 256][round % 3];
            let mut piece = |longest: usize| -> Vec<u8> {
                let length = random.usize(0..=longest);
                (0..length).map(|_| u8::try_from(random.usize(..alphabet)).expect("a byte")).collect()
            };
            let words: Vec<Vec<u8>> = (0..20).map(|_| piece(12)).collect();
            let strange: Vec<Vec<u8>> = (0..20).map(|_| piece(300)).collect();
            let mut text = || {
                let count = random.usize(0..20);
                (0..count).flat_map(|_| words[random.usize(..words.len())].clone()).collect::<Vec<u8>>()
            };
            let texts: Vec<Vec<u8>> = (0..200).map(|_| text()).collect();
            let sample: Vec<&[u8]> = texts.iter().take(round * 5).map(Vec::as_slice).collect();
            let encoder = Encoder::train(&sample);
            assert_eq!(Encoder::train(&sample).table(), encoder.table(), "seed {seed}");
            let symbols = SymbolTable::read(&encoder.table()).expect("a table");
            let again = Encoder::of(&symbols);
            assert_eq!(again.table(), encoder.table(), "seed {seed}");
            for text in &strange {
                check(&again, &symbols, text);
            }
            for text in texts.iter().chain(&strange).map(Vec::as_slice).chain([&b""[..], &[0; 9], &[255; 20]])
            {
                check(&encoder, &symbols, text);
            }
        }
    }

    #[test]
    fn prose_is_compressed_below_half() {
        let words =
            ["about", "early", "team", "first", "season", "album", "the", "of", "and", "became", "war"];
        let mut random = fastrand::Rng::with_seed(7);
        let mut text = || (0..15).map(|_| words[random.usize(..words.len())]).collect::<Vec<_>>().join(" ");
        let texts: Vec<String> = (0..500).map(|_| text()).collect();
        let sample: Vec<&[u8]> = texts[..300].iter().map(|text| text.as_bytes()).collect();
        let encoder = Encoder::train(&sample);
        let symbols = SymbolTable::read(&encoder.table()).expect("a table");
        let (mut before, mut after) = (0, 0);
        for text in &texts[300..] {
            before += text.len();
            after += check(&encoder, &symbols, text.as_bytes());
        }
        assert!(after * 2 < before, "{after} of {before}");
    }

    /// Arbitrary bytes: a text or `None`, and no panic.
    #[test]
    fn hostile_bytes_do_not_panic() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..2000 {
            let count = random.u8(..);
            let lengths: Vec<u8> = (0..count).map(|_| random.u8(0..10)).collect();
            let all: usize = lengths.iter().map(|length| usize::from(*length)).sum();
            let mut bytes = vec![count];
            bytes.extend(&lengths);
            bytes.extend((0..all).map(|_| random.u8(..)));
            if random.bool() {
                bytes.truncate(random.usize(..=bytes.len()));
            }
            let is_table =
                bytes.len() == 1 + lengths.len() + all && lengths.iter().all(|n| (1..9).contains(n));
            let symbols = SymbolTable::read(&bytes);
            assert_eq!(symbols.is_some(), is_table, "seed {seed}");
            let symbols = symbols.unwrap_or_else(|| SymbolTable::read(&[1, 2, b'a', b'b']).expect("a table"));
            let codes: Vec<u8> = (0..random.usize(..300)).map(|_| random.u8(..)).collect();
            let mut out = Vec::new();
            let decoded = symbols.decode(&codes, &mut out);
            assert!(out.len() <= 8 * codes.len() + PIECE_CODES * SYMBOL_BYTES_MAX);
            assert_eq!(
                symbols.is(&codes, &out),
                decoded.map(|()| true).or(symbols.is(&codes, &out)),
                "seed {seed}"
            );
        }
        let symbols = SymbolTable::read(&[1, 2, b'a', b'b']).expect("a table");
        assert!(symbols.decode(&[1], &mut Vec::new()).is_none() && symbols.is(&[1], b"").is_none());
        assert!(symbols.decode(&[255], &mut Vec::new()).is_none() && symbols.is(&[255], b"ab").is_none());
        assert_eq!(symbols.is(&[0, 255, 200], b"ab\xC8"), Some(true));
    }
}
