//! Random terms against a `HashMap`, then through a file, then with that file extended.
//!
//! All access paths to a term must agree: the builder, lookup by term, the parts by id, the N-Triples form by
//! id. A failure prints its seed.

use oxrdf::{BaseDirection, BlankNode, Literal, NamedNode, Term};
use std::collections::HashMap;
use vervet_dictionary::{
    Dictionary, DictionaryBuilder, MutableDictionary, hash_blank, hash_iri, hash_literal, hash_term,
};
use vervet_env::{Bytes, SeededRandom};
use vervet_model::{
    Error, ErrorKind, Id, Inline, LiteralKind, METER_STEP, Meter, Tag, TextSearch, Words, triple_text,
    unmetered,
};

/// Text of all sorts: typical patterns, edge cases of patterns, and plain noise.
pub(crate) fn text(random: &SeededRandom) -> String {
    let pieces = [
        "a",
        "http://x/",
        "#",
        ":",
        "7",
        "007",
        "0",
        "42",
        "é",
        "日本",
        "\n",
        "\"",
        "\\",
        "\u{0}",
        "\u{7F}",
        "@",
        " ",
        "999999999999999999",
        "9999999999999999999999",
        "\u{10FFFF}",
        "urn:vervet:edge:",
        "b",
    ];
    if random.below(200) == 0 {
        let length = usize::try_from(random.below(3000)).expect("small");
        return "long 7 ".chars().cycle().take(length).collect();
    }
    (0..random.below(7))
        .map(|_| pieces[usize::try_from(random.below(pieces.len() as u64)).expect("small")])
        .collect()
}

pub(crate) fn term(random: &SeededRandom) -> Term {
    let number = random.below(300);
    let value = match random.below(4) {
        0 => format!("Student{number}@Department{}.edu", number % 7),
        1 => number.to_string(),
        _ => text(random),
    };
    match random.below(11) {
        0 => NamedNode::new_unchecked(format!("http://d{}.edu/s{number}", number % 5)).into(),
        1 => NamedNode::new_unchecked(format!("http://example.org/{value}")).into(),
        2 => NamedNode::new_unchecked(format!("urn:vervet:edge:{value}")).into(),
        3 => NamedNode::new_unchecked(value).into(),
        4 => BlankNode::new_unchecked(format!("b{number}")).into(),
        5 => BlankNode::new_unchecked(value).into(),
        6 => Literal::new_language_tagged_literal_unchecked(
            value,
            ["en", "de", "EN-us"][usize::try_from(number % 3).expect("small")],
        )
        .into(),
        7 => Literal::new_directional_language_tagged_literal_unchecked(
            value,
            "ar",
            if number.is_multiple_of(2) { BaseDirection::Ltr } else { BaseDirection::Rtl },
        )
        .into(),
        8 => {
            let types = ["integer", "decimal", "double", "string", "date", "byte", "hexBinary"];
            let name = types[usize::try_from(number % 7).expect("small")];
            let datatype = format!("http://www.w3.org/2001/XMLSchema#{name}");
            Literal::new_typed_literal(value, NamedNode::new_unchecked(datatype)).into()
        }
        9 => Literal::new_typed_literal("x", NamedNode::new_unchecked(format!("http://t/{value}"))).into(),
        _ => Literal::new_simple_literal(value).into(),
    }
}

fn hashed(builder: &mut DictionaryBuilder, term: &Term) -> Option<Id> {
    use vervet_model::LiteralKind::{Language, String, Typed};
    builder.prefetch(&[hash_term(term.as_ref())]);
    let id = match term {
        Term::NamedNode(iri) => builder.intern_iri_hashed(iri.as_str(), hash_iri(iri.as_str())),
        Term::BlankNode(node) => builder.intern_blank_hashed(node.as_str(), hash_blank(node.as_str())),
        Term::Literal(literal) if literal.direction().is_none() => {
            let kind = match literal.language() {
                Some(tag) => Language(tag),
                None if literal.datatype().as_str().ends_with("#string") => String,
                None => Typed(literal.datatype().as_str()),
            };
            builder.intern_literal_hashed(literal.value(), kind, hash_literal(literal.value(), kind))
        }
        _ => return None,
    };
    Some(id.expect("intern"))
}

