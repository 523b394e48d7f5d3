//! Partitions that several servers have. Servers that each have the whole graph answer alone; others answer
//! for one that is away.

use crate::changes::{OWN_QUERIES, UPDATES, answers, wait_for};
use crate::load::options;
use crate::{QUERIES, graph, open, rows, start_options};
use std::time::Duration;
use vervet::{Database, DatabaseOptions, ErrorKind, QueryOptions};
use vervet_cluster::{Cluster, InitOptions, LoadEvent, check, init, load};
use vervet_model::Watch;
use vervet_peer::{ALWAYS, FaultPlan};

fn replicated(count: usize, partitions: usize, writer: Option<&str>) -> InitOptions {
    let options = InitOptions::on_host(count, partitions, "127.0.0.1", (0, 0));
    InitOptions { replicas: count, writer: writer.map(str::to_owned), ..options }
}

/// Each server answers every query. It sends no request to another server, also when the others have ended.
#[test]
fn servers_with_the_whole_graph_ask_nobody() {
    let database = graph();
    for partitions in [1, 4] {
        let (mut servers, directories, _folder) = start_options(&database, replicated(3, partitions, None));
        while let Some(server) = servers.first() {
            for query in QUERIES {
                for heavy_from in [Duration::ZERO, QueryOptions::default().heavy_from] {
                    let options = QueryOptions { heavy_from, ..QueryOptions::default() };
                    let expected = rows(&database, query, &options).expect("an answer");
                    assert_eq!(
                        rows(server.database(), query, &options).expect("an answer"),
                        expected,
                        "{query}"
                    );
                }
            }
            let status = server.status(Duration::from_secs(2));
            assert!(status.is_replicated && status.statements == database.snapshot().statement_count());
            let answering = status.servers.iter().filter(|server| server.answers.is_ok()).count();
            assert_eq!(answering, servers.len());
            servers.remove(0);
        }
        for directory in &directories {
            check(directory, &DatabaseOptions::default()).expect("whole");
        }
        let server = open(&directories[1]);
        let sent: u64 = server.counts().iter().map(|(_, counts)| counts.requests).sum();
        assert_eq!(
            rows(server.database(), QUERIES[0], &QueryOptions::default()).expect("an answer").len(),
            2
        );
        let after: u64 = server.counts().iter().map(|(_, counts)| counts.requests).sum();
        assert_eq!(after, sent, "a query asked another server");
    }
}

/// Followers show all changes, and keep them while the writer is away; the writer starts alone.
#[test]
fn followers_with_the_whole_graph_go_on_without_the_writer() {
    let twin = graph();
    let (mut servers, directories, _folder) = start_options(&graph(), replicated(3, 1, Some("a")));
    let same = |server: &Cluster, twin: &Database| {
        for query in QUERIES.iter().chain(OWN_QUERIES) {
            assert_eq!(answers(server.database(), query), answers(twin, query), "{query}");
        }
    };
    let (first, second) = UPDATES.split_at(UPDATES.len() / 2);
    for update in first {
        twin.update(update).expect("an update");
        servers[0].database().update(update).expect("an update");
    }
    servers[1..].iter().for_each(|server| wait_for(server, &servers[0]));
    servers.truncate(2);
    drop(servers.remove(0));
    same(&servers[0], &twin);
    let refused = servers[0].database().update(second[0]).expect_err("it only follows");
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    drop(servers);
    // Alone, with its log.
    let writer = open(&directories[0]);
    same(&writer, &twin);
    for update in second {
        twin.update(update).expect("an update");
        writer.database().update(update).expect("an update");
    }
    same(&writer, &twin);
    let follower = open(&directories[2]);
    wait_for(&follower, &writer);
    same(&follower, &twin);
}

/// Two of three servers have each partition: any server may be away.
fn two_of_three(writer: Option<&str>) -> InitOptions {
    InitOptions { replicas: 2, ..replicated(3, 8, writer) }
}

/// How queries run: where they are asked, or at all servers.
fn ways() -> [QueryOptions; 3] {
    let of = |heavy_from| QueryOptions { heavy_from, ..QueryOptions::default() };
    [of(QueryOptions::default().heavy_from), of(Duration::ZERO), of(Duration::ZERO).with_threads(2)]
}

