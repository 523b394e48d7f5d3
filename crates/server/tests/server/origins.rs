//! Cross-site requests, and DNS rebinding.
//!
//! [`EXPECTED`] has the status of every kind of request by `Host`, `Origin`, `cors` and users; [`ADDRESSES`]
//! has every address of the server with its kind. The test checks the whole product.

use crate::common::{Running, people};
use crate::users::{basic, users};
use std::io::{Read, Write};
use std::net::TcpStream;
use vervet_server::Role;

/// The properties of a request that determine its status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// The console and other addresses without data.
    Open,
    Read,
    Write,
    /// Stops a request: the role of a reader suffices, but a page of another site may not.
    Stop,
    Socket,
    Preflight,
}

const FORM: &str = "Content-Type: application/x-www-form-urlencoded";
const TURTLE: &str = "Content-Type: text/turtle";
const JSON: &str = "Content-Type: application/json";
const CSV: &str = "Content-Type: text/csv";

/// Every address, with a request that gets `status` if permitted.
const ADDRESSES: [(Kind, &str, &str, &str, &str, u16); 32] = [
    (Kind::Open, "GET", "/", "", "", 200),
    (Kind::Open, "GET", "/health", "", "", 200),
    (Kind::Open, "GET", "/ready", "", "", 200),
    (Kind::Open, "GET", "/nothing", "", "", 404),
    (Kind::Read, "GET", "/metrics", "", "", 200),
    (Kind::Read, "GET", "/query?query=ASK%7B%7D", "", "", 200),
    (Kind::Read, "GET", "/query", "", "", 200),
    (Kind::Read, "POST", "/query", FORM, "query=ASK%7B%7D", 200),
    (Kind::Read, "GET", "/sparql?query=ASK%7B%7D", "", "", 200),
    (Kind::Read, "POST", "/sparql", FORM, "query=ASK%7B%7D", 200),
    (Kind::Read, "GET", "/store?default", "", "", 200),
    (Kind::Read, "HEAD", "/store?default", "", "", 200),
    (Kind::Read, "GET", "/store", "", "", 200),
    (Kind::Read, "GET", "/gremlin?gremlin=g.V().count()", "", "", 200),
    (Kind::Read, "POST", "/gremlin", JSON, "{\"gremlin\":\"g.V().count()\"}", 200),
    (Kind::Read, "GET", "/api/info", "", "", 200),
    (Kind::Read, "GET", "/api/names?kind=class", "", "", 200),
    (Kind::Read, "POST", "/api/plan", "", "ASK {}", 200),
    (Kind::Read, "GET", "/api/queries", "", "", 200),
    (Kind::Read, "GET", "/api/saved-queries", "", "", 200),
    (Kind::Stop, "DELETE", "/api/queries/0", "", "", 404),
    (Kind::Write, "POST", "/update", FORM, "update=CLEAR+SILENT+GRAPH+<urn:g>", 204),
    (Kind::Write, "POST", "/sparql", FORM, "update=CLEAR+SILENT+GRAPH+<urn:g>", 204),
    (Kind::Write, "POST", "/store?default", TURTLE, "<urn:a> <urn:b> 1 .", 204),
    (Kind::Write, "PUT", "/store?graph=urn:h", TURTLE, "", 204),
    (Kind::Write, "DELETE", "/store?graph=urn:none", "", "", 404),
    (Kind::Write, "POST", "/gremlin", JSON, "{\"gremlin\":\"g.V().hasLabel('none').drop()\"}", 200),
    (Kind::Write, "POST", "/load", CSV, "id:ID,:LABEL\n1,person\n", 200),
    (Kind::Socket, "GET", "/gremlin", SOCKET, "", 101),
    (Kind::Preflight, "OPTIONS", "/query", "Access-Control-Request-Method: POST", "", 204),
    (Kind::Preflight, "OPTIONS", "/gremlin", "Access-Control-Request-Method: POST", "", 204),
    (Kind::Preflight, "OPTIONS", "/load", "Access-Control-Request-Method: POST", "", 204),
];

const SOCKET: &str =
    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";

/// The origin that `cors` lists, in the rows with `named`.
const NAMED: &str = "https://app.example";

