//! A cluster of two servers, `a` (the client) and `b`, with handlers for tests; clients of raw bytes.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};
use vervet_model::{Error, ErrorKind, Position, Result, ThreadLimits};
use vervet_peer::{Authority, Handler, Hello, Identity, IdentityFiles, Peer, PeerServer, Protocol};

pub(crate) const CLUSTER: u64 = 0xfeed;

/// The newest protocol.
pub(crate) const PROTOCOL: u32 = Protocol::NEWEST.number();

/// The authority of all tests but those of wrong ones.
pub(crate) static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| Authority::new("tests").unwrap());

pub(crate) fn identity_of(files: &IdentityFiles) -> Arc<Identity> {
    let (authority, certificate, key) = (&files.authority, &files.certificate, &files.key);
    Arc::new(Identity::from_pem(authority.as_bytes(), certificate.as_bytes(), key.as_bytes()).unwrap())
}

pub(crate) fn identity(server: &str) -> Arc<Identity> {
    identity_of(&AUTHORITY.issue(server).unwrap())
}

pub(crate) fn hello(server: &str) -> Hello {
    Hello::new(CLUSTER, server)
}

/// The numbers of milliseconds of sleeps that have begun.
static BEGUN: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// Waits until a handler sleeps for this number of milliseconds, which no other test uses.
pub(crate) fn wait_until_begun(milliseconds: u64) {
    while !BEGUN.lock().unwrap().contains(&milliseconds) {
        std::thread::yield_now();
    }
}

/// Answers by the first byte: `e` echo; `n` that many bytes (8 bytes little endian); `s` sleeps that many
/// milliseconds, checking its limits; `p` panics; `f` fails; `d` the milliseconds of its deadline; `v` the
/// protocol of the connection.
pub(crate) struct TestHandler;

impl Handler for TestHandler {
    fn answer(&self, request: &[u8], protocol: Protocol, out: &mut Vec<u8>) -> Result<()> {
        assert!(out.is_empty());
        let Some((&kind, rest)) = request.split_first() else { return Ok(()) };
        let number = || u64::from_le_bytes(rest[..8].try_into().unwrap());
        match kind {
            b'e' => out.extend(rest),
            b'n' => {
                let count = usize::try_from(number()).unwrap();
                out.extend((0..count).map(|index| (index % 251).to_le_bytes()[0]));
            }
            b's' => {
                BEGUN.lock().unwrap().insert(number());
                let end = Instant::now() + Duration::from_millis(number());
                while Instant::now() < end {
                    ThreadLimits::check()?;
                    std::thread::sleep(Duration::from_millis(2));
                }
                out.extend(b"slept");
            }
            b'p' => panic!("a handler with a {}", "defect"),
            b'f' => {
                return Err(Error::new(ErrorKind::Constraint, "no such thing")
                    .with_hint("try another")
                    .at(Position { line: 4, column: Some(2) }));
            }
            b'd' => {
                let left = ThreadLimits::remaining()
                    .map_or(u64::MAX, |left| u64::try_from(left.as_millis()).unwrap());
                out.extend(left.to_le_bytes());
            }
            b'v' => out.extend(protocol.number().to_le_bytes()),
            _ => return Err(Error::new(ErrorKind::Input, format!("no request: {kind}"))),
        }
        Ok(())
    }
}

pub(crate) fn number(kind: u8, number: u64) -> Vec<u8> {
    [&[kind][..], &number.to_le_bytes()].concat()
}

pub(crate) fn server_at(address: &str) -> Result<PeerServer> {
    server_with(address, hello("b"))
}

pub(crate) fn server_with(address: &str, hello: Hello) -> Result<PeerServer> {
    PeerServer::bind(address, identity("b"), hello, Arc::new(TestHandler))
}

pub(crate) fn server() -> PeerServer {
    server_at("127.0.0.1:0").unwrap()
}

/// Server `a`'s view of `b`, which gives up after half a second.
pub(crate) fn peer(address: SocketAddr) -> Peer {
    Peer::new("b", &address.to_string(), identity("a"), hello("a")).with_timeout(Duration::from_millis(500))
}

pub(crate) fn ask(peer: &Peer, request: &[u8]) -> Result<Vec<u8>> {
    peer.send(request)?.receive()
}

#[track_caller]
pub(crate) fn works(peer: &Peer) {
    assert_eq!(ask(peer, b"eagain").unwrap(), b"again");
}

#[track_caller]
pub(crate) fn unavailable<T: std::fmt::Debug>(result: Result<T>, part: &str) -> Error {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains(part), "{error}");
    assert!(error.hint().is_some(), "{error}");
    error
}

/// Checks that `work` takes less than this time (with room for machines that are busy) and not less than
/// that.
#[track_caller]
pub(crate) fn takes<T>(range: std::ops::Range<u64>, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    let taken = start.elapsed();
    assert!(taken >= Duration::from_millis(range.start), "too early: {taken:?}");
    assert!(taken < Duration::from_millis(range.end) + Duration::from_secs(5), "too late: {taken:?}");
    result
}

/// A TLS client that has nothing of ours but the certificates.
pub(crate) fn raw_client(
    address: SocketAddr,
    files: &IdentityFiles,
) -> rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(files.authority.as_bytes()).unwrap()).unwrap();
    let certificate = CertificateDer::from_pem_slice(files.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(files.key.as_bytes()).unwrap();
    let config =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![certificate], key)
            .unwrap();
    let tls = rustls::ClientConnection::new(Arc::new(config), "b".try_into().unwrap()).unwrap();
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.set_nodelay(true).unwrap();
    rustls::StreamOwned::new(tls, socket)
}

pub(crate) fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    [&u32::try_from(body.len()).unwrap().to_le_bytes()[..], &[kind], body].concat()
}

/// The hello of docs/cluster-protocol.md, with one protocol.
pub(crate) fn hello_body(protocol: u32, cluster: u64, from: &str, to: &str) -> Vec<u8> {
    hello_body_of_range((protocol, protocol), cluster, from, to)
}

/// The hello of docs/cluster-protocol.md, with an oldest and a newest protocol. Up to protocol 7 it does not
/// have the oldest one.
pub(crate) fn hello_body_of_range(
    (oldest, newest): (u32, u32),
    cluster: u64,
    from: &str,
    to: &str,
) -> Vec<u8> {
    let mut body = b"VRVTPEER".to_vec();
    body.extend(newest.to_le_bytes());
    body.extend(cluster.to_le_bytes());
    for name in [from, to] {
        body.push(u8::try_from(name.len()).unwrap());
        body.extend(name.as_bytes());
    }
    if newest > 7 {
        body.extend(oldest.to_le_bytes());
    }
    body
}

/// The next frame: kind and body.
pub(crate) fn read_frame(stream: &mut impl Read) -> std::io::Result<(u8, Vec<u8>)> {
    let mut header = [0; 5];
    stream.read_exact(&mut header)?;
    let mut body = vec![0; u32::from_le_bytes(header[..4].try_into().unwrap()) as usize];
    stream.read_exact(&mut body)?;
    Ok((header[4], body))
}

/// A raw client that the server has greeted.
pub(crate) fn greeted(address: SocketAddr) -> rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
    let mut raw = raw_client(address, &AUTHORITY.issue("a").unwrap());
    raw.write_all(&frame(1, &hello_body(PROTOCOL, CLUSTER, "a", "b"))).unwrap();
    assert_eq!(read_frame(&mut raw).unwrap(), (1, hello_body(PROTOCOL, CLUSTER, "b", "a")));
    raw
}
