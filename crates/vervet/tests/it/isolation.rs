//! Serializable isolation through the facade: overlapping transactions of SPARQL updates, typed edits,
//! Gremlin and queries, checked by replaying the committed ones serially in commit order.
//!
//! # The oracle
//! A second database runs the operations of each committed transaction with changes, serially. The graph must
//! be equal afterwards, and each operation must have had the same answer: that is what
//! `Isolation::Serializable` guarantees. Blind writes return nothing here, since whether a statement existed
//! is not a read. `txn/tests/refusals.rs` specifies which commits are refused, in terms of statements; this
//! test checks that each front end notes its reads.

use oxrdf::{GraphNameRef, NamedNode, NamedNodeRef, QuadRef};
use std::collections::BTreeSet;
use std::time::Duration;
use vervet::update::{Documents, UpdateOptions};
use vervet::{
    ATTEMPTS_MAX, Database, Direction, ErrorKind, Format, LoadOptions, QueryOptions, Result, Source, Term,
    Transaction, Vertex,
};
use vervet_env::Simulation;
use vervet_testkit::{Random, seed};

const VERTICES: u64 = 3;
/// Each round has a graph of its own. Twelve rounds of this length miss the findings with the default seed.
const ROUNDS: usize = 60;
const STEPS: usize = 200;

/// One operation: a kind and a few numbers, so that it can be replayed elsewhere.
#[derive(Clone, Copy, Debug)]
struct Operation {
    kind: u64,
    one: u64,
    other: u64,
    key: u64,
    value: u64,
}

const KINDS: u64 = 30;

/// The rows of a query, sorted.
fn rows(transaction: &Transaction, query: &str) -> Result<String> {
    let mut rows: Vec<String> = Vec::new();
    let solutions = transaction.select(query)?;
    let names = solutions.variables();
    for row in solutions.rows() {
        let cells: Result<Vec<String>> = names
            .iter()
            .map(|name| Ok(row.get(name)?.as_ref().map(Term::to_string).unwrap_or_default()))
            .collect();
        rows.push(cells?.join(" "));
    }
    rows.sort();
    Ok(rows.join("\n"))
}

impl Operation {
    fn random(random: &mut Random) -> Self {
        Self {
            kind: random.below(KINDS),
            one: random.below(VERTICES),
            other: random.below(VERTICES),
            key: random.below(2),
            value: random.below(2),
        }
    }