/// Users (`none`; `no-login`: users exist, the request has no credentials; `login`; `anonymous`: users exist,
/// reading needs no login), `Host` (`local`, `bound`: listed in `hosts`, or `foreign`), `Origin`, `cors`: the
/// statuses of open addresses, reads, writes, stops, WebSockets and preflights, and
/// `Access-Control-Allow-Origin`. `ok` is the status of [`ADDRESSES`], `_` is anything; the first matching
/// line applies.
const EXPECTED: &str = "
    users     host    origin  cors  | open  read write stop socket preflight allowed
    none      foreign none    _     | 421   421  421   421  421    421       -
    none      foreign _       all   | 421   421  421   421  421    421       *
    none      foreign named   named | 421   421  421   421  421    421       origin
    none      foreign _       _     | 421   421  421   421  421    421       -
    none      _       none    _     | ok    ok   ok    ok   ok     ok        -
    none      _       own     all   | ok    ok   ok    ok   ok     ok        *
    none      _       own     _     | ok    ok   ok    ok   ok     ok        -
    none      _       named   named | ok    ok   ok    ok   ok     ok        origin
    none      _       _       all   | ok    ok   403   403  403    ok        *
    none      _       _       _     | ok    403  403   403  403    ok        -

    no-login  _       none    _     | ok    401  401   401  ok     ok        -
    no-login  _       own     all   | ok    401  401   401  ok     ok        *
    no-login  _       own     _     | ok    401  401   401  ok     ok        -
    no-login  _       named   named | ok    401  401   401  ok     ok        origin
    no-login  _       _       all   | ok    401  401   401  403    ok        *
    no-login  _       _       _     | ok    401  401   401  403    ok        -

    login     _       none    _     | ok    ok   ok    ok   ok     ok        -
    login     _       own     all   | ok    ok   ok    ok   ok     ok        *
    login     _       own     _     | ok    ok   ok    ok   ok     ok        -
    login     _       named   named | ok    ok   ok    ok   ok     ok        origin
    login     _       _       all   | ok    ok   403   403  403    ok        *
    login     _       _       _     | ok    403  403   403  403    ok        -

    anonymous foreign none    _     | ok    401  401   401  ok     ok        -
    anonymous foreign own     all   | ok    401  401   401  ok     ok        *
    anonymous foreign own     _     | ok    401  401   401  ok     ok        -
    anonymous foreign named   named | ok    401  401   401  ok     ok        origin
    anonymous foreign _       all   | ok    401  401   401  403    ok        *
    anonymous foreign _       _     | ok    401  401   401  403    ok        -
    anonymous _       none    _     | ok    ok   401   ok   ok     ok        -
    anonymous _       own     all   | ok    ok   401   ok   ok     ok        *
    anonymous _       own     _     | ok    ok   401   ok   ok     ok        -
    anonymous _       named   named | ok    ok   401   ok   ok     ok        origin
    anonymous _       _       all   | ok    ok   401   403  403    ok        *
    anonymous _       _       _     | ok    403  403   403  403    ok        -
";

/// The first matching line: its statuses and the allowed origin.
fn expected(keys: [&str; 4]) -> Vec<&'static str> {
    let mut lines = EXPECTED.lines().skip(2).filter_map(|line| line.split_once('|'));
    let fits = |pattern: &str| {
        pattern.split_whitespace().zip(keys).all(|(pattern, key)| pattern == "_" || pattern == key)
    };
    let (_, line) =
        lines.find(|(pattern, _)| fits(pattern)).unwrap_or_else(|| panic!("no line for {keys:?}"));
    line.split_whitespace().collect()
}

fn column(kind: Kind) -> usize {
    match kind {
        Kind::Open => 0,
        Kind::Read => 1,
        Kind::Write => 2,
        Kind::Stop => 3,
        Kind::Socket => 4,
        Kind::Preflight => 5,
    }
}

/// Status and head of the response to a request on a new connection.
fn ask(server: &Running, address: usize, headers: &[String]) -> (u16, String) {
    let (kind, method, path, header, body, _) = ADDRESSES[address];
    let connection = if kind == Kind::Socket { "Upgrade" } else { "close" };
    let mut text =
        format!("{method} {path} HTTP/1.1\r\nConnection: {connection}\r\nContent-Length: {}\r\n", body.len());
    for header in headers.iter().map(String::as_str).chain([header]).filter(|header| !header.is_empty()) {
        text += header;
        text += "\r\n";
    }
    let mut stream: TcpStream = server.connect();
    stream.write_all((text + "\r\n" + body).as_bytes()).expect("it is sent");
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
        let length = stream.read(&mut piece).expect("an answer");
        assert!(length > 0, "no head: {}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&piece[..length]);
    }
    let head = String::from_utf8_lossy(&answer).into_owned();
    (head[9..12].parse().expect("a status"), head)
}

