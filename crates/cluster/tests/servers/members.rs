//! Servers that join a cluster and leave it, while its graph changes.

use crate::{free_address, graph, open, rows, start, start_options};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vervet::{Database, DatabaseOptions, Environment, ErrorKind, QueryOptions};
use vervet_cluster::{AUTHORITY_KEY_FILE, Cluster, InitOptions, InviteOptions, MAP_FILE, invite, remove};

/// Longest wait for something that has to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Servers, which all vote and have the whole graph, and their directories, by name.
struct Servers {
    up: Mutex<Vec<(String, Cluster)>>,
    folder: tempfile::TempDir,
}

impl Servers {
    fn start(database: &Database, count: usize) -> Self {
        let mut options = InitOptions::on_host(count, 4, "127.0.0.1", (0, 0));
        options.voters = options.servers.iter().map(|server| server.name.clone()).collect();
        options.replicas = count;
        let (servers, _, folder) = start_options(database, options);
        let up = servers.into_iter().map(|server| (server.map().server.clone(), server)).collect();
        Self { up: Mutex::new(up), folder }
    }

    fn directory(&self, name: &str) -> PathBuf {
        self.folder.path().join("servers").join(name)
    }

    fn open(&self, name: &str) {
        let server = open(&self.directory(name));
        self.up.lock().expect("not poisoned").push((name.to_owned(), server));
    }

    fn end(&self, name: &str) {
        let mut up = self.up.lock().expect("not poisoned");
        let at = up.iter().position(|(other, _)| other == name).expect("it is up");
        let gone = up.remove(at);
        drop(up);
        drop(gone);
    }

    fn names(&self) -> Vec<String> {
        self.up.lock().expect("not poisoned").iter().map(|(name, _)| name.clone()).collect()
    }

    fn with<T>(&self, name: &str, call: impl FnOnce(&Cluster) -> T) -> T {
        let up = self.up.lock().expect("not poisoned");
        call(&up.iter().find(|(other, _)| other == name).expect("it is up").1)
    }

    fn leading(&self) -> Option<(String, Database)> {
        let up = self.up.lock().expect("not poisoned");
        let leading = up.iter().find(|(_, server)| server.takes_changes());
        leading.map(|(name, server)| (name.clone(), server.database().clone()))
    }

    fn leader(&self) -> String {
        wait_for("a leader", || self.leading()).0
    }

    /// Invites a server beside server `by`, and starts it.
    fn join(&self, name: &str, by: &str) {
        invite_server(&self.directory(by), name).expect("invited");
        self.open(name);
    }

    /// Waits until every server that is up names these voters in its map, and in its log.
    fn wait_for_voters(&self, expected: &[&str]) {
        for name in self.names() {
            wait_for(&format!("{expected:?} at {name}"), || {
                self.with(&name, |server| {
                    let map: BTreeSet<String> = server.map().voters.iter().cloned().collect();
                    let log = server.changes().and_then(|changes| changes.voters).expect("it votes").names;
                    let log: BTreeSet<String> = log.into_iter().collect();
                    let expected: BTreeSet<String> = expected.iter().map(|&name| name.to_owned()).collect();
                    (map == expected && log == expected).then_some(())
                })
            });
        }
    }

    fn merge(&self) {
        for name in self.names() {
            self.with(&name, |server| server.merge_changes().map(drop)).expect("merged");
        }
    }
}

pub(crate) fn invite_server(directory: &Path, name: &str) -> vervet::Result<()> {
    let folder = directory.parent().expect("a parent");
    let options = InviteOptions { name: name.to_owned(), address: free_address(), http: None };
    invite(&Environment::real(), directory, &folder.join(AUTHORITY_KEY_FILE), &options, &folder.join(name))
}

fn wait_for<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn answers(database: &Database, query: &str) -> Vec<String> {
    rows(database, query, &QueryOptions::default()).unwrap_or_else(|error| panic!("{query}: {error}"))
}

