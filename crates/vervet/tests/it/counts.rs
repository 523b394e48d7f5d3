//! Counts in serializable transactions: a count enters the read set even if statistics would answer it, so a
//! concurrent insert that changes it is a conflict.

use vervet::{Database, ErrorKind, Format, Isolation, TransactionOptions};

/// Every statement here contributes to the counts.
const LOADED: &str = "<urn:a> <urn:p> <urn:b> .\n<urn:a> <urn:p> <urn:c> .\n<urn:b> <urn:p> <urn:c> .\n";

/// The same graph, as a base without a delta and as a delta without a base.
fn databases() -> [Database; 2] {
    let loaded = Database::in_memory();
    loaded.load_text(Format::NTriples, LOADED).expect("it loads");
    let written = Database::in_memory();
    written.update(&format!("INSERT DATA {{ {LOADED} }}")).expect("it runs");
    [loaded, written]
}

/// Whether a transaction that has done `work` conflicts with an insert that commits before it.
fn collides(database: &Database, isolation: Isolation, work: &dyn Fn(&mut vervet::Transaction)) -> bool {
    let mut transaction = database.begin_with(TransactionOptions { isolation }).expect("it begins");
    work(&mut transaction);
    transaction.update("INSERT DATA { <urn:mine> <urn:mine> 1 }").expect("it runs");
    database.update("INSERT DATA { <urn:a> <urn:p> <urn:d> }").expect("no concurrent commit");
    match transaction.commit() {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
            true
        }
    }
}

#[test]
fn a_count_is_a_read() {
    for count in [
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
        "SELECT (COUNT(DISTINCT ?p) AS ?n) { ?s ?p ?o }",
        "SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?o }",
        "SELECT (COUNT(DISTINCT ?o) AS ?n) { ?s <urn:p> ?o }",
        "SELECT (COUNT(*) AS ?n) { <urn:a> <urn:p> ?o }",
        "SELECT ?s (COUNT(*) AS ?n) { ?s <urn:p> ?o } GROUP BY ?s",
        "SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?o . ?o <urn:p> ?x }",
        "SELECT * { { SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?o } } FILTER(?n > 2) }",
    ] {
        for database in databases() {
            let work = |transaction: &mut vervet::Transaction| {
                transaction.query(count).expect("it runs");
            };
            assert!(collides(&database, Isolation::Serializable, &work), "{count}");
        }
        for database in databases() {
            let work = |transaction: &mut vervet::Transaction| {
                transaction.query(count).expect("it runs");
            };
            assert!(!collides(&database, Isolation::Snapshot, &work), "{count}");
        }
    }
}

#[test]
fn a_count_in_an_update_is_a_read() {
    for pattern in ["?s ?p ?o", "?s <urn:p> ?o", "<urn:a> <urn:p> ?o"] {
        let update = format!(
            "INSERT {{ <urn:total> <urn:is> ?n }} WHERE {{ SELECT (COUNT(*) AS ?n) {{ {pattern} }} }}"
        );
        for database in databases() {
            let work = |transaction: &mut vervet::Transaction| {
                transaction.update(&update).expect("it runs");
            };
            assert!(collides(&database, Isolation::Serializable, &work), "{pattern}");
        }
    }
}

#[test]
fn a_count_of_something_else_does_not_collide() {
    for database in databases() {
        let work = |transaction: &mut vervet::Transaction| {
            let other = "SELECT (COUNT(*) AS ?n) { <urn:b> <urn:p> ?o }";
            transaction.query(other).expect("it runs");
        };
        assert!(!collides(&database, Isolation::Serializable, &work));
    }
}

