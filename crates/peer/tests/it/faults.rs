//! Each fault gives its error in bounded time, and the next request works.

use crate::support::*;
use std::time::{Duration, Instant};
use vervet_model::{ErrorKind, ThreadLimits};
use vervet_peer::{ALWAYS, FaultPlan, PEER_TIMEOUT};

#[test]
fn each_fault_gives_its_error() {
    let server = server();
    let peer = peer(server.local_address());
    let none = FaultPlan::default();
    let plans = [
        (FaultPlan { dropped_requests: ALWAYS, ..none.clone() }, "does not answer", 450),
        (FaultPlan { dropped_answers: ALWAYS, ..none.clone() }, "does not answer", 450),
        (FaultPlan { cut_requests: ALWAYS, ..none.clone() }, "connection", 0),
        (FaultPlan { cut_answers: ALWAYS, ..none.clone() }, "closed the connection", 0),
        (FaultPlan { garbage_answers: ALWAYS, ..none.clone() }, "sent bytes that are no answer", 0),
        (FaultPlan { garbage_requests: ALWAYS, seed: 1, ..none.clone() }, "bytes that are no request", 0),
    ];
    for (plan, part, at_least) in plans {
        for request in [&b"e"[..], &[b'e'; 100_000]] {
            works(&peer);
            peer.faults().set(plan.clone());
            let failures = peer.counts().failures;
            takes(at_least..at_least + 1000, || unavailable(ask(&peer, request), part));
            assert_eq!(peer.counts().failures - failures, 1, "{plan:?}");
            peer.faults().set(none.clone());
            works(&peer);
        }
    }
}

#[test]
fn refused_connections_leave_those_that_exist() {
    let server = server();
    let peer = peer(server.local_address());
    let refused = FaultPlan { refused_connections: ALWAYS, ..FaultPlan::default() };
    peer.faults().set(refused);
    unavailable(ask(&peer, b"e"), "cannot be reached: connection refused");
    peer.faults().set(FaultPlan::default());
    works(&peer);
    peer.faults().set(FaultPlan { refused_connections: ALWAYS, ..FaultPlan::default() });
    works(&peer);
}

#[test]
fn delays_add_up_over_directions_not_over_peers() {
    let servers = [server(), server()];
    let peers = servers.each_ref().map(|server| peer(server.local_address()).with_timeout(PEER_TIMEOUT));
    for peer in &peers {
        works(peer);
        peer.faults().set(FaultPlan { delay: Duration::from_millis(100), ..FaultPlan::default() });
    }
    takes(200..300, || {
        let pending = peers.each_ref().map(|peer| peer.send(b"e").unwrap());
        for pending in pending {
            pending.receive().unwrap();
        }
    });
    // The deadline ends a delay.
    let timeout = Duration::from_millis(50);
    let limits =
        ThreadLimits { deadline: Some((Instant::now() + timeout, timeout)), ..ThreadLimits::default() };
    let entered = limits.enter();
    let error = takes(40..100, || ask(&peers[0], b"e")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadline, "{error}");
    drop(entered);
    // So does the patience of the client.
    peers[0].faults().set(FaultPlan { delay: Duration::from_secs(60), ..FaultPlan::default() });
    takes(2900..3200, || unavailable(ask(&peers[0], b"e"), "does not answer"));
}

#[test]
fn no_mixture_of_faults_gives_a_wrong_answer() {
    let server = server();
    let peer = peer(server.local_address()).with_timeout(Duration::from_millis(50));
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let chance = ALWAYS / 40;
    peer.faults().set(FaultPlan {
        delay: Duration::from_micros(50),
        dropped_requests: chance / 10,
        dropped_answers: chance / 10,
        refused_connections: chance,
        cut_requests: chance,
        cut_answers: chance,
        garbage_requests: chance,
        garbage_answers: chance,
        seed,
    });
    let counts = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8_u64)
            .map(|thread| {
                let peer = &peer;
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed ^ thread);
                    let (mut right, mut failed) = (0, 0);
                    for _ in 0..300 {
                        let size = random.usize(0..20_000);
                        let request: Vec<u8> =
                            [b'e'].into_iter().chain((0..size).map(|_| random.u8(..))).collect();
                        match ask(peer, &request) {
                            Ok(answer) => {
                                assert!(answer == request[1..], "seed {seed}");
                                right += 1;
                            }
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::Unavailable, "seed {seed}: {error}");
                                failed += 1;
                            }
                        }
                    }
                    (right, failed)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    });
    assert!(counts.0 > 1000 && counts.1 > 50, "seed {seed}: {counts:?}");
    peer.faults().set(FaultPlan::default());
    let patient = crate::support::peer(server.local_address());
    works(&patient);
}
