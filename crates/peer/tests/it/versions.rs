//! Servers of two versions: the protocol on which they agree, and servers that start again as another
//! version.

use crate::support::*;
use std::borrow::Cow;
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use vervet_model::{Error, ErrorKind, Result};
use vervet_peer::{Hello, Peer, Protocol, ProtocolRange};

const SEVEN: Protocol = Protocol::new(7);

fn range(oldest: u32, newest: u32) -> ProtocolRange {
    ProtocolRange::new(Protocol::new(oldest), Protocol::new(newest)).unwrap()
}

fn hello_with(server: &str, protocols: ProtocolRange) -> Hello {
    Hello { protocols, ..hello(server) }
}

fn peer_with(address: SocketAddr, protocols: ProtocolRange) -> Peer {
    let hello = hello_with("a", protocols);
    Peer::new("b", &address.to_string(), identity("a"), hello).with_timeout(Duration::from_secs(3))
}

/// The protocol that the handler of the server has for a request.
fn protocol_at_server(peer: &Peer) -> u32 {
    u32::from_le_bytes(ask(peer, b"v").unwrap().try_into().unwrap())
}

/// A refusal as docs/cluster-protocol.md has it: kind *unavailable*, with a hint.
fn refusal(message: &str) -> Vec<u8> {
    let hint = "run the same version of Vervet on all servers of the cluster";
    let length = u32::try_from(hint.len()).unwrap().to_le_bytes();
    frame(7, &[&[11, 4][..], &length, hint.as_bytes(), message.as_bytes()].concat())
}

/// How a server in raw bytes answers a hello: with a frame, and whether it serves requests then.
type Greeting = fn(&[u8]) -> (Vec<u8>, bool);

/// The greeting of the version that has protocol 7 alone.
fn greeting_of_7(hello: &[u8]) -> (Vec<u8>, bool) {
    let newest = u32::from_le_bytes(hello[8..12].try_into().unwrap());
    if newest != 7 {
        return (refusal(&format!("protocol {newest} of the other end is not protocol 7")), false);
    }
    match hello == hello_body(7, CLUSTER, "a", "b") {
        true => (frame(1, &hello_body(7, CLUSTER, "b", "a")), true),
        false => (refusal("the hello is damaged"), false),
    }
}

