//! Benchmark of sizes and speeds of the dictionary of an N-Triples file.
//!
//! `cargo run --release -p vervet-dictionary --example measure_dictionary -- FILE.nt [THREADS]`. The file is
//! read as lines of three terms; it has to be machine-written N-Triples (one space between terms, no
//! comments).

use std::time::{Duration, Instant};
use vervet_dictionary::{Dictionary, DictionaryBuilder, hash_blank, hash_iri, hash_literal};
use vervet_env::{Bytes, SeededRandom};
use vervet_model::{Id, LiteralKind, Tag};

/// A term of the file: its text and, for literals, the suffix after the text.
#[derive(Clone, Copy)]
enum Token<'a> {
    Iri(&'a str),
    Blank(&'a str),
    Literal(&'a str, LiteralKind<'a>),
}

impl<'a> Token<'a> {
    fn copied(&self) -> Owned<'a> {
        match *self {
            Self::Iri(iri) => Owned::Iri(iri.to_owned()),
            Self::Blank(label) => Owned::Blank(label.to_owned()),
            Self::Literal(value, kind) => Owned::Literal(value.to_owned(), kind),
        }
    }

    fn hash(&self) -> u64 {
        match *self {
            Self::Iri(iri) => hash_iri(iri),
            Self::Blank(label) => hash_blank(label),
            Self::Literal(value, kind) => hash_literal(value, kind),
        }
    }

    fn intern(&self, builder: &mut DictionaryBuilder, hash: u64) -> vervet_model::Result<Id> {
        match *self {
            Self::Iri(iri) => builder.intern_iri_hashed(iri, hash),
            Self::Blank(label) => builder.intern_blank_hashed(label, hash),
            Self::Literal(value, kind) => builder.intern_literal_hashed(value, kind, hash),
        }
    }
}

/// An owned [`Token`].
enum Owned<'a> {
    Iri(String),
    Blank(String),
    Literal(String, LiteralKind<'a>),
}

impl Owned<'_> {
    fn lookup(&self, dictionary: &Dictionary) -> vervet_model::Result<Option<Id>> {
        match self {
            Self::Iri(iri) => dictionary.lookup_iri(iri),
            Self::Blank(label) => dictionary.lookup_blank(label),
            Self::Literal(value, kind) => dictionary.lookup_literal(value, *kind),
        }
    }
}

fn token(text: &str) -> Option<(Token<'_>, &str)> {
    if let Some(rest) = text.strip_prefix('<') {
        let (iri, rest) = rest.split_once('>')?;
        return Some((Token::Iri(iri), rest.trim_start()));
    }
    if let Some(rest) = text.strip_prefix("_:") {
        let (label, rest) = rest.split_once(' ')?;
        return Some((Token::Blank(label), rest));
    }
    let rest = text.strip_prefix('"')?;
    // Escapes are kept: they hardly change sizes and speeds.
    let end = rest.rfind('"')?;
    let (value, rest) = (&rest[..end], &rest[end + 1..]);
    let kind = if let Some(tag) = rest.strip_prefix('@') {
        LiteralKind::Language(tag.split(' ').next()?)
    } else if let Some(datatype) = rest.strip_prefix("^^<") {
        LiteralKind::Typed(datatype.split('>').next()?)
    } else {
        LiteralKind::String
    };
    Some((Token::Literal(value, kind), ""))
}

/// Number of measurements; on a busy machine the shortest is the most accurate.
const ROUNDS: usize = 9;

