//! Servers with different partitions join and leave, and partitions move, while clients read and write.

use crate::changes::UPDATES;
use crate::members::{Ending, invite_server};
use crate::together::{all_answer, merge, start, until_done, update, wait_for, wait_for_all};
use crate::voters::answers;
use crate::{QUERIES, graph, open, rows};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use vervet::{DatabaseOptions, ErrorKind, QueryOptions};
use vervet_cluster::{Cluster, Rebalance, RebalancePlan, check, plan_rebalance, rebalance, remove};

fn move_for(directory: &Path, of: &Rebalance) -> RebalancePlan {
    until_done(|| rebalance(directory, of, &mut |_| {}))
}

fn evenly() -> Rebalance {
    Rebalance::Evenly { replicas: None }
}

fn share(server: &Cluster) -> BTreeSet<usize> {
    server.map().own().expect("in its map").partitions.iter().copied().collect()
}

/// The partitions of each server of the map of one.
fn shares(server: &Cluster) -> BTreeMap<String, BTreeSet<usize>> {
    let entries = server.map().servers.clone();
    entries.into_iter().map(|entry| (entry.name, entry.partitions.into_iter().collect())).collect()
}

/// Waits until all servers have a map with the shares of a plan.
fn wait_for_shares(servers: &[Cluster], plan: &RebalancePlan) {
    let entries = plan.after.iter();
    let planned: BTreeMap<String, BTreeSet<usize>> =
        entries.map(|entry| (entry.name.clone(), entry.partitions.iter().copied().collect())).collect();
    wait_for(servers, "map", |server| {
        shares(server) == planned && server.map().replicas == Some(plan.replicas)
    });
}

/// Waits until all servers have the same map, with these servers.
fn wait_for_servers(servers: &[Cluster], names: &str) {
    wait_for(servers, "map", |server| {
        let shares = shares(server);
        shares.keys().map(String::as_str).collect::<String>() == names && shares == self::shares(&servers[0])
    });
}

#[test]
fn servers_join_and_leave_and_partitions_move() {
    for replicas in [1, 2] {
        let twin = graph();
        let (mut servers, directories, folder) = start(&graph(), 3, replicas);
        let root = folder.path().join("servers");
        let mut updates = UPDATES.iter();
        let mut change = |servers: &[Cluster], count: usize| {
            for text in updates.by_ref().take(count) {
                twin.update(text).expect("an update");
                update(servers, text);
            }
        };
        change(&servers, 3);
        // One joins, and has its share besides the others.
        invite_server(&directories[0], "d").expect("invited");
        servers.push(open(&root.join("d")));
        wait_for(&servers, "vote", |server| server.changes().is_some_and(|changes| changes.is_complete));
        wait_for_servers(&servers, "abcd");
        all_answer(&servers, &twin);
        let before: usize = servers.iter().map(|server| share(server).len()).sum();
        assert!(before > 8 * replicas, "{before}");
        // Others give theirs away.
        let plan = plan_rebalance(&directories[1], &evenly()).expect("a plan");
        assert!(plan.gains().is_empty() && !plan.losses().is_empty(), "{plan:?}");
        wait_for_shares(&servers, &move_for(&directories[1], &evenly()));
        all_answer(&servers, &twin);
        let sizes: BTreeSet<usize> = servers.iter().map(|server| share(server).len()).collect();
        assert_eq!(sizes, BTreeSet::from([2 * replicas]));
        change(&servers, 2);
        merge(&servers);
        all_answer(&servers, &twin);
        // One goes. Its partitions are nowhere else, or too few have them.
        if replicas == 1 {
            let refused = until_refused(|| remove(&directories[1], "a"));
            assert!(refused.message().contains("no server would have partition"), "{refused}");
        }
        let drained = move_for(&directories[1], &Rebalance::Drain { server: "a".to_owned() });
        wait_for_shares(&servers, &drained);
        all_answer(&servers, &twin);
        until_done(|| remove(&directories[1], "a"));
        let gone = servers.iter().position(|server| server.map().server == "a").expect("up");
        drop(servers.remove(gone));
        wait_for_servers(&servers, "bcd");
        change(&servers, 2);
        all_answer(&servers, &twin);
        // Each has all in the end, or some.
        let all = Rebalance::Evenly { replicas: Some(3) };
        wait_for_shares(&servers, &move_for(&root.join("d"), &all));
        assert_eq!(servers[0].map().fewest_replicas(), 3);
        all_answer(&servers, &twin);
        merge(&servers);
        let some = Rebalance::Evenly { replicas: Some(replicas) };
        wait_for_shares(&servers, &move_for(&root.join("d"), &some));
        let [from, to] = ["c", "d"];
        let lacks = |name: &str| {
            let at = servers.iter().find(|server| server.map().server == name).expect("up");
            share(at)
        };
        let partition = *lacks(from).difference(&lacks(to)).next().expect("another one");
        let one =
            Rebalance::Move { partitions: vec![partition], from: Some(from.to_owned()), to: to.to_owned() };
        wait_for_shares(&servers, &move_for(&root.join("c"), &one));
        all_answer(&servers, &twin);
        drop(servers);
        let left: Vec<PathBuf> = ["b", "c", "d"].iter().map(|name| root.join(name)).collect();
        for directory in &left {
            check(directory, &DatabaseOptions::default()).expect("whole");
        }
        servers = left.iter().map(|directory| open(directory)).collect();
        change(&servers, 2);
        all_answer(&servers, &twin);
        merge(&servers);
        all_answer(&servers, &twin);
    }
}

