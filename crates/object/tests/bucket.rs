//! Objects of a server that verifies each signature: what was stored is read, faults that pass are repeated,
//! others are errors that say what to do.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vervet_model::{Error, ErrorKind, Result, ThreadLimits};
use vervet_object::{Bucket, Credentials, Location, Object, Settings};
use vervet_testkit::{Fault, ObjectServer};

/// A prefix that has to be encoded.
const PREFIX: &str = "a b/ü+c";

/// Bytes of a part, and of an object of three parts.
const PART_BYTES: usize = 1 << 20;
const LARGE_BYTES: usize = 2 * PART_BYTES + 100_000;

fn settings(server: &ObjectServer) -> Settings {
    let keys = Credentials::new(ObjectServer::ACCESS_KEY, ObjectServer::SECRET_KEY, None).expect("keys");
    let mut settings = Settings::new(keys);
    settings.region = ObjectServer::REGION.to_owned();
    settings.endpoint = Some(server.endpoint());
    settings.retry_delay = Duration::from_millis(1);
    settings.timeout = Duration::from_secs(20);
    settings.part_bytes = PART_BYTES as u64;
    settings
}

fn location() -> Location {
    format!("s3://{}/{PREFIX}", ObjectServer::BUCKET).parse().expect("a location")
}

fn bucket_with(settings: Settings) -> Bucket {
    Bucket::new(location(), settings).expect("a client")
}

fn start() -> (ObjectServer, Bucket) {
    let server = ObjectServer::start();
    let bucket = bucket_with(settings(&server));
    (server, bucket)
}

fn key(name: &str) -> String {
    format!("{PREFIX}/{name}")
}

/// A file with these bytes, and its folder.
fn file(bytes: &[u8]) -> (PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    std::fs::write(&path, bytes).expect("written");
    (path, folder)
}

/// Bytes of which no part is like another.
fn bytes(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fastrand::Rng::with_seed(length as u64).fill(&mut bytes);
    bytes
}

fn upload(bucket: &Bucket, name: &str, content: &[u8]) -> Result<u64> {
    let (path, _folder) = file(content);
    let mut sent = 0;
    bucket.upload(name, &path, &mut |bytes| {
        sent += bytes;
        Ok(())
    })?;
    Ok(sent)
}

fn download(bucket: &Bucket, name: &str, size_bytes: u64) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    bucket.download(&Object { name: name.to_owned(), size_bytes }, &mut content, &mut |_| Ok(()))?;
    Ok(content)
}

fn refused(result: Result<impl std::fmt::Debug>, kind: ErrorKind, parts: &[&str]) -> Error {
    let error = result.expect_err("an error");
    assert_eq!(error.kind(), kind, "{error}");
    let text = format!("{error} {}", error.hint().unwrap_or_default());
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
    for secret in [ObjectServer::SECRET_KEY, "Signature="] {
        assert!(!text.contains(secret), "{text}");
    }
    error
}

