//! The change feed: what it has, applied to nothing or to an export, is the graph; and positions that it
//! refuses.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vervet::{
    Constraint, ConstraintKind, Database, DatabaseOptions, Durability, Environment, ErrorKind, FeedFormat,
    FeedLimits, FeedPosition, FeedRefusal, Format, NamedNode, QueryOptions, Timestamp,
};
use vervet_env::SimulatedFiles;

const DB: &str = "/db";

/// A consumer of the feed.
#[derive(Default, Clone, PartialEq, Eq, Debug)]
struct Replica {
    /// Statements without an edge: subject, predicate, object, graph.
    plain: BTreeSet<[String; 4]>,
    edges: BTreeMap<String, [String; 4]>,
    /// Quads, as RDF Patch has them.
    quads: BTreeSet<String>,
    commit: u64,
}

impl Replica {
    /// Applies JSON lines.
    fn apply(&mut self, lines: &str) {
        for line in lines.lines() {
            let commit: Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(commit["commit"], self.commit + 1, "{line}");
            self.commit += 1;
            let changes = commit["changes"].as_array();
            assert!(changes.is_some() != commit["constraints"].is_array(), "{line}");
            for change in changes.into_iter().flatten() {
                let text = |name: &str| change[name].as_str().unwrap_or_default().to_owned();
                let quad = ["subject", "predicate", "object", "graph"].map(text);
                match (change["op"].as_str(), text("edge")) {
                    (Some("insert"), edge) if edge.is_empty() => {
                        if !self.edges.values().any(|other| *other == quad) {
                            self.plain.insert(quad);
                        }
                    }
                    (Some("insert"), edge) => {
                        self.plain.remove(&quad);
                        self.edges.insert(edge, quad);
                    }
                    (Some("remove"), edge) if edge.is_empty() => drop(self.plain.remove(&quad)),
                    (Some("remove"), edge) => drop(self.edges.remove(&edge)),
                    _ => panic!("{line}"),
                }
            }
        }
    }

    /// Applies an RDF Patch; returns its last position.
    fn patch(&mut self, text: &str) -> Option<String> {
        let (mut last, mut is_open) = (None, false);
        for row in text.lines() {
            let row = row.strip_suffix(" .").expect("a row ends with a dot");
            match row.split_once(' ').unwrap_or((row, "")) {
                ("H", header) if !is_open => {
                    let value = header.strip_prefix("position ").expect("a header");
                    last = Some(value.trim_matches('"').to_owned());
                }
                ("TX", "") if !is_open => is_open = true,
                ("TC", "") if is_open => is_open = false,
                ("A", quad) if is_open => drop(self.quads.insert(quad.to_owned())),
                ("D", quad) if is_open => drop(self.quads.remove(quad)),
                _ => panic!("{row}"),
            }
        }
        assert!(!is_open);
        last
    }

    /// The lines of its export, ascending.
    fn export(&self) -> Vec<String> {
        let line = |[subject, predicate, object, graph]: &[String; 4]| {
            let graph = if graph.is_empty() { String::new() } else { format!("{graph} ") };
            (format!("{subject} {predicate} {object}"), graph)
        };
        let plain = self.plain.iter().map(line).map(|(triple, graph)| format!("{triple} {graph}."));
        let mut lines: Vec<String> = plain.collect();
        for (edge, quad) in &self.edges {
            let (triple, graph) = line(quad);
            lines.push(format!("{triple} {graph}."));
            let reifies = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>";
            lines.push(format!("{edge} {reifies} <<( {triple} )>> {graph}."));
        }
        lines.sort();
        lines
    }
}