    /// Runs the operation; returns its answer, without the ids of edges.
    fn run(self, transaction: &mut Transaction) -> Result<String> {
        let Self { kind, one, other, key, value } = self;
        let (a, b) = (format!("<urn:v{one}>"), format!("<urn:v{other}>"));
        let (k, e) = (format!("<urn:vervet:key:k{key}>"), "<urn:vervet:key:e>");
        let (name, label, class) = (format!("k{key}"), "L", "<urn:vervet:label:L>");
        let id = format!("\"urn:v{one}\"");
        let update = |transaction: &mut Transaction, text: String| {
            transaction.update(&text)?;
            Ok(String::new())
        };
        let gremlin = |transaction: &mut Transaction, text: String| {
            let results = transaction.gremlin(&text)?;
            let mut all: Vec<String> = results.values().map(|value| format!("{value:?}")).collect();
            all.sort();
            Ok(all.join("\n"))
        };
        let vertex = |transaction: &Transaction, number: u64| -> Result<Vertex> {
            let found = transaction.read(|graph| graph.vertex(&format!("urn:v{number}")))?;
            Ok(found.expect("all names are known from the start"))
        };
        match kind {
            0 | 1 => update(transaction, format!("INSERT DATA {{ {a} {k} \"x{value}\" }}")),
            2 | 3 => update(transaction, format!("DELETE DATA {{ {a} {k} \"x{value}\" }}")),
            4 | 5 => update(transaction, format!("DELETE WHERE {{ {a} ?p ?o }}")),
            6 => update(transaction, format!("INSERT {{ {a} {k} \"x{value}\" }} WHERE {{ {a} a {class} }}")),
            7 => update(transaction, format!("INSERT DATA {{ {a} a {class} }}")),
            8 => update(transaction, format!("DELETE DATA {{ {a} a {class} }}")),
            9 => update(transaction, format!("INSERT DATA {{ {a} {e} {b} }}")),
            10 => update(transaction, format!("DELETE DATA {{ {a} {e} {b} }}")),
            11 => update(transaction, format!("DELETE {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o . ?s {k} ?x }}")),
            12 => update(
                transaction,
                format!("DELETE {{ ?s {k} ?o }} INSERT {{ ?s {e} {b} }} WHERE {{ ?s {k} ?o }}"),
            ),
            13 => rows(transaction, &format!("SELECT ?p ?o {{ {a} ?p ?o }}")),
            14 => rows(transaction, &format!("SELECT ?s {{ ?s a {class} }}")),
            15 => rows(transaction, "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"),
            16 => rows(transaction, &format!("SELECT ?s ?o {{ ?s {e} ?o . ?s {k} ?v }}")),
            17 => rows(transaction, "SELECT DISTINCT ?p { ?s ?p ?o }"),
            18 => {
                let (from, to) = (vertex(transaction, one)?, vertex(transaction, other)?);
                transaction.add_edge(from, "e", to)?;
                Ok(String::new())
            }
            19 => {
                let of = vertex(transaction, one)?;
                Ok(transaction.remove_vertex(of)?.to_string())
            }
            20 => {
                let of = vertex(transaction, one)?;
                transaction.set_property(of, &name, format!("x{value}").as_str())?;
                Ok(String::new())
            }
            21 => {
                let of = vertex(transaction, one)?;
                Ok(transaction.remove_property(of, &name)?.to_string())
            }
            22 => {
                let of = vertex(transaction, one)?;
                if value == 0 {
                    transaction.add_label(of, label)?
                } else {
                    transaction.remove_label(of, label)?
                };
                Ok(String::new())
            }
            23 => transaction.read(|graph| {
                let of = graph.vertex(&format!("urn:v{one}"))?.expect("known");
                let labels: BTreeSet<String> = graph.labels(of)?.into_iter().collect();
                let properties: BTreeSet<String> =
                    graph.properties(of)?.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
                let edges = graph.edges(of, "e", Direction::Out)?;
                let identified = edges.iter().filter(|edge| edge.id().is_some()).count();
                Ok(format!("{labels:?} {properties:?} {} {identified}", edges.len()))
            }),
            24 => gremlin(transaction, format!("g.V({id}).property(\"{name}\", \"x{value}\").count()")),
            25 => gremlin(transaction, format!("g.V({id}).drop()")),
            26 => gremlin(transaction, format!("g.V({id}).addE(\"e\").to(__.V(\"urn:v{other}\")).count()")),
            27 => gremlin(transaction, format!("g.V({id}).label()")),
            28 => gremlin(transaction, format!("g.V({id}).outE().count()")),
            _ => gremlin(transaction, format!("g.V({id}).properties().drop()")),
        }
    }

    /// [`Operation::run`], where only a conflict is an error.
    fn answer(self, transaction: &mut Transaction) -> Result<String> {
        match self.run(transaction) {
            Err(error) if error.kind() == ErrorKind::Conflict => Err(error),
            // The message may contain the id of an edge.
            Err(error) => Ok(format!("{:?}", error.kind())),
            Ok(answer) => Ok(answer),
        }
    }
}

/// All statements, edges by their number.
fn content(database: &Database) -> String {
    let transaction = database.begin().expect("begins");
    let plain = "SELECT ?s ?p ?o { ?s ?p ?o FILTER(!STRSTARTS(STR(?s), \"urn:vervet:edge:\")) }";
    let edges = "SELECT ?s ?p ?o (COUNT(?e) AS ?n) { ?s ?p ?o ~ ?e } GROUP BY ?s ?p ?o";
    [plain, edges].map(|query| rows(&transaction, query).expect("sound")).join("\n--\n")
}

/// A database that has interned all names and has no statements, so that which terms are unknown to base or
/// dictionary is not random.
fn prepared(in_base: bool) -> Database {
    let database = Database::in_memory();
    let names: Vec<String> = (0..VERTICES)
        .map(|vertex| {
            format!(
                "<urn:v{vertex}> a <urn:vervet:label:L> ; <urn:vervet:key:k0> \"x0\" ; \
                 <urn:vervet:key:k1> \"x1\" ; <urn:vervet:key:e> <urn:v0>"
            )
        })
        .collect();
    database.update(&format!("INSERT DATA {{ {} }}", names.join(" . "))).expect("it runs");
    // Without statements there would be nothing to merge, and the terms would not get into the base.
    if in_base {
        assert!(database.checkpoint().expect("works"));
    }
    database.update("CLEAR ALL").expect("it runs");
    if in_base {
        assert!(database.checkpoint().expect("works"));
    }
    database
}