#[test]
fn objects_are_stored_and_read() {
    let (server, bucket) = start();
    assert_eq!(bucket.read("x", 10).expect("an answer"), None);
    assert_eq!(bucket.list("").expect("a list"), []);
    for (name, length) in [("empty", 0), ("x/small", 1_000), ("x/large-1.log", LARGE_BYTES)] {
        let content = bytes(length);
        assert_eq!(upload(&bucket, name, &content).expect("stored"), length as u64);
        assert_eq!(*server.objects()[&key(name)], content);
        assert!(download(&bucket, name, length as u64).expect("read") == content, "{name}");
    }
    server.set("a b/ü+cd", Some(b"another prefix"));
    server.set(&key("<&\"'>"), Some(b""));
    let names = |begin: &str| -> Vec<String> {
        bucket.list(begin).expect("a list").into_iter().map(|object| object.name).collect()
    };
    for page_objects in [1, 2, 1_000] {
        server.set_page_objects(page_objects);
        assert_eq!(names(""), ["<&\"'>", "empty", "x/large-1.log", "x/small"]);
        assert_eq!(names("x/"), ["x/large-1.log", "x/small"]);
    }
    let found = bucket.list("x/l").expect("a list");
    let size_bytes = LARGE_BYTES as u64;
    assert_eq!(found, [Object { name: "x/large-1.log".to_owned(), size_bytes }]);
    refused(bucket.read("x/small", 999), ErrorKind::Unavailable, &["x/small", "too long"]);
    assert_eq!(bucket.read("x/small", 1_000).expect("read").expect("there").bytes, bytes(1_000));
    bucket.remove("x/small").expect("removed");
    bucket.remove("x/small").expect("not there any more");
    assert_eq!(names("x/"), ["x/large-1.log"]);
    assert_eq!(server.open_uploads(), 0);
    // Three parts of a large object, each on its own.
    let parts = server.take_requests();
    let parts: Vec<usize> =
        parts.iter().filter(|sent| sent.query.contains("partNumber")).map(|sent| sent.length).collect();
    assert_eq!(parts, [PART_BYTES, PART_BYTES, 100_000]);
}

#[test]
fn credentials_with_a_token_are_used() {
    let server = ObjectServer::start();
    server.set_session_token("token+of/a=session");
    let with = |token| {
        let keys = Credentials::new(ObjectServer::ACCESS_KEY, ObjectServer::SECRET_KEY, token).expect("keys");
        bucket_with(Settings { credentials: keys, ..settings(&server) })
    };
    assert!(with(Some("token+of/a=session")).list("").is_ok());
    refused(with(Some("old-token")).list(""), ErrorKind::Input, &["InvalidToken", "AWS_SESSION_TOKEN"]);
}

/// A version is replaced only if it is the one that was read.
#[test]
fn a_version_is_replaced_once() {
    let (server, bucket) = start();
    for has_conditions in [true, false] {
        server.set_conditions(has_conditions);
        server.set(&key("m"), None);
        assert!(bucket.replace("m", b"1", None).expect("stored"));
        assert!(!bucket.replace("m", b"2", None).expect("an answer"), "it is there");
        let first = bucket.read("m", 9).expect("read").expect("there");
        assert!(bucket.replace("m", b"3", Some(&first.tag)).expect("stored"));
        assert!(!bucket.replace("m", b"4", Some(&first.tag)).expect("an answer"), "it was replaced");
        let second = bucket.read("m", 9).expect("read").expect("there");
        assert_eq!(second.bytes, b"3");
        server.set(&key("m"), None);
        assert!(!bucket.replace("m", b"5", Some(&second.tag)).expect("an answer"), "it was removed");
        assert_eq!(bucket.read("m", 9).expect("an answer"), None);
    }
    // The answer is lost: the next attempt finds what the first one has stored.
    server.set_conditions(true);
    assert!(bucket.replace("n", b"1", None).expect("stored"));
    let first = bucket.read("n", 9).expect("read").expect("there");
    server.fail("PUT", "n", 1, Fault::LoseAnswer);
    assert!(bucket.replace("n", b"2", Some(&first.tag)).expect("stored"));
    assert_eq!(bucket.read("n", 9).expect("read").expect("there").bytes, b"2");
}

