//! Backups of a cluster of processes in object storage, by the built binary and a server that verifies each
//! signature.
#![cfg(unix)]

use crate::cluster::Two;
use crate::common::{Done, Place};
use std::process::{Child, Command, Stdio};
use vervet_testkit::{Fault, ObjectServer, free_address};

const TARGET: &str = "s3://test-bucket/backups/one";
const MANIFEST: &str = "backups/one/backup.toml";

/// A command without variables for object storage but these.
fn command(place: &Place, variables: &[(&str, String)], arguments: &[&str]) -> Command {
    let mut command = place.command(arguments);
    let others =
        ["AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3", "AWS_CA_BUNDLE", "HTTP_PROXY"];
    let own = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT_URL", "http_proxy"];
    for name in others.into_iter().chain(own) {
        command.env_remove(name);
    }
    let temporary = place.path("temporary");
    std::fs::create_dir_all(&temporary).expect("made");
    command.env("TMPDIR", temporary).envs(variables.iter().map(|(name, value)| (name, value)));
    command
}

fn run(place: &Place, server: &ObjectServer, arguments: &[&str]) -> Done {
    Done::from(command(place, &server.variables(), arguments).output().expect("run"))
}

#[track_caller]
fn ok(place: &Place, server: &ObjectServer, arguments: &[&str]) -> String {
    let done = run(place, server, arguments);
    assert_eq!(done.code, 0, "{arguments:?}: {done:?}");
    done.out
}

#[track_caller]
fn fails(place: &Place, variables: &[(&str, String)], arguments: &[&str], says: &[&str]) {
    let done = Done::from(command(place, variables, arguments).output().expect("run"));
    assert_eq!((done.code, done.out.as_str()), (1, ""), "{arguments:?}: {done:?}");
    for part in says {
        assert!(done.err.contains(part), "{arguments:?} should say {part:?}: {}", done.err);
    }
    assert!(!done.err.contains(ObjectServer::SECRET_KEY), "{}", done.err);
}

fn two() -> Two {
    Two::made_with(&["--from", "db", "--replicas", "2", "--voters", "2"])
}

/// Number of objects that were stored besides the manifest, and bytes of their contents.
fn stored(server: &ObjectServer) -> (usize, usize) {
    let requests = server.take_requests();
    let puts = requests.iter().filter(|request| request.method == "PUT" && request.key != MANIFEST);
    puts.fold((0, 0), |(count, bytes), put| (count + 1, bytes + put.length))
}

