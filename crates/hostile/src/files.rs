//! Property-graph files: loads are atomic, and an exported graph reads as the same graph.

use crate::graph;
use crate::oracle::{self, Outcome};
use std::cell::RefCell;
use vervet::{Database, Format, LoadOptions, Source};

/// One file in this many is also read in LDBC mode, or with `skip_errors`.
const TWICE_EVERY: usize = 4;

pub(crate) fn check(format: Format, bytes: &[u8]) {
    thread_local! {
        // Recreated after a successful load: a case must not depend on earlier ones.
        static DATABASE: RefCell<Option<Database>> = const { RefCell::new(None) };
    }
    let database = DATABASE.take().unwrap_or_else(Database::in_memory);
    let twice = bytes.len().is_multiple_of(TWICE_EVERY);
    match oracle::classify(graph::read(&database, format, bytes, 1)) {
        Outcome::Done(_) => {
            graph::check_round_trip(&database);
            check_export(&database, Format::GraphSon);
            check_export(&database, if twice { Format::GraphMl } else { Format::GraphSon2 });
        }
        _ => {
            assert_eq!(graph::count(&database), 0, "a failed load leaves statements behind");
            DATABASE.set(Some(database));
            if twice {
                let options = LoadOptions {
                    format: Some(format),
                    threads: 1,
                    skip_errors: true,
                    names_from_files: bytes.len().is_multiple_of(2 * TWICE_EVERY),
                    ..LoadOptions::default()
                };
                let source = Source::bytes("person_knows_person_0_0.csv", bytes);
                oracle::classify(Database::in_memory().load(vec![source], &options));
            }
        }
    }
}

/// An export reads as a graph with equally many vertices and edges, and its second export is equal.
fn check_export(database: &Database, format: Format) {
    let mut first = Vec::new();
    let Outcome::Done(count) = oracle::classify(database.export(format, &mut first)) else { return };
    let mut statements = None;
    for _ in 0..2 {
        let again = Database::in_memory();
        if let Err(error) = graph::read(&again, format, &first, 1) {
            panic!("the export cannot be read: {error}\n{}", String::from_utf8_lossy(&first));
        }
        first.clear();
        assert_eq!(oracle::classify(again.export(format, &mut first)), Outcome::Done(count), "{format:?}");
        let there = graph::count(&again);
        assert_eq!(*statements.get_or_insert(there), there, "the second graph has other counts");
    }
}