struct Open {
    transaction: Transaction,
    operations: Vec<(Operation, String)>,
}

/// storage B7, B8, B9: transactions of all front ends are serializable in the order of their commits.
#[test]
fn b7_b8_b9_all_front_ends_are_serializable() {
    let seed = seed();
    let mut random = Random(seed);
    let (mut accepted, mut refused) = (0, 0);
    let mut round = 0;
    while round < ROUNDS {
        round += 1;
        let (database, judge) = (prepared(round % 2 == 0), prepared(false));
        let mut open: Vec<Open> = Vec::new();
        let mut last = database.begin().expect("begins").commit().expect("nothing to commit");
        for step in 0..STEPS {
            if open.len() < 2 || open.len() < 4 && random.below(6) == 0 {
                let transaction = database.begin().expect("begins");
                open.push(Open { transaction, operations: Vec::new() });
                continue;
            }
            let at = usize::try_from(random.below(open.len() as u64)).expect("small");
            if random.below(4) > 0 {
                let operation = Operation::random(&mut random);
                match operation.answer(&mut open[at].transaction) {
                    Ok(answer) => open[at].operations.push((operation, answer)),
                    Err(_) => drop(open.swap_remove(at)),
                }
                continue;
            }
            if random.below(40) == 0 {
                database.checkpoint().expect("works");
            }
            let Open { transaction, operations } = open.swap_remove(at);
            let committed = match transaction.commit() {
                Ok(committed) => committed,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                    refused += 1;
                    continue;
                }
            };
            // A read-only transaction is equivalent to a run at its begin.
            if committed <= last {
                continue;
            }
            last = committed;
            accepted += 1;
            let mut again = judge.begin().expect("begins");
            for (operation, answer) in &operations {
                let alone = operation.answer(&mut again).expect("no concurrent transaction");
                assert_eq!(
                    answer, &alone,
                    "seed {seed}, round {round}, step {step}: {operation:?} of {operations:#?}"
                );
            }
            again.commit().expect("no concurrent transaction");
            assert_eq!(
                content(&database),
                content(&judge),
                "seed {seed}, round {round}, step {step}: after {operations:#?}"
            );
        }
    }
    println!("{accepted} accepted, {refused} refused");
    assert!(accepted > 100 && refused > 20, "{accepted} accepted, {refused} refused");
}

/// storage B7: a transaction that has emptied a predicate, and then reads all predicates of a vertex,
/// conflicts with a statement that is added to that predicate.
#[test]
fn b7_a_predicate_that_became_empty_is_read_as_absent() {
    let begin = || {
        let database = Database::in_memory();
        let data = "INSERT DATA { <urn:v2> <urn:vervet:key:nick> \"a\" ; a <urn:vervet:label:P> .
                                  <urn:v> a <urn:vervet:label:P> }";
        database.update(data).expect("it runs");
        let (one, other) = (database.begin().expect("begins"), database.begin().expect("begins"));
        (database, one, other)
    };
    let insert = "INSERT { <urn:v> <urn:vervet:key:nick> \"x\" } WHERE { <urn:v> a <urn:vervet:label:P> }";
    let conflict = |one: Transaction, how: &str| {
        assert_eq!(one.commit().expect_err(how).kind(), ErrorKind::Conflict, "{how}");
    };

    let (_database, mut one, mut other) = begin();
    one.update("DELETE DATA { <urn:v2> <urn:vervet:key:nick> \"a\" } ; DELETE WHERE { <urn:v> ?p ?o }")
        .expect("it runs");
    other.update(insert).expect("it runs");
    other.commit().expect("the first");
    conflict(one, "SPARQL");

    let (_database, mut one, mut other) = begin();
    let vertex = |transaction: &Transaction, name: &str| {
        transaction.read(|graph| graph.vertex(name)).expect("sound").expect("known")
    };
    let (v, v2) = (vertex(&one, "urn:v"), vertex(&one, "urn:v2"));
    one.remove_property(v2, "nick").expect("it is there");
    one.remove_vertex(v).expect("it is there");
    let v = vertex(&other, "urn:v");
    other.set_property(v, "nick", "x").expect("it is there");
    other.commit().expect("the first");
    conflict(one, "typed");

    let (_database, mut one, mut other) = begin();
    one.gremlin("g.V(\"urn:v2\").properties(\"nick\").drop()").expect("it runs");
    one.gremlin("g.V(\"urn:v\").drop()").expect("it runs");
    other.gremlin("g.V(\"urn:v\").property(\"nick\", \"x\")").expect("it runs");
    other.commit().expect("the first");
    conflict(one, "Gremlin");
}

