//! Tests of damaged database files.
//!
//! Every byte of every file of a small database is changed, one at a time, and every file is cut at every
//! length. A read then gives an error of kind `Corrupt` or the unchanged results; never a panic and never a
//! wrong result.

use crate::common::{Graph, GraphParameters, Random, options, seed};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use vervet_env::{Environment, FileSystem};
use vervet_model::{Direction, ErrorKind, Id, Result};
use vervet_snapshot::{ClassId, EntryFilter, GraphFilter, OrderRange, Snapshot};
use vervet_store::{Base, Store, Target};

/// All content of the database in `dir`.
fn read_all(environment: &Environment, dir: &Path) -> Result<String> {
    let store = Store::open(environment, dir)?;
    let mut text = String::new();
    let mut say = |what: &dyn std::fmt::Debug| {
        let _ = writeln!(text, "{what:?}");
    };
    say(&(store.vertex_count(), store.edge_count(), store.literal_count(), store.statement_count()));
    say(&(store.predicates(), store.graphs(), store.type_predicate()));
    say(&(0..300).map(|class| store.class_size(ClassId(class))).collect::<Vec<_>>());
    for statement in store.statements() {
        say(&statement?);
    }
    for number in 0..store.edge_count() {
        match store.edge(Id::edge(number)) {
            Err(error) if error.kind() == ErrorKind::Input => {}
            row => say(&row?),
        }
    }
    let ids = (0..store.vertex_count()).map(Id::vertex).chain((0..store.literal_count()).map(Id::literal));
    let mut scratch = String::new();
    for id in ids {
        let mut term = None;
        store.read_term(id, &mut scratch, &mut |parts| term = Some(parts.to_term()))?;
        let term = term.expect("read_term calls its reader");
        say(&(id, &term, store.lookup(term.as_ref())?, store.classes_of_type(id)));
    }
    for (predicate, _) in store.predicates() {
        for direction in Direction::BOTH {
            let Some(segment) = store.segment(*predicate, direction)? else { continue };
            say(segment.statistics());
            let mut keys = Vec::new();
            segment.keys(Id::UNBOUND, usize::MAX, &mut keys)?;
            let mut degrees = Vec::new();
            segment.degrees(&keys, EntryFilter::ALL, &mut degrees)?;
            say(&degrees);
            for key in &keys {
                let mut neighbours = Vec::new();
                segment.neighbours(*key, EntryFilter::default(), &mut neighbours)?;
                say(&(key, neighbours));
                if segment.order().is_some() {
                    let mut ordered = Vec::new();
                    let range = OrderRange { limit: usize::MAX, ..OrderRange::default() };
                    segment.ordered(*key, &range, GraphFilter::Any, &mut ordered)?;
                    say(&ordered);
                }
            }
        }
    }
    Ok(text)
}

fn database() -> (Environment, PathBuf, String) {
    let seed = seed();
    let mut random = Random(seed | 1);
    let shape = GraphParameters {
        vertices: 12,
        statements: 60,
        predicates: 5,
        types: 3,
        edges: true,
        named_graphs: true,
    };
    let graph = Graph::random(shape, &mut random);
    let environment = Environment::simulated(seed);
    let dir = PathBuf::from("/db");
    graph.build(options(&environment), &Target::Directory(dir.clone()));
    let answers = read_all(&environment, &dir).expect("whole");
    assert!(!Store::open(&environment, &dir).expect("whole").orders().is_empty(), "seed {seed}: no order");
    (environment, dir, answers)
}

fn overwrite(files: &dyn FileSystem, path: &Path, bytes: &[u8]) {
    files.create(path).and_then(|mut file| file.write_all(bytes)).expect("a disk that works");
}

/// Checks that the results are unchanged, or a correct error.
fn check(environment: &Environment, dir: &Path, answers: &str, what: &str) -> bool {
    match read_all(environment, dir) {
        Ok(text) => {
            assert!(text == answers, "{what}: wrong answers");
            false
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
            true
        }
    }
}

#[test]
fn a_changed_byte_is_detected_or_harmless() {
    let (environment, dir, answers) = database();
    for path in environment.files.list(&dir).expect("it is there") {
        let whole = environment.files.read(&path).expect("it is there");
        let mut harmless = 0;
        for position in 0..whole.len() {
            for change in [0x01, 0x80, 0xFF] {
                let mut bytes = whole.clone();
                bytes[position] ^= change;
                overwrite(&*environment.files, &path, &bytes);
                let what = format!("{}, byte {position} ^ {change:#x}", path.display());
                harmless += usize::from(!check(&environment, &dir, &answers, &what));
                // Validation compares whole files, so it finds every change, also in padding.
                if let Ok(store) = Store::open(&environment, &dir) {
                    let kind = store.validate().map_err(|error| error.kind());
                    assert_eq!(kind, Err(ErrorKind::Corrupt), "{what}: validation");
                }
            }
        }
        overwrite(&*environment.files, &path, &whole);
        println!(
            "{}: {} bytes, {harmless} of {} changes harmless",
            path.display(),
            whole.len(),
            whole.len() * 3
        );
    }
    assert!(!check(&environment, &dir, &answers, "restored"));
}

/// Version 3 of the segment file differs from version 4 only in that it has no samples of keys, which a flag
/// of each segment announces; version 2 from version 3 in that it has no framed arrays, which small files do
/// not have either.
#[test]
fn older_versions_are_read_or_refused() {
    let (environment, dir, answers) = database();
    let path = dir.join("segments-1.vvs");
    let whole = environment.files.read(&path).expect("it is there");
    for (version, is_read) in [(1, false), (2, false), (3, true), (4, true), (5, true), (6, false)] {
        let mut bytes = whole.clone();
        bytes[8] = version;
        overwrite(&*environment.files, &path, &bytes);
        assert_eq!(!check(&environment, &dir, &answers, &format!("version {version}")), is_read, "{version}");
    }
}

#[test]
fn wrong_file_lengths_are_detected() {
    let (environment, dir, answers) = database();
    for path in environment.files.list(&dir).expect("it is there") {
        let whole = environment.files.read(&path).expect("it is there");
        for length in 0..whole.len() {
            overwrite(&*environment.files, &path, &whole[..length]);
            assert!(check(&environment, &dir, &answers, &format!("{} cut at {length}", path.display())));
        }
        let longer = [&*whole, b"\0"].concat();
        overwrite(&*environment.files, &path, &longer);
        assert!(check(&environment, &dir, &answers, &format!("{} made longer", path.display())));
        if path.file_name() != Some("MANIFEST".as_ref()) {
            environment.files.remove_file(&path).expect("it is there");
            assert!(check(&environment, &dir, &answers, &format!("{} removed", path.display())));
        }
        overwrite(&*environment.files, &path, &whole);
    }
}

#[test]
fn a_directory_without_a_database_is_an_input_error() {
    let environment = Environment::simulated(1);
    let error = Store::open(&environment, Path::new("/nowhere")).map(drop).expect_err("nothing there");
    assert_eq!(error.kind(), ErrorKind::Input);
}