fn start(users_are: &str, cors: &str) -> Running {
    Running::start(&people(), |options| {
        options.hosts = vec!["db.test".to_owned()];
        options.cors = match cors {
            "all" => vec!["*".to_owned()],
            "named" => vec![NAMED.to_owned()],
            _ => Vec::new(),
        };
        if users_are != "none" {
            options.users = users();
        }
        if users_are == "anonymous" {
            options.anonymous = Some(Role::Read);
        }
    })
}

/// security S1, S2, S3; issue 16, must show 4: Host x Origin x CORS x users x HTTP and WebSocket.
fn every_address_by_host_origin_and_cors(users_are: &str) {
    let mut asked = 0;
    for cors in ["none", "named", "all"] {
        let server = start(users_are, cors);
        for (host_is, host) in
            [("local", "localhost:7878"), ("bound", "db.test"), ("foreign", "evil.example:7878")]
        {
            for (origin_is, origin) in [
                ("none", String::new()),
                ("own", format!("http://{host}")),
                ("null", "null".to_owned()),
                ("foreign", "https://evil.example".to_owned()),
                ("foreign", "http://localhost:3000".to_owned()),
                ("named", NAMED.to_owned()),
            ] {
                let line = expected([users_are, host_is, origin_is, cors]);
                let mut headers = vec![format!("Host: {host}")];
                if !origin.is_empty() {
                    headers.push(format!("Origin: {origin}"));
                }
                if users_are == "login" {
                    headers.push(basic("root", "root"));
                }
                for (at, (kind, method, path, .., ok)) in ADDRESSES.iter().enumerate() {
                    let (status, head) = ask(&server, at, &headers);
                    let wanted = match line[column(*kind)] {
                        "ok" => *ok,
                        status => status.parse().expect("a status"),
                    };
                    let of = format!("{users_are} {host} {origin:?} cors {cors}: {method} {path}\n{head}");
                    assert_eq!(status, wanted, "{of}");
                    let allowed = match line[6] {
                        "-" => None,
                        "origin" => Some(NAMED),
                        all => Some(all),
                    };
                    let head = head.to_ascii_lowercase();
                    let found = head
                        .split("access-control-allow-origin: ")
                        .nth(1)
                        .and_then(|rest| rest.split("\r\n").next());
                    assert_eq!(found, allowed, "{of}");
                    asked += 1;
                }
            }
        }
    }
    assert_eq!(asked, 3 * 3 * 6 * ADDRESSES.len());
}

#[test]
fn s1_s2_s3_table_without_users() {
    every_address_by_host_origin_and_cors("none");
}

#[test]
fn s1_s2_s3_table_of_users_without_credentials() {
    every_address_by_host_origin_and_cors("no-login");
}

#[test]
fn s1_s2_s3_table_of_users_with_credentials() {
    every_address_by_host_origin_and_cors("login");
}

#[test]
fn s1_s2_s3_table_of_users_and_anonymous_readers() {
    every_address_by_host_origin_and_cors("anonymous");
}

/// security S2: without users every address checks `Host`, in every spelling.
#[test]
fn s2_hosts_in_every_spelling() {
    let server = start("none", "none");
    let port = server.address.port();
    let host = |host: &str| vec![format!("Host: {host}")];
    let spellings = [
        (host("localhost"), None),
        (host("LocalHost"), None),
        (host("localhost."), None),
        (host(&format!("localhost:{port}")), None),
        (host("127.0.0.1"), None),
        (host(&format!("127.0.0.1:{port}")), None),
        (host("[::1]"), None),
        (host("[::1]:80"), None),
        (host("[0:0:0:0:0:0:0:1]"), None),
        (host("10.1.2.3"), None),
        (host("DB.Test.:1"), None),
        (host("evil.example"), Some(421)),
        (host("EVIL.example.:7878"), Some(421)),
        (host("localhost.evil.example"), Some(421)),
        (host("127.0.0.1.evil.example"), Some(421)),
        (host("a.db.test"), Some(421)),
        (host(""), Some(421)),
        (vec![], Some(400)),
        ([host("localhost"), host("localhost")].concat(), Some(400)),
        ([host("localhost"), host("evil.example")].concat(), Some(400)),
        (host("evil.example@localhost"), Some(400)),
        (host("localhost:7878:1"), Some(400)),
        (host("localhost:x"), Some(400)),
        (host("[::1"), Some(400)),
        (host("[localhost]"), Some(400)),
        (host("local host"), Some(400)),
        (host("localhost/x"), Some(400)),
    ];
    for (headers, refused) in &spellings {
        for (at, (_, method, path, .., ok)) in ADDRESSES.iter().enumerate() {
            let (status, head) = ask(&server, at, headers);
            assert_eq!(status, refused.unwrap_or(*ok), "{headers:?} {method} {path}\n{head}");
        }
    }
}

