//! Clusters of processes: `vervet cluster`, `vervet serve --cluster`, and commands on their directories.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::{Place, people};
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStderr, Stdio};
use std::time::{Duration, Instant};
use vervet_testkit::free_address;

/// The directories of two servers, `cluster/a` and `cluster/b`, with free ports.
pub(crate) struct Two {
    pub(crate) place: Place,
    /// Addresses for clients.
    http: Vec<String>,
}

impl Two {
    fn new() -> Self {
        Self::made_with(&["--from", "db"])
    }

    pub(crate) fn made_with(arguments: &[&str]) -> Self {
        let place = people();
        let init = ["cluster", "init", "cluster", "--servers", "2", "--partitions", "4"];
        place.ok(&[&init, arguments].concat());
        let free: Vec<String> = (0..4).map(|_| free_address()).collect();
        for server in ["a", "b"] {
            let path = place.path("cluster").join(server).join("cluster.toml");
            let mut text = std::fs::read_to_string(&path).unwrap();
            let made = ["127.0.0.1:7900", "127.0.0.1:7901", "127.0.0.1:7878", "127.0.0.1:7879"];
            for (made, free) in made.iter().zip(&free) {
                text = text.replace(made, free);
            }
            std::fs::write(path, text).unwrap();
        }
        Self { place, http: free[2..].to_vec() }
    }