fn export(database: &Database) -> Vec<String> {
    let mut text = Vec::new();
    database.export(Format::NQuads, &mut text).expect("exports");
    let text = String::from_utf8(text).expect("text");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn position(commit: u64) -> FeedPosition {
    FeedPosition { commit: Timestamp(commit), log: None }
}

fn feed(database: &Database, after: u64, format: FeedFormat, commits: u64) -> String {
    let mut feed = database.feed(Some(position(after))).expect("the log has it");
    let mut text = Vec::new();
    let limits = FeedLimits { commits, ..FeedLimits::default() };
    database.write_feed(&mut feed, format, limits, &QueryOptions::default(), &mut text).expect("written");
    String::from_utf8(text).expect("text")
}

/// Takes all commits after those of the replica, some at a time, and compares it with the database.
fn follow(database: &Database, replica: &mut Replica, random: &mut fastrand::Rng) {
    let newest = database.newest_commit().0;
    while replica.commit < newest {
        let limit = random.u64(1..50);
        let before = replica.commit;
        let patch = feed(database, before, FeedFormat::RdfPatch, limit);
        replica.apply(&feed(database, before, FeedFormat::JsonLines, limit));
        assert_eq!(replica.commit, newest.min(before + limit));
        let last = replica.patch(&patch).expect("a commit");
        let last: FeedPosition = last.parse().expect("a position");
        assert_eq!(last.commit.0, replica.commit);
    }
    let expected = export(database);
    assert_eq!(replica.export(), expected);
    let quads: BTreeSet<String> = expected.iter().map(|line| line[..line.len() - 2].to_owned()).collect();
    assert_eq!(replica.quads, quads);
}

/// One random transaction, which may be rolled back.
fn change(database: &Database, random: &mut fastrand::Rng) {
    let resource = |random: &mut fastrand::Rng| format!("<urn:s{}>", random.u8(0..6));
    let value = |random: &mut fastrand::Rng| match random.u8(0..9) {
        0 => format!("{}", random.i16(..)),
        1 => "\"chat\"@fr".to_owned(),
        2 => "\"مرحبا\"@ar--rtl".to_owned(),
        3 => "\"a \\\"text\\\" of\\ntwo lines \\\\ that is longer than an id\"".to_owned(),
        4 => "<<( <urn:s1> <urn:p> \"quoted\"@en )>>".to_owned(),
        5 => "\"7\"^^<urn:type>".to_owned(),
        _ => format!("<urn:s{}>", random.u8(0..6)),
    };
    let (s, p) = (resource(random), random.u8(0..3));
    let (o, v) = (resource(random), value(random));
    let graph = random.u8(0..3);
    let within = |triples: &str| match graph {
        0 => triples.to_owned(),
        graph => format!("GRAPH <urn:g{graph}> {{ {triples} }}"),
    };
    let text = match random.u8(0..13) {
        0..3 => format!("INSERT DATA {{ {} }}", within(&format!("{s} <urn:p{p}> {v}, {o}"))),
        3..5 => format!("DELETE DATA {{ {} }}", within(&format!("{s} <urn:p{p}> {o}"))),
        5 => format!("DELETE WHERE {{ {} }}", within(&format!("{s} <urn:p{p}> ?o"))),
        6 => {
            format!("INSERT DATA {{ {} }}", within(&format!("{s} <urn:p{p}> {o} ~ {{| <urn:since> {v} |}}")))
        }
        7 => format!("INSERT DATA {{ {} }}", within(&format!("[ <urn:p{p}> {v} ] <urn:p0> {s}"))),
        8 => format!("DELETE {{ {s} ?p ?o }} INSERT {{ {s} ?p {v} . {o} ?p ?o }} WHERE {{ {s} ?p ?o }}"),
        9 => format!("DELETE DATA {{ {s} <urn:p{p}> {o} }} ; INSERT DATA {{ {s} <urn:p{p}> {o} }}"),
        10 => format!("DROP SILENT GRAPH <urn:g{}>", random.u8(1..3)),
        _ => return change_edges(database, random),
    };
    let mut transaction = database.begin().expect("begins");
    transaction.update(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let savepoint = transaction.savepoint();
    transaction.update("INSERT DATA { <urn:never> <urn:never> <urn:never> }").expect("works");
    transaction.roll_back_to(&savepoint).expect("works");
    if random.u8(0..8) == 0 {
        transaction.roll_back();
    } else {
        transaction.commit().expect("nothing else runs");
    }
}

/// Edges with properties, parallel ones too.
fn change_edges(database: &Database, random: &mut fastrand::Rng) {
    let (source, target) = (random.u8(0..3), random.u8(0..3));
    let names = [format!("v{source}"), format!("v{target}")];
    database
        .transact(|transaction| {
            let mut ends = Vec::new();
            for name in &names {
                let found = transaction.read(|graph| match graph.vertex(name)? {
                    Some(vertex) if !graph.labels(vertex)?.is_empty() => Ok(Some(vertex)),
                    _ => Ok(None),
                })?;
                ends.push(match found {
                    Some(vertex) => vertex,
                    None => transaction.add_vertex_named(name, &["person"])?,
                });
            }
            let edges = transaction.edges_between(ends[0], "knows", ends[1])?;
            match (edges.first(), random.u8(0..6)) {
                (Some(edge), 0 | 1) => drop(transaction.remove_edge(*edge)?),
                (Some(edge), 2) if edge.id().is_some() => {
                    transaction.set_property(*edge, "since", 2020)?;
                }
                (_, 3) => drop(transaction.remove_vertex(ends[0])?),
                _ => {
                    let edge = transaction.add_edge(ends[0], "knows", ends[1])?;
                    transaction.set_property(edge, "since", i64::from(random.u8(..)))?;
                }
            }
            Ok(())
        })
        .expect("nothing else runs");
}

#[test]
fn the_feed_from_0_gives_the_graph_of_an_export() {
    for round in 0..4 {
        let seed = fastrand::u64(..);
        eprintln!("round {round}, seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let environment = Environment::simulated(seed);
        let mut database = Database::open_or_create_in(environment.clone(), DB).expect("opens");
        let mut replica = Replica::default();
        for number in 0..300 {
            change(&database, &mut random);
            if random.u8(0..60) == 0 {
                drop(database);
                database = Database::open_or_create_in(environment.clone(), DB).expect("opens again");
            }
            if number == 150 {
                let iri = NamedNode::new_unchecked;
                let constraint = Constraint::new(ConstraintKind::Single, iri("urn:C"), [iri("urn:only")]);
                assert!(database.add_constraint(&constraint.expect("valid")).expect("added"));
            }
            if random.u8(0..40) == 0 {
                follow(&database, &mut replica, &mut random);
            }
        }
        follow(&database, &mut replica, &mut random);
        // In one piece, and from the first commit again.
        let mut whole = Replica::default();
        whole.apply(&feed(&database, 0, FeedFormat::JsonLines, u64::MAX));
        whole.patch(&feed(&database, 0, FeedFormat::RdfPatch, u64::MAX));
        assert_eq!(whole, replica);
        let events = feed(&database, 0, FeedFormat::Events, u64::MAX);
        let data: String = events
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|data| data.to_owned() + "\n")
            .collect();
        let mut streamed = Replica::default();
        streamed.apply(&data);
        assert_eq!(streamed.export(), replica.export());
    }
}

#[test]
fn the_feed_goes_on_over_checkpoints_for_a_consumer_that_has_all() {
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let environment = Environment::simulated(seed);
    let mut database = Database::open_or_create_in(environment.clone(), DB).expect("opens");
    let mut replica = Replica::default();
    for _ in 0..25 {
        for _ in 0..random.u8(1..20) {
            change(&database, &mut random);
        }
        follow(&database, &mut replica, &mut random);
        let behind = replica.commit;
        if random.bool() {
            change(&database, &mut random);
        }
        let newest = database.newest_commit().0;
        let is_made = database.checkpoint().expect("works");
        assert!(is_made || newest == behind, "there is something to merge");
        if newest > behind {
            let refused = database.feed(Some(position(behind)));
            assert!(matches!(refused, Err(FeedRefusal::Gone(_))), "{behind} of {newest}: {refused:?}");
            // An export gives a new start.
            let (position, snapshot) = database.feed_snapshot().expect("a position");
            let mut text = Vec::new();
            let options = QueryOptions::default();
            change(&database, &mut random);
            database.export_snapshot(&snapshot, Format::NQuads, &options, &mut text).expect("exports");
            replica = loaded(&String::from_utf8(text).expect("text"));
            replica.commit = position.commit.0;
        }
        if random.bool() {
            drop(database);
            database = Database::open_or_create_in(environment.clone(), DB).expect("opens again");
        }
    }
    follow(&database, &mut replica, &mut random);
}

/// A replica with the statements of an export.
fn loaded(text: &str) -> Replica {
    let mut replica = Replica::default();
    let mut last: Option<[String; 4]> = None;
    for line in text.lines() {
        let line = line.strip_suffix(" .").expect("a line");
        replica.quads.insert(line.to_owned());
        let quad = quad_of(line);
        // An edge follows its statement.
        if quad[1].ends_with("#reifies>") && quad[0].starts_with("<urn:vervet:edge:") {
            let statement = last.take().expect("a statement");
            replica.plain.remove(&statement);
            replica.edges.insert(quad[0].clone(), statement);
            continue;
        }
        replica.plain.insert(quad.clone());
        last = Some(quad);
    }
    replica
}

/// The terms of a quad in N-Quads, of which only the object may have spaces.
fn quad_of(line: &str) -> [String; 4] {
    let (subject, rest) = line.split_once(' ').expect("a subject");
    let (predicate, rest) = rest.split_once(' ').expect("a predicate");
    let (object, graph) = match rest.rsplit_once(' ') {
        Some((object, graph)) if graph.starts_with("<urn:g") && !rest.ends_with(")>>") => (object, graph),
        _ => (rest, ""),
    };
    [subject, predicate, object, graph].map(str::to_owned)
}

#[test]
fn commits_during_the_read_are_complete_or_absent() {
    let environment = Environment::simulated(7);
    let database = Database::open_or_create_in(environment, DB).expect("opens");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 0..400 {
                let text = format!("INSERT DATA {{ <urn:a{number}> <urn:p> 1 . <urn:b{number}> <urn:p> 1 }}");
                database.update(&text).expect("works");
            }
        });
        let mut replica = Replica::default();
        while replica.commit < 400 {
            let ended = writer.is_finished();
            replica.apply(&feed(&database, replica.commit, FeedFormat::JsonLines, u64::MAX));
            assert_eq!(replica.plain.len() as u64, 2 * replica.commit);
            assert!(!ended || replica.commit == 400);
        }
    });
}