#[test]
fn other_servers_answer_for_one_that_is_away() {
    let database = graph();
    let (servers, directories, _folder) = start_options(&database, two_of_three(None));
    let map = servers[0].map();
    assert_eq!((map.fewest_replicas(), map.partitions().len()), (2, 8));
    let mut servers: Vec<Option<Cluster>> = servers.into_iter().map(Some).collect();
    let all_answer = |servers: &[Option<Cluster>]| {
        for query in QUERIES {
            for options in ways() {
                let expected = rows(&database, query, &options).expect("right");
                for server in servers.iter().flatten() {
                    let found = rows(server.database(), query, &options);
                    let found = found.unwrap_or_else(|error| panic!("{query}: {error}"));
                    assert_eq!(found, expected, "{query} at {}", server.map().server);
                }
            }
        }
    };
    all_answer(&servers);
    let queries: u64 = servers.iter().flatten().map(|server| server.query_counts().queries).sum();
    assert!(queries > 20, "{queries} queries ran at all servers");
    for away in 0..3 {
        servers[away] = None;
        all_answer(&servers);
        // The others again, without the answers that they have kept.
        for other in (0..3).filter(|other| *other != away) {
            servers[other] = None;
            servers[other] = Some(open(&directories[other]));
        }
        all_answer(&servers);
        servers[away] = Some(open(&directories[away]));
        all_answer(&servers);
    }
    // Without two, some partitions are nowhere. What the server has read of them it knows.
    servers.truncate(1);
    let [Some(server)] = servers.as_slice() else { panic!("one server") };
    assert!(!map.partitions_without(|entry| entry.name != "a").is_empty());
    let query = QUERIES[0];
    assert_eq!(
        rows(server.database(), query, &QueryOptions::default()).expect("kept"),
        rows(&database, query, &QueryOptions::default()).expect("right")
    );
    servers.clear();
    let server = open(&directories[0]);
    for options in ways() {
        let error = rows(server.database(), QUERIES[0], &options).expect_err("partitions are missing");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    for directory in &directories {
        check(directory, &DatabaseOptions::default()).expect("whole");
    }
}

/// Whatever the connections to one server do, others answer for it: no query fails.
#[test]
fn faults_of_one_server_fail_no_query() {
    let seed = std::env::var("VERVET_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_130);
    println!("seed {seed}");
    let database = graph();
    let (servers, ..) = start_options(&database, two_of_three(None));
    let chance = ALWAYS / 4;
    let mut failures = 0;
    for round in 0..6_u64 {
        let none = FaultPlan { seed: seed + round, ..FaultPlan::default() };
        let plan = match round % 3 {
            0 => FaultPlan { cut_requests: chance, cut_answers: chance, ..none },
            1 => FaultPlan { garbage_requests: chance, garbage_answers: chance, ..none },
            _ => FaultPlan { refused_connections: ALWAYS, cut_answers: ALWAYS, ..none },
        };
        let faulty = ["a", "b", "c"][usize::try_from(round).expect("small") % 3];
        let to_faulty = || servers.iter().filter_map(|server| server.faults(faulty));
        to_faulty().for_each(|faults| faults.set(plan.clone()));
        for (query, options) in QUERIES.iter().flat_map(|query| ways().map(|options| (query, options))) {
            let expected = rows(&database, query, &options).expect("right");
            for server in servers.iter().filter(|server| server.map().server != faulty) {
                let found = rows(server.database(), query, &options);
                let found = found.unwrap_or_else(|error| panic!("{query}, faults of {faulty}: {error}"));
                assert_eq!(found, expected, "{query}");
            }
        }
        to_faulty().for_each(|faults| faults.set(FaultPlan::default()));
        let counts = servers.iter().flat_map(Cluster::counts);
        failures = counts.map(|(_, counts)| counts.failures).sum();
    }
    assert!(failures > 5, "{failures} requests failed");
}

#[test]
fn changes_go_on_while_a_server_with_replicas_is_away() {
    let twin = graph();
    let (mut servers, directories, _folder) = start_options(&graph(), two_of_three(Some("a")));
    let (first, second) = UPDATES.split_at(UPDATES.len() / 2);
    let change = |servers: &[Cluster], updates: &[&str]| {
        for update in updates {
            twin.update(update).expect("an update");
            servers[0].database().update(update).expect("an update");
        }
        servers[1..].iter().for_each(|server| wait_for(server, &servers[0]));
        for query in QUERIES.iter().chain(OWN_QUERIES) {
            let expected = answers(&twin, query);
            for server in servers {
                assert_eq!(answers(server.database(), query), expected, "{query}");
            }
        }
    };
    change(&servers, first);
    drop(servers.remove(1));
    change(&servers, second);
    servers.push(open(&directories[1]));
    change(&servers, &["INSERT DATA { <urn:last> <urn:next> <urn:v1> }"]);
}

#[test]
fn other_numbers_of_replicas_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (database, watch) = (graph(), Watch::new("test"));
    for replicas in [0, 4] {
        let options = InitOptions { replicas, ..replicated(3, 4, None) };
        let refused = init(&database, &options, &folder.path().join("servers"), &watch).expect_err("some");
        assert_eq!(refused.kind(), ErrorKind::Input, "{refused}");
    }
    let (servers, directories, _folder) = start_options(&database, replicated(2, 2, None));
    drop(servers);
    let report = |_: LoadEvent<'_>| {};
    let refused = load(&directories[0], Vec::new(), &options(&report), &mut std::io::sink());
    let refused = refused.expect_err("replicas");
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
}