/// security S2: an absolute URI counts like `Host`; HTTP/1.0 needs neither, and no browser uses it.
#[test]
fn s2_absolute_addresses_and_old_versions() {
    let server = start("none", "none");
    let status = |request: &str| {
        let mut stream = server.connect();
        stream.write_all(request.as_bytes()).expect("it is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer[9..12].to_owned()
    };
    let absolute = |address: &str, host: &str| {
        status(&format!(
            "GET http://{address}/query?query=ASK%7B%7D HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        ))
    };
    assert_eq!(absolute("localhost", "localhost"), "200");
    assert_eq!(absolute("evil.example", "localhost"), "400");
    assert_eq!(absolute("localhost", "evil.example"), "400");
    assert_eq!(absolute("evil.example", "evil.example"), "421");
    assert_eq!(status("GET /query?query=ASK%7B%7D HTTP/1.0\r\n\r\n"), "200");
    assert_eq!(status("GET /query?query=ASK%7B%7D HTTP/1.0\r\nHost: evil.example\r\n\r\n"), "421");
}

/// security S1: a page of another site that embeds a response as an image or a script sends no `Origin`; the
/// target of a followed link is only shown to the visitor. The console itself works without any option.
#[test]
fn s1_embedded_requests_are_those_of_other_sites() {
    for (cors, embedded) in [("none", 403), ("named", 403), ("all", 200)] {
        let server = start("none", cors);
        let query = "/query?query=ASK%7B%7D";
        for site in ["cross-site", "same-site"] {
            let site = format!("Sec-Fetch-Site: {site}");
            server.get(query, &[&site, "Sec-Fetch-Mode: no-cors"]).expect(embedded);
            server.get(query, &[&site, "Sec-Fetch-Mode: navigate"]).expect(200);
        }
        for site in ["same-origin", "none"] {
            server.get(query, &[&format!("Sec-Fetch-Site: {site}"), "Sec-Fetch-Mode: cors"]).expect(200);
        }
        let page = server.get("/", &["Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate"]).expect(200).text();
        assert!(page.contains("<html"), "{page}");
        // The console sends its own origin with each POST.
        let own = format!("http://{}", server.address);
        let headers = [
            format!("Host: {}", server.address),
            format!("Origin: {own}"),
            "Sec-Fetch-Site: same-origin".to_owned(),
        ];
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        server.query("ASK {}", &headers).expect(200);
        server.update("INSERT DATA { <urn:a> <urn:b> 1 }", &headers).expect(204);
        server.get("/api/info", &headers).expect(200);
    }
}

/// Two origins are refused like a foreign one.
#[test]
fn more_than_one_origin_is_refused() {
    let server = start("none", "all");
    server.query("ASK {}", &["Origin: http://localhost", "Origin: https://evil.example"]).expect(400);
}

/// The error states the remedy.
#[test]
fn refusals_say_what_to_configure() {
    let server = start("none", "none");
    let text = server.get("/query?query=ASK%7B%7D", &["Host: evil.example"]).expect(421).text();
    assert!(text.contains("evil.example") && text.contains("--host") && text.contains("`hosts`"), "{text}");
    let text = server.get("/query?query=ASK%7B%7D", &["Origin: https://evil.example"]).expect(403).text();
    assert!(text.contains("https://evil.example") && text.contains("`cors`"), "{text}");
    let server = start("anonymous", "none");
    let text = server.get("/query?query=ASK%7B%7D", &["Host: evil.example"]).expect(401).text();
    assert!(text.contains("--host"), "{text}");
}
