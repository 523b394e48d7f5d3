//! RDF documents: loads are atomic and independent of the number of threads, and the graph makes a round
//! trip.

use crate::graph;
use crate::oracle::{self, Outcome};
use oxttl::{NQuadsParser, NTriplesParser};
use std::cell::RefCell;
use vervet::{Database, Error, ErrorKind, Format, LoadOptions, Source};

/// One document in this many is also read on three threads, or with `skip_errors`.
const TWICE_EVERY: usize = 4;

pub(crate) fn check(format: Format, bytes: &[u8]) {
    thread_local! {
        // Recreated after a successful load: a case must not depend on earlier ones.
        static DATABASE: RefCell<Option<Database>> = const { RefCell::new(None) };
    }
    let database = DATABASE.take().unwrap_or_else(graph::database);
    let before = graph::count(&database);
    let twice = bytes.len().is_multiple_of(TWICE_EVERY);
    let done = graph::read(&database, format, bytes, 1);
    if matches!(format, Format::NTriples | Format::NQuads) {
        compare_lines(format, bytes, done.as_ref().err());
    }
    match oracle::classify(done) {
        Outcome::Done(_) => {
            graph::check_round_trip(&database);
            if twice {
                let other = graph::database();
                oracle::classify(graph::read(&other, format, bytes, 3));
                assert_eq!(graph::count(&other), graph::count(&database), "threads change the result");
            }
        }
        _ => {
            assert_eq!(graph::count(&database), before, "a failed load leaves statements behind");
            DATABASE.set(Some(database));
            if twice {
                let options = LoadOptions {
                    format: Some(format),
                    threads: 1,
                    skip_errors: true,
                    ..LoadOptions::default()
                };
                oracle::classify(graph::database().load(vec![Source::bytes("text", bytes)], &options));
            }
        }
    }
}

/// Compares the line scanner with the library that defines validity.
fn compare_lines(format: Format, bytes: &[u8], ours: Option<&Error>) {
    if bytes.starts_with(&[0x1F, 0x8B]) || bytes.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]) {
        return; // Compressed, which the loader sees and the library does not.
    }
    let theirs: Result<Vec<()>, _> = if format == Format::NTriples {
        NTriplesParser::new().for_slice(bytes).map(|triple| triple.map(drop)).collect()
    } else {
        NQuadsParser::new().for_slice(bytes).map(|quad| quad.map(drop)).collect()
    };
    match (ours, theirs) {
        (None, Err(error)) => panic!("the loader accepts, the library rejects: {error}"),
        (Some(error), Ok(_)) => {
            // Triple terms that Vervet does not support, or reifiers of statements that are not asserted.
            let about_terms = bytes.windows(2).any(|pair| pair == b"<<");
            assert!(
                about_terms || error.kind() == ErrorKind::Unsupported,
                "the loader rejects, the library accepts: {error}"
            );
        }
        _ => {}
    }
}
