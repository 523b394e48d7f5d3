//! Files of property graphs: all or nothing, and what was read comes out of an export as what reads the same.

use crate::graph;
use crate::judge::{self, Outcome};
use std::cell::RefCell;
use vervet::{Database, Format, LoadOptions, Source};

/// One file in this many is also read as LDBC's files are, or with its errors skipped.
const TWICE_EVERY: usize = 4;

pub(crate) fn check(format: Format, bytes: &[u8]) {
    thread_local! {
        // Made anew when something was loaded into it: a case must not depend on those before.
        static DATABASE: RefCell<Option<Database>> = const { RefCell::new(None) };
    }
    let database = DATABASE.take().unwrap_or_else(Database::in_memory);
    let twice = bytes.len().is_multiple_of(TWICE_EVERY);
    match judge::settle(graph::read(&database, format, bytes, 1)) {
        Outcome::Done(_) => {
            graph::check_round_trip(&database);
            check_export(&database, Format::GraphSon);
            check_export(&database, if twice { Format::GraphMl } else { Format::GraphSon2 });
        }
        _ => {
            assert_eq!(graph::count(&database), 0, "a load that fails leaves something behind");
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
                judge::settle(Database::in_memory().load(vec![source], &options));
            }
        }
    }
}

/// What was written and read again has as many vertices and edges, and is written as what is read the same.
fn check_export(database: &Database, format: Format) {
    let mut first = Vec::new();
    let Outcome::Done(count) = judge::settle(database.export(format, &mut first)) else { return };
    let mut statements = None;
    for _ in 0..2 {
        let again = Database::in_memory();
        if let Err(error) = graph::read(&again, format, &first, 1) {
            panic!("what was written cannot be read: {error}\n{}", String::from_utf8_lossy(&first));
        }
        first.clear();
        assert_eq!(judge::settle(again.export(format, &mut first)), Outcome::Done(count), "{format:?}");
        let there = graph::count(&again);
        assert_eq!(*statements.get_or_insert(there), there, "what was read again is something else");
    }
}