fn report(what: &str, start: Instant, count: usize) {
    report_time(what, start.elapsed(), count);
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn report_time(what: &str, time: Duration, count: usize) {
    let each = time.as_secs_f64() * 1e9 / count.max(1) as f64;
    println!("{what:<40} {:>8.1} ms {each:>8.1} ns each ({count})", time.as_secs_f64() * 1e3);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: measure FILE.nt")?;
    let text = std::fs::read_to_string(path)?;
    let mut tokens = Vec::new();
    for line in text.lines() {
        let mut rest = line;
        for _ in 0..3 {
            let Some((term, after)) = token(rest) else { break };
            tokens.push(term);
            rest = after;
        }
    }
    let start = Instant::now();
    let hashes: Vec<u64> = tokens.iter().map(Token::hash).collect();
    report("hash", start, tokens.len());

    for (what, prefetch) in [("intern, hashes given", false), ("intern, hashes given, prefetch", true)] {
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let mut builder = DictionaryBuilder::new();
            let start = Instant::now();
            for (tokens, hashes) in tokens.chunks(16).zip(hashes.chunks(16)) {
                if prefetch {
                    builder.prefetch(hashes);
                }
                for (token, &hash) in tokens.iter().zip(hashes) {
                    token.intern(&mut builder, hash)?;
                }
            }
            best = best.min(start.elapsed());
        }
        report_time(what, best, tokens.len());
    }

    let mut builder = DictionaryBuilder::new();
    let mut ids = Vec::with_capacity(tokens.len());
    for (token, &hash) in tokens.iter().zip(&hashes) {
        ids.push(token.intern(&mut builder, hash)?);
    }
    let start = Instant::now();
    for (token, &hash) in tokens.iter().zip(&hashes) {
        token.intern(&mut builder, hash)?;
    }
    report("intern, all known", start, tokens.len());
    println!("memory of the builder: {} MB", builder.memory_bytes() >> 20);
    let threads = std::env::args().nth(2).map_or(Ok(1), |threads| threads.parse())?;
    let start = Instant::now();
    let image = builder.finish_with(threads)?;
    let dictionary = Dictionary::open(Bytes::from(image.clone()), "measured")?;
    let terms = usize::try_from(dictionary.vertex_count() + dictionary.literal_count())?;
    report("finish", start, terms);
    println!("{} vertices, {} literals", dictionary.vertex_count(), dictionary.literal_count());
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    for (part, bytes) in dictionary.parts().into_iter().chain([("all", image.len() as u64)]) {
        println!("{part:<24} {bytes:>12} bytes {:>7.3} per term", bytes as f64 / terms.max(1) as f64);
    }
    let start = Instant::now();
    dictionary.validate()?;
    report("validate", start, terms);
    measure_reads(&dictionary, &tokens, &ids)
}

fn measure_reads(
    dictionary: &Dictionary,
    tokens: &[Token<'_>],
    ids: &[Id],
) -> Result<(), Box<dyn std::error::Error>> {
    let mut out = vec![1; 1 << 29];
    let mut ends = Vec::with_capacity(ids.len());
    let mut write = |what: &str, ids: &[Id]| -> Result<(), vervet_model::Error> {
        let mut best = Duration::MAX;
        for _ in 0..ROUNDS {
            out.clear();
            ends.clear();
            let start = Instant::now();
            dictionary.write_terms(ids, &mut out, &mut ends)?;
            best = best.min(start.elapsed());
        }
        report_time(what, best, ids.len());
        Ok(())
    };
    let random = SeededRandom::new(1);
    let vertices: Vec<Id> = (0..dictionary.vertex_count()).map(Id::vertex).collect();
    let literals: Vec<Id> = (0..dictionary.literal_count()).map(Id::literal).collect();
    write("write all vertices in order", &vertices)?;
    write("write all literals in order", &literals)?;
    let near = vertices.len().min(86_000);
    write("write 86 k near vertices", &vertices[vertices.len() - near..])?;
    write("write the terms of the file", &ids[..ids.len().min(3_000_000)])?;
    let shuffled: Vec<Id> = (0..1_000_000).map(|_| Id::vertex(random.below(vertices.len() as u64))).collect();
    write("write 1 M random vertices", &shuffled)?;
    let mut scratch = String::new();
    let mut bytes = 0;
    let start = Instant::now();
    for &id in &shuffled {
        dictionary.read_term(id, &mut scratch, &mut |parts| {
            if let vervet_model::TermParts::Iri { namespace, local } = parts {
                bytes += namespace.len() + local.len();
            }
        })?;
    }
    report("read 1 M random vertices", start, shuffled.len());
    // Copies the picked terms next to each other: otherwise the measurement would include cache misses of the
    // file's text.
    let mut picked = Vec::new();
    for _ in 0..1_000_000 {
        let i = usize::try_from(random.below(tokens.len() as u64))?;
        picked.push((tokens[i].copied(), ids[i]));
    }
    let (mut wrong, mut best) = (0, Duration::MAX);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for (term, id) in &picked {
            wrong += usize::from(term.lookup(dictionary)? != Some(*id));
        }
        best = best.min(start.elapsed());
    }
    report_time("look up 1 M random terms of the file", best, picked.len());
    let inside = ids.iter().filter(|id| !matches!(id.tag(), Tag::Vertex | Tag::Literal)).count();
    println!("{inside} terms of the file are inside their ids; {wrong} wrong answers; {bytes} bytes read");
    Ok(())
}