pub(crate) fn check(dictionary: &Dictionary, known: &HashMap<Term, Id>, seed: u64) {
    dictionary.validate().expect("valid");
    let (mut scratch, mut ids, mut expected) = (String::new(), Vec::new(), Vec::new());
    for (term, &id) in known {
        assert_eq!(dictionary.lookup(term.as_ref()).expect("lookup"), Some(id), "seed {seed}: {term}");
        let mut read = None;
        dictionary.read_term(id, &mut scratch, &mut |parts| read = Some(parts.to_term())).expect("read");
        assert_eq!(read.as_ref(), Some(term), "seed {seed}");
        assert_eq!(dictionary.is_blank(id).expect("is_blank"), term.is_blank_node(), "seed {seed}: {term}");
        let is_text =
            matches!(&term, Term::Literal(literal) if literal.datatype() == oxrdf::vocab::xsd::STRING);
        assert_eq!(dictionary.is_plain_text(id).expect("is_plain_text"), is_text, "seed {seed}: {term}");
        let mut kind = String::new();
        dictionary
            .read_literal_kind(id, &mut |found| kind = format!("{found:?}"))
            .expect("read_literal_kind");
        let mut of_term = String::new();
        let each = &mut |parts: vervet_model::TermParts<'_>| {
            of_term = match parts {
                vervet_model::TermParts::Literal { kind, .. } => format!("{:?}", Some(kind)),
                _ => "None".to_owned(),
            };
        };
        dictionary.read_term(id, &mut scratch, each).expect("read");
        assert_eq!(kind, of_term, "seed {seed}: {term}");
        ids.push(id);
        let mut nt = Vec::new();
        dictionary.read_term(id, &mut scratch, &mut |parts| parts.write_nt(&mut nt)).expect("read");
        expected.push(nt);
    }
    let (mut out, mut ends) = (Vec::new(), Vec::new());
    dictionary.write_terms(&ids, &mut out, &mut ends).expect("write");
    let mut start = 0;
    for (end, expected) in ends.into_iter().zip(expected) {
        assert_eq!(&out[start..end], expected, "seed {seed}");
        start = end;
    }
    assert_eq!(start, out.len());
    check_order(dictionary, known, seed);
    check_ranks(dictionary, known, seed);
    check_words(dictionary, known, seed);
}

/// All matches of a search are among the results of the index, without duplicates.
fn check_words(dictionary: &Dictionary, known: &HashMap<Term, Id>, seed: u64) {
    let random = SeededRandom::new(seed);
    let mut words = Words::default();
    for _ in 0..if dictionary.has_words() { 100 } else { 1 } {
        let joined = [" ", " OR ", " -"][usize::try_from(random.below(3)).expect("small")];
        let Ok(search) = TextSearch::parse(&format!("{}*{joined}{}", text(&random), text(&random))) else {
            continue;
        };
        let count = dictionary.search_count(&search).expect("whole");
        assert_eq!(count.is_some(), dictionary.has_words());
        let Some(count) = count else { continue };
        let mut found = Vec::new();
        dictionary.search(&search, &mut found, &mut unmetered).expect("whole");
        assert!(found.is_sorted_by(|a, b| a < b) && found.len() as u64 <= count, "seed {seed}: {search:?}");
        for (term, id) in known {
            let Term::Literal(literal) = term else { continue };
            words.take(literal.value());
            let is_text = literal.language().is_some() || literal.datatype() == oxrdf::vocab::xsd::STRING;
            if id.tag() == Tag::Literal && is_text && search.matches(&words) {
                assert!(found.binary_search(id).is_ok(), "seed {seed}: {search:?} misses {term}");
            }
        }
    }
}

