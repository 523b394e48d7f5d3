//! Passwords, tokens, roles and TLS.

use crate::common::{Reply, Running, people, request};
use base64::Engine;
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use vervet::Database;
use vervet_server::{Role, Server, ServerOptions, Tls, User, hash_password};

const INSERT: &str = "INSERT DATA { <urn:a> <urn:b> 1 }";

pub(crate) fn basic(name: &str, password: &str) -> String {
    let credentials = base64::engine::general_purpose::STANDARD.encode(format!("{name}:{password}"));
    format!("Authorization: Basic {credentials}")
}

fn user(name: &str, password: Option<&str>, token: Option<&str>, role: Role) -> User {
    let file = match (password, token) {
        (Some(password), _) => {
            format!("password = '{}'", hash_password(password).expect("there is randomness"))
        }
        (None, Some(token)) => {
            let digest: String = Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect();
            format!("token_sha256 = '{digest}'")
        }
        (None, None) => String::new(),
    };
    let role = format!("{role:?}").to_lowercase();
    toml::from_str(&format!("name = '{name}'\nrole = '{role}'\n{file}")).expect("it is a user")
}

pub(crate) fn users() -> Vec<User> {
    vec![
        user("reader", Some("let me in"), None, Role::Read),
        user("writer", Some("pässword: with colon"), None, Role::Write),
        user("robot", None, Some("s3cret"), Role::Write),
        user("root", Some("root"), None, Role::Admin),
    ]
}

#[test]
fn roles_restrict_requests() {
    let server = Running::start(&people(), |options| options.users = users());
    let reader = basic("reader", "let me in");
    let writer = basic("writer", "pässword: with colon");
    for (headers, query, update) in [
        (vec![], 401, 401),
        (vec![reader.as_str()], 200, 403),
        (vec![writer.as_str()], 200, 204),
        (vec!["Authorization: Bearer s3cret"], 200, 204),
        (vec!["Authorization: Bearer S3cret"], 401, 401),
        (vec!["Authorization: Basic !!!"], 401, 401),
        (vec!["Authorization: Digest x"], 401, 401),
    ] {
        assert_eq!(server.query("ASK {}", &headers).status, query, "{headers:?}");
        assert_eq!(server.update(INSERT, &headers).status, update, "{headers:?}");
        let put: Vec<&str> = headers.iter().copied().chain(["Content-Type: text/turtle"]).collect();
        let status = server.send("PUT", "/store?default", &put, b"<urn:a> <urn:b> 1 .").status;
        assert_eq!(status, update, "{headers:?}");
        for path in ["/metrics", "/api/info", "/store?default", "/query"] {
            assert_eq!(server.get(path, &headers).status, query, "{path} {headers:?}");
        }
    }
    for (name, password) in [("reader", "wrong"), ("nobody", "let me in"), ("robot", "s3cret"), ("", "")] {
        let reply = server.query("ASK {}", &[&basic(name, password)]).expect(401);
        assert!(reply.header("www-authenticate").is_some_and(|value| value.starts_with("Basic ")));
    }
    assert_eq!(server.update(INSERT, &[&basic("root", "root")]).status, 204);
    // Verified passwords are cached, but still have to match.
    assert_eq!(server.query("ASK {}", &[&reader]).status, 200);
    server.get("/health", &[]).expect(200);
    server.get("/", &[]).expect(200);
}

#[test]
fn anonymous_access_is_configurable() {
    let server = Running::start(&people(), |options| {
        options.users = users();
        options.anonymous = Some(Role::Read);
    });
    server.query("ASK {}", &[]).expect(200);
    server.update(INSERT, &[]).expect(401);
    server.update(INSERT, &[&basic("reader", "let me in")]).expect(403);
    server.query("ASK {}", &[&basic("reader", "wrong")]).expect(401);
}

#[test]
fn invalid_users_are_reported_at_startup() {
    let mut twice = users();
    twice.push(user("reader", Some("x"), None, Role::Read));
    let mut clear = users();
    clear[0].password = Some("in clear".to_owned());
    for (users, part) in [
        (twice, "duplicate"),
        (clear, "PHC"),
        (vec![user("a:b", Some("x"), None, Role::Read)], "colon"),
        (vec![user("a", None, None, Role::Read)], "neither"),
    ] {
        let mut options = ServerOptions::default();
        options.bind = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        options.users = users;
        let error = Server::bind(Database::in_memory(), options).unwrap_err();
        assert!(error.message().contains(part), "{error}");
    }
}