    /// Inserts a number by the second server, once there is a leader.
    pub(crate) fn insert(&self, number: u32) {
        let url = format!("http://{}/update", self.http[1]);
        let text = format!("INSERT DATA {{ <urn:new> <urn:said> {number} }}");
        let begun = Instant::now();
        while let Err(error) = ureq::post(&url).send_form([("update", &text)]) {
            assert!(begun.elapsed().as_secs() < 60, "{error}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Starts a server, at the address in its map.
    pub(crate) fn start(&self, server: usize, arguments: &[&str]) -> Process {
        let directory = ["cluster/a", "cluster/b"][server];
        let mut command = self.place.command(&[&["serve", "--cluster", directory], arguments].concat());
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.find(|line| line.as_ref().unwrap().contains("http://")).unwrap().unwrap();
        assert!(line.contains(&self.http[server]), "{line}");
        Process { child, messages: lines }
    }
}

/// Servers load together, each its own files; one that has data or none says so.
#[test]
fn servers_load_their_files() {
    let two = Two::made_with(&[]);
    let place = &two.place;
    let no_data = ["has no data yet", "vervet cluster load"];
    place.fails(&["serve", "--cluster", "cluster/a"], 1, &no_data);
    place.fails(&["check", "cluster/b"], 1, &no_data);
    place.fails(&["cluster", "load", "cluster/a", "--wait", "0"], 1, &["servers have not begun: b"]);
    place.file("one.nt", "<urn:a> <urn:p> <urn:b> .\n<urn:b> <urn:p> <urn:c> .\n");
    let two_of = |file: &str| {
        let mut child = place.command(&["cluster", "load", "cluster/b", file]).stdout(Stdio::piped()).spawn();
        let done = place.run(&["cluster", "load", "cluster/a", "one.nt"]);
        let output = child.as_mut().unwrap().stdout.take().unwrap();
        let text = std::io::read_to_string(output).unwrap();
        (done, child.unwrap().wait().unwrap(), text)
    };
    place.file("bad.nt", "<urn:c> <urn:p>\n");
    let (done, status, _) = two_of("bad.nt");
    assert!(!status.success() && done.code == 1, "{done:?}");
    assert!(done.err.contains("server b has stopped the load: bad.nt:1"), "{done:?}");
    place.file("two.nt", "<urn:c> <urn:p> <urn:a> .\n<urn:a> <urn:p> <urn:b> .\n");
    let (done, status, text) = two_of("two.nt");
    assert!(status.success() && done.code == 0, "{done:?}");
    assert!(done.out.contains("the cluster has 3 statements"), "{done:?}");
    assert!(text.contains("loaded 2 statements") && text.contains("serve --cluster cluster/b"), "{text}");
    let servers = [two.start(0, &[]), two.start(1, &[])];
    let status = place.ok(&["cluster", "status", &two.http[0]]);
    assert!(status.contains("3 statements"), "{status}");
    // A server in the way.
    let failed = place.run(&["cluster", "load", "cluster/a", "one.nt"]);
    assert!(failed.code == 1 && failed.err.contains("end the server"), "{failed:?}");
    drop(servers);
}

/// A server that is killed while it loads ends the load of the others, which name it.
#[test]
fn a_load_ends_with_a_server_that_is_killed() {
    let two = Two::made_with(&[]);
    two.place.file("one.nt", "<urn:a> <urn:p> <urn:b> .\n");
    let load = ["cluster", "load", "cluster/b", "-", "--format", "nt"];
    // It waits for input that never comes.
    let mut waiting = two.place.command(&load).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let input = waiting.stdin.take();
    let mut other = two.place.command(&["cluster", "load", "cluster/a", "one.nt"]);
    let other = other.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(waiting.stderr.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().contains("all servers have begun")).unwrap().unwrap();
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    drop(input);
    let other = other.wait_with_output().unwrap();
    let text = String::from_utf8(other.stderr).unwrap();
    assert!(!other.status.success() && text.contains("server b is gone"), "{text}");
    let names = std::fs::read_dir(two.place.path("cluster/a")).unwrap();
    assert!(!names.map(|name| name.unwrap().file_name()).any(|name| name == *"data.partial"));
}

/// One server of a cluster takes changes, the others send them on to it, and show them.
#[test]
fn a_cluster_takes_changes() {
    let two = Two::made_with(&["--from", "db", "--writer", "a"]);
    let place = &two.place;
    let servers = [two.start(0, &[]), two.start(1, &[])];
    let ask = |server: usize, path: &str, parameter: &str, text: &str| {
        let url = format!("http://{}/{path}", two.http[server]);
        let sent = ureq::post(&url)
            .config()
            .http_status_as_error(false)
            .build()
            .header("accept", "text/csv")
            .send_form([(parameter, text)]);
        let mut answer = sent.unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
    };
    let update = "INSERT DATA { <urn:new> <urn:said> \"yes\" }";
    let (status, text) = ask(1, "update", "update", update);
    assert!((200..300).contains(&status), "{status} {text}");
    let (status, text) = ask(1, "update", "update", "INSERT DATA { <urn:new> }");
    assert!(status == 400 && text.contains("expected"), "{status} {text}");
    let begun = std::time::Instant::now();
    let query = "SELECT ?o { <urn:new> <urn:said> ?o }";
    while !ask(1, "sparql", "query", query).1.contains("yes") {
        assert!(begun.elapsed().as_secs() < 20, "{:?}", ask(1, "sparql", "query", query));
    }
    let status = place.ok(&["cluster", "status", &two.http[1]]);
    assert!(status.contains("Changes go to server a; server b has all up to commit 1."), "{status}");
    // A load would replace the files of the partitions.
    let (status, text) = ask(0, "load", "f", "<urn:a> <urn:b> <urn:c> .");
    assert!(status >= 400, "{text}");
    drop(servers);
    let again = [two.start(0, &[]), two.start(1, &[])];
    assert!(ask(0, "sparql", "query", query).1.contains("yes"));
    drop(again);
    let failed = place.run(&["cluster", "init", "other", "--from", "db", "--writer", "x"]);
    assert!(failed.code == 1 && failed.err.contains("`writer`, `x`"), "{failed:?}");
}

/// A server and its messages; killed on drop.
pub(crate) struct Process {
    child: Child,
    /// What it prints to its standard error. While this exists, the pipe is open.
    messages: Lines<BufReader<ChildStderr>>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A cluster is made from files as well as from a database, and nothing of the load stays; what is wrong is
/// said before the load.
#[test]
fn a_cluster_is_made_from_files() {
    let place = people();
    let names = || {
        let mut names: Vec<_> = std::fs::read_dir(place.path("."))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let before = names();
    std::fs::write(place.path("one.nt"), "<urn:a> <urn:p> <urn:b> .\n").unwrap();
    std::fs::write(place.path("two.nt"), "<urn:b> <urn:p> <urn:c> .\n").unwrap();
    place.ok(&["cluster", "init", "made", "--data", "one.nt", "two.nt", "--servers", "2", "--memory", "64M"]);
    let checked = place.ok(&["check", "made/a"]);
    assert!(checked.contains("2 statements"), "{checked}");
    let made = names();
    assert_eq!(made.len(), before.len() + 3, "{made:?}");
    for (arguments, what) in [
        (&["cluster", "init", "made", "--data", "missing.nt"][..], "has the servers of a cluster already"),
        (&["cluster", "init", "new", "--data", "one.nt", "--partitions", "3"], "a power of two"),
        (&["cluster", "init", "new", "--data", "missing.nt"], "missing.nt"),
        (&["cluster", "init", "new", "--data", "one.nt", "--from", "db"], "cannot be used with"),
    ] {
        let done = place.run(arguments);
        assert!(done.code != 0 && done.err.contains(what), "{arguments:?}: {done:?}");
        assert_eq!(names(), made);
    }
}

/// A server listens at its `http` address; the status of a cluster names servers that are down, above a table
/// without their errors, and its exit code says so.
#[test]
fn status_says_which_server_is_down() {
    let two = Two::new();
    let server = two.start(0, &[]);
    for address in [two.http[0].clone(), format!("http://{}/", two.http[0])] {
        let done = two.place.run(&["cluster", "status", &address]);
        let lines: Vec<&str> = done.out.lines().collect();
        assert_eq!((done.code, done.err.as_str()), (1, ""), "{done:?}");
        assert!(lines[0].starts_with("Server b does not answer, so"), "{done:?}");
        assert!(lines[0].contains("vervet serve --cluster DIR"), "{done:?}");
        let last = lines.last().unwrap();
        assert!(last.starts_with("server b (127.0.0.1:") && last.contains("cannot be reached"), "{done:?}");
        let row = lines.iter().find(|line| line.starts_with("b ")).unwrap();
        assert!(row.contains(" no ") && row.len() < 90, "{done:?}");
    }
    let done = two.place.run(&["cluster", "status", &two.http[0], "--json"]);
    assert!(done.code == 1 && done.out.starts_with('{') && done.out.contains("\"answering\":1"), "{done:?}");
    let done = two.place.run(&["health", &two.http[0]]);
    assert!(
        done.code == 0 && done.out == "ok\n" && done.err.starts_with("note: not ready: server b"),
        "{done:?}"
    );
    two.place.fails(&["health", &two.http[0], "--ready"], 1, &["503", "server b cannot be reached"]);
    let other = two.start(1, &[]);
    let out = two.place.ok(&["cluster", "status", &two.http[1]]);
    assert!(out.starts_with("All 2 servers answer: ") && out.contains("failures"), "{out}");
    drop((server, other));
    let done = two.place.run(&["cluster", "status", &two.http[0]]);
    assert!(done.code == 1 && done.err.contains("hint: is the server running"), "{done:?}");
}

/// Where each server has the whole graph, one that is alone is ready, and the status says what works.
#[test]
fn a_server_with_the_whole_graph_needs_no_other() {
    let two = Two::made_with(&["--from", "db", "--replicas", "2"]);
    let server = two.start(1, &[]);
    two.place.ok(&["health", &two.http[1], "--ready"]);
    let done = two.place.run(&["cluster", "status", &two.http[1]]);
    assert!(done.code == 1 && done.out.contains("Server a does not answer; the others go on"), "{done:?}");
    let other = two.start(0, &[]);
    let out = two.place.ok(&["cluster", "status", &two.http[0]]);
    assert!(out.starts_with("All 2 servers answer: ") && out.contains("all of them at each server"), "{out}");
    drop((server, other));
    let new = ["cluster", "init", "other", "--servers", "3"];
    let some = [&new[..], &["--from", "db", "--replicas", "4"]].concat();
    two.place.fails(&some, 1, &["4 replicas of each partition over 3 servers", "between 1 and 3"]);
    let empty = [&new[..], &["--replicas", "3"]].concat();
    two.place.fails(&empty, 2, &["do not load them together", "--from"]);
}

/// Voters elect the server that takes changes; their log has no word of the library that does it.
#[test]
fn voters_take_changes() {
    let two = Two::made_with(&["--from", "db", "--replicas", "2", "--voters", "2"]);
    let (first, second) = (two.start(0, &[]), two.start(1, &[]));
    let post = |server: usize, path: &str, parameter: &str, text: &str| {
        let url = format!("http://{}/{path}", two.http[server]);
        let request = ureq::post(&url).config().http_status_as_error(false).build();
        let mut answer = request.header("accept", "text/csv").send_form([(parameter, text)]).unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
    };
    let begun = std::time::Instant::now();
    let update = "INSERT DATA { <urn:new> <urn:said> \"yes\" }";
    while !(0..2).any(|server| post(server, "update", "update", update).0 == 204) {
        assert!(begun.elapsed().as_secs() < 60, "{}", post(0, "update", "update", update).1);
    }
    for server in 0..2 {
        let ask = || post(server, "query", "query", "SELECT ?o { <urn:new> <urn:said> ?o }").1;
        while !ask().contains("yes") {
            assert!(begun.elapsed().as_secs() < 60, "{}", ask());
        }
    }
    let status = two.place.ok(&["cluster", "status", &two.http[0]]);
    assert!(status.contains("elected by a, b"), "{status}");
    // A server that is alone stands for election again and again; openraft has an error for each try.
    let term = || {
        let out = two.place.run(&["cluster", "status", &two.http[0], "--json"]).out;
        let number = out.split_once("\"term\":").unwrap().1.split([',', '}']).next().unwrap();
        number.parse::<u64>().unwrap()
    };
    let end = |mut server: Process| {
        server.child.kill().unwrap();
        server.messages.by_ref().map_while(Result::ok).collect::<Vec<String>>()
    };
    let lines = end(second);
    let before = term();
    while term() < before + 2 {
        assert!(begun.elapsed().as_secs() < 120, "{before}");
    }
    let lines = [lines, end(first)].concat();
    assert!(lines.iter().all(|line| !line.contains("openraft")), "{lines:?}");
}

/// A server whose disk was lost is made ready again from its map and new certificates.
#[test]
fn a_server_that_has_lost_its_disk_rejoins() {
    let two = Two::made_with(&["--from", "db", "--replicas", "2", "--voters", "2"]);
    let place = &two.place;
    let first = two.start(0, &[]);
    place.fails(&["cluster", "rejoin", "cluster/a"], 1, &["this server runs", "end it first"]);
    let map = std::fs::read_to_string(place.path("cluster/b/cluster.toml")).unwrap();
    let authority = std::fs::read(place.path("cluster/b/authority.pem")).unwrap();
    std::fs::remove_dir_all(place.path("cluster/b")).unwrap();
    std::fs::create_dir(place.path("cluster/b")).unwrap();
    place.fails(&["cluster", "rejoin", "cluster/b"], 1, &["there is no server of a cluster in"]);
    place.file("cluster/b/cluster.toml", &map);
    std::fs::write(place.path("cluster/b/authority.pem"), authority).unwrap();
    place.fails(&["cluster", "rejoin", "cluster/b"], 1, &["certificate.pem"]);
    let key = ["--authority-key", "cluster/authority-key.pem"];
    place.run(&[&["cluster", "renew-certificate", "cluster/b"], &key[..]].concat());
    let done = place.run(&["cluster", "rejoin", "cluster/b"]);
    assert!(
        done.code == 0 && done.err.contains("copying ") && done.err.contains(" from server a"),
        "{done:?}"
    );
    assert!(
        done.err.contains("server b has the data of another server; it takes its place again"),
        "{done:?}"
    );
    drop(first);
}

/// A cluster that runs is backed up, and restored as another cluster and as a database.
#[test]
fn a_cluster_is_backed_up_and_restored() {
    let two = Two::made_with(&["--from", "db", "--replicas", "2", "--voters", "2"]);
    let place = &two.place;
    let refused = place.run(&["backup", "cluster/a", "copy"]);
    assert!(
        refused.code == 1 && refused.err.contains("vervet cluster backup cluster/a BACKUP"),
        "{refused:?}"
    );
    let servers = [two.start(0, &[]), two.start(1, &[])];
    let insert = |number| two.insert(number);
    insert(1);
    let made = place.run(&["cluster", "backup", "cluster/a", "backup"]);
    assert!(
        made.code == 0 && made.err.contains("copying ") && made.out.contains("up to commit 1, "),
        "{made:?}"
    );
    insert(2);
    let made = place.ok(&["cluster", "backup", "cluster/b", "backup"]);
    assert!(made.contains("up to commit 2, ") && made.contains(" records in "), "{made}");
    let made = place.ok(&["cluster", "backup", "cluster/b", "backup", "--keep", "3"]);
    assert!(made.contains("has all of cluster vervet already: commit 2, "), "{made}");
    drop(servers);
    let checked = place.ok(&["check", "backup"]);
    assert!(checked.contains("backup is sound: a backup of cluster vervet from commit 1, "), "{checked}");
    let query = ["query", "single", "SELECT ?o { <urn:new> <urn:said> ?o }", "--format", "csv"];
    let restore = ["cluster", "restore", "backup"];
    for command in [&["restore", "backup", "db2"][..], &["info", "backup"], &["load", "backup", "people.csv"]]
    {
        place.fails(command, 1, &["backup is a backup of a cluster", "vervet cluster restore backup DIR"]);
    }
    place.fails(&[&restore[..], &["new", "--until", "9"]].concat(), 1, &["does not have commit 9", "0 to 2"]);
    place.fails(&[&restore[..], &["new", "--until", "noon"]].concat(), 2, &["noon"]);
    place.fails(&[&restore[..], &["new", "--database", "--servers", "3"]].concat(), 2, &["--database"]);
    place.ok(&[&restore[..], &["single", "--database", "--until", "1"]].concat());
    assert!(place.ok(&query).contains('1') && !place.ok(&query).contains('2'));
    let done = place.run(&[&restore[..], &["new", "--port", "7950"]].concat());
    assert!(done.code == 0 && done.out.contains("vervet serve --cluster new/b\n"), "{done:?}");
    assert!(done.err.contains("restored commit 2 of cluster vervet, "), "{done:?}");
    let map = std::fs::read_to_string(place.path("new/b/cluster.toml")).unwrap();
    assert!(map.contains("voters = [\"a\", \"b\"]") && map.matches("partitions = [0]").count() == 2, "{map}");
    let checked = place.ok(&["check", "new/a"]);
    assert!(checked.contains("1 of 1 partitions"), "{checked}");
    place.fails(&[&restore[..], &["new"]].concat(), 1, &["has the servers of a cluster already"]);
    let cut = ["new", "--servers", "2", "--replicas", "1", "--writer", "a", "--port", "7950"];
    std::fs::remove_dir_all(place.path("new")).unwrap();
    place.ok(&[&restore[..], &cut[..]].concat());
    let map = std::fs::read_to_string(place.path("new/b/cluster.toml")).unwrap();
    assert!(map.contains("writer = \"a\"") && !map.contains("voters"), "{map}");
    let checked = place.ok(&["check", "new/a"]);
    assert!(checked.contains("8 of 16 partitions"), "{checked}");
    let mut manifest = std::fs::read_to_string(place.path("backup/backup.toml")).unwrap();
    manifest = manifest.replace("records = ", "records = 1");
    place.file("backup/backup.toml", &manifest);
    place.fails(&["check", "backup"], 1, &["backup.toml is damaged", "a new one"]);
}

/// A backup that is killed at any moment leaves what the backup had before, or adds all that is new.
#[test]
fn a_backup_that_is_killed_leaves_what_it_had() {
    let two = Two::made_with(&["--from", "db", "--replicas", "2", "--voters", "2"]);
    let place = &two.place;
    let servers = [two.start(0, &[]), two.start(1, &[])];
    two.insert(0);
    let time = (0..3).map(|number| {
        let begun = Instant::now();
        place.ok(&["cluster", "backup", "cluster/a", &format!("other{number}")]);
        begun.elapsed()
    });
    let time = time.min().unwrap();
    // The last number that a call has acknowledged to be in the backup.
    let (mut known, mut killed, mut has_any) = (0, 0, false);
    for round in 1..=24_u32 {
        two.insert(round);
        let full: &[&str] = if round % 3 == 0 { &["--full", "--keep", "2"] } else { &[] };
        let mut command = place.command(&[&["cluster", "backup", "cluster/a", "backup"], full].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        if round % 8 == 0 {
            assert!(child.wait().unwrap().success(), "round {round}");
            (known, has_any) = (round, true);
        } else {
            std::thread::sleep(time * (round * 7 % 24) / 20);
            killed += u32::from(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let checked = place.run(&["check", "backup"]);
        if checked.code != 0 {
            let is_first = ["no finished backup", "no backup", "no database"];
            assert!(!has_any && is_first.iter().any(|text| checked.err.contains(text)), "{checked:?}");
            continue;
        }
        has_any = true;
        let name = format!("db{round}");
        place.ok(&["cluster", "restore", "backup", &name, "--database"]);
        let query = "SELECT (COUNT(?o) AS ?n) (MAX(?o) AS ?m) { <urn:new> <urn:said> ?o }";
        let found = place.ok(&["query", &name, query, "--format", "csv"]);
        let (count, last) = found.lines().nth(1).unwrap().split_once(',').unwrap();
        let (count, last): (u32, u32) = (count.parse().unwrap(), last.parse().unwrap());
        assert!(
            count == last + 1 && (known..=round).contains(&last),
            "round {round}, known {known}: {found}"
        );
        known = last;
    }
    println!("{killed} calls were killed; a whole one takes {time:?}");
    assert!(killed > 0, "no call was killed");
    drop(servers);
}

/// A server with users needs credentials for its status.
#[test]
fn status_logs_in() {
    let two = Two::new();
    let hash = two.place.run_with_input(&["password"], "secret");
    let one = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
    two.place.file(
        "server.toml",
        &format!(
            "[[users]]\nname = 'ann'\npassword = '{}'\ntoken_sha256 = '{one}'\nrole = 'read'\n",
            hash.out.trim()
        ),
    );
    let _servers = [0, 1].map(|server| two.start(server, &["--config", "server.toml"]));
    let done = two.place.run(&["cluster", "status", &two.http[0]]);
    assert!(done.code == 1 && done.err.contains("--token-file FILE"), "{done:?}");
    let by_user = ["cluster", "status", &two.http[0], "--user", "ann"];
    assert_eq!(two.place.run_with_input(&by_user, "secret\n").code, 0);
    assert_eq!(two.place.run_with_input(&by_user, "wrong\n").code, 1);
    two.place.file("token", "one\n");
    two.place.ok(&["cluster", "status", &two.http[0], "--token-file", "token"]);
}

/// Commands for databases say what a directory of a cluster is, and what to type instead.
#[test]
fn directories_of_a_cluster_are_no_databases() {
    let two = Two::new();
    let place = &two.place;
    let serve = "vervet serve --cluster cluster/a";
    place.fails(&["serve", "cluster/a"], 1, &["is the directory of server a of cluster vervet", serve]);
    place.fails(&["serve", "cluster"], 1, &["has the directories of the servers", serve, "each other one"]);
    place.fails(&["query", "cluster/a/data", "ASK {}"], 1, &["has the data of server a", serve, "curl"]);
    place.fails(&["info", "cluster/b"], 1, &["vervet serve --cluster cluster/b", "vervet cluster status"]);
    place.fails(&["check", "cluster"], 1, &["vervet check cluster/a; vervet check cluster/b"]);
    let update = ["update", "cluster/a", "CLEAR ALL"];
    place.fails(&update, 1, &["no server of this cluster takes changes", "vervet cluster init"]);
    place.fails(&["recover", "cluster"], 1, &["vervet check cluster/a; vervet check cluster/b"]);
    place.ok(&["check", "cluster/a"]);
}