/// Repeats until the failure is another one than that of servers that elect a leader.
fn until_refused(mut call: impl FnMut() -> vervet::Result<()>) -> vervet::Error {
    until_done(|| match call() {
        Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
        refused => Ok(refused.expect_err("it is refused")),
    })
}

/// No query fails while partitions go round.
#[test]
fn queries_go_on_while_partitions_move() {
    for replicas in [1, 2] {
        let twin = graph();
        let (servers, directories, _folder) = start(&graph(), 3, replicas);
        let is_over = AtomicBool::new(false);
        let asked = AtomicUsize::new(0);
        let expected = QUERIES.iter().map(|query| answers(&twin, query)).collect::<Vec<_>>();
        std::thread::scope(|scope| {
            let _ending = Ending(&is_over);
            for (at, server) in servers.iter().enumerate() {
                let (is_over, expected, asked) = (&is_over, &expected, &asked);
                scope.spawn(move || {
                    let mut number = at;
                    while !is_over.load(Ordering::Relaxed) {
                        number = (number + 1) % QUERIES.len();
                        let heavy_from = [QueryOptions::default().heavy_from, Duration::ZERO][number % 2];
                        let options = QueryOptions { heavy_from, ..QueryOptions::default() };
                        let found = rows(server.database(), QUERIES[number], &options);
                        let found = found.unwrap_or_else(|error| panic!("{}: {error:?}", QUERIES[number]));
                        assert_eq!(found, expected[number], "{}", QUERIES[number]);
                        asked.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for round in 0..4 {
                let graph = "GRAPH <urn:other> { <urn:a> <urn:b> ";
                update(&servers, &format!("INSERT DATA {{ {graph} \"{round}\" }} }}"));
                update(&servers, &format!("DELETE DATA {{ {graph} \"{round}\" }} }}"));
                let at = round % 3;
                let own = share(&servers[at]);
                let next = share(&servers[(at + 1) % 3]);
                let partitions: Vec<usize> = own.difference(&next).copied().take(2).collect();
                let to = servers[(at + 1) % 3].map().server.clone();
                let from = Some(servers[at].map().server.clone());
                let plan = move_for(&directories[at], &Rebalance::Move { partitions, from, to });
                wait_for_shares(&servers, &plan);
                let before = asked.load(Ordering::Relaxed);
                if round % 2 == 1 {
                    merge(&servers);
                }
                wait_for_all(&servers);
                wait_for(&servers, "queries", |_| asked.load(Ordering::Relaxed) >= before + QUERIES.len());
            }
        });
    }
}

/// A server that was away while partitions moved finds them.
#[test]
fn a_server_that_was_away_learns_where_partitions_are() {
    let twin = graph();
    let (mut servers, directories, _folder) = start(&graph(), 3, 2);
    let away = servers.remove(2);
    let partition = *share(&servers[0]).difference(&share(&servers[1])).next().expect("another one");
    let has = share(&away).contains(&partition);
    assert!(has, "two servers have it");
    drop(away);
    let of = Rebalance::Move { partitions: vec![partition], from: Some("a".to_owned()), to: "b".to_owned() };
    move_for(&directories[0], &of);
    update(&servers, UPDATES[0]);
    twin.update(UPDATES[0]).expect("an update");
    all_answer(&servers, &twin);
    servers.push(open(&directories[2]));
    wait_for(&servers, "vote", |server| server.changes().is_some_and(|changes| changes.is_complete));
    all_answer(&servers, &twin);
    let map = servers[2].map();
    let of = |name: &str| map.servers.iter().find(|entry| entry.name == name).expect("in the map");
    assert!(of("b").partitions.contains(&partition) && !of("a").partitions.contains(&partition));
}