#[test]
fn plain_http_on_external_addresses_must_be_allowed() {
    let mut options = ServerOptions::default();
    options.bind = vec![SocketAddr::from(([0, 0, 0, 0], 0))];
    let error = Server::bind(Database::in_memory(), options.clone()).unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains("--allow-plain-http")), "{error}");
    options.allow_plain_http = true;
    Server::bind(Database::in_memory(), options).expect("it is allowed explicitly");
}

#[test]
fn tls_works() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let server = Running::start(&people(), |options| {
        options.tls = Some(Tls { cert: cert.clone(), key: key.clone() });
    });
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(made.cert.der().to_vec())).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, server.connect());
    let headers = ["Content-Type: application/sparql-query", "Accept: application/n-triples"];
    let body = b"CONSTRUCT { <a> <urn:p> 1 } {}";
    std::io::Write::write_all(&mut stream, &request("POST", "/query", &headers, body)).unwrap();
    let reply = Reply::read(stream, false).expect(200);
    assert!(reply.text().starts_with("<https://localhost/a>"), "{}", reply.text());
    // A plain-text connection gets no response.
    let mut plain = server.connect();
    std::io::Write::write_all(&mut plain, &request("GET", "/health", &[], b"")).unwrap();
    let mut answer = Vec::new();
    let _ = std::io::Read::read_to_end(&mut plain, &mut answer);
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
    let mut options = ServerOptions::default();
    options.bind = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    options.tls = Some(Tls { cert: key.clone(), key: cert.clone() });
    Server::bind(Database::in_memory(), options).expect_err("the files are swapped");
}

/// security S6: a guessing address is delayed and does not keep other addresses from logging in; failures are
/// counted.
#[cfg(target_os = "linux")]
#[test]
fn s6_wrong_passwords_are_slowed_by_address() {
    let server = Running::start(&people(), |options| options.users = users());
    let headers = |password: &str| {
        format!(
            "GET /query?query=ASK%7B%7D HTTP/1.1\r\nHost: localhost\r\n{}\r\n\r\n",
            basic("reader", password)
        )
    };
    let statuses = |streams: &mut Vec<TcpStream>| -> Vec<String> {
        let mut statuses = Vec::new();
        streams.retain_mut(|stream| {
            let mut answer = [0; 12];
            match stream.read_exact(&mut answer) {
                Ok(()) => {
                    statuses.push(String::from_utf8_lossy(&answer[9..]).into_owned());
                    false
                }
                Err(error) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
                    true
                }
            }
        });
        statuses
    };
    let mut guesses: Vec<TcpStream> = (0..40)
        .map(|number| {
            let mut stream = connect_from("127.0.0.2", server.address);
            stream.write_all(headers(&format!("guess {number}")).as_bytes()).expect("it is sent");
            stream.set_nonblocking(true).expect("it can be");
            stream
        })
        .collect();
    // 3 are free, 17 wait for each other or for their delay, the others are refused.
    let mut refused = 0;
    while refused < 20 {
        refused += statuses(&mut guesses).iter().filter(|status| *status == "429").count();
        std::thread::yield_now();
    }
    // The right password from another address, not cached.
    let mut right = connect_from("127.0.0.3", server.address);
    right.write_all(headers("let me in").as_bytes()).expect("it is sent");
    let mut answer = [0; 12];
    right.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 200");
    statuses(&mut guesses);
    assert!(guesses.len() > 10, "the address that guesses still waits: {}", guesses.len());
    let failed = || -> f64 {
        let text = server.get("/metrics", &["Authorization: Bearer s3cret"]).text();
        let line = text.lines().find_map(|line| line.strip_prefix("vervet_logins_failed_total "));
        line.expect("it is counted").parse().expect("a number")
    };
    // The free ones fail in the end.
    while failed() < 3.0 {
        std::thread::yield_now();
    }
    drop((guesses, right));
    let before = failed();
    server.get("/query", &["Authorization: Bearer wrong"]).expect(401);
    assert!(failed() >= before + 1.0);
}

/// A connection from another loopback address.
#[cfg(target_os = "linux")]
pub(crate) fn connect_from(from: &str, to: SocketAddr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::new(from.parse().expect("an address"), 0)).expect("an address of loopback");
        socket.connect(to).await.expect("it listens").into_std().expect("a stream")
    });
    stream.set_nonblocking(false).expect("it can be");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    stream
}

