//! Extended dictionaries are equivalent to dictionaries built from scratch.

use crate::memory::peak;
use crate::model::{check, term, text};
use oxrdf::{Literal, NamedNode, Term};
use std::collections::HashMap;
use vervet_dictionary::{Dictionary, DictionaryBuilder, Extension};
use vervet_env::{Bytes, SeededRandom};
use vervet_model::{Error, ErrorKind, Id, Result, TermParts, TextSearch, Watch, unmetered};

fn with_parts<T>(term: &Term, call: &mut dyn FnMut(TermParts<'_>) -> T) -> T {
    use vervet_model::LiteralKind;
    match term {
        Term::NamedNode(iri) => call(TermParts::Iri { namespace: iri.as_str(), local: "" }),
        Term::BlankNode(node) => call(TermParts::Blank(node.as_str())),
        Term::Literal(literal) => {
            let tag = literal.language().unwrap_or_default();
            let tag = match literal.direction() {
                Some(oxrdf::BaseDirection::Ltr) => format!("{tag}--ltr"),
                Some(oxrdf::BaseDirection::Rtl) => format!("{tag}--rtl"),
                None => tag.to_owned(),
            };
            let kind = match literal.datatype() {
                _ if !tag.is_empty() => LiteralKind::Language(&tag),
                oxrdf::vocab::xsd::STRING => LiteralKind::String,
                datatype => LiteralKind::Typed(datatype.as_str()),
            };
            // In two pieces.
            let cut = literal.value().char_indices().nth(2).map_or(0, |(at, _)| at);
            let (head, tail) = literal.value().split_at(cut);
            call(TermParts::Literal { head, tail, kind })
        }
        Term::Triple(triple) => {
            let text = vervet_model::triple_text(triple.as_ref().as_ref()).expect("not deep");
            call(TermParts::Literal { head: &text, tail: "", kind: LiteralKind::Triple })
        }
    }
}

/// `base` with these terms.
fn extended(base: &Dictionary, terms: &[Term]) -> Result<Vec<u8>> {
    let mut extension = Extension::new(base, terms.len() as u64).expect("few terms");
    for term in terms {
        with_parts(term, &mut |parts| extension.add(parts))?;
    }
    let mut image = Vec::new();
    extension.write(
        &mut |bytes| {
            image.extend_from_slice(bytes);
            Ok(())
        },
        &Watch::new("test"),
    )?;
    Ok(image)
}

fn open(image: Vec<u8>) -> Dictionary {
    Dictionary::open(Bytes::from(image), "sample").expect("whole")
}

/// Storage B6 (c): several extensions in sequence, against a map, and against a dictionary with the same
/// terms built from scratch.
#[test]
fn b6_an_extended_dictionary_is_one_made_from_scratch() {
    let first = std::env::var("VERVET_SEED").ok().and_then(|seed| seed.parse().ok());
    let first = first.unwrap_or_else(|| fastrand::u64(..1 << 32));
    for seed in first..first + 12 {
        println!("VERVET_SEED={seed}");
        let random = SeededRandom::new(seed);
        let mut builder = DictionaryBuilder::new();
        if seed % 3 > 0 {
            builder.index_words();
        }
        let mut known: HashMap<Term, Id> = HashMap::new();
        for _ in 0..10 + random.below(1200) {
            let term = term(&random);
            known.insert(term.clone(), builder.intern_term(term.as_ref()).expect("room"));
        }
        let mut dictionary = open(builder.finish().expect("finish"));
        for _ in 0..6 {
            let terms = dictionary.vertex_count() + dictionary.literal_count();
            let most = [2, 20, terms][usize::try_from(random.below(3)).expect("small")].min(terms);
            let new: Vec<Term> = (0..random.below(most)).map(|_| extra(&random)).collect();
            let image = extended(&dictionary, &new).expect("whole");
            let next = open(image);
            // New terms get the following numbers, each half in the order of insertion.
            let mut ends = [dictionary.vertex_count(), dictionary.literal_count()];
            for term in new {
                let id = next.lookup(term.as_ref()).expect("whole").expect("it was added");
                if known.insert(term, id).is_none() {
                    let end = match id.tag() {
                        vervet_model::Tag::Vertex => &mut ends[0],
                        vervet_model::Tag::Literal => &mut ends[1],
                        _ => continue,
                    };
                    assert_eq!(id.payload(), *end, "seed {seed}");
                    *end += 1;
                }
            }
            assert_eq!([next.vertex_count(), next.literal_count()], ends, "seed {seed}");
            check(&next, &known, seed);
            same_as_from_scratch(&next, &random, seed);
            dictionary = next;
        }
    }
}

/// Terms like those of the base, and some that resemble each other but not those.
fn extra(random: &SeededRandom) -> Term {
    let number = random.below(1 << 40);
    match random.below(8) {
        0 => NamedNode::new_unchecked(format!("http://new.example/{}/thing{number}", number % 3)).into(),
        1 => {
            Literal::new_language_tagged_literal_unchecked(format!("{} {number}", text(random)), "new").into()
        }
        2 => Literal::new_simple_literal(format!("prose that some new texts begin with {}", text(random)))
            .into(),
        3 => {
            let node = NamedNode::new_unchecked(format!("http://example.org/{number}"));
            let object = Literal::from(number).into();
            oxrdf::Triple { subject: node.clone().into(), predicate: node, object }.into()
        }
        _ => term(random),
    }
}

/// Positions, ranges and searches equal those of a dictionary with the same terms built at once.
fn same_as_from_scratch(extended: &Dictionary, random: &SeededRandom, seed: u64) {
    let scratch =
        open(DictionaryBuilder::from_dictionary(extended).expect("whole").finish().expect("finish"));
    assert_eq!(scratch.has_triple_terms(), extended.has_triple_terms(), "seed {seed}");
    assert_eq!(scratch.has_blanks(), extended.has_blanks(), "seed {seed}");
    for position in 0..extended.literal_count() {
        let [one, other] = [&scratch, extended].map(|of| of.literal_at(position).expect("there"));
        assert_eq!(one, other, "seed {seed}");
    }
    for _ in 0..50 {
        let (from, to) = (text(random), text(random));
        let between =
            |of: &Dictionary| of.literals_between(from.as_bytes(), Some(to.as_bytes())).expect("whole");
        assert_eq!(between(&scratch), between(extended), "seed {seed}");
        let Ok(search) = TextSearch::parse(&format!("{from}* OR {to}")) else { continue };
        let found = |of: &Dictionary| {
            let mut found = Vec::new();
            if of.has_words() {
                of.search(&search, &mut found, &mut unmetered).expect("whole");
            }
            (of.search_count(&search).expect("whole"), found)
        };
        assert_eq!(found(&scratch), found(extended), "seed {seed}");
    }
}

/// Storage B6 (c): adding one term takes memory for one term, whatever the size of the dictionary.
#[test]
fn b6_one_new_term_takes_little_memory() {
    const TERMS: u64 = 200_000;
    const BYTES_MAX: isize = 4 << 20;
    let mut builder = DictionaryBuilder::new();
    builder.index_words();
    for number in 0..TERMS / 2 {
        builder
            .intern_iri(&format!("http://example.org/{:x}", number.wrapping_mul(0x9E37_79B9_7F4A)))
            .expect("room");
        let text = format!("text {number} of several words {:x}", number.wrapping_mul(0x5DEE_CE66) % 1000);
        builder.intern_literal(&text, vervet_model::LiteralKind::String).expect("room");
    }
    let base = open(builder.finish().expect("finish"));
    let write = |base: &Dictionary, name: &str| {
        let term = NamedNode::new_unchecked(format!("http://elsewhere/{name}")).into();
        let literal = Literal::new_simple_literal(format!("a text of {name}")).into();
        let mut extension = Extension::new(base, 2).expect("few");
        for term in [&term, &literal] {
            with_parts(term, &mut |parts| extension.add(parts)).expect("room");
        }
        let mut length = 0;
        let mut sink = |bytes: &[u8]| {
            length += bytes.len();
            Ok(())
        };
        extension.write(&mut sink, &Watch::new("test")).expect("whole");
        assert!(length as u64 > 10 * TERMS, "{length} bytes");
    };
    // The first extension hashes all terms, since the index of a new file is full; the next ones copy slots.
    let begun = std::time::Instant::now();
    let ((), peak_first) = peak(|| write(&base, "first"));
    let time_first = begun.elapsed();
    let image = extended(&base, &[NamedNode::new_unchecked("http://elsewhere/").into()]).expect("whole");
    let next = open(image);
    let begun = std::time::Instant::now();
    let ((), peak_next) = peak(|| write(&next, "next"));
    let time_next = begun.elapsed();
    let begun = std::time::Instant::now();
    let (_, peak_scratch) =
        peak(|| DictionaryBuilder::from_dictionary(&base).expect("whole").finish().expect("finish"));
    println!("first {peak_first} bytes, {time_first:?}; next {peak_next} bytes, {time_next:?}");
    println!("from scratch {peak_scratch} bytes, {:?}", begun.elapsed());
    assert!(peak_first < BYTES_MAX && peak_next < BYTES_MAX, "{peak_first} {peak_next}");
    assert!(peak_scratch > 4 * BYTES_MAX, "{peak_scratch}");
}

/// Later texts are coded too: with a table of their own if the file has none.
#[test]
fn new_texts_are_coded() {
    let mut builder = DictionaryBuilder::new();
    for number in 0..1000 {
        builder.intern_iri(&format!("http://example.org/{number}")).expect("room");
    }
    let base = open(builder.finish().expect("finish"));
    let words = ["about", "team", "early", "became", "season", "war", "the", "album", "first"];
    let random = SeededRandom::new(1);
    let prose = |number: u64| {
        let word = |_| words[usize::try_from(random.below(words.len() as u64)).expect("small")];
        let text = (0..20).map(word).collect::<Vec<_>>().join(" ");
        Literal::new_simple_literal(format!("{text} {}", "x".repeat(usize::try_from(number).expect("small"))))
            .into()
    };
    let mut dictionary = base;
    let mut bytes = 0;
    for round in 0..3 {
        let terms: Vec<Term> = (0..400).map(|number| prose(number % 7 + 7 * round)).collect();
        bytes += terms.iter().map(|term| term.to_string().len() as u64).sum::<u64>();
        dictionary = open(extended(&dictionary, &terms).expect("whole"));
        dictionary.validate().expect("valid");
    }
    let records = dictionary.parts().into_iter().find(|(name, _)| *name == "literal records");
    let records = records.map_or(0, |(_, bytes)| bytes);
    assert!(records > 0 && records < bytes * 6 / 10, "{records} of {bytes}");
}

/// Other dictionaries cannot be extended; cancelled or unwritable extensions end with an error.
#[test]
fn unsuitable_extensions_are_refused() {
    assert!(Extension::new(&Dictionary::empty(), 1).is_none());
    let mut builder = DictionaryBuilder::new();
    for number in 0..10 {
        builder.intern_iri(&format!("http://example.org/{number}")).expect("room");
    }
    let base = open(builder.finish().expect("finish"));
    assert!(Extension::new(&base, 10).is_none());
    // An existing term keeps its number.
    let mut extension = Extension::new(&base, 1).expect("few");
    let id = extension.add(TermParts::Iri { namespace: "http://example.org/", local: "3" }).expect("room");
    assert_eq!(id, Id::vertex(3));
    let id = extension.add(TermParts::Edge(7)).expect("room");
    assert_eq!(id, Id::edge(7));
    let full = |_: &[u8]| Err(Error::new(ErrorKind::Io, "full"));
    let error = extension.write(&mut { full }, &Watch::new("test")).expect_err("no room");
    assert_eq!(error.kind(), ErrorKind::Io);
    let flag = std::sync::atomic::AtomicBool::new(true);
    let extension = Extension::new(&base, 1).expect("few");
    let watch = Watch::new("test").cancelled_by(&flag);
    let error = extension.write(&mut |_| Ok(()), &watch).expect_err("cancelled");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}