/// Searches report their memory and can be cancelled, in a file and among later terms; a later search then
/// finds all matches.
#[test]
fn searches_are_metered_and_cancellable() {
    const COUNT: u64 = 20_000;
    let text = |number: u64| format!("a common text with number {number}");
    let mut builder = DictionaryBuilder::new();
    builder.index_words();
    let terms = MutableDictionary::new(0, 0);
    for number in 0..COUNT {
        builder.intern_literal(&text(number), LiteralKind::String).expect("room");
        terms.intern(Literal::from(text(number)).as_ref().into()).expect("room");
    }
    let image = builder.finish().expect("room");
    let dictionary = Dictionary::open(Bytes::from(image), "sample").expect("whole");
    let search = TextSearch::parse("common").expect("a search");
    let ask = |which: usize, out: &mut Vec<Id>, meter: &mut Meter<'_>| match which {
        0 => dictionary.search(&search, out, meter),
        1 => terms.search(&search, COUNT, out, meter),
        _ => terms.literals_between(b"a common", None, COUNT, out, meter),
    };
    for which in 0..3 {
        // Cancelled at the first, the second, … call.
        for end in 0..4 {
            let mut calls = 0;
            let mut meter = |_: usize| {
                calls += 1;
                if calls > end { Err(Error::new(ErrorKind::Cancelled, "enough")) } else { Ok(()) }
            };
            let error = ask(which, &mut Vec::new(), &mut meter).expect_err("it was ended");
            assert_eq!((error.kind(), calls), (ErrorKind::Cancelled, end + 1), "{which}");
        }
        let (mut found, mut held) = (Vec::new(), 0);
        let mut meter = |ids: usize| {
            assert!(ids <= METER_STEP || held >= COUNT, "{ids} at once");
            held += ids as u64;
            Ok(())
        };
        ask(which, &mut found, &mut meter).expect("whole");
        assert_eq!((found.len() as u64, held >= COUNT), (COUNT, true), "{which}: {held}");
    }
    assert_eq!(terms.search_count(&search, COUNT, &mut unmetered).expect("whole"), COUNT);
}

/// Literals in text order, and bounds in it, against a sort of all of them.
fn check_order(dictionary: &Dictionary, known: &HashMap<Term, Id>, seed: u64) {
    let mut expected: Vec<(String, Id)> = known
        .iter()
        .filter_map(|(term, &id)| match term {
            Term::Literal(literal) if id.tag() == Tag::Literal => Some((literal.value().to_owned(), id)),
            Term::Triple(triple) => Some((triple_text(triple.as_ref().as_ref()).expect("not deep"), id)),
            _ => None,
        })
        .collect();
    expected.sort_unstable();
    assert_eq!(expected.len() as u64, dictionary.literal_count());
    for (position, (text, id)) in (0..).zip(&expected) {
        assert_eq!(dictionary.literal_at(position).expect("there"), *id, "seed {seed}: {text:?}");
    }
    assert!(dictionary.literal_at(dictionary.literal_count()).is_err());
    let random = SeededRandom::new(seed);
    let mut last = (Vec::new(), 0);
    for _ in 0..300 {
        let mut bound = text(&random).into_bytes();
        // Also bounds that are not text: cut characters, and bytes above all of UTF-8.
        bound.truncate(usize::try_from(random.below(20)).expect("small"));
        if random.below(4) == 0 {
            bound.push(0xFF);
        }
        let below = expected.partition_point(|(text, _)| text.as_bytes() < bound.as_slice());
        assert_eq!(dictionary.literals_below(&bound).expect("whole"), below as u64, "seed {seed}: {bound:?}");
        let (from, start) = std::mem::replace(&mut last, (bound.clone(), below));
        let between = dictionary.literals_between(&from, Some(&bound)).expect("whole");
        assert_eq!(between, start as u64..below.max(start) as u64, "seed {seed}: {from:?} to {bound:?}");
        let all = dictionary.literals_between(&from, None).expect("whole");
        assert_eq!(all, start as u64..expected.len() as u64, "seed {seed}: {from:?}");
    }
}

/// Ranks become known by requests, for the strings only, and are in the order of their texts.
fn check_ranks(dictionary: &Dictionary, known: &HashMap<Term, Id>, seed: u64) {
    let has_blanks = known.keys().any(Term::is_blank_node);
    assert_eq!(dictionary.has_blanks(), has_blanks, "seed {seed}");
    let literals = known.iter().filter_map(|(term, &id)| match term {
        Term::Literal(literal) if id.tag() == Tag::Literal => Some((literal, id)),
        Term::Triple(_) => None,
        _ => None,
    });
    let literals: Vec<_> = literals.collect();
    let rank = |id| dictionary.text_rank(id).expect("whole");
    // An entry is made twice: by its position, and by its type.
    for _ in 0..=2 + dictionary.literal_count() / 4 {
        literals.first().map(|(_, id)| rank(*id));
    }
    let mut ranked = Vec::new();
    for (literal, id) in literals {
        let is_text = literal.datatype() == oxrdf::vocab::xsd::STRING;
        let rank = rank(id);
        assert_eq!(rank.is_some(), is_text, "seed {seed}: {literal}");
        ranked.extend(rank.map(|rank| (rank, literal.value())));
    }
    ranked.sort_unstable();
    assert!(ranked.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1), "seed {seed}");
}

