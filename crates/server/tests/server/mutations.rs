//! Requests with random damage, to each address: none may crash the server, keep it busy, or cause a change
//! that requires an intact request. Prints its seed; `VERVET_TEST_SEED` repeats a run, `VERVET_TEST_REQUESTS`
//! makes it longer.

use crate::common::{Running, people, request};
use std::io::{Read, Write};
use std::time::Duration;

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).expect("it is below a usize")
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn originals() -> Vec<Vec<u8>> {
    let form = "Content-Type: application/x-www-form-urlencoded";
    let query = "Content-Type: application/sparql-query";
    let update = "Content-Type: application/sparql-update";
    let multipart = "Content-Type: multipart/form-data; boundary=x";
    let parts = "--x\r\nContent-Disposition: form-data; filename=\"a.ttl\"\r\nContent-Type: text/turtle\r\n\r\n\
                 <urn:a> <urn:b> 1 .\r\n--x--\r\n";
    let text =
        "SELECT ?n (COUNT(*) AS ?c) { ?p <http://example.org/name> ?n OPTIONAL { ?p a ?t } } GROUP BY ?n";
    let accept = "Accept: text/csv;q=0.5, application/sparql-results+json;q=0.7";
    let chunked = "POST /query HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/sparql-query\r\n\
                   Transfer-Encoding: chunked\r\n\r\n3\r\nASK\r\n3\r\n {}\r\n0\r\n\r\n";
    vec![
        request("GET", "/query?query=ASK%20%7B%7D&default-graph-uri=urn%3Aa&timeout=1", &[accept], b""),
        request("POST", "/query", &[query, "Accept-Encoding: gzip, zstd;q=0.5"], text.as_bytes()),
        request("POST", "/sparql?named-graph-uri=urn%3Ag", &[form], b"query=SELECT+*+%7B+%3Fs+%3Fp+%3Fo+%7D"),
        request("POST", "/update", &[update], b"INSERT DATA { <urn:x> <urn:y> \"z\"@en }"),
        request("POST", "/store?graph=urn%3Ag", &[multipart], parts.as_bytes()),
        request("PUT", "/store/name", &["Content-Type: application/ld+json"], b"{\"@id\":\"urn:a\",\"urn:p\":[1,{\"@value\":\"x\"}]}"),
        request("PUT", "/store?default", &["Content-Type: application/rdf+xml"], b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><rdf:Description rdf:about='urn:a'/></rdf:RDF>"),
        request("GET", "/store?default", &["Accept: application/trig"], b""),
        request("DELETE", "/store?graph=urn%3Ag", &[], b""),
        request("POST", "/api/plan?run=true", &[query], text.as_bytes()),
        request("GET", "/api/names?kind=class&contains=p&limit=3", &[], b""),
        request("GET", "/", &["Authorization: Basic YTpi", "If-None-Match: \"x\""], b""),
        request("OPTIONS", "/query", &["Origin: http://a.example", "Access-Control-Request-Method: POST"], b""),
        chunked.as_bytes().to_vec(),
    ]
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let (at, other) = (random.below(bytes.len()), random.below(bytes.len()));
        let length = random.below(20);
        match random.below(6) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 => bytes.truncate(at),
            2 => drop(bytes.drain(at.min(other)..at.max(other).min(at.min(other) + length))),
            3 => {
                let piece = bytes[other.min(at)..(other.min(at) + length).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => {
                let pieces: [&[u8]; 8] =
                    [b"\r\n", b"%", b"{", b"\0", b"\xff\xfe", b"--x", b"Content-Length: 5\r\n", b";q=0"];
                let piece = pieces[random.below(pieces.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => {
                let byte = u8::try_from(random.below(256)).expect("it is below 256");
                bytes.insert(at, byte);
            }
        }
    }
}

#[test]
fn damaged_requests_do_no_harm() {
    let seed = number("VERVET_TEST_SEED").unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        u64::from(now.subsec_nanos()) ^ now.as_secs()
    });
    let count = number("VERVET_TEST_REQUESTS").unwrap_or(500);
    println!("VERVET_TEST_SEED={seed}");
    let mut random = Random(seed);
    let server = Running::start(&people(), |options| {
        options.limits.timeout = Duration::from_secs(5);
        options.limits.head_timeout = Duration::from_millis(50);
        options.limits.body_timeout = Duration::from_millis(50);
    });
    let originals = originals();
    for _ in 0..count {
        let mut bytes = originals[random.below(originals.len())].clone();
        damage(&mut bytes, &mut random);
        let mut stream = server.connect();
        // The server may respond before it has read everything.
        let _ = stream.write_all(&bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let begins = answer.is_empty() || answer.starts_with(b"HTTP/1.");
        assert!(begins, "{:?}: {:?}", String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&answer));
        assert!(
            !answer.starts_with(b"HTTP/1.1 500"),
            "{:?}: {:?}",
            String::from_utf8_lossy(&bytes),
            String::from_utf8_lossy(&answer)
        );
    }
    server.get("/health", &[]).expect(200);
    server.wait_for("vervet_requests_running", 0.0);
}
