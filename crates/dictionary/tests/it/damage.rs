//! Damaged files: every byte flipped, every length cut. The answer is the right one or an error of kind
//! `Corrupt` that names the file; never a panic, never another term.

use std::collections::HashMap;
use vervet_dictionary::{Dictionary, DictionaryBuilder};
use vervet_env::Bytes;
use vervet_model::{Error, ErrorKind, Id, LiteralKind, TRIPLE_DEPTH_MAX, TextSearch, unmetered};

fn sample() -> (Vec<u8>, HashMap<Id, Vec<u8>>) {
    let mut builder = DictionaryBuilder::new();
    builder.index_words();
    for i in 0..40 {
        builder.intern_iri(&format!("http://www.Department{}.edu/Student{i}", i % 3)).expect("intern");
        builder.intern_iri(&format!("http://example.org/{}", "x".repeat(i))).expect("intern");
        builder.intern_blank(&format!("b{i}")).expect("intern");
        builder.intern_literal(&format!("Student{i}@x.edu"), LiteralKind::String).expect("intern");
        builder.intern_literal(&format!("{i}"), LiteralKind::Language("en")).expect("intern");
    }
    builder.intern_literal(&"long".repeat(200), LiteralKind::Typed("http://t")).expect("intern");
    builder.intern_literal("own", LiteralKind::Language("de")).expect("intern");
    // Enough text for codes.
    let words = ["about", "team", "early", "became", "season", "war", "the", "album", "first"];
    for i in 0..22_usize {
        let text =
            (0..16).map(|at| words[(i * i + at * (3 + i % 7)) % words.len()]).collect::<Vec<_>>().join(" ");
        builder.intern_literal(&text, LiteralKind::String).expect("intern");
    }
    let image = builder.finish().expect("finish");
    let dictionary = Dictionary::open(Bytes::from(image.clone()), "sample").expect("open");
    let mut terms = HashMap::new();
    for id in all_ids(&dictionary) {
        let mut text = Vec::new();
        dictionary.write_terms(&[id], &mut text, &mut Vec::new()).expect("write");
        terms.insert(id, text);
    }
    (image, terms)
}

fn all_ids(dictionary: &Dictionary) -> Vec<Id> {
    let vertices = (0..dictionary.vertex_count()).map(Id::vertex);
    vertices.chain((0..dictionary.literal_count()).map(Id::literal)).collect()
}

fn assert_corrupt(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.message().contains("sample"), "{error}");
}

/// Asks everything; returns whether any answer was an error.
fn ask(image: Vec<u8>, terms: &HashMap<Id, Vec<u8>>) -> bool {
    let dictionary = match Dictionary::open(Bytes::from(image), "sample") {
        Ok(dictionary) => dictionary,
        Err(error) => {
            assert_corrupt(&error);
            return true;
        }
    };
    let mut failed = false;
    for (&id, expected) in terms {
        let mut text = Vec::new();
        match dictionary.write_terms(&[id], &mut text, &mut Vec::new()) {
            Ok(()) => assert_eq!(&text, expected),
            Err(error) => {
                assert_corrupt(&error);
                failed = true;
            }
        }
    }
    if let Err(error) = dictionary.validate() {
        assert_corrupt(&error);
        failed = true;
    }
    failed
}

/// The image with another version.
fn with_version(image: &[u8], version: u8) -> Bytes {
    let mut image = image.to_vec();
    image[8] = version;
    let header = xxhash_rust::xxh3::xxh3_64(&image[..112]).to_le_bytes();
    image[112..120].copy_from_slice(&header);
    Bytes::from(image)
}

/// Versions 4 and 5 are read (`vervet/tests/formats` has a file of each), all others refused.
#[test]
fn older_versions_are_refused() {
    let mut builder = DictionaryBuilder::new();
    builder.intern_iri("http://example.org/alice").expect("intern");
    let image = builder.finish().expect("finish");
    Dictionary::open(with_version(&image, 4), "sample").expect("it can be read");
    for version in [0, 2, 3, 6] {
        let error = Dictionary::open(with_version(&image, version), "sample").expect_err("unknown");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains(&format!("sample has version {version}")), "{error}");
    }
}

#[test]
fn every_flipped_byte_is_noticed() {
    let (image, terms) = sample();
    let parts = Dictionary::open(Bytes::from(image.clone()), "sample").expect("open").parts();
    let records = parts.iter().find(|(name, _)| *name == "literal records").map(|(_, bytes)| *bytes);
    let texts: usize = terms.iter().filter(|(id, _)| !id.is_vertex()).map(|(_, text)| text.len()).sum();
    assert!(records.is_some_and(|bytes| bytes < texts as u64 * 6 / 10), "{records:?} for {texts}: no codes");
    assert!(!ask(image.clone(), &terms));
    for at in 0..image.len() {
        for flip in [0x01, 0x80, 0xFF] {
            let mut damaged = image.clone();
            damaged[at] ^= flip;
            assert!(ask(damaged, &terms), "byte {at} of {} flipped by {flip:#x}", image.len());
        }
    }
}