#[test]
fn the_dictionary_agrees_with_a_map() {
    for seed in 0..24 {
        println!("seed {seed}");
        let random = SeededRandom::new(seed);
        let mut known: HashMap<Term, Id> = HashMap::new();
        let mut builder = DictionaryBuilder::new();
        if seed % 3 > 0 {
            builder.index_words();
        }
        for round in 0..3 {
            for _ in 0..random.below(3000) {
                let term = term(&random);
                let id = builder.intern_term(term.as_ref()).expect("intern");
                let numbers = (builder.vertex_count(), builder.literal_count());
                match known.get(&term) {
                    Some(&known) => assert_eq!(id, known, "seed {seed}: {term}"),
                    None => {
                        match id.tag() {
                            Tag::Vertex => assert_eq!(id.payload() + 1, numbers.0, "dense, seed {seed}"),
                            Tag::Literal => assert_eq!(id.payload() + 1, numbers.1, "dense, seed {seed}"),
                            _ => {}
                        }
                        assert!(known.values().all(|&other| other != id), "seed {seed}: {term}");
                        known.insert(term.clone(), id);
                    }
                }
                if let Some(again) = hashed(&mut builder, &term) {
                    assert_eq!(again, id, "seed {seed}: {term}");
                }
            }
            let image = Bytes::from(builder.finish().expect("finish"));
            let dictionary = Dictionary::open(image, &format!("round {round}")).expect("open");
            check(&dictionary, &known, seed);
            let again = |threads| {
                let mut builder = DictionaryBuilder::from_dictionary(&dictionary).expect("whole");
                builder.set_seed(seed);
                builder.finish_with(threads).expect("finish")
            };
            assert!(again(1) == again(3), "seed {seed}: threads give other bytes");
            for _ in 0..300 {
                let term = term(&random);
                let found = dictionary.lookup(term.as_ref()).expect("lookup");
                let inside = found.is_some_and(|id| !matches!(id.tag(), Tag::Vertex | Tag::Literal));
                assert!(inside || found == known.get(&term).copied(), "seed {seed}: {term}");
            }
            builder = DictionaryBuilder::from_dictionary(&dictionary).expect("whole");
        }
    }
}

#[test]
fn an_empty_dictionary_knows_values_and_edges_only() {
    let dictionary = Dictionary::empty();
    dictionary.validate().expect("valid");
    assert_eq!((dictionary.vertex_count(), dictionary.literal_count()), (0, 0));
    assert_eq!(dictionary.lookup_iri("http://x/").expect("lookup"), None);
    assert_eq!(dictionary.lookup_iri("urn:vervet:edge:3").expect("lookup"), Some(Id::edge(3)));
    assert!(dictionary.lookup(Literal::from(7).as_ref().into()).expect("lookup").is_some());
    let mut scratch = String::new();
    for id in [Id::UNBOUND, Id::vertex(0), Id::literal(9), Id::new(Tag::Computed, 1)] {
        assert!(dictionary.read_term(id, &mut scratch, &mut |_| ()).is_err(), "{id:?}");
        assert!(dictionary.write_terms(&[id], &mut Vec::new(), &mut Vec::new()).is_err(), "{id:?}");
    }
}

/// Numbers at and beyond the limits of an id, as values and as literals.
#[test]
fn a_value_has_the_id_of_its_literal() {
    let (mut by_value, mut by_text) = (DictionaryBuilder::new(), DictionaryBuilder::new());
    let wholes = [0, 1, -1, 42, (1 << 59) - 1, 1 << 59, -(1 << 59), -(1 << 59) - 1, i64::MAX, i64::MIN];
    let mut values: Vec<Inline> = wholes.map(Inline::Long).into();
    values.extend(wholes.map(Inline::Integer));
    values.extend([0, 7, -7, i32::MAX, i32::MIN].map(Inline::Int));
    values.extend([true, false].map(Inline::Boolean));
    values.extend([0.0, -0.0, 1.5, f64::NAN, f64::INFINITY, 0.1].map(Inline::Double));
    values.extend([0, -1, 1_266_161_530_447].map(Inline::DateTime));
    for value in values {
        let mut text = String::new();
        value.write_lexical(&mut text);
        let expected = by_text.intern_literal(&text, LiteralKind::Typed(value.datatype())).expect("short");
        assert_eq!(by_value.intern_value(value).expect("short"), expected, "{value:?}");
    }
    assert!(by_value.literal_count() > 0, "some do not fit");
    by_value.set_seed(1);
    by_text.set_seed(1);
    assert_eq!(by_value.finish().expect("small"), by_text.finish().expect("small"));
}