#[test]
fn a_cluster_is_backed_up_to_object_storage() {
    let two = two();
    let place = &two.place;
    let server = ObjectServer::start();
    let servers = [two.start(0, &[]), two.start(1, &[])];
    two.insert(1);
    let back_up =
        |more: &[&str]| ok(place, &server, &[&["cluster", "backup", "cluster/a", TARGET], more].concat());
    let made = back_up(&[]);
    assert!(made.contains("s3://test-bucket/backups/one has cluster vervet up to commit 1, "), "{made}");
    let (count, first_bytes) = stored(&server);
    assert!(count >= 4, "{count} objects");
    two.insert(2);
    let made = back_up(&[]);
    assert!(made.contains("up to commit 2, ") && made.contains(" records in "), "{made}");
    let (count, bytes) = stored(&server);
    assert!(count == 1 && bytes < first_bytes, "{count} objects, {bytes} bytes");
    let made = back_up(&[]);
    assert!(made.contains("has all of cluster vervet already: commit 2, "), "{made}");
    assert_eq!(stored(&server), (0, 0));
    let full = back_up(&["--full", "--keep", "1"]);
    assert!(full.contains("of data and "), "{full}");
    assert!(server.objects().keys().all(|key| key == MANIFEST || key.starts_with("backups/one/base-0002-")));
    drop(servers);
    let checked = ok(place, &server, &["check", TARGET]);
    assert!(
        checked.contains("s3://test-bucket/backups/one is sound: a backup of cluster vervet"),
        "{checked}"
    );
    let query = ["query", "single", "SELECT ?o { <urn:new> <urn:said> ?o }", "--format", "csv"];
    let restore = ["cluster", "restore", TARGET];
    ok(place, &server, &[&restore[..], &["single", "--database"]].concat());
    assert!(place.ok(&query).contains('1') && place.ok(&query).contains('2'));
    ok(place, &server, &[&restore[..], &["new", "--port", "7950"]].concat());
    assert!(place.ok(&["check", "new/b"]).contains("1 of 1 partitions"));
    let until = |number, name| [&restore[..], &[name, "--database", "--until", number]].concat();
    fails(place, &server.variables(), &until("9", "other"), &["does not have commit 9", "it has 0 to 2"]);
    std::fs::remove_dir_all(place.path("single")).expect("removed");
    ok(place, &server, &until("1", "single"));
    assert!(place.ok(&query).contains('1') && !place.ok(&query).contains('2'));
    assert_eq!(std::fs::read_dir(place.path("temporary")).expect("a folder").count(), 0, "nothing is left");
    // A damaged object, and a damaged manifest.
    let objects = server.objects();
    let (key, bytes) = objects.iter().find(|(key, _)| key.ends_with(".log")).expect("records");
    let mut damaged = bytes.to_vec();
    damaged[60] ^= 1;
    server.set(key, Some(&damaged));
    let shown = format!("s3://test-bucket/{}", key.rsplit_once('/').expect("parts").0);
    let says = [shown.as_str(), "hint: put back a copy"];
    fails(place, &server.variables(), &["check", TARGET], &says);
    fails(place, &server.variables(), &[&restore[..], &["third", "--database"]].concat(), &says);
    assert!(!place.path("third").exists());
    server.set(key, Some(bytes));
    server.set(MANIFEST, Some(&objects[MANIFEST][..100]));
    fails(
        place,
        &server.variables(),
        &["check", TARGET],
        &["s3://test-bucket/backups/one/backup.toml is damaged"],
    );
}

/// What cannot work says why, and what to do.
#[test]
fn errors_of_object_storage_say_what_to_do() {
    let two = two();
    let place = &two.place;
    let server = ObjectServer::start();
    let servers = [two.start(0, &[]), two.start(1, &[])];
    two.insert(1);
    let back_up = ["cluster", "backup", "cluster/a", TARGET];
    let with = |name: &str, value: &str| {
        let mut variables = server.variables();
        variables.retain(|(known, _)| *known != name);
        variables.push(("IGNORED", String::new()));
        let mut variables: Vec<(String, String)> =
            variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        variables.push((name.to_owned(), value.to_owned()));
        variables
    };
    let cases = [
        ("AWS_ACCESS_KEY_ID", "", "AWS_ACCESS_KEY_ID is not set", "aws configure export-credentials"),
        ("AWS_SECRET_ACCESS_KEY", "wrong", "SignatureDoesNotMatch", "check AWS_ACCESS_KEY_ID"),
        ("AWS_REGION", "us-east-1", "AuthorizationHeaderMalformed", "set AWS_REGION"),
        ("AWS_ENDPOINT_URL", "minio", "AWS_ENDPOINT_URL is no address", "https://HOST"),
        ("AWS_ENDPOINT_URL", &format!("http://{}", free_address()), "does not answer", "check the network"),
    ];
    for (name, value, message, hint) in cases {
        let variables = with(name, value);
        let variables: Vec<(&str, String)> =
            variables.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        for command in [&back_up[..], &["check", TARGET], &["cluster", "restore", TARGET, "new"]] {
            fails(place, &variables, command, &[message, "hint: ", hint]);
        }
    }
    let variables = server.variables();
    let other = ["cluster", "backup", "cluster/a", "s3://other-bucket/x"];
    fails(place, &variables, &other, &["s3://other-bucket", "NoSuchBucket", "make the bucket"]);
    fails(place, &variables, &["cluster", "backup", "cluster/a", "gs://x/y"], &["gs://x/y", "s3://BUCKET"]);
    fails(place, &variables, &["check", TARGET], &["there is no backup of a cluster in s3://test-bucket"]);
    fails(place, &variables, &["backup", "db", TARGET], &["is a URL, not a directory", "aws s3 sync"]);
    fails(place, &variables, &["restore", TARGET, "new"], &["vervet cluster restore"]);
    server.set("backups/one/photo.jpg", Some(b"x"));
    fails(place, &variables, &back_up, &["has photo.jpg, and no backup", "name a prefix"]);
    server.set("backups/one/photo.jpg", None);
    // A full call that is refused in its middle changes nothing.
    ok(place, &server, &back_up);
    let before = server.objects()[MANIFEST].clone();
    server.fail("PUT", "records-", 1, Fault::Refuse(403, "AccessDenied"));
    two.insert(2);
    fails(place, &variables, &back_up, &["AccessDenied", "s3:PutObject"]);
    assert_eq!(server.objects()[MANIFEST], before);
    // Faults that pass do not fail a call.
    server.fail("PUT", "", 2, Fault::Refuse(503, "SlowDown"));
    server.fail("GET", "", 1, Fault::CutAnswer(5));
    let made = ok(place, &server, &back_up);
    assert!(made.contains("up to commit 2, "), "{made}");
    ok(place, &server, &["check", TARGET]);
    drop(servers);
}

