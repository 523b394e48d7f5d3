//! Graphs without types: sets of predicates as classes prove joins and paths empty, until a change.

use vervet::{Answer, Database, Format, OutputFormat, QueryOptions};

const PREFIX: &str = "PREFIX : <http://example.org/> ";

/// Readers who like books, writers who wrote books, and cities near cities: no city is a book.
fn sample() -> Database {
    let mut text = String::from("@prefix : <http://example.org/> .\n");
    for number in 0..300 {
        text += &format!(":reader{number} :likes :book{} ; :lives :city{} .\n", number % 40, number % 7);
        text += &format!(":writer{number} :wrote :book{} .\n", number % 50);
        text += &format!(":city{} :near :city{} .\n", number % 7, (number + 1) % 7);
    }
    let database = Database::in_memory();
    database.load_text(Format::Turtle, &text).expect("it loads");
    database
}

fn count(database: &Database, pattern: &str) -> usize {
    let text = format!("{PREFIX} SELECT DISTINCT ?x ?z {{ {pattern} }}");
    match database.query_with(&text, &QueryOptions::default()).expect("it runs") {
        Answer::Solutions(solutions) => solutions.len(),
        other => panic!("no solutions: {other:?}"),
    }
}

fn is_proved_empty(database: &Database, pattern: &str) -> bool {
    let text = format!("{PREFIX} SELECT DISTINCT ?x ?z {{ {pattern} }}");
    let plan = database.explain(&text, &QueryOptions::default()).expect("it is planned");
    plan.contains("provably no solution")
}

const EMPTY: [&str; 5] = [
    "?x :likes ?y . ?y :near ?z",
    "?x :wrote ?y . ?z :lives ?y",
    "?x :likes/:near ?z",
    "?x (:lives|:near)+/^:wrote ?z",
    "?x :likes+ ?y . ?y (:near|:lives)+ ?z",
];

const NOT_EMPTY: [&str; 4] = [
    "?x :likes ?y . ?z :wrote ?y",
    "?x :lives ?y . ?y :near ?z",
    "?x :lives/:near+ ?z",
    "?x :likes/:near* ?z",
];

#[test]
fn ends_without_a_common_vertex_prove_joins_and_paths_empty() {
    let database = sample();
    for pattern in EMPTY {
        assert!(is_proved_empty(&database, pattern), "{pattern}");
        assert_eq!(count(&database, pattern), 0, "{pattern}");
    }
    for pattern in NOT_EMPTY {
        assert!(!is_proved_empty(&database, pattern), "{pattern}");
        assert!(count(&database, pattern) > 0, "{pattern}");
    }
}

#[test]
fn a_change_ends_the_proof() {
    let database = sample();
    for pattern in EMPTY {
        assert_eq!(count(&database, pattern), 0, "{pattern}");
    }
    // Books become places, with a new city; every pattern has a solution then.
    let update = "INSERT DATA { :book1 :near :city1 . :city1 :lives :book2 . :writer1 :wrote :city2 . \
                  :reader1 :lives :book3 . :city3 :likes :book4 . :book5 :lives :city6 . \
                  :reader5 :likes :city1 . :newcomer :lives :book1 . :newcomer :near :book6 }";
    database.update(&format!("{PREFIX} {update}")).expect("it is written");
    let rebuilt = Database::in_memory();
    let mut all = Vec::new();
    let text = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }";
    database.write(text, &QueryOptions::default(), OutputFormat::NTriples, &mut all).expect("it is written");
    rebuilt.load_text(Format::NTriples, std::str::from_utf8(&all).expect("UTF-8")).expect("it loads");
    for pattern in EMPTY.into_iter().chain(NOT_EMPTY) {
        let changed = count(&database, pattern);
        assert_eq!(changed, count(&rebuilt, pattern), "{pattern}");
        assert!(changed > 0, "{pattern}");
        assert!(!is_proved_empty(&database, pattern), "{pattern}");
    }
}