/// Requests that fail for a reason that passes are sent again, and transfers go on where they were.
#[test]
fn faults_that_pass_are_repeated() {
    let (server, bucket) = start();
    let content = bytes(LARGE_BYTES);
    let faults = [
        ("PUT", Fault::Refuse(500, "InternalError")),
        ("PUT", Fault::Refuse(503, "SlowDown")),
        ("PUT", Fault::CutRequest),
        ("PUT", Fault::LoseAnswer),
        ("POST", Fault::Refuse(503, "SlowDown")),
        ("POST", Fault::CutRequest),
        ("POST", Fault::CutAnswer(20)),
        ("POST", Fault::ShortAnswer(0)),
        ("POST", Fault::Say("<Error><Code>InternalError</Code></Error>".to_owned())),
    ];
    for (number, (method, fault)) in faults.into_iter().enumerate() {
        let name = format!("f{number}");
        let query = if method == "PUT" { "partNumber=2" } else { "uploadId" };
        server.fail(method, query, 2, fault.clone());
        upload(&bucket, &name, &content).unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert!(*server.objects()[&key(&name)] == content, "{fault:?}");
        server.set(&key(&name), None);
    }
    // The answer about the whole is lost: the upload is over, and the object is there.
    server.fail("POST", "uploadId", 1, Fault::LoseAnswer);
    upload(&bucket, "f", &content).expect("stored");
    assert_eq!(server.open_uploads(), 0);
    server.take_requests();
    for fault in [
        Fault::Refuse(500, "InternalError"),
        Fault::CutAnswer(0),
        Fault::CutAnswer(500_000),
        Fault::LoseAnswer,
    ] {
        server.fail("GET", "f?", 3, fault.clone());
        let read = download(&bucket, "f", content.len() as u64);
        assert!(read.unwrap_or_else(|error| panic!("{fault:?}: {error}")) == content, "{fault:?}");
    }
    // 7 cuts after some bytes each are no 6 failures in a row.
    server.fail("GET", "f?", 7, Fault::CutAnswer(200_000));
    assert!(download(&bucket, "f", content.len() as u64).expect("read") == content);
    for fault in [Fault::Refuse(503, "SlowDown"), Fault::CutAnswer(9), Fault::LoseAnswer] {
        server.fail("GET", "list-type", 2, fault);
        assert_eq!(bucket.list("").expect("a list").len(), 1);
    }
}

/// A server that always fails, or a fault that does not pass: an error after some attempts.
#[test]
fn faults_that_stay_are_errors() {
    let (server, bucket) = start();
    upload(&bucket, "x", &bytes(100_000)).expect("stored");
    server.take_requests();
    server.fail("GET", "list-type", 100, Fault::Refuse(503, "SlowDown"));
    refused(bucket.list(""), ErrorKind::Unavailable, &["503", "SlowDown", "6 times", "later"]);
    assert_eq!(server.take_requests().len(), 6);
    server.forget_faults();
    for (status, code, hint) in [
        (403, "AccessDenied", "s3:ListBucket"),
        (403, "RequestTimeTooSkewed", "set the clock of this machine: for the server it is Tue, 01 Dec 2026"),
        (404, "NoSuchBucket", "make the bucket"),
        (301, "PermanentRedirect", "AWS_REGION"),
    ] {
        let everything: [&dyn Fn() -> Result<()>; 6] = [
            &|| bucket.list("").map(drop),
            &|| bucket.read("x", 9).map(drop),
            &|| download(&bucket, "x", 100_000).map(drop),
            &|| upload(&bucket, "y", b"y").map(drop),
            &|| bucket.replace("y", b"y", Some("\"x\"")).map(drop),
            &|| bucket.remove("x"),
        ];
        for (method, call) in ["GET", "GET", "GET", "PUT", "PUT", "DELETE"].into_iter().zip(everything) {
            server.fail(method, "", 1, Fault::Refuse(status, code));
            refused(call(), ErrorKind::Input, &[code, hint, "s3://test-bucket"]);
        }
        assert_eq!(server.take_requests().len(), 6, "no attempts that cannot help");
    }
    // Other keys, another region.
    let with = |access_key, secret_key, region: &str| {
        let credentials = Credentials::new(access_key, secret_key, None).expect("keys");
        bucket_with(Settings { credentials, region: region.to_owned(), ..settings(&server) })
    };
    let wrong = with("OTHER", "x", ObjectServer::REGION);
    refused(wrong.list(""), ErrorKind::Input, &["InvalidAccessKeyId", "AWS_ACCESS_KEY_ID"]);
    let wrong = with(ObjectServer::ACCESS_KEY, "x", ObjectServer::REGION);
    refused(wrong.list(""), ErrorKind::Input, &["SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY"]);
    let wrong = with(ObjectServer::ACCESS_KEY, ObjectServer::SECRET_KEY, "us-west-2");
    refused(wrong.list(""), ErrorKind::Input, &["AuthorizationHeaderMalformed", "AWS_REGION"]);
    let other = Bucket::new("s3://other-bucket/x".parse().expect("a location"), settings(&server));
    refused(other.expect("a client").list(""), ErrorKind::Input, &["NoSuchBucket", "s3://other-bucket"]);
    // No server, no server of this protocol, one that never answers.
    let nowhere = Settings {
        endpoint: Some(format!("http://{}", vervet_testkit::free_address())),
        ..settings(&server)
    };
    refused(
        bucket_with(nowhere).list(""),
        ErrorKind::Unavailable,
        &["does not answer", "AWS_ENDPOINT_URL", "6 times"],
    );
    let tls = Settings { endpoint: Some(server.endpoint().replace("http:", "https:")), ..settings(&server) };
    refused(bucket_with(tls).list(""), ErrorKind::Unavailable, &["does not answer", "https://127.0.0.1"]);
    server.fail("GET", "", 100, Fault::Silence);
    let patient = Settings { timeout: Duration::from_millis(50), ..settings(&server) };
    refused(bucket_with(patient).list(""), ErrorKind::Unavailable, &["does not answer", "timeout"]);
}