/// Ends the clients of a test, also of one that fails.
pub(crate) struct Ending<'a>(pub(crate) &'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Five servers take the place of three, one by one, while clients write; what was acknowledged is there, and
/// all start again from the maps that they have written.
#[test]
fn servers_join_and_leave_under_load() {
    let servers = Servers::start(&graph(), 3);
    let (acknowledged, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let client = |client: u64| {
        for number in 0.. {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            let text = format!("INSERT DATA {{ <urn:c{client}x{number}> <urn:is> {number} }}");
            match servers.leading().map(|(_, database)| database.update(&text)) {
                Some(Ok(_)) => {
                    acknowledged.lock().expect("not poisoned").push(format!("<urn:c{client}x{number}>"))
                }
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    };
    let written = || acknowledged.lock().expect("not poisoned").len();
    let wait_for_more = || {
        let before = written();
        wait_for("commits", || (written() > before + 20).then_some(()));
    };
    std::thread::scope(|scope| {
        let _ending = Ending(&is_over);
        for number in 0..3 {
            scope.spawn(move || client(number));
        }
        wait_for_more();
        servers.join("d", "a");
        servers.wait_for_voters(&["a", "b", "c", "d"]);
        // The log has lost its first entries, so the next one copies data that were merged.
        for _ in 0..2 {
            wait_for_more();
            servers.merge();
        }
        // By a server that has itself joined.
        servers.join("e", "d");
        servers.wait_for_voters(&["a", "b", "c", "d", "e"]);
        wait_for_more();
        let leader = servers.leader();
        let by = if leader == "d" { "e" } else { "d" };
        remove(&servers.directory(by), &leader).expect("removed");
        wait_for("the server that has left knows it", || {
            servers.with(&leader, |server| {
                server.changes().is_some_and(|changes| changes.has_ended).then_some(())
            })
        });
        wait_for_more();
        // With its own certificate, since the server itself is up.
        let other = ["a", "b", "c"].into_iter().find(|name| *name != leader).expect("one of three");
        servers.end(&leader);
        remove(&servers.directory(other), other).expect("removed");
        wait_for_more();
        servers.end(other);
        let left: Vec<String> = servers.names();
        let left: Vec<&str> = left.iter().map(String::as_str).collect();
        assert_eq!(left.len(), 3);
        servers.wait_for_voters(&left);
        // A removed server that is started again reports its removal, and the others keep committing.
        servers.open(&leader);
        wait_for("the server that has left knows it", || {
            servers.with(&leader, |server| {
                server.changes().is_some_and(|changes| changes.has_ended).then_some(())
            })
        });
        let refusal = servers.with(&leader, Cluster::refusal).expect("it takes no changes");
        assert!(
            refusal.message().contains("removed") && refusal.kind() == ErrorKind::Unsupported,
            "{refusal}"
        );
        servers.end(&leader);
        wait_for_more();
        // All at once, from the maps that they have written.
        for name in &left {
            servers.end(name);
        }
        for name in &left {
            servers.open(name);
        }
        servers.wait_for_voters(&left);
        wait_for_more();
        // A minority of them.
        let gone = servers.leader();
        servers.end(&gone);
        wait_for_more();
        servers.open(&gone);
    });
    let acknowledged: BTreeSet<String> =
        acknowledged.into_inner().expect("not poisoned").into_iter().collect();
    for name in servers.names() {
        wait_for(&format!("everything at {name}"), || {
            let database = servers.with(&name, |server| server.database().clone());
            let found = answers(&database, "SELECT ?s { ?s <urn:is> ?o }");
            let found: BTreeSet<String> = found.into_iter().collect();
            acknowledged.is_subset(&found).then_some(())
        });
    }
}

/// A server that has been removed while it was away learns it when it is back, and one that was invited and
/// removed may be invited again.
#[test]
fn a_server_learns_that_it_was_removed() {
    let servers = Servers::start(&graph(), 3);
    servers.leader();
    servers.join("d", "a");
    servers.wait_for_voters(&["a", "b", "c", "d"]);
    servers.end("d");
    remove(&servers.directory("a"), "d").expect("removed");
    servers.wait_for_voters(&["a", "b", "c"]);
    servers.open("d");
    wait_for("d knows it", || {
        servers.with("d", |server| server.changes().is_some_and(|changes| changes.has_ended).then_some(()))
    });
    servers.with("d", |server| {
        let refusal = server.refusal().expect("it takes no changes");
        assert_eq!(refusal.kind(), ErrorKind::Unsupported, "{refusal}");
        assert!(refusal.message().contains("removed") && server.has_left(), "{refusal}");
    });
    servers.end("d");
    // With its old place it would be a voter again.
    let rejoined = vervet_cluster::rejoin(&servers.directory("d"), &DatabaseOptions::default(), &|_, _| {});
    let error = rejoined.expect_err("it was removed");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("vervet cluster invite")), "{error}");
    std::fs::remove_dir_all(servers.directory("d")).expect("removed");
    servers.join("d", "b");
    servers.wait_for_voters(&["a", "b", "c", "d"]);
}

#[test]
fn what_would_harm_the_cluster_is_refused() {
    let servers = Servers::start(&graph(), 3);
    let leader = servers.leader();
    let directory = servers.directory("a");
    let error = remove(&directory, "x").expect_err("no such server");
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    let error = invite_server(&directory, "b").expect_err("the name is in use");
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    assert!(servers.directory("b").join(MAP_FILE).exists(), "the directory of another server stays");
    let key = servers.folder.path().join("servers").join(AUTHORITY_KEY_FILE);
    for (address, http) in [("nowhere".to_owned(), None), (free_address(), Some("here".to_owned()))] {
        let options = InviteOptions { name: "d".to_owned(), address, http };
        let error = invite(&Environment::real(), &directory, &key, &options, &servers.directory("d"));
        assert_eq!(error.expect_err("no address").kind(), ErrorKind::Input);
        assert!(!servers.directory("d").exists());
    }
    // One of three is down: without a second one, the third could change nothing.
    let others: Vec<String> = servers.names().into_iter().filter(|name| *name != leader).collect();
    servers.end(&others[0]);
    let error = remove(&servers.directory(&leader), &others[1]).expect_err("too few are left");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let update = |text: &str| wait_for("an update", || servers.leading()?.1.update(text).ok());
    update("INSERT DATA { <urn:x> <urn:is> 1 }");
    remove(&servers.directory(&leader), &others[0]).expect("the one that is down");
    update("INSERT DATA { <urn:x> <urn:is> 2 }");
    let error = remove(&servers.directory(&leader), &others[1]).expect_err("one would be left");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

/// A dead voter is replaced in a cluster whose log is short: the new one is needed to commit its own vote,
/// and two that join at the same time need each other.
#[test]
fn a_dead_server_is_replaced() {
    let servers = Servers::start(&graph(), 3);
    let leader = servers.leader();
    let others: Vec<String> = servers.names().into_iter().filter(|name| *name != leader).collect();
    servers.end(&others[0]);
    servers.join("d", &leader);
    let update = |text: &str| wait_for("an update", || servers.leading()?.1.update(text).ok());
    update("INSERT DATA { <urn:x> <urn:is> 1 }");
    wait_for("d is complete", || {
        servers.with("d", |server| server.changes().is_some_and(|changes| changes.is_complete).then_some(()))
    });
    remove(&servers.directory(&leader), &others[0]).expect("removed");
    servers.wait_for_voters(&[&leader, &others[1], "d"]);
    for name in ["e", "f"] {
        invite_server(&servers.directory("d"), name).expect("invited");
    }
    std::thread::scope(|scope| {
        scope.spawn(|| servers.open("e"));
        scope.spawn(|| servers.open("f"));
    });
    servers.wait_for_voters(&[&leader, &others[1], "d", "e", "f"]);
    update("INSERT DATA { <urn:x> <urn:is> 2 }");
}

/// A server at a wrong address gets no vote, delays no other one, and can be removed again.
#[test]
fn a_server_that_is_not_reached_gets_no_vote() {
    let servers = Servers::start(&graph(), 3);
    let leader = servers.leader();
    invite_server(&servers.directory(&leader), "d").expect("invited");
    let map = servers.directory("d").join(MAP_FILE);
    // It listens elsewhere.
    let text = std::fs::read_to_string(&map).expect("a map");
    let text = text.replacen("server = \"d\"", &format!("server = \"d\"\nbind = \"{}\"", free_address()), 1);
    std::fs::write(&map, text).expect("written");
    servers.open("d");
    let update = |text: &str| wait_for("an update", || servers.leading()?.1.update(text).ok());
    wait_for("the leader sends d the log", || {
        let changes = servers.with(&leader, Cluster::changes)?;
        changes.voters?.matched.iter().any(|one| *one == ("d".to_owned(), None)).then_some(())
    });
    for number in 0..20 {
        update(&format!("INSERT DATA {{ <urn:x> <urn:is> {number} }}"));
    }
    let voters = servers.with(&leader, |server| server.map().voters.clone());
    assert_eq!(voters, ["a", "b", "c"]);
    // Before the leader gives up an attempt to admit d, which takes 10 s.
    let begun = Instant::now();
    servers.join("e", &leader);
    wait_for("e votes", || {
        let voters = servers.with(&leader, |server| server.map().voters.clone());
        (voters == ["a", "b", "c", "e"]).then_some(())
    });
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    servers.end("d");
    remove(&servers.directory(&leader), "d").expect("removed");
    update("INSERT DATA { <urn:x> <urn:is> 21 }");
}

/// The only server with the last commits keeps its log until the others are up.
#[test]
fn a_log_that_may_be_needed_stays() {
    let servers = Servers::start(&graph(), 3);
    servers.leader();
    for name in ["a", "b"] {
        servers.end(name);
    }
    let rejoin = |name: &str| {
        vervet_cluster::rejoin(&servers.directory(name), &DatabaseOptions::default(), &|_, _| {})
    };
    let error = rejoin("a").expect_err("one of three is up");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    servers.open("a");
    assert!(rejoin("b").expect("two of three are up").had_log);
    servers.open("b");
    servers.wait_for_voters(&["a", "b", "c"]);
}

#[test]
fn partitions_stay_with_their_servers() {
    let (servers, directories, folder) = start(&graph(), 2);
    let key = folder.path().join("servers").join(AUTHORITY_KEY_FILE);
    let options = InviteOptions { name: "d".to_owned(), address: free_address(), http: None };
    let new = folder.path().join("servers").join("d");
    let invited = invite(&Environment::real(), &directories[0], &key, &options, &new);
    assert_eq!(invited.expect_err("partitions").kind(), ErrorKind::Unsupported);
    assert!(remove(&directories[0], "b").is_err());
    assert!(Cluster::open(&new, &DatabaseOptions::default()).is_err());
    drop(servers);
}