/// storage B8: an operation that skips the edges of a predicate without edges notes their absence as a read.
#[test]
fn b8_a_statement_that_becomes_an_edge_meanwhile_is_a_conflict() {
    let database = Database::in_memory();
    database.update("INSERT DATA { <urn:a> <urn:vervet:key:p> <urn:b> }").expect("it runs");
    let (mut one, mut other) = (database.begin().expect("begins"), database.begin().expect("begins"));
    one.update("DELETE DATA { <urn:a> <urn:vervet:key:p> <urn:b> }").expect("it runs");
    let (a, b) = other
        .read(|graph| Ok((graph.vertex("urn:a")?.expect("there"), graph.vertex("urn:b")?.expect("there"))))
        .expect("sound");
    other.add_edge(a, "p", b).expect("both are there");
    other.commit().expect("the first");
    assert_eq!(one.commit().expect_err("the statement is an edge now").kind(), ErrorKind::Conflict);
}

/// storage B9: the absence of any type is a read, even if the base has the term `rdf:type` from earlier
/// statements. The typed interface reads nothing else here; Gremlin also lists predicates.
#[test]
fn b9_the_first_type_conflicts_with_a_label_that_was_not_there() {
    for (in_base, typed) in [(false, false), (true, false), (false, true), (true, true)] {
        let database = prepared(in_base);
        database.update("INSERT DATA { <urn:v0> <urn:vervet:key:k0> \"x0\" }").expect("it runs");
        let (mut one, mut other) = (database.begin().expect("begins"), database.begin().expect("begins"));
        if typed {
            let labels = one.read(|graph| graph.labels(graph.vertex("urn:v0")?.expect("it is there")));
            assert!(labels.expect("sound").is_empty());
        } else {
            one.gremlin("g.V(\"urn:v0\").label()").expect("it runs");
        }
        one.update("INSERT DATA { <urn:v1> <urn:vervet:key:k0> \"x1\" }").expect("it runs");
        other.update("INSERT DATA { <urn:v0> a <urn:vervet:label:L> }").expect("it runs");
        other.commit().expect("the first");
        let error = one.commit().expect_err("it read the label");
        assert_eq!(error.kind(), ErrorKind::Conflict, "in the base: {in_base}, typed: {typed}");
    }
}

/// storage B2: blank nodes of two loads differ, whatever the documents, the labels and the number of
/// statements.
#[test]
fn b2_blank_nodes_of_different_loads_differ() {
    let seed = seed();
    let mut random = Random(seed);
    for _ in 0..4 {
        let database = Database::in_memory();
        let mut expected = 0;
        // Statements are added and removed between loads, so that counts return to old values.
        let mut others = 0_u64;
        for load in 0..6 {
            let labels: BTreeSet<u64> = (0..1 + random.below(4)).map(|_| random.below(4)).collect();
            let lines = labels.iter().map(|label| format!("_:b{label} <urn:name> \"{load}\" .\n"));
            let text = lines.collect::<String>();
            expected += labels.len();
            let source = Source::bytes("blank.nt", text.into_bytes());
            let options = LoadOptions { format: Some(Format::NTriples), ..LoadOptions::default() };
            database.load(vec![source], &options).expect("it loads");
            while others > 0 && random.below(3) > 0 {
                others -= 1;
                database.update(&format!("DELETE DATA {{ <urn:x> <urn:y> {others} }}")).expect("it runs");
            }
            for _ in 0..random.below(4) {
                database.update(&format!("INSERT DATA {{ <urn:x> <urn:y> {others} }}")).expect("it runs");
                others += 1;
            }
        }
        let count =
            database.select("SELECT (COUNT(DISTINCT ?s) AS ?n) { ?s <urn:name> ?o }").expect("it runs");
        let count = count.rows().next().expect("one row").integer("n").expect("bound").expect("a number");
        assert_eq!(count, i64::try_from(expected).expect("small"), "seed {seed}");
    }
}