/// security S10: users, origins and limits are reloaded while the server runs; invalid options change
/// nothing; WebSockets of former users are closed.
#[test]
fn s10_users_and_limits_are_reloaded() {
    // Each call would produce other hashes of the same passwords.
    let same = users();
    let with = |users: Vec<User>, text_bytes: usize| {
        let mut options = ServerOptions::default();
        options.users = users;
        options.limits.text_bytes = text_bytes;
        options
    };
    let server = Running::start(&people(), |options| {
        options.users = same.clone();
        options.limits.text_bytes = 1000;
    });
    let reload = |mut options: ServerOptions| {
        options.bind = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        server.reloader.reload(options)
    };
    let ask = |token: &str| server.query("ASK {}", &[&format!("Authorization: Bearer {token}")]).status;
    assert_eq!((ask("s3cret"), ask("other")), (200, 401));
    let mut request = tungstenite::client::IntoClientRequest::into_client_request(format!(
        "ws://{}/gremlin",
        server.address
    ))
    .unwrap();
    request.headers_mut().insert("authorization", "Bearer s3cret".parse().unwrap());
    let mut socket = tungstenite::client(request, server.connect()).expect("a socket").0;
    // Options with a mistake are not applied, not even in part.
    let mut wrong = same.clone();
    wrong[0].password = Some("in clear".to_owned());
    assert!(reload(with(wrong, 1)).unwrap_err().message().contains("PHC"));
    let mut elsewhere = with(same.clone(), 1);
    elsewhere.bind = vec![SocketAddr::from(([127, 0, 0, 1], 1))];
    assert!(server.reloader.reload(elsewhere).unwrap_err().message().contains("bind"));
    let mut read_only = with(same.clone(), 1);
    read_only.read_only = true;
    let mut misspelt = with(same.clone(), 1);
    misspelt.cors = vec!["x".to_owned()];
    assert!(reload(read_only).is_err());
    assert!(reload(misspelt).is_err());
    assert_eq!((ask("s3cret"), ask("other")), (200, 401));
    // A change of limits alone keeps connections open.
    reload(with(same.clone(), 10)).expect("they are right");
    assert_eq!(server.query("ASK { ?s ?p ?o }", &["Authorization: Bearer s3cret"]).status, 413);
    socket.send(tungstenite::Message::text("{}")).expect("it is open");
    assert!(socket.read().expect("an answer").is_text());
    let other = user("robot", None, Some("other"), Role::Read);
    let mut others = with(vec![other], 1000);
    others.cors = vec!["https://app.example".to_owned()];
    reload(others).expect("they are right");
    assert_eq!((ask("s3cret"), ask("other")), (401, 200));
    let named = ["Authorization: Bearer other", "Origin: https://app.example"];
    assert_eq!(server.query("ASK {}", &named).status, 200);
    match socket.read() {
        Ok(tungstenite::Message::Close(Some(frame))) => assert!(frame.reason.contains("users"), "{frame:?}"),
        other => panic!("{other:?}"),
    }
}

/// security S10: a certificate is replaced without a restart.
#[test]
fn s10_certificates_are_reloaded() {
    let folder = tempfile::tempdir().unwrap();
    let tls = Tls { cert: folder.path().join("cert.pem"), key: folder.path().join("key.pem") };
    let write = || {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(&tls.cert, made.cert.pem()).unwrap();
        std::fs::write(&tls.key, made.signing_key.serialize_pem()).unwrap();
        CertificateDer::from(made.cert.der().to_vec())
    };
    let first = write();
    let server = Running::start(&people(), |options| options.tls = Some(tls.clone()));
    let is_shown = |certificate: &CertificateDer<'static>| {
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream =
            StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), server.connect());
        stream.write_all(&request("GET", "/health", &[], b"")).is_ok()
            && Reply::read(stream, false).status == 200
    };
    assert!(is_shown(&first));
    let mut options = ServerOptions::default();
    options.bind = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    options.tls = Some(tls.clone());
    std::fs::write(&tls.cert, "nothing").unwrap();
    assert!(server.reloader.reload(options.clone()).is_err());
    assert!(is_shown(&first), "the existing connection continues");
    let second = write();
    server.reloader.reload(options.clone()).expect("it is right");
    assert!(is_shown(&second) && !is_shown(&first));
    options.tls = None;
    assert!(server.reloader.reload(options).unwrap_err().message().contains("tls"));
}
