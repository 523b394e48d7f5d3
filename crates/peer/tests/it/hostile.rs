//! Bytes that are not of the protocol, before TLS and inside, at both ends.

use crate::support::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vervet_peer::{PeerServer, REQUEST_BYTES_MAX};

fn random_bytes(random: &mut fastrand::Rng) -> Vec<u8> {
    let size = 1 + random.usize(..10) * random.usize(..300);
    (0..size).map(|_| random.u8(..)).collect()
}

#[track_caller]
fn still_works(server: &PeerServer) {
    works(&peer(server.local_address()).with_timeout(Duration::from_secs(3)));
}

#[test]
fn garbage_before_tls() {
    let server = server();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for case in 0..100 {
        let mut socket = TcpStream::connect(server.local_address()).unwrap();
        let bytes = match case {
            0 => b"GET / HTTP/1.1\r\nHost: b\r\n\r\n".to_vec(),
            // The start of a record of TLS.
            1 => vec![22, 3, 1, 0xff, 0xff],
            _ => random_bytes(&mut random),
        };
        let _ = socket.write_all(&bytes);
        if case % 3 == 0 {
            let _ = socket.shutdown(std::net::Shutdown::Write);
            let _ = socket.read_to_end(&mut Vec::new());
        }
    }
    still_works(&server);
}

#[test]
fn garbage_inside_tls() {
    let server = server();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let files = AUTHORITY.issue("a").unwrap();
    for case in 0..60 {
        // In place of the hello, or of a request.
        let mut raw = if case % 2 == 0 {
            raw_client(server.local_address(), &files)
        } else {
            greeted(server.local_address())
        };
        let mut bytes = random_bytes(&mut random);
        match case % 3 {
            // A frame with random contents.
            0 => bytes = frame(1 + random.u8(..7), &bytes),
            // A random header of a known kind.
            1 if bytes.len() > 5 => bytes[4] = 1 + random.u8(..7),
            _ => {}
        }
        let _ = raw.write_all(&bytes);
        raw.conn.send_close_notify();
        let _ = raw.flush();
        // Whatever it says, it ends.
        let start = Instant::now();
        while read_frame(&mut raw).is_ok() {}
        assert!(start.elapsed() < Duration::from_secs(10), "seed {seed}, case {case}");
    }
    still_works(&server);
}

#[test]
fn frames_that_may_not_come_are_refused() {
    let server = server();
    let too_long = u32::try_from(REQUEST_BYTES_MAX + 5).unwrap().to_le_bytes();
    let cases: [(&[u8], &str); 6] = [
        (&frame(1, &hello_body(PROTOCOL, CLUSTER, "a", "b")), "Hello in place of a request"),
        (&frame(3, b"an answer"), "Answer in place of a request"),
        (&frame(2, b"abc"), "a request without its time"),
        (&[too_long[0], too_long[1], too_long[2], too_long[3], 2], "more than"),
        (&[0xff, 0xff, 0xff, 0xff, 2], "more than"),
        (&[0, 0, 0, 0, 99], "unknown kind 99"),
    ];
    for (bytes, part) in cases {
        let mut raw = greeted(server.local_address());
        raw.write_all(bytes).unwrap();
        let (kind, body) = read_frame(&mut raw).unwrap();
        assert_eq!(kind, 7);
        assert!(String::from_utf8_lossy(&body).contains(part), "{part}: {}", String::from_utf8_lossy(&body));
        assert!(read_frame(&mut raw).is_err());
    }
    still_works(&server);
}

#[test]
fn one_byte_at_a_time_is_a_request() {
    let server = server();
    let mut raw = greeted(server.local_address());
    for byte in frame(2, b"\0\0\0\0eslow") {
        raw.write_all(&[byte]).unwrap();
        raw.flush().unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(read_frame(&mut raw).unwrap(), (3, b"slow".to_vec()));
}

#[test]
fn a_request_that_stops_in_the_middle_ends_its_connection() {
    let server = server();
    let mut raw = greeted(server.local_address());
    raw.write_all(&frame(2, b"\0\0\0\0ehalf")[..7]).unwrap();
    takes(2500..4000, || assert!(read_frame(&mut raw).is_err()));
    still_works(&server);
}

/// A server of raw bytes: what it sends after the hello of a client, or in place of TLS.
fn raw_server(
    count: usize,
    send: impl Fn(usize, &mut dyn ReadWrite) + Send + 'static,
    has_tls: bool,
) -> std::net::SocketAddr {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let files = AUTHORITY.issue("b").unwrap();
    let certificate = CertificateDer::from_pem_slice(files.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(files.key.as_bytes()).unwrap();
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for case in 0..count {
            let (mut socket, _) = listener.accept().unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            if has_tls {
                let tls = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
                send(case, &mut rustls::StreamOwned::new(tls, socket));
            } else {
                send(case, &mut socket);
            }
        }
    });
    address
}

