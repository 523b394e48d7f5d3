//! Deadlines, cancellation, and servers that take long.

use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vervet_model::{ErrorKind, ThreadLimits};

fn deadline(milliseconds: u64) -> ThreadLimits {
    let timeout = Duration::from_millis(milliseconds);
    ThreadLimits { deadline: Some((Instant::now() + timeout, timeout)), ..ThreadLimits::default() }
}

/// Until the server has no connection any more: the abandoned request has ended too.
#[track_caller]
fn becomes_idle(server: &vervet_peer::PeerServer) {
    let start = Instant::now();
    while server.connection_count() > 0 {
        assert!(start.elapsed() < Duration::from_secs(10), "{server:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_deadline_travels_with_the_request() {
    let server = server();
    let peer = peer(server.local_address());
    assert_eq!(ask(&peer, b"d").unwrap(), u64::MAX.to_le_bytes());
    let _entered = deadline(20_000).enter();
    let left = u64::from_le_bytes(ask(&peer, b"d").unwrap().try_into().unwrap());
    assert!((10_000..=20_001).contains(&left), "{left}");
}

#[test]
fn the_deadline_ends_a_wait() {
    let server = server();
    let peer = peer(server.local_address());
    works(&peer);
    let entered = deadline(100).enter();
    let error = takes(90..200, || ask(&peer, &number(b's', 60_000))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadline, "{error}");
    assert!(error.message().contains("100ms"), "{error}");
    // Nothing is sent after it.
    let before = peer.counts();
    assert_eq!(ask(&peer, b"e").unwrap_err().kind(), ErrorKind::Deadline);
    assert_eq!(peer.counts().requests, before.requests);
    drop(entered);
    works(&peer);
    assert_eq!(peer.counts().failures, 0);
}

#[test]
fn cancellation_ends_a_wait_at_both_ends() {
    let server = server();
    let peer = peer(server.local_address());
    let flag = Arc::new(AtomicBool::new(false));
    let entered = ThreadLimits { cancelled: Some(Arc::clone(&flag)), ..ThreadLimits::default() }.enter();
    let pending = peer.send(&number(b's', 60_001)).unwrap();
    let canceller = std::thread::spawn(move || {
        wait_until_begun(60_001);
        flag.store(true, Ordering::Relaxed);
    });
    let error = takes(0..200, || pending.receive()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    canceller.join().unwrap();
    drop(entered);
    // The handler would sleep for a minute.
    takes(0..2000, || becomes_idle(&server));
    works(&peer);
}

#[test]
fn a_server_at_work_is_not_a_server_that_hangs() {
    let server = server();
    let peer = peer(server.local_address()).with_timeout(Duration::from_millis(2500));
    let answer = takes(3500..4500, || ask(&peer, &number(b's', 3500))).unwrap();
    assert_eq!(answer, b"slept");
    works(&peer);
    assert_eq!((peer.counts().connects, peer.counts().bytes_received), (1, 10 + 10));
}

#[test]
fn a_shut_down_cancels_requests() {
    let server = server();
    let peer = peer(server.local_address());
    let pending = peer.send(&number(b's', 60_002)).unwrap();
    wait_until_begun(60_002);
    takes(0..1000, || server.shut_down());
    unavailable(pending.receive(), "server b");
}