#[test]
fn distinct_solutions_have_the_columns_of_select_star() {
    for database in databases() {
        for (pattern, expected) in [
            ("?s <urn:p> _:x", 2),
            ("?s <urn:p>/^<urn:p> ?t", 4),
            ("?s !<urn:q> _:y . ?s <urn:p> ?o", 3),
            ("{ SELECT ?s { ?s <urn:p> ?hidden } }", 2),
            ("?s <urn:p> ?o", 3),
        ] {
            let text = format!("SELECT (COUNT(DISTINCT *) AS ?n) {{ {pattern} }}");
            let count = |text: &str| {
                let found = database.query(text).expect("it runs").into_solutions().expect("rows");
                found.rows().map(|row| row.integer("n").expect("sound")).collect::<Vec<_>>()
            };
            assert_eq!(count(&text), [Some(expected)], "{text}");
            // The definition.
            let all = database.query(&format!("SELECT DISTINCT * {{ {pattern} }}")).expect("it runs");
            assert_eq!(i64::try_from(all.into_solutions().expect("rows").len()), Ok(expected), "{pattern}");
            let of_groups = format!("SELECT (COUNT(DISTINCT *) AS ?n) {{ {pattern} }} GROUP BY ?s");
            assert_eq!(count(&of_groups).into_iter().flatten().sum::<i64>(), expected, "{of_groups}");
        }
    }
}

/// Counts of kinds of terms, with and without blank nodes, as a base, as a base with changes, and as changes
/// alone, against a count of the solutions.
#[test]
fn counts_of_kinds_are_those_of_the_solutions() {
    let plain = "<urn:a> <urn:p> <urn:b> , 'text' , 'texts'@en , 7 , 'a text that is long' . <urn:b> <urn:q> <urn:a> .";
    let blank = "<urn:a> <urn:p> _:x . _:x <urn:p> _:y , 'of a blank node' ; <urn:q> 12 .";
    let named = "GRAPH <urn:g> { <urn:a> <urn:p> 'in a graph' }";
    let mut databases = Vec::new();
    for parts in [vec![plain], vec![plain, blank], vec![blank]] {
        let text = parts.join(" ");
        let loaded = Database::in_memory();
        loaded.load_text(Format::Turtle, &text).expect("it loads");
        let changed = Database::in_memory();
        changed.load_text(Format::Turtle, &text).expect("it loads");
        changed
            .update("INSERT DATA { <urn:c> <urn:p> _:z , 'new text' ; <urn:r> <urn:c> }")
            .expect("it runs");
        let written = Database::in_memory();
        written.update(&format!("INSERT DATA {{ {text} }}")).expect("it runs");
        let removed = Database::in_memory();
        removed.load_text(Format::Turtle, &text).expect("it loads");
        removed.update("DELETE WHERE { ?s <urn:q> ?o }").expect("it runs");
        let graphs = Database::in_memory();
        graphs.update(&format!("INSERT DATA {{ {text} {named} }}")).expect("it runs");
        databases.extend([loaded, changed, written, removed, graphs]);
    }
    for database in databases {
        for pattern in
            ["?s ?p ?o", "?s <urn:p> ?o", "?s <urn:q> ?o", "?s <urn:none> ?o", "GRAPH ?g { ?s ?p ?o }"]
        {
            for condition in [
                "isBlank(?s)",
                "isIRI(?s)",
                "isLiteral(?s)",
                "isBlank(?o)",
                "isIRI(?o)",
                "isLiteral(?o)",
                "!isLiteral(?o)",
                "isIRI(?s) && isLiteral(?o)",
                "isBlank(?s) || isLiteral(?o)",
                "isBlank(?s) && isIRI(?o) && BOUND(?s)",
                "isNumeric(?o)",
            ] {
                for what in ["*", "?s", "DISTINCT ?s", "DISTINCT *"] {
                    let inside = format!("{pattern} FILTER({condition})");
                    let found = database
                        .select(&format!("SELECT (COUNT({what}) AS ?n) {{ {inside} }}"))
                        .expect("it runs");
                    let count = found.rows().next().and_then(|row| row.integer("n").expect("sound"));
                    let columns = if what.contains('*') { "*" } else { "?s" };
                    let distinct = if what.contains("DISTINCT") { "DISTINCT" } else { "" };
                    let rows = database
                        .select(&format!("SELECT {distinct} {columns} {{ {inside} }}"))
                        .expect("it runs");
                    assert_eq!(count, i64::try_from(rows.len()).ok(), "COUNT({what}) {inside}");
                }
            }
        }
    }
}
