//! Servers that end, start again, hang, or were never there.

use crate::support::*;
use std::net::TcpListener;
use std::time::Duration;

#[test]
fn a_server_may_end_and_start_again() {
    let first = server();
    let address = first.local_address();
    let peer = peer(address);
    for _ in 0..3 {
        let pending: Vec<_> = (0..5).map(|_| peer.send(b"e").unwrap()).collect();
        for pending in pending {
            pending.receive().unwrap();
        }
    }
    first.shut_down();
    for _ in 0..2 {
        takes(0..100, || unavailable(ask(&peer, b"e"), "cannot be reached"));
    }
    let second = server_at(&address.to_string()).unwrap();
    works(&peer);
    second.shut_down();
    // Ended and started again between two requests: the peer notices that its connections are stale.
    let _third = server_at(&address.to_string()).unwrap();
    // Connections that were used within the last millisecond are not looked at: this time is the subject.
    std::thread::sleep(Duration::from_millis(5));
    let failures = peer.counts().failures;
    works(&peer);
    assert_eq!(peer.counts().failures, failures);
}

#[test]
fn a_server_that_ends_during_requests_fails_them() {
    let server = server();
    let peer = peer(server.local_address());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        match ask(&peer, b"e1234") {
                            Ok(answer) => assert_eq!(answer, b"1234"),
                            Err(error) => return error,
                        }
                    }
                })
            })
            .collect();
        while peer.counts().requests < 100 {
            std::thread::yield_now();
        }
        server.shut_down();
        for thread in threads {
            unavailable::<()>(Err(thread.join().unwrap()), "server b (127.0.0.1:");
        }
    });
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    // The system accepts connections, nothing reads them.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = peer(listener.local_addr().unwrap());
    let error = takes(450..700, || unavailable(peer.send(b"e"), "does not answer"));
    let address = listener.local_addr().unwrap();
    assert_eq!(error.message(), format!("server b ({address}) does not answer"));
    takes(450..700, || unavailable(peer.ping(), "does not answer"));
    // Pings do not count.
    assert_eq!(peer.counts().failures, 1);
}

#[test]
fn a_server_that_closes_at_once_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = peer(listener.local_addr().unwrap());
    let closer = std::thread::spawn(move || {
        for _ in 0..3 {
            drop(listener.accept().unwrap());
        }
    });
    for _ in 0..3 {
        takes(0..100, || unavailable(peer.send(b"e"), "server b"));
    }
    closer.join().unwrap();
    takes(0..100, || unavailable(peer.send(b"e"), "cannot be reached"));
}

#[test]
fn names_that_are_none_are_unavailable() {
    let hello = hello("a");
    let peer =
        |server: &str, address: &str| vervet_peer::Peer::new(server, address, identity("a"), hello.clone());
    unavailable(peer("b", "no port").send(b"e"), "cannot be reached");
    unavailable(peer("b", "127.0.0.1:99999").send(b"e"), "cannot be reached");
    let server = server();
    unavailable(peer("no host", &server.local_address().to_string()).send(b"e"), "its name");
    assert!(AUTHORITY.issue("no host").is_err() && AUTHORITY.issue("127.0.0.1").is_err());
    assert!(AUTHORITY.issue("").is_err() && AUTHORITY.issue("server-12.example").is_ok());
}

#[test]
fn servers_come_and_go_without_threads_left() {
    for _ in 0..50 {
        let server = server();
        let peer = peer(server.local_address());
        works(&peer);
        takes(0..200, || server.shut_down());
    }
}
