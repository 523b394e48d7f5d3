//! Tests of damaged dictionary files.
//!
//! Bytes flipped (some at random; every one in the ignored tests), every length cut. The result is correct or
//! an error of kind `Corrupt` that names the file; never a panic, never another term.

use std::collections::HashMap;
use vervet_dictionary::{Dictionary, DictionaryBuilder, Extension};
use vervet_env::Bytes;
use vervet_model::{
    Error, ErrorKind, Id, LiteralKind, TRIPLE_DEPTH_MAX, TermParts, TextSearch, Watch, unmetered,
};

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

/// Makes all reads; returns whether any was an error.
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

/// The trailer has the counts, and at its end the checksums of the checksums and of itself.
const TRAILER_BYTES: usize = 128;
const FRONT_BYTES: usize = 16;

/// Recomputes the checksums of a damaged image of one block.
fn seal(image: &mut [u8]) {
    let sum = |bytes: &[u8]| xxhash_rust::xxh3::xxh3_64(bytes).to_le_bytes();
    let trailer = image.len() - TRAILER_BYTES;
    let block = sum(&image[FRONT_BYTES..trailer - 8]);
    image[trailer - 8..trailer].copy_from_slice(&block);
    let end = image.len();
    image[end - 16..end - 8].copy_from_slice(&sum(&block));
    let ends = [&image[..FRONT_BYTES], &image[trailer..end - 8]].concat();
    image[end - 8..].copy_from_slice(&sum(&ends));
}

/// The image in the form of versions 4 and 5: with a header, and hashes without a seed.
fn old_shape(image: &[u8], version: u64) -> Vec<u8> {
    let sum = |bytes: &[u8]| xxhash_rust::xxh3::xxh3_64(bytes).to_le_bytes();
    let (rest, trailer) = image.split_at(image.len() - TRAILER_BYTES);
    let (body, block) = rest[FRONT_BYTES..].split_at(rest.len() - FRONT_BYTES - 8);
    let mut old = [&image[..8], &version.to_le_bytes(), &trailer[..16], &trailer[40..112]].concat();
    old.extend(sum(block));
    old.extend(sum(&old));
    [&old, block, body].concat()
}

/// Version 6 is written; 4 and 5, which have another form, are read (`vervet/tests/formats` has a file of
/// each).
#[test]
fn other_versions_are_refused() {
    let mut builder = DictionaryBuilder::new();
    builder.set_seed(0);
    builder.intern_iri("http://example.org/alice").expect("intern");
    let image = builder.finish().expect("finish");
    let refused = |image: Vec<u8>, version: u64| {
        let error = Dictionary::open(Bytes::from(image), "sample").expect_err("unknown");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains(&format!("sample has version {version}")), "{error}");
    };
    for version in [0_u64, 4, 5, 7] {
        let mut image = image.clone();
        image[8..16].copy_from_slice(&version.to_le_bytes());
        seal(&mut image);
        refused(image, version);
    }
    for version in [0, 2, 3, 6] {
        refused(old_shape(&image, version), version);
    }
    for version in [4, 5] {
        let old = Dictionary::open(Bytes::from(old_shape(&image, version)), "sample").expect("readable");
        old.validate().expect("whole");
        assert_eq!(old.lookup_iri("http://example.org/alice").expect("whole"), Some(Id::vertex(0)));
        assert!(Extension::new(&old, 0).is_none());
    }
}

/// Old files give the same results as new ones; their index wraps around to its first slot.
#[test]
fn files_of_old_versions_are_read() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut tried = 0;
    // An index with slots after its home slots has another form in old files.
    let image = loop {
        tried += 1;
        assert!(tried < 1000, "seed {seed}");
        let mut builder = DictionaryBuilder::new();
        builder.set_seed(0);
        for _ in 0..300 {
            builder.intern_iri(&format!("http://example.org/{}", random.u64(..))).expect("intern");
            builder
                .intern_literal(&format!("{}", random.u64(..)), LiteralKind::Language("en"))
                .expect("intern");
        }
        let image = builder.finish().expect("finish");
        let dictionary = Dictionary::open(Bytes::from(image.clone()), "sample").expect("whole");
        let index = |name| dictionary.parts().iter().find(|(part, _)| *part == name).map(|(_, bytes)| *bytes);
        // 300 terms have 351 slots of three bytes.
        if [index("vertex index"), index("literal index")] == [Some(351 * 3); 2] {
            break image;
        }
    };
    let old = Dictionary::open(Bytes::from(old_shape(&image, 4)), "sample").expect("readable");
    old.validate().expect("whole");
    assert_eq!(old.lookup_iri("http://example.org/").expect("whole"), None);
    let again = DictionaryBuilder::from_dictionary(&old).expect("whole").finish().expect("finish");
    let again = Dictionary::open(Bytes::from(again), "sample").expect("whole");
    again.validate().expect("whole");
    assert_eq!((again.vertex_count(), again.literal_count()), (300, 300));
}

