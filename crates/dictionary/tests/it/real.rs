//! The terms of real files: odd IRIs, long texts, many languages.
//!
//! The files are split at `<>` and `""` instead of being parsed: the pieces are close enough to terms, and
//! harder test cases where they are not.

use std::collections::HashMap;
use std::path::PathBuf;
use vervet_dictionary::{Dictionary, DictionaryBuilder};
use vervet_env::Bytes;
use vervet_model::{Id, LiteralKind, TermParts};

fn data(name: &str) -> Option<String> {
    let root = std::env::var_os("VERVET_TEST_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")),
        PathBuf::from,
    );
    let direct = root.join("rdf").join(name);
    let below = root.join("data/rdf").join(name);
    std::fs::read_to_string(direct).or_else(|_| std::fs::read_to_string(below)).ok()
}

fn check(name: &str) {
    let Some(file) = data(name) else {
        println!("{name} is neither in ../shared/data nor where VERVET_TEST_DATA points: skipped");
        return;
    };
    let kinds = [LiteralKind::String, LiteralKind::Language("en"), LiteralKind::Typed("http://t/x")];
    let mut builder = DictionaryBuilder::new();
    let mut iris: HashMap<&str, Id> = HashMap::new();
    let mut literals: HashMap<(&str, usize), Id> = HashMap::new();
    for (i, line) in file.lines().enumerate() {
        for piece in line.split(['<', '>']) {
            iris.insert(piece, builder.intern_iri(piece).expect("intern"));
        }
        for piece in line.split('"') {
            let id = builder.intern_literal(piece, kinds[i % 3]).expect("intern");
            literals.insert((piece, i % 3), id);
        }
    }
    let image = builder.finish().expect("finish");
    let dictionary = Dictionary::open(Bytes::from(image), name).expect("open");
    dictionary.validate().expect("valid");
    let (mut scratch, mut text) = (String::new(), String::new());
    let mut read = |id| {
        let mut kind = None;
        let mut read = |parts: TermParts<'_>| {
            text.clear();
            parts.write_str(&mut text);
            if let TermParts::Literal { kind: found, .. } = parts {
                kind = kinds.iter().position(|&kind| kind == found);
            }
        };
        dictionary.read_term(id, &mut scratch, &mut read).expect("read");
        (text.clone(), kind)
    };
    for (iri, id) in iris {
        assert_eq!(dictionary.lookup_iri(iri).expect("lookup"), Some(id));
        assert_eq!(read(id), (iri.to_owned(), None));
    }
    for ((value, kind), id) in literals {
        assert_eq!(dictionary.lookup_literal(value, kinds[kind]).expect("lookup"), Some(id));
        assert_eq!(read(id), (value.to_owned(), Some(kind)));
    }
}

#[test]
fn music_data_round_trips() {
    check("music.ttl");
}

#[test]
fn schema_org_round_trips() {
    check("schemaorg-30.0-current-https.nq");
}
