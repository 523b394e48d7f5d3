//! Damaged files: every byte flipped, every length cut. The answer is the right one or an error of kind
//! `Corrupt` that names the file; never a panic, never another term.

use std::collections::HashMap;
use vervet_dictionary::{Dictionary, DictionaryBuilder};
use vervet_env::Bytes;
use vervet_model::{Error, ErrorKind, Id, LiteralKind, TextSearch};

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

#[test]
fn every_flipped_byte_is_noticed() {
    let (image, terms) = sample();
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
            }
            let _ = dictionary.literals_below(b"Student2");
            for search in ["student2", "s*", "edu OR long*"] {
                let search = TextSearch::parse(search).expect("a search");
                let _ = dictionary.search_count(&search);
                let _ = dictionary.search(&search, &mut Vec::new());
            }
            let _ = dictionary.validate();
            let _ = DictionaryBuilder::from_dictionary(&dictionary);
        }
    }
}