/// storage B15: the attempts of an update share one deadline. Each attempt here conflicts, since it reads the
/// statement changed by opening the document that it loads, and takes longer than a hundredth of its time.
#[test]
fn b15_attempts_share_one_deadline() {
    let database = Database::in_memory();
    database.update("INSERT DATA { <urn:c> <urn:n> 0 }").expect("it runs");
    let (other, mut attempts) = (database.clone(), 0);
    let documents = Documents::new(["urn:"], |_| {
        attempts += 1;
        other.update(&format!("INSERT DATA {{ <urn:c> <urn:n> {attempts} }}"))?;
        std::thread::sleep(Duration::from_millis(2));
        Ok(Source::bytes("empty.nt", Vec::new()))
    });
    let query = QueryOptions { timeout: Some(Duration::from_millis(30)), ..QueryOptions::default() };
    let mut options = UpdateOptions { query, documents: Some(documents) };
    let text = "INSERT { <urn:c> <urn:m> ?x } WHERE { <urn:c> <urn:n> ?x } ; LOAD <urn:doc.nt>";
    let error = database.update_with(text, &mut options).expect_err("it always conflicts");
    drop(options);
    assert_eq!(error.kind(), ErrorKind::Deadline, "{error}");
    assert!(attempts < ATTEMPTS_MAX, "{attempts} attempts");
}

/// storage B5: interning new terms does no I/O, however many there are, so no term lookup waits for the disk;
/// the commit that needs them writes their records.
#[test]
fn b5_new_terms_do_not_touch_the_disk_before_their_commit() {
    let simulation = Simulation::new(1);
    let database = Database::open_or_create_in(simulation.environment(), "/db").expect("opens");
    database.update("INSERT DATA { <urn:a> <urn:p> <urn:b> }").expect("it runs");
    let before = simulation.files.write_count();
    // More than the log buffers.
    let long = "x".repeat(1 << 20);
    let fill = |transaction: &mut Transaction, prefix: &str| {
        for number in 0..10 {
            let object = NamedNode::new_unchecked(format!("urn:{prefix}{number}{long}"));
            let (subject, predicate) =
                (NamedNodeRef::new_unchecked("urn:a"), NamedNodeRef::new_unchecked("urn:p"));
            let quad = QuadRef::new(subject, predicate, object.as_ref(), GraphNameRef::DefaultGraph);
            assert!(transaction.insert(quad).expect("no disk is needed"));
        }
    };
    let mut dropped = database.begin().expect("begins");
    fill(&mut dropped, "dropped");
    drop(dropped);
    let mut transaction = database.begin().expect("begins");
    fill(&mut transaction, "kept");
    assert!(database.select("SELECT * { <urn:nobody> ?p ?o }").expect("it runs").is_empty());
    assert_eq!(simulation.files.write_count(), before, "something was written before the commit");
    transaction.commit().expect("room");
    drop(database);
    let again = Database::open_in(simulation.environment(), "/db").expect("whole");
    assert_eq!(again.select("SELECT * { ?s ?p ?o }").expect("it runs").len(), 11);
}

/// Updates that add the first statements of a predicate conflict only about equal statements.
#[test]
fn the_first_statements_of_a_predicate_do_not_conflict() {
    let commit = |first: &str, second: &str| {
        let database = Database::in_memory();
        database.load_text(Format::NTriples, "<urn:a> <urn:other> <urn:b> .").expect("loaded");
        let (mut one, mut two) = (database.begin().expect("begun"), database.begin().expect("begun"));
        one.update(first).expect("an update");
        two.update(second).expect("an update");
        one.commit().expect("the first");
        let committed = two.commit().map(drop).map_err(|error| error.kind());
        let count = database.select("SELECT * { ?s <urn:new> ?o }").expect("a query").rows().count();
        (committed, count)
    };
    let plain = "INSERT DATA { <urn:a> <urn:new> <urn:b> }";
    assert_eq!(commit(plain, "INSERT DATA { <urn:a> <urn:new> <urn:c> }"), (Ok(()), 2));
    assert_eq!(commit(plain, "INSERT DATA { <urn:c> <urn:new> <urn:b> }"), (Ok(()), 2));
    // The statement is there once, with an identity: the plain one would be a second one.
    let edge = "INSERT DATA { <urn:a> <urn:new> <urn:b> ~ _:e }";
    assert_eq!(commit(edge, plain), (Err(ErrorKind::Conflict), 1));
}
