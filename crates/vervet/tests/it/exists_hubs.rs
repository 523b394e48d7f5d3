//! `EXISTS` over long lists: the first entry that decides a row ends the reading of its list.

use vervet::{Database, Format, QueryOptions};

/// Of a line of a profile the number of rows.
fn rows_of(profile: &str, step: &str) -> u64 {
    let line =
        profile.lines().find(|line| line.contains(step)).unwrap_or_else(|| panic!("no {step}: {profile}"));
    let columns: Vec<&str> = line.split_whitespace().collect();
    let mut numbers = columns.iter().rev().filter_map(|column| column.replace(',', "").parse::<u64>().ok());
    numbers.next().expect("a number of rows")
}

#[test]
fn a_row_that_is_decided_reads_no_more() {
    let mut text = String::new();
    for number in 0..4_000_u32 {
        text.push_str(&format!("<urn:v{number}> <urn:hub> <urn:h{}> .\n", number % 2));
        text.push_str(&format!("<urn:v{number}> <urn:knows> <urn:v{}> .\n", number * 7 % 4_000));
    }
    let database = Database::in_memory();
    database.load_text(Format::Turtle, &text).expect("a graph");
    let query = "SELECT (COUNT(*) AS ?n) { ?x <urn:knows> ?y \
                 FILTER NOT EXISTS { ?q <urn:hub> ?h . ?x <urn:hub> ?h FILTER(?q != ?x && ?q != ?y) } }";
    let prepared = database.prepare(query).expect("a query");
    let options = QueryOptions::default().with_threads(1);
    let profile = prepared.profile_with(&options).expect("it runs");
    let listed = rows_of(&profile, "←<urn:hub>─");
    assert!(listed >= 4_000, "each row needs an entry: {profile}");
    // All lists of all rows have 8,000,000 entries.
    assert!(listed < 400_000, "{profile}");
    // Where nothing matches, all entries are read.
    let query = query.replace("?q != ?x && ?q != ?y", "?q = <urn:none> || ?q = ?h");
    assert_eq!(count(&database, &query), 4_000);
    let query = query.replace("?q = <urn:none> || ?q = ?h", "STR(?q) = \"urn:v3999\"");
    assert_eq!(count(&database, &query), 2_000, "the last entry of every second list decides");
}

fn count(database: &Database, query: &str) -> i64 {
    let solutions = database.query(query).expect("it runs").into_solutions().expect("rows");
    let row = solutions.rows().next().expect("a row");
    row.integer("n").expect("a number").expect("bound")
}