trait ReadWrite: Read + Write {}
impl<T: Read + Write> ReadWrite for T {}

#[test]
fn a_client_survives_garbage_before_tls() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let send = move |case: usize, stream: &mut dyn ReadWrite| {
        let mut random = fastrand::Rng::with_seed(seed ^ u64::try_from(case).unwrap());
        let _ = stream.write_all(&random_bytes(&mut random));
    };
    let peer = peer(raw_server(50, send, false));
    for _ in 0..50 {
        takes(0..1000, || unavailable(peer.send(b"e"), "server b"));
    }
}

#[test]
fn a_client_survives_garbage_inside_tls() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let send = move |case: usize, mut stream: &mut dyn ReadWrite| {
        let mut random = fastrand::Rng::with_seed(seed ^ u64::try_from(case).unwrap());
        let Ok((1, _)) = read_frame(&mut stream) else { return };
        if !case.is_multiple_of(3) {
            stream.write_all(&frame(1, &hello_body(PROTOCOL, CLUSTER, "b", "a"))).unwrap();
            let Ok((2, _)) = read_frame(&mut stream) else { return };
        }
        let bytes = random_bytes(&mut random);
        let bytes = if case.is_multiple_of(2) { frame(random.u8(..9), &bytes) } else { bytes };
        let _ = stream.write_all(&bytes);
    };
    let address = raw_server(90, send, true);
    for case in 0..90 {
        let peer = peer(address);
        let result = takes(0..1000, || ask(&peer, b"e"));
        // A frame with random bytes may be an answer or an error.
        if case % 3 == 0 || case % 2 == 1 {
            assert!(result.is_err(), "seed {seed}, case {case}");
        }
    }
}

#[test]
fn a_client_takes_an_answer_one_byte_at_a_time() {
    let send = |_: usize, mut stream: &mut dyn ReadWrite| {
        let Ok((1, _)) = read_frame(&mut stream) else { return };
        let slowly = |stream: &mut dyn ReadWrite, bytes: &[u8]| {
            for &byte in bytes {
                let _ = stream.write_all(&[byte]);
                let _ = stream.flush();
                std::thread::sleep(Duration::from_millis(30));
            }
        };
        slowly(stream, &frame(1, &hello_body(PROTOCOL, CLUSTER, "b", "a"))[..10]);
        let _ = stream.write_all(&frame(1, &hello_body(PROTOCOL, CLUSTER, "b", "a"))[10..]);
        let Ok((2, _)) = read_frame(&mut stream) else { return };
        slowly(stream, &frame(3, b"byte by byte, longer than the timeout"));
    };
    let address = raw_server(2, send, true);
    let peer = peer(address);
    assert_eq!(takes(600..2000, || ask(&peer, b"e")).unwrap(), b"byte by byte, longer than the timeout");
    // Bytes that come do not hide the deadline.
    let peer = crate::support::peer(address);
    let timeout = Duration::from_millis(600);
    let limits = vervet_model::ThreadLimits {
        deadline: Some((Instant::now() + timeout, timeout)),
        ..vervet_model::ThreadLimits::default()
    };
    let _entered = limits.enter();
    let error = takes(550..800, || ask(&peer, b"e")).unwrap_err();
    assert_eq!(error.kind(), vervet_model::ErrorKind::Deadline, "{error}");
}

#[test]
fn a_client_refuses_answers_beyond_the_limit() {
    let send = |_: usize, mut stream: &mut dyn ReadWrite| {
        let Ok((1, _)) = read_frame(&mut stream) else { return };
        stream.write_all(&frame(1, &hello_body(PROTOCOL, CLUSTER, "b", "a"))).unwrap();
        let Ok((2, _)) = read_frame(&mut stream) else { return };
        let _ = stream.write_all(&[1, 0, 0, 4, 3]);
        let _ = stream.flush();
        let _ = stream.read(&mut [0]);
    };
    let peer = peer(raw_server(1, send, true));
    takes(0..300, || unavailable(ask(&peer, b"e"), "of 67108865 bytes, more than 67108864"));
}

/// Connections that say nothing hold little memory, and keep no server out.
#[test]
fn silent_connections_are_few() {
    let server = server();
    let silent: Vec<TcpStream> = (0..600)
        .map(|_| {
            let socket = TcpStream::connect(server.local_address()).unwrap();
            // The beginning of a handshake record.
            (&socket).write_all(&[22, 3, 1]).unwrap();
            socket
        })
        .collect();
    // The server accepts connections in their order, so it has accepted those above.
    works(&peer(server.local_address()));
    while server.connection_count() > 256 {
        std::thread::yield_now();
    }
    for _ in 0..3 {
        works(&peer(server.local_address()));
    }
    drop(silent);
}