/// Parts of an upload that fails or is cancelled are removed, and there is no object.
#[test]
fn an_upload_that_fails_leaves_nothing() {
    let (server, bucket) = start();
    let content = bytes(LARGE_BYTES);
    for fault in [Fault::Refuse(403, "AccessDenied"), Fault::WrongTag, Fault::CutRequest] {
        server.fail("PUT", "partNumber=2", 100, fault.clone());
        let error = upload(&bucket, "x", &content).expect_err("a fault");
        assert!(error.hint().is_some(), "{error}");
        assert_eq!((server.open_uploads(), server.objects().len()), (0, 0), "{fault:?}: {error}");
        server.forget_faults();
    }
    let cancelled = Arc::new(AtomicBool::new(false));
    let limits = ThreadLimits { cancelled: Some(Arc::clone(&cancelled)), ..ThreadLimits::default() };
    let _limits = limits.enter();
    let (path, _folder) = file(&content);
    let sent = bucket.upload("x", &path, &mut |_| {
        cancelled.store(true, Ordering::Relaxed);
        Ok(())
    });
    refused(sent, ErrorKind::Cancelled, &[]);
    assert_eq!((server.open_uploads(), server.objects().len()), (0, 0));
}

/// A pause between attempts ends when the call is cancelled.
#[test]
fn a_pause_is_cancelled() {
    let server = ObjectServer::start();
    let bucket = bucket_with(Settings { retry_delay: Duration::from_secs(600), ..settings(&server) });
    server.fail("GET", "", 100, Fault::Refuse(503, "SlowDown"));
    let begun = Instant::now();
    let deadline = Some((begun + Duration::from_millis(100), Duration::from_millis(100)));
    let _limits = ThreadLimits { deadline, ..ThreadLimits::default() }.enter();
    refused(bucket.list(""), ErrorKind::Deadline, &[]);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

/// An object that is not the one of the list, or changes while it is read, is an error.
#[test]
fn a_changed_object_is_found() {
    let (server, bucket) = start();
    let content = bytes(100_000);
    upload(&bucket, "x", &content).expect("stored");
    for size in [99_999, 100_001] {
        refused(download(&bucket, "x", size), ErrorKind::Corrupt, &["/x is damaged", "its list says"]);
    }
    refused(download(&bucket, "y", 9), ErrorKind::Corrupt, &["/y is damaged", "missing"]);
    assert_eq!(download(&bucket, "x", 0).expect("nothing to read"), b"");
    server.fail("GET", "x?", 1, Fault::ShortAnswer(500));
    assert!(download(&bucket, "x", 100_000).expect("read again") == content);
    // The rest is that of another object.
    struct Replacing<'a>(&'a ObjectServer, Vec<u8>);
    impl Write for Replacing<'_> {
        fn write(&mut self, some: &[u8]) -> io::Result<usize> {
            if self.1.is_empty() {
                self.0.set(&key("x"), Some(&bytes(100_000)));
            }
            self.1.extend_from_slice(some);
            Ok(some.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    server.fail("GET", "x?", 1, Fault::CutAnswer(50_000));
    let object = Object { name: "x".to_owned(), size_bytes: 100_000 };
    let read = bucket.download(&object, &mut Replacing(&server, Vec::new()), &mut |_| Ok(()));
    refused(read, ErrorKind::Corrupt, &["replaced while it was read"]);
}

/// Answers that are no lists, or lists without an end, are errors.
#[test]
fn hostile_lists_are_errors() {
    let (server, bucket) = start();
    let list = |inner: &str| format!("<ListBucketResult>{inner}</ListBucketResult>");
    let object = |key: &str| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>");
    let next = "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>";
    let entities = "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>";
    for (text, reason) in [
        (String::new(), "ends too early"),
        ("no XML".to_owned(), ""),
        ("<html><body>Welcome</body></html>".to_owned(), "no list"),
        ("<ListBucketResult>".to_owned(), "ends too early"),
        ("<a>".repeat(1_000_000), "too deeply"),
        (format!("{entities}{}", list("&b;")), "unknown entity"),
        (list("<Contents><Key>x</Key></Contents>"), "no size"),
        (list("<Contents><Size>5</Size></Contents>"), "no name"),
        (list("<Contents><Key>x</Key><Size>-5</Size></Contents>"), "no size"),
        (list(&object("elsewhere/x")), "not below the prefix"),
        (list(&object(&key("x").replace('/', "//"))), "not below the prefix"),
        (list("<IsTruncated>true</IsTruncated>"), "does not name the next"),
        (list(next), "followed by itself"),
        (format!("{}{}", list(""), " ".repeat(9 << 20)), "too long"),
        ("\u{1}\u{2}<\u{0}".to_owned(), ""),
    ] {
        server.fail("GET", "list-type", 3, Fault::Say(text.clone()));
        let error = refused(bucket.list(""), ErrorKind::Unavailable, &[reason, "s3://test-bucket"]);
        assert!(error.message().len() < 1_000 && !error.message().contains('\n'), "{error}");
        server.forget_faults();
    }
    // Each page names another one.
    for number in 0..5_000 {
        let page = next.replace(">t<", &format!(">t{number}<"));
        server.fail("GET", "list-type", 1, Fault::Say(list(&format!("{}{page}", object(&key("x"))))));
    }
    refused(bucket.list(""), ErrorKind::Unavailable, &["more than 4096 pages"]);
    server.forget_faults();
    // Objects without an end.
    let many = object(&key("x")).repeat(100_000);
    for number in 0..20 {
        let page = next.replace(">t<", &format!(">t{number}<"));
        server.fail("GET", "list-type", 1, Fault::Say(list(&format!("{many}{page}"))));
    }
    refused(bucket.list(""), ErrorKind::Unavailable, &["more than 1048576 objects"]);
}

/// A server that repeats what it was sent does not bring secrets into messages.
#[test]
fn secrets_are_in_no_message() {
    let server = ObjectServer::start();
    let keys = Credentials::new("HIDDENKEY", "hidden-secret", Some("hidden-token")).expect("keys");
    let bucket = bucket_with(Settings { credentials: keys, ..settings(&server) });
    server.fail("GET", "", 1, Fault::Refuse(400, "HIDDENKEY hidden-secret hidden-token"));
    let error = bucket.list("").expect_err("refused");
    let text = format!("{error:?} {bucket:?}");
    for secret in ["HIDDENKEY", "hidden-secret", "hidden-token"] {
        assert!(!text.contains(secret), "{text}");
    }
}