/// A server `b` in raw bytes. Its requests are echoed.
struct RawServer {
    address: SocketAddr,
    state: Arc<RawState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct RawState {
    greeted: AtomicU64,
    refused: AtomicU64,
    is_over: AtomicBool,
    sockets: Mutex<Vec<TcpStream>>,
}

impl RawServer {
    fn new(address: &str, greeting: Greeting) -> Self {
        use rustls::pki_types::pem::PemObject;
        use rustls::pki_types::{CertificateDer, PrivateKeyDer};
        let files = AUTHORITY.issue("b").unwrap();
        let certificate = CertificateDer::from_pem_slice(files.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(files.key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<RawState>::default();
        let shared = Arc::clone(&state);
        let accept = move || {
            let mut threads = Vec::new();
            loop {
                let (socket, _) = listener.accept().unwrap();
                if shared.is_over.load(Ordering::SeqCst) {
                    break;
                }
                shared.sockets.lock().unwrap().push(socket.try_clone().unwrap());
                let (config, shared) = (Arc::clone(&config), Arc::clone(&shared));
                threads.push(std::thread::spawn(move || shared.serve(config, socket, greeting)));
            }
            drop(listener);
            for socket in shared.sockets.lock().unwrap().drain(..) {
                let _ = socket.shutdown(Shutdown::Both);
            }
            for thread in threads {
                thread.join().unwrap();
            }
        };
        Self { address, state, thread: Some(std::thread::spawn(accept)) }
    }

    fn greeted(&self) -> u64 {
        self.state.greeted.load(Ordering::SeqCst)
    }

    fn refused(&self) -> u64 {
        self.state.refused.load(Ordering::SeqCst)
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl RawState {
    fn serve(&self, config: Arc<rustls::ServerConfig>, socket: TcpStream, greeting: Greeting) {
        let tls = rustls::ServerConnection::new(config).unwrap();
        let mut stream = rustls::StreamOwned::new(tls, socket);
        let Ok((1, hello)) = read_frame(&mut stream) else { return };
        let (answer, serves) = greeting(&hello);
        let count = if serves { &self.greeted } else { &self.refused };
        count.fetch_add(1, Ordering::SeqCst);
        if stream.write_all(&answer).is_err() {
            return;
        }
        while serves && let Ok((kind, body)) = read_frame(&mut stream) {
            let answer = if kind == 2 { &body[5..] } else { &[] };
            if stream.write_all(&frame(3, answer)).is_err() {
                return;
            }
        }
    }
}

#[test]
fn a_client_offers_protocol_7_to_a_server_of_7() {
    let server = RawServer::new("127.0.0.1:0", greeting_of_7);
    let peer = peer_with(server.address, ProtocolRange::SUPPORTED);
    assert_eq!(peer.protocol(), None);
    works(&peer);
    assert_eq!(peer.protocol(), Some(SEVEN));
    assert_eq!((server.refused(), server.greeted()), (1, 1));
    assert_eq!((peer.counts().connects, peer.counts().failures), (1, 0));
    // Further connections make no vain attempt.
    let pending: Vec<_> = (0..5).map(|_| peer.send(b"ex").unwrap()).collect();
    for pending in pending {
        assert_eq!(pending.protocol(), SEVEN);
        assert_eq!(pending.receive().unwrap(), b"x");
    }
    assert_eq!((server.refused(), server.greeted()), (1, 5));
    // A client without protocol 7 has the reason.
    let peer = peer_with(server.address, range(8, 8));
    unavailable(ask(&peer, b"e"), "refused the connection: protocol 8 of the other end is not protocol 7");
    assert_eq!((server.refused(), server.greeted()), (2, 5));
}

#[test]
fn a_client_of_7_is_answered_with_protocol_7() {
    let server = server();
    let mut raw = raw_client(server.local_address(), &AUTHORITY.issue("a").unwrap());
    raw.write_all(&frame(1, &hello_body(7, CLUSTER, "a", "b"))).unwrap();
    assert_eq!(read_frame(&mut raw).unwrap(), (1, hello_body(7, CLUSTER, "b", "a")));
    raw.write_all(&frame(2, b"\0\0\0\0v")).unwrap();
    assert_eq!(read_frame(&mut raw).unwrap(), (3, 7_u32.to_le_bytes().to_vec()));
    assert_eq!(server.refusals().count, 0);
}

#[test]
fn both_ends_know_the_newest_protocol_of_both() {
    for (own, other, agreed) in [
        (range(7, 8), range(7, 8), 8),
        (range(7, 8), range(7, 7), 7),
        (range(7, 7), range(7, 8), 7),
        (range(7, 8), range(8, 9), 8),
        (range(8, 9), range(7, 8), 8),
        (range(9, 12), range(8, 10), 10),
    ] {
        let server = server_with("127.0.0.1:0", hello_with("b", other)).unwrap();
        let peer = peer_with(server.local_address(), own);
        assert_eq!(protocol_at_server(&peer), agreed, "{own} and {other}");
        assert_eq!(peer.protocol(), Some(Protocol::new(agreed)));
        // Without a second attempt.
        assert_eq!((server.refusals().count, peer.counts().connects), (0, 1));
    }
    for (own, other) in [(range(8, 8), range(9, 9)), (range(9, 10), range(7, 8)), (range(7, 7), range(8, 9))]
    {
        let server = server_with("127.0.0.1:0", hello_with("b", other)).unwrap();
        let peer = peer_with(server.local_address(), own);
        for count in 1..4 {
            unavailable(ask(&peer, b"v"), &format!("the other end has {own}, this server has {other}"));
            assert_eq!(peer.protocol(), None);
            assert_eq!(peer.counts().failures, count);
        }
    }
}

/// `protocol` in the form of the protocol of the connection.
fn encoded(peer: &Peer) -> Result<Vec<u8>> {
    let encode = |protocol: Protocol| Ok(Cow::Owned(format!("e{protocol}").into_bytes()));
    peer.send_with(&encode)?.receive()
}

#[test]
fn a_server_that_starts_again_as_another_version_is_noticed() {
    let mut old = RawServer::new("127.0.0.1:0", greeting_of_7);
    let address = old.address;
    let peer = peer_with(address, range(7, 8));
    for _ in 0..3 {
        assert_eq!(encoded(&peer).unwrap(), b"7");
        assert_eq!(peer.protocol(), Some(SEVEN));
        drop(old);
        // While it is away.
        unavailable(encoded(&peer), "server b");
        assert_eq!(peer.protocol(), None);
        let new = server_at(&address.to_string()).unwrap();
        assert_eq!(encoded(&peer).unwrap(), b"8");
        assert_eq!((peer.protocol(), protocol_at_server(&peer)), (Some(Protocol::new(8)), 8));
        new.shut_down();
        // The client has an idle connection, and sends nothing while the server is away.
        old = RawServer::new(&address.to_string(), greeting_of_7);
    }
}

#[test]
fn an_idle_connection_of_the_version_before_is_not_used() {
    let old = RawServer::new("127.0.0.1:0", greeting_of_7);
    let address = old.address;
    let peer = peer_with(address, range(7, 8));
    assert_eq!(encoded(&peer).unwrap(), b"7");
    drop(old);
    let _new = server_at(&address.to_string()).unwrap();
    // Connections that were used within the last millisecond are not looked at: this time is the subject.
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(encoded(&peer).unwrap(), b"8");
    assert_eq!(peer.counts().failures, 0);
}

#[test]
fn a_request_without_a_form_leaves_the_connection() {
    let server = RawServer::new("127.0.0.1:0", greeting_of_7);
    let peer = peer_with(server.address, range(7, 8));
    let encode = |protocol: Protocol| match protocol >= Protocol::new(8) {
        true => Ok(Cow::Borrowed(&b"e"[..])),
        false => Err(Error::new(ErrorKind::Unsupported, "the server is too old")),
    };
    for _ in 0..3 {
        let error = peer.send_with(&encode).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Unsupported, "the server is too old"));
    }
    works(&peer);
    assert_eq!((peer.counts().connects, peer.counts().requests, peer.counts().failures), (1, 1, 0));
}

#[test]
fn a_server_that_always_refuses_gets_two_attempts() {
    let always: Greeting = |hello| {
        let newest = u32::from_le_bytes(hello[8..12].try_into().unwrap());
        (refusal(&format!("protocol {newest} of the other end is not protocol 7")), false)
    };
    let server = RawServer::new("127.0.0.1:0", always);
    let peer = peer_with(server.address, range(7, 8));
    for count in 1..4 {
        unavailable(ask(&peer, b"e"), "refused the connection: protocol 7 of the other end");
        assert_eq!((server.refused(), peer.counts().failures), (2 * count, count));
    }
    // The text of the first refusal, again.
    let same: Greeting = |_| (refusal("protocol 8 of the other end is not protocol 7"), false);
    let server = RawServer::new("127.0.0.1:0", same);
    let peer = peer_with(server.address, range(7, 8));
    unavailable(ask(&peer, b"e"), "refused the connection: protocol 8 of the other end");
    assert_eq!(server.refused(), 2);
    // Any other reason: one attempt.
    let other: Greeting = |_| (refusal("there are 1024 connections already"), false);
    let server = RawServer::new("127.0.0.1:0", other);
    let peer = peer_with(server.address, range(7, 8));
    unavailable(ask(&peer, b"e"), "refused the connection: there are 1024 connections");
    assert_eq!(server.refused(), 1);
}

#[test]
fn a_server_answers_with_a_protocol_that_was_offered() {
    let answers: [(Greeting, &str); 4] = [
        (
            |_| (frame(1, &hello_body(9, CLUSTER, "b", "a")), true),
            "has protocol 9, this server has protocols",
        ),
        (
            |_| (frame(1, &hello_body(6, CLUSTER, "b", "a")), true),
            "has protocol 6, this server has protocols",
        ),
        (
            |_| (frame(1, &hello_body_of_range((7, 8), CLUSTER, "b", "a")), true),
            "answers protocols 7 to 8 with",
        ),
        (|_| (frame(1, &hello_body_of_range((9, 8), CLUSTER, "b", "a")), true), "as the oldest"),
    ];
    for (answer, part) in answers {
        let server = RawServer::new("127.0.0.1:0", answer);
        let peer = peer_with(server.address, range(7, 8));
        unavailable(ask(&peer, b"e"), part);
        assert_eq!((server.greeted(), peer.protocol()), (1, None));
    }
}
