//! Servers that each have the whole graph: they answer alone, and with the changes of a writer.

use crate::changes::{OWN_QUERIES, UPDATES, answers, wait_for};
use crate::load::options;
use crate::{QUERIES, graph, open, rows, start_options};
use std::time::Duration;
use vervet::{Database, DatabaseOptions, ErrorKind, QueryOptions};
use vervet_cluster::{Cluster, InitOptions, LoadEvent, check, init, load};
use vervet_model::Watch;

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

#[test]
fn other_numbers_of_replicas_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (database, watch) = (graph(), Watch::new("test"));
    for replicas in [0, 2, 4] {
        let options = InitOptions { replicas, ..replicated(3, 4, None) };
        let refused = init(&database, &options, &folder.path().join("servers"), &watch).expect_err("some");
        assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    }
    let (servers, directories, _folder) = start_options(&database, replicated(2, 2, None));
    drop(servers);
    let report = |_: LoadEvent<'_>| {};
    let refused = load(&directories[0], Vec::new(), &options(&report), &mut std::io::sink());
    let refused = refused.expect_err("replicas");
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
}
