//! Requests and answers of all sizes, by many threads, to several servers; errors; counts.

use crate::support::*;
use std::sync::Arc;
use vervet_model::ErrorKind;
use vervet_peer::{ANSWER_BYTES_MAX, Counts, PEER_TIMEOUT, REQUEST_BYTES_MAX};

#[test]
fn all_sizes_come_back() {
    let server = server();
    let peer = peer(server.local_address()).with_timeout(PEER_TIMEOUT);
    assert_eq!(ask(&peer, b"").unwrap(), b"");
    let (mut requests, mut sent, mut received) = (1, 9, 5);
    let sizes =
        [0, 1, 3, 4, 5, 8, 100, 4096, 16_379, 16_384, 16_385, 32_768, 65_531, 65_536, 65_537, 1_000_003];
    for size in sizes.into_iter().chain([REQUEST_BYTES_MAX - 1]) {
        let mut random = fastrand::Rng::with_seed(u64::try_from(size).unwrap());
        let request: Vec<u8> = [b'e'].into_iter().chain((0..size).map(|_| random.u8(..))).collect();
        assert!(ask(&peer, &request).unwrap() == request[1..], "{size}");
        (requests, sent, received) = (requests + 1, sent + 9 + 1 + size, received + 5 + size);
    }
    let expected = Counts {
        requests,
        bytes_sent: sent.try_into().unwrap(),
        bytes_received: received.try_into().unwrap(),
        connects: 1,
        failures: 0,
    };
    assert_eq!(peer.counts(), expected);
    peer.ping().unwrap();
    assert_eq!(peer.counts(), expected);
    assert_eq!(server.connection_count(), 1);
    assert!(format!("{peer:?} {server:?}").contains("idle_connections: 1"));
}

#[test]
fn limits_hold_at_both_ends() {
    let server = server();
    let peer = peer(server.local_address()).with_timeout(PEER_TIMEOUT);
    let too_large = peer.send(&vec![b'e'; REQUEST_BYTES_MAX + 1]).unwrap_err();
    assert_eq!(too_large.kind(), ErrorKind::Unsupported, "{too_large}");
    let max = u64::try_from(ANSWER_BYTES_MAX).unwrap();
    assert_eq!(ask(&peer, &number(b'n', max)).unwrap().len(), ANSWER_BYTES_MAX);
    let too_large = ask(&peer, &number(b'n', max + 1)).unwrap_err();
    assert_eq!(too_large.kind(), ErrorKind::Unsupported, "{too_large}");
    assert!(too_large.message().contains("server b"), "{too_large}");
    works(&peer);
    assert_eq!((peer.counts().connects, peer.counts().failures), (1, 0));
}

#[test]
fn errors_arrive_as_they_are() {
    let server = server();
    let peer = peer(server.local_address());
    let error = ask(&peer, b"f").unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Constraint, "no such thing"));
    assert_eq!(error.hint(), Some("try another"));
    assert_eq!(error.position().map(|at| (at.line, at.column)), Some((4, Some(2))));
    let error = ask(&peer, b"p").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.message().contains("a handler with a defect"), "{error}");
    works(&peer);
    assert_eq!((peer.counts().connects, peer.counts().failures), (1, 0));
}

#[test]
fn many_threads_share_a_peer() {
    let server = server();
    let peer = Arc::new(peer(server.local_address()).with_timeout(PEER_TIMEOUT));
    std::thread::scope(|scope| {
        for thread in 0..32_u64 {
            let peer = &peer;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for _ in 0..200 {
                    let size = random.usize(0..300) * random.usize(0..300);
                    let request: Vec<u8> =
                        [b'e'].into_iter().chain((0..size).map(|_| random.u8(..))).collect();
                    assert!(ask(peer, &request).unwrap() == request[1..]);
                }
            });
        }
    });
    let counts = peer.counts();
    assert_eq!((counts.requests, counts.failures), (32 * 200, 0));
    assert!(counts.connects <= 32, "{counts:?}");
}

#[test]
fn requests_to_several_servers_are_in_flight_together() {
    let servers: Vec<_> = (0..4).map(|_| server()).collect();
    let peers: Vec<_> =
        servers.iter().map(|server| peer(server.local_address()).with_timeout(PEER_TIMEOUT)).collect();
    for peer in &peers {
        works(peer);
    }
    // Answers far larger than the buffers of the sockets, read only when all were sent.
    let request = number(b'n', 20 << 20);
    let pending: Vec<_> = peers.iter().map(|peer| peer.send(&request).unwrap()).collect();
    for pending in pending.into_iter().rev() {
        assert_eq!(pending.receive().unwrap().len(), 20 << 20);
    }
    // Several to one server: each has a connection of its own.
    let pending: Vec<_> = (0..10).map(|index| peers[0].send(&[b'e', index]).unwrap()).collect();
    for (index, pending) in (0..).zip(pending) {
        assert_eq!(pending.receive().unwrap(), [index]);
    }
    assert_eq!(peers[0].counts().connects, 10);
}

#[test]
fn an_abandoned_request_leaves_no_answer_behind() {
    let server = server();
    let peer = peer(server.local_address());
    for _ in 0..20 {
        drop(peer.send(b"elost").unwrap());
        works(&peer);
    }
    assert_eq!(peer.counts().failures, 0);
}

#[test]
fn idle_connections_are_few() {
    let server = server();
    let peer = peer(server.local_address()).with_timeout(PEER_TIMEOUT);
    let pending: Vec<_> = (0..100).map(|_| peer.send(b"e").unwrap()).collect();
    for pending in pending {
        pending.receive().unwrap();
    }
    assert!(format!("{peer:?}").contains("idle_connections: 64"), "{peer:?}");
}
