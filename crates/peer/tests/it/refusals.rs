//! Servers that must not be connected: each end has the reason.

use crate::support::*;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vervet_peer::{Authority, Hello, Identity, Peer, PeerServer};

/// The server's reason, which may be a moment later than the client's.
#[track_caller]
fn refused(server: &PeerServer, count: u64, part: &str) {
    let start = Instant::now();
    while server.refusals().count < count && start.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let refusals = server.refusals();
    assert_eq!(refusals.count, count, "{refusals:?}");
    assert!(refusals.last.as_ref().is_some_and(|last| last.contains(part)), "{refusals:?}");
}

fn peer_as(server: &PeerServer, name: &str, identity: Arc<Identity>, hello: Hello) -> Peer {
    Peer::new(name, &server.local_address().to_string(), identity, hello).with_timeout(Duration::from_secs(2))
}

#[test]
fn certificates_of_another_authority_are_refused() {
    let server = server();
    let other = Authority::new("tests").unwrap().issue("a").unwrap();
    // Neither end trusts the other: the client ends the handshake.
    let peer = peer_as(&server, "b", identity_of(&other), hello("a"));
    unavailable(peer.send(b"e"), "certificate");
    refused(&server, 1, "alert");
    // The client trusts the server, not the other way round.
    let own = AUTHORITY.issue("a").unwrap();
    let mixed =
        Identity::from_pem(own.authority.as_bytes(), other.certificate.as_bytes(), other.key.as_bytes());
    let peer = peer_as(&server, "b", Arc::new(mixed.unwrap()), hello("a"));
    for count in 2..12 {
        unavailable(peer.send(b"e"), "refused the certificate of this server");
        refused(&server, count, "certificate");
    }
}

#[test]
fn a_server_is_what_its_certificate_says() {
    let server = server();
    // The certificate of `b` at the address of `c`.
    unavailable(peer_as(&server, "c", identity("a"), hello("a")).send(b"e"), "certificate of another server");
    refused(&server, 1, "alert");
    // A client with the certificate of `c` that calls itself `a`.
    unavailable(
        peer_as(&server, "b", identity("c"), hello("a")).send(b"e"),
        "refused the connection: server \"a\"",
    );
    refused(&server, 2, "certificate of another server");
}

#[test]
fn other_data_is_refused() {
    let server = server();
    let other = Hello::new(7, "a");
    let error = unavailable(peer_as(&server, "b", identity("a"), other).send(b"e"), "refused the connection");
    assert!(error.message().contains("0000000000000007") && error.message().contains("feed"), "{error}");
    refused(&server, 1, "0000000000000007");
}

#[test]
fn other_protocols_are_refused() {
    let server = server();
    let mut count = 0;
    let mut refused_with = |body: &[u8], part: &str| {
        let mut raw = raw_client(server.local_address(), &AUTHORITY.issue("a").unwrap());
        raw.write_all(&frame(1, body)).unwrap();
        let (kind, body) = read_frame(&mut raw).unwrap();
        assert_eq!(kind, 7);
        assert!(String::from_utf8_lossy(&body).contains(part), "{part}: {}", String::from_utf8_lossy(&body));
        count += 1;
        refused(&server, count, part);
    };
    let offer = |oldest, newest| hello_body_of_range((oldest, newest), CLUSTER, "a", "b");
    refused_with(&offer(6, 6), "the other end has protocol 6,");
    refused_with(
        &offer(PROTOCOL + 1, PROTOCOL + 3),
        &format!("protocols {} to {}", PROTOCOL + 1, PROTOCOL + 3),
    );
    refused_with(&offer(u32::MAX, u32::MAX), "protocol 4294967295,");
    refused_with(&offer(PROTOCOL + 1, PROTOCOL), "as the oldest");
    refused_with(&[offer(7, PROTOCOL), vec![0; 2000]].concat(), "damaged");
    refused_with(&[offer(7, 7), vec![7, 0, 0, 0]].concat(), "damaged");
    refused_with(&[offer(7, PROTOCOL), vec![0; 40_000]].concat(), "damaged");
    let mut raw = raw_client(server.local_address(), &AUTHORITY.issue("a").unwrap());
    raw.write_all(&frame(1, b"GET / HTTP/1.1\r\nHost: b\r\n\r\n")).unwrap();
    assert_eq!(read_frame(&mut raw).unwrap().0, 7);
    refused(&server, count + 1, "no server of Vervet");
}

#[test]
fn files_that_do_not_belong_together_are_refused() {
    let (a, b) = (AUTHORITY.issue("a").unwrap(), AUTHORITY.issue("b").unwrap());
    let error =
        Identity::from_pem(a.authority.as_bytes(), a.certificate.as_bytes(), b.key.as_bytes()).unwrap_err();
    assert_eq!(error.kind(), vervet_model::ErrorKind::Input, "{error}");
    for texts in
        [["", &a.certificate, &a.key], [&a.authority, "", &a.key], [&a.authority, &a.certificate, "x"]]
    {
        let [authority, certificate, key] = texts.map(str::as_bytes);
        assert!(Identity::from_pem(authority, certificate, key).is_err());
    }
}

#[test]
fn connections_beyond_the_limit_are_refused() {
    let handler = Arc::new(TestHandler);
    let server = PeerServer::bind_with_limit("127.0.0.1:0", identity("b"), hello("b"), handler, 4).unwrap();
    let peer = peer_as(&server, "b", identity("a"), hello("a"));
    let pending: Vec<_> = (0..4).map(|_| peer.send(b"e").unwrap()).collect();
    let error = unavailable(peer.send(b"e"), "there are 4 connections already");
    assert_eq!(error.hint(), Some("run the query again later"));
    refused(&server, 1, "there are 4 connections already");
    for pending in pending {
        assert_eq!(pending.receive().unwrap(), b"");
    }
    works(&peer);
}