#[test]
fn positions_that_the_log_does_not_have_are_refused() {
    let environment = Environment::simulated(3);
    let database = Database::open_or_create_in(environment.clone(), DB).expect("opens");
    for number in 0..5 {
        database.update(&format!("INSERT DATA {{ <urn:a{number}> <urn:p> 1 }}")).expect("works");
    }
    let refusal = |database: &Database, position: FeedPosition| database.feed(Some(position)).map(|_| ());
    for future in [6, u64::MAX] {
        assert!(matches!(refusal(&database, position(future)), Err(FeedRefusal::Future(_))), "{future}");
    }
    for known in 0..=5 {
        assert!(refusal(&database, position(known)).is_ok(), "{known}");
    }
    let (newest, _) = database.feed_snapshot().expect("a position");
    assert_eq!(newest.commit, Timestamp(5));
    assert!(refusal(&database, newest).is_ok());
    let other = FeedPosition { log: newest.log.map(|log| log ^ 1), ..newest };
    assert!(matches!(refusal(&database, other), Err(FeedRefusal::Gone(_))), "another log");
    // A load is a commit that the log does not have.
    database.load_text(Format::NTriples, "<urn:x> <urn:p> <urn:y> .").expect("loads");
    for before in 0..=5 {
        assert!(matches!(refusal(&database, position(before)), Err(FeedRefusal::Gone(_))), "{before}");
    }
    assert_eq!(feed(&database, 6, FeedFormat::JsonLines, u64::MAX), "");
    database.update("INSERT DATA { <urn:z> <urn:p> 1 }").expect("works");
    assert_eq!(feed(&database, 6, FeedFormat::JsonLines, u64::MAX).lines().count(), 1);
    assert!(matches!(refusal(&database, position(5)), Err(FeedRefusal::Gone(_))));
    // A feed that was open does not go over it either.
    let mut open = database.feed(None).expect("the newest");
    database.load_text(Format::NTriples, "<urn:x> <urn:p> <urn:z> .").expect("loads");
    assert!(open.advance().expect("there is more"));
    assert!(matches!(open.read(&mut |_| Ok(true)), Err(FeedRefusal::Gone(_))));

    let memory = Database::in_memory();
    match memory.feed(None) {
        Err(FeedRefusal::Failed(error)) => assert_eq!(error.kind(), ErrorKind::Unsupported),
        other => panic!("{other:?}"),
    }
}

/// At the lower levels, what the feed has told is synced.
#[test]
fn what_the_feed_tells_survives_a_loss_of_power() {
    for durability in [Durability::None, Durability::Interval(std::time::Duration::from_secs(3600))] {
        let files = Arc::new(SimulatedFiles::new(11));
        let environment = Environment { files: files.clone(), ..Environment::simulated(11) };
        let options =
            DatabaseOptions { durability, environment: environment.clone(), ..DatabaseOptions::default() };
        let database = Database::open_or_create_with(DB, options).expect("opens");
        for number in 0..10 {
            database.update(&format!("INSERT DATA {{ <urn:a{number}> <urn:p> 1 }}")).expect("works");
        }
        assert_eq!(feed(&database, 0, FeedFormat::JsonLines, u64::MAX).lines().count(), 10);
        let survivor = Arc::new(files.after_power_loss());
        let environment = Environment { files: survivor, ..Environment::simulated(11) };
        let recovered = Database::open_in(environment, DB).expect("opens");
        assert_eq!(recovered.newest_commit(), Timestamp(10), "{durability}");
    }
}