#[test]
fn every_other_length_is_noticed() {
    let (image, terms) = sample();
    for length in 0..image.len() {
        assert!(ask(image[..length].to_vec(), &terms), "cut to {length}");
    }
    let mut longer = image;
    longer.push(0);
    assert!(ask(longer, &terms));
}

/// Checksums that fit the damage, as from a program with a defect: still no panic.
#[test]
fn damage_behind_right_checksums_does_not_panic() {
    let (image, _) = sample();
    let sum_at = 112;
    let body_at = 120 + 8;
    for at in (16..104).chain(body_at..image.len()) {
        for flip in [0x01, 0x10, 0x80, 0xFF] {
            let mut damaged = image.clone();
            damaged[at] ^= flip;
            let block = xxhash_rust::xxh3::xxh3_64(&damaged[body_at..]).to_le_bytes();
            damaged[120..body_at].copy_from_slice(&block);
            let blocks = xxhash_rust::xxh3::xxh3_64(&damaged[120..body_at]).to_le_bytes();
            damaged[104..112].copy_from_slice(&blocks);
            let header = xxhash_rust::xxh3::xxh3_64(&damaged[..sum_at]).to_le_bytes();
            damaged[sum_at..120].copy_from_slice(&header);
            let Ok(dictionary) = Dictionary::open(Bytes::from(damaged), "sample") else { continue };
            let mut scratch = String::new();
            for id in all_ids(&dictionary).into_iter().take(1000) {
                let _ = dictionary.read_term(id, &mut scratch, &mut |_| ());
                let _ = dictionary.write_terms(&[id], &mut Vec::new(), &mut Vec::new());
                let _ = dictionary.is_blank(id);
                let _ = dictionary.is_plain_text(id);
            }
            let _ = dictionary.literals_below(b"Student2");
            for search in ["student2", "s*", "edu OR long*"] {
                let search = TextSearch::parse(search).expect("a search");
                let _ = dictionary.search_count(&search);
                let _ = dictionary.search(&search, &mut Vec::new(), &mut unmetered);
            }
            let _ = dictionary.validate();
            let _ = DictionaryBuilder::from_dictionary(&dictionary);
        }
    }
}

/// Whoever gets the text of a triple term may follow its depth by recursion, and checksums do not help against those who
/// can compute them.
#[test]
fn a_triple_term_that_is_none_is_damage() {
    const DEPTH: usize = 1 << 18;
    let nested = |name: &str, depth: usize| {
        format!("{}<http://e/{name}>{}", "<<( <http://e/a> <http://e/b> ".repeat(depth), " )>>".repeat(depth))
    };
    let mut texts: Vec<String> = [TRIPLE_DEPTH_MAX + 1, DEPTH].map(|depth| nested("c", depth)).into();
    // As many as it takes for a template with a number.
    texts.extend((0..8).map(|number| nested(&format!("c{number}"), TRIPLE_DEPTH_MAX + 1)));
    texts.extend(
        ["no triple term", "<<( <http://e/a> <http://e/b>", "<<( <http://e/a> \"b\" 1 )>>"]
            .map(str::to_owned),
    );
    let whole = ["c", "c1", "c2", "c3", "c4"].map(|name| nested(name, TRIPLE_DEPTH_MAX));
    let mut builder = DictionaryBuilder::new();
    let mut ids = Vec::new();
    for text in texts.iter().chain(&whole) {
        ids.push(builder.intern_literal(text, LiteralKind::Triple).expect("intern"));
    }
    let dictionary =
        Dictionary::open(Bytes::from(builder.finish().expect("finish")), "sample").expect("open");
    let read = |id: Id| {
        let (mut read, mut written) = (Vec::new(), Vec::new());
        let result = dictionary.read_term(id, &mut String::new(), &mut |parts| parts.write_nt(&mut read));
        let other = dictionary.write_terms(&[id], &mut written, &mut Vec::new());
        assert_eq!(result.is_ok(), other.is_ok());
        result.map(|()| {
            assert_eq!(read, written);
            String::from_utf8(read).expect("text")
        })
    };
    for (id, text) in ids[texts.len()..].iter().zip(&whole) {
        assert_eq!(&read(*id).expect("whole"), text);
    }
    for (id, text) in ids.iter().zip(&texts) {
        let text = &text[..text.len().min(60)];
        assert_corrupt(&read(*id).err().unwrap_or_else(|| panic!("it was read: {text}")));
    }
    assert!(dictionary.validate().is_err());
}