/// A random sample of `places`, with a printed seed; all of them if `count` is `None`.
fn sampled(places: impl Iterator<Item = usize>, count: Option<usize>) -> Vec<usize> {
    let mut places: Vec<usize> = places.collect();
    if let Some(count) = count {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        fastrand::Rng::with_seed(seed).shuffle(&mut places);
        places.truncate(count);
    }
    places
}

fn flipped_bytes_are_noticed(count: Option<usize>) {
    let (image, terms) = sample();
    let parts = Dictionary::open(Bytes::from(image.clone()), "sample").expect("open").parts();
    let records = parts.iter().find(|(name, _)| *name == "literal records").map(|(_, bytes)| *bytes);
    let texts: usize = terms.iter().filter(|(id, _)| !id.is_vertex()).map(|(_, text)| text.len()).sum();
    assert!(records.is_some_and(|bytes| bytes < texts as u64 * 6 / 10), "{records:?} for {texts}: no codes");
    assert!(!ask(image.clone(), &terms));
    // The ends of the file are short, and each of their bytes has its own meaning.
    let ends = (0..FRONT_BYTES).chain(image.len() - TRAILER_BYTES - 8..image.len());
    let body = sampled(FRONT_BYTES..image.len() - TRAILER_BYTES - 8, count);
    for at in ends.chain(body) {
        for flip in [0x01, 0x80, 0xFF] {
            let mut damaged = image.clone();
            damaged[at] ^= flip;
            assert!(ask(damaged, &terms), "byte {at} of {} flipped by {flip:#x}", image.len());
        }
    }
}

#[test]
fn flipped_bytes_are_detected() {
    flipped_bytes_are_noticed(Some(400));
}

#[test]
#[ignore = "takes half a minute: a sample of it runs always"]
fn flipped_bytes_are_noticed_everywhere() {
    flipped_bytes_are_noticed(None);
}

#[test]
fn every_wrong_length_is_detected() {
    let (image, terms) = sample();
    for length in 0..image.len() {
        assert!(ask(image[..length].to_vec(), &terms), "cut to {length}");
    }
    let mut longer = image;
    longer.push(0);
    assert!(ask(longer, &terms));
}

/// Damage with valid checksums, as written by a defective program: still no panic.
fn damage_behind_right_checksums(count: Option<usize>) {
    let (image, _) = sample();
    let trailer = image.len() - TRAILER_BYTES;
    for at in (trailer..image.len() - 16).chain(sampled(FRONT_BYTES..trailer - 8, count)) {
        for flip in [0x01, 0x10, 0x80, 0xFF] {
            let mut damaged = image.clone();
            damaged[at] ^= flip;
            seal(&mut damaged);
            let Ok(dictionary) = Dictionary::open(Bytes::from(damaged), "sample") else { continue };
            let mut scratch = String::new();
            for id in all_ids(&dictionary).into_iter().take(1000) {
                let _ = dictionary.read_term(id, &mut scratch, &mut |_| ());
                let _ = dictionary.write_terms(&[id], &mut Vec::new(), &mut Vec::new());
                let _ = dictionary.is_blank(id);
                let _ = dictionary.is_plain_text(id);
                let _ = dictionary.text_rank(id);
                let _ = dictionary.read_literal_kind(id, &mut |_| ());
            }
            let _ = dictionary.literals_below(b"Student2");
            for search in ["student2", "s*", "edu OR long*"] {
                let search = TextSearch::parse(search).expect("a search");
                let _ = dictionary.search_count(&search);
                let _ = dictionary.search(&search, &mut Vec::new(), &mut unmetered);
            }
            let _ = dictionary.validate();
            let _ = DictionaryBuilder::from_dictionary(&dictionary);
            if let Some(mut extension) = Extension::new(&dictionary, 2) {
                let _ = extension.add(TermParts::Iri { namespace: "http://example.org/", local: "new" });
                let kind = LiteralKind::String;
                let _ = extension.add(TermParts::Literal { head: "Student", tail: "7 of a team", kind });
                let _ = extension.write(&mut |_| Ok(()), &Watch::new("test"));
            }
        }
    }
}

#[test]
fn damage_under_valid_checksums_does_not_panic() {
    damage_behind_right_checksums(Some(400));
}

#[test]
#[ignore = "takes half a minute: a sample of it runs always"]
fn damage_behind_right_checksums_does_not_panic_everywhere() {
    damage_behind_right_checksums(None);
}

/// Callers may follow the nesting of a triple term by recursion, and an attacker can compute valid checksums.
#[test]
fn invalid_triple_terms_are_damage() {
    const DEPTH: usize = 1 << 18;
    let nested = |name: &str, depth: usize| {
        format!("{}<http://e/{name}>{}", "<<( <http://e/a> <http://e/b> ".repeat(depth), " )>>".repeat(depth))
    };
    let mut texts: Vec<String> = [TRIPLE_DEPTH_MAX + 1, DEPTH].map(|depth| nested("c", depth)).into();
    // As many as a template with a number requires.
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