/// Calls that are killed, and calls at the same time: the backup has what it had, or all that is new.
#[test]
fn calls_that_are_killed_or_meet_leave_the_backup_whole() {
    let two = two();
    let place = &two.place;
    let server = ObjectServer::start();
    let servers = [two.start(0, &[]), two.start(1, &[])];
    two.insert(0);
    let start = |directory: &str, full: bool| -> Child {
        let more: &[&str] = if full { &["--full", "--keep", "2"] } else { &[] };
        let arguments = [&["cluster", "backup", directory, TARGET], more].concat();
        let mut command = command(place, &server.variables(), &arguments);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("started")
    };
    let (mut known, mut met) = (0, 0);
    for round in 1..=12_u32 {
        two.insert(round);
        if round % 2 == 0 {
            let both = [start("cluster/a", round % 4 == 0), start("cluster/b", round % 6 == 0)];
            let ended = both.map(|child| Done::from(child.wait_with_output().expect("ended")));
            assert!(ended.iter().any(|done| done.code == 0), "{ended:?}");
            for failed in ended.iter().filter(|done| done.code != 0) {
                assert!(failed.err.contains("another call has changed the backup"), "{failed:?}");
                met += 1;
            }
            known = round;
        } else {
            // Killed while the server has one of its requests, which it never answers.
            let within = ["backup.toml", "/data-", "/records-", "list-type"][round as usize / 2 % 4];
            server.take_requests();
            let method = if within == "list-type" { "GET" } else { "PUT" };
            server.fail(method, within, 1, Fault::Silence);
            let mut child = start("cluster/a", round % 3 == 0);
            let is_silent =
                |server: &ObjectServer| server.take_requests().iter().any(|sent| sent.status == 0);
            while !is_silent(&server) && child.try_wait().expect("a state").is_none() {
                std::thread::park_timeout(std::time::Duration::from_millis(5));
            }
            child.kill().expect("killed");
            child.wait().expect("ended");
            server.forget_faults();
        }
        let checked = run(place, &server, &["check", TARGET]);
        if checked.code != 0 {
            let is_first = ["no finished backup", "no backup"].iter().any(|text| checked.err.contains(text));
            assert!(known == 0 && is_first, "round {round}: {checked:?}");
            continue;
        }
        let name = format!("db{round}");
        ok(place, &server, &["cluster", "restore", TARGET, &name, "--database"]);
        let query = "SELECT (COUNT(?o) AS ?n) (MAX(?o) AS ?m) { <urn:new> <urn:said> ?o }";
        let found = place.ok(&["query", &name, query, "--format", "csv"]);
        let (count, last) = found.lines().nth(1).expect("a row").split_once(',').expect("two");
        let (count, last): (u32, u32) = (count.parse().expect("a number"), last.parse().expect("a number"));
        assert!(
            count == last + 1 && (known..=round).contains(&last),
            "round {round}, known {known}: {found}"
        );
    }
    println!("{met} calls met another one");
    drop(servers);
}
