//! A server of objects with the interface of S3, in memory, on loopback, with faults on demand.
//!
//! # Shape
//! A thread for each connection reads requests, verifies the signature of each with code of its own, and
//! answers: PUT, GET with ranges, HEAD, DELETE, lists in pages, uploads in parts, conditions. A [`Fault`] is
//! for one request that it fits.
//! # Not here
//! Buckets but one, versions, access rules.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use vervet_model::hex;

/// What happens to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It is refused with this status and this code.
    Refuse(u16, &'static str),
    /// The connection ends after half of its content, and nothing is done.
    CutRequest,
    /// It is done, and the connection ends without an answer.
    LoseAnswer,
    /// The connection ends after this many bytes of the content of the answer.
    CutAnswer(usize),
    /// The answer has this many bytes of the content, and says so.
    ShortAnswer(usize),
    /// The answer has a tag that no object has.
    WrongTag,
    /// The answer is this text, with success.
    Say(String),
    /// There is no answer, and the connection stays open until the server ends.
    Silence,
}

/// A request that the server has had.
#[derive(Clone, Debug)]
pub struct ObjectRequest {
    /// `GET`, `PUT` and others.
    pub method: String,
    /// Name of the object in the bucket, or nothing.
    pub key: String,
    /// The query, as it was sent.
    pub query: String,
    /// Length of the content in bytes.
    pub length: usize,
    /// Status of the answer; 0: there was none.
    pub status: u16,
}

#[derive(Clone, Debug)]
struct Kept {
    bytes: Arc<Vec<u8>>,
    tag: String,
}

/// Key, and parts with their tags.
#[derive(Debug)]
struct Upload {
    key: String,
    parts: BTreeMap<u32, Kept>,
}

#[derive(Debug)]
struct Planned {
    method: &'static str,
    /// Part of key and query.
    within: String,
    count: usize,
    fault: Fault,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Kept>,
    uploads: BTreeMap<String, Upload>,
    faults: Vec<Planned>,
    requests: Vec<ObjectRequest>,
    /// Ever higher, for tags and uploads.
    number: u64,
    page_objects: usize,
    has_conditions: bool,
    session_token: Option<String>,
    open: Vec<TcpStream>,
}

/// See the header of this file. It ends with this value.
#[derive(Debug)]
pub struct ObjectServer {
    address: String,
    state: Arc<Mutex<State>>,
    is_over: Arc<AtomicBool>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ObjectServer {
    /// The bucket that there is.
    pub const BUCKET: &'static str = "test-bucket";
    /// Its region.
    pub const REGION: &'static str = "eu-test-1";
    /// The credentials that there are.
    pub const ACCESS_KEY: &'static str = "TESTKEYID";
    /// See [`ObjectServer::ACCESS_KEY`].
    pub const SECRET_KEY: &'static str = "test/secret+key";

    /// Starts a server without objects.
    ///
    /// # Panics
    /// There is no free port.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let state = State { page_objects: 1_000, has_conditions: true, ..State::default() };
        let (state, is_over) = (Arc::new(Mutex::new(state)), Arc::new(AtomicBool::new(false)));
        let (shared, over) = (Arc::clone(&state), Arc::clone(&is_over));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if over.load(Ordering::Acquire) {
                    return;
                }
                if let Ok(clone) = stream.try_clone() {
                    lock(&shared).open.push(clone);
                }
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || {
                    // A connection that fails is that of a client that has ended, or of a fault.
                    _ = serve(&stream, &shared);
                    _ = stream.shutdown(Shutdown::Both);
                });
            }
        });
        Self { address, state, is_over }
    }

    /// Scheme, host and port.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The variables with which a client reaches it.
    #[must_use]
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ACCESS_KEY_ID", Self::ACCESS_KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", Self::SECRET_KEY.to_owned()),
            ("AWS_REGION", Self::REGION.to_owned()),
            ("AWS_ENDPOINT_URL", self.endpoint()),
        ]
    }

    /// The next `count` requests with this method, and with `within` in key and query, have this fault.
    pub fn fail(&self, method: &'static str, within: &str, count: usize, fault: Fault) {
        lock(&self.state).faults.push(Planned { method, within: within.to_owned(), count, fault });
    }

    /// Faults that no request has had are none any more.
    pub fn forget_faults(&self) {
        lock(&self.state).faults.clear();
    }

    /// Most objects of a page of a list.
    pub fn set_page_objects(&self, count: usize) {
        lock(&self.state).page_objects = count;
    }

    /// Whether the server knows `If-Match` and `If-None-Match` of a PUT.
    pub fn set_conditions(&self, has_conditions: bool) {
        lock(&self.state).has_conditions = has_conditions;
    }

    /// The token that requests have to have.
    pub fn set_session_token(&self, token: &str) {
        lock(&self.state).session_token = Some(token.to_owned());
    }

    /// All objects: key and content.
    #[must_use]
    pub fn objects(&self) -> BTreeMap<String, Arc<Vec<u8>>> {
        lock(&self.state).objects.iter().map(|(key, kept)| (key.clone(), Arc::clone(&kept.bytes))).collect()
    }

    /// Replaces an object, or removes it.
    pub fn set(&self, key: &str, bytes: Option<&[u8]>) {
        let mut state = lock(&self.state);
        match bytes {
            Some(bytes) => {
                let kept = state.kept(bytes.to_vec());
                state.objects.insert(key.to_owned(), kept);
            }
            None => _ = state.objects.remove(key),
        }
    }

    /// Number of uploads in parts that have not ended.
    #[must_use]
    pub fn open_uploads(&self) -> usize {
        lock(&self.state).uploads.len()
    }

    /// The requests since the call before.
    pub fn take_requests(&self) -> Vec<ObjectRequest> {
        std::mem::take(&mut lock(&self.state).requests)
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        for stream in std::mem::take(&mut lock(&self.state).open) {
            _ = stream.shutdown(Shutdown::Both);
        }
        // The listener ends with the next connection.
        _ = TcpStream::connect(&self.address);
    }
}

impl State {
    fn kept(&mut self, bytes: Vec<u8>) -> Kept {
        self.number += 1;
        Kept { bytes: Arc::new(bytes), tag: format!("\"tag{}\"", self.number) }
    }

    fn fault(&mut self, method: &str, target: &str) -> Option<Fault> {
        let fits = |planned: &&mut Planned| {
            planned.count > 0 && planned.method == method && target.contains(&planned.within)
        };
        let planned = self.faults.iter_mut().find(fits)?;
        planned.count -= 1;
        Some(planned.fault.clone())
    }
}

struct Head {
    method: String,
    path: String,
    query: String,
    headers: BTreeMap<String, String>,
}

impl Head {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    fn parameter(&self, name: &str) -> Option<String> {
        let parts = self.query.split('&').filter(|part| !part.is_empty());
        let mut pairs = parts.map(|part| part.split_once('=').unwrap_or((part, "")));
        pairs.find(|(found, _)| *found == name).map(|(_, value)| decoded(value))
    }
}

struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    content: Vec<u8>,
}

impl Answer {
    fn new(status: u16, content: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), content: content.into() }
    }

    fn error(status: u16, code: &str) -> Self {
        Self::new(
            status,
            format!("<Error><Code>{code}</Code><Message>The message of {code}.</Message></Error>"),
        )
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

fn serve(stream: &TcpStream, shared: &Mutex<State>) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut stream = stream;
    while let Some(head) = read_head(&mut reader)? {
        let length: usize = head.header("content-length").parse().unwrap_or(0);
        let key = decoded(&head.path);
        let bucket = format!("/{}", ObjectServer::BUCKET);
        let key = key.strip_prefix(&bucket).map(|rest| rest.trim_start_matches('/').to_owned());
        let shown = key.clone().unwrap_or_default();
        let fault = lock(shared).fault(&head.method, &format!("{shown}?{}", head.query));
        let record = |status| {
            lock(shared).requests.push(ObjectRequest {
                method: head.method.clone(),
                key: shown.clone(),
                query: head.query.clone(),
                length,
                status,
            });
        };
        if fault == Some(Fault::CutRequest) {
            io::copy(&mut (&mut reader).take(length as u64 / 2), &mut io::sink())?;
            record(0);
            return Ok(());
        }
        let mut content = vec![0; length];
        reader.read_exact(&mut content)?;
        let refusal = refusal(&head, &content, lock(shared).session_token.as_deref());
        let mut answer = match (&fault, refusal, &key) {
            (Some(Fault::Refuse(status, code)), ..) => Answer::error(*status, code),
            (Some(Fault::Say(text)), ..) => Answer::new(200, text.as_bytes()),
            (_, Some((status, code)), _) => Answer::error(status, code),
            (.., None) => Answer::error(404, "NoSuchBucket"),
            (.., Some(key)) => answer(&mut lock(shared), &head, key, content),
        };
        match fault {
            Some(Fault::Silence) => {
                record(0);
                // Until the server or the client ends the connection.
                _ = reader.read(&mut [0]);
                return Ok(());
            }
            Some(Fault::LoseAnswer) => {
                record(0);
                return Ok(());
            }
            Some(Fault::ShortAnswer(bytes)) => answer.content.truncate(bytes),
            Some(Fault::WrongTag) => answer.headers.push(("etag", "\"wrong\"".to_owned())),
            _ => {}
        }
        record(answer.status);
        let mut text =
            format!("HTTP/1.1 {} Status\r\ndate: Tue, 01 Dec 2026 00:00:00 GMT\r\n", answer.status);
        // The last header of a name counts.
        let headers: BTreeMap<_, _> = answer.headers.iter().map(|(name, value)| (*name, value)).collect();
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !(head.method == "HEAD" || answer.status == 204) {
            text.push_str(&format!("content-length: {}\r\n", answer.content.len()));
        }
        text.push_str("\r\n");
        stream.write_all(text.as_bytes())?;
        let content = match fault {
            Some(Fault::CutAnswer(bytes)) => &answer.content[..bytes.min(answer.content.len())],
            _ => &answer.content[..],
        };
        if head.method != "HEAD" {
            stream.write_all(content)?;
        }
        stream.flush()?;
        if content.len() < answer.content.len() {
            return Ok(());
        }
    }
    Ok(())
}

fn read_head(reader: &mut impl BufRead) -> io::Result<Option<Head>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut head = Head {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: BTreeMap::new(),
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => {
                head.headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
            }
            None => return Ok(Some(head)),
        }
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = text.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        let digits = if byte == b'%' { bytes.next().zip(bytes.next()) } else { None };
        let value = digits.and_then(|(high, low)| {
            u8::from_str_radix(&format!("{}{}", char::from(high), char::from(low)), 16).ok()
        });
        decoded.push(value.unwrap_or(byte));
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let key = if key.len() > 64 { sha256(key) } else { key.to_vec() };
    let padded =
        |with: u8| -> Vec<u8> { (0..64).map(|at| key.get(at).copied().unwrap_or(0) ^ with).collect() };
    let inner = sha256(&[&padded(0x36)[..], text].concat());
    sha256(&[&padded(0x5c)[..], &inner].concat())
}

/// Status and code, if the request is not signed as it has to be.
fn refusal(head: &Head, content: &[u8], session_token: Option<&str>) -> Option<(u16, &'static str)> {
    if head.header("x-amz-content-sha256") != hex(&sha256(content)) {
        return Some((400, "XAmzContentSHA256Mismatch"));
    }
    let Some(values) = head.header("authorization").strip_prefix("AWS4-HMAC-SHA256 ") else {
        return Some((403, "AccessDenied"));
    };
    let value = |name: &str| {
        values
            .split(',')
            .find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='))
            .unwrap_or_default()
    };
    let credential: Vec<&str> = value("Credential").split('/').collect();
    let [access_key, date, region, "s3", "aws4_request"] = credential[..] else {
        return Some((400, "AuthorizationHeaderMalformed"));
    };
    if access_key != ObjectServer::ACCESS_KEY {
        return Some((403, "InvalidAccessKeyId"));
    }
    if region != ObjectServer::REGION {
        return Some((400, "AuthorizationHeaderMalformed"));
    }
    let stamp = head.header("x-amz-date");
    if !is_present(stamp) {
        return Some((403, "RequestTimeTooSkewed"));
    }
    if session_token.is_some_and(|token| token != head.header("x-amz-security-token")) {
        return Some((400, "InvalidToken"));
    }
    let names: Vec<&str> = value("SignedHeaders").split(';').collect();
    let has_to_be_signed = |name: &str| name == "host" || name.starts_with("x-amz-");
    if head.headers.keys().any(|name| has_to_be_signed(name) && !names.contains(&name.as_str())) {
        return Some((403, "AccessDenied"));
    }
    let mut query: Vec<&str> = head.query.split('&').filter(|part| !part.is_empty()).collect();
    query.sort_unstable();
    let headers: String = names.iter().map(|name| format!("{name}:{}\n", head.header(name))).collect();
    let request = [
        &head.method,
        &head.path,
        &query.join("&"),
        &headers,
        &names.join(";"),
        head.header("x-amz-content-sha256"),
    ];
    let request = hex(&sha256(request.join("\n").as_bytes()));
    let scope = credential[1..].join("/");
    let text = format!("AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{request}");
    let mut key = mac(format!("AWS4{}", ObjectServer::SECRET_KEY).as_bytes(), date.as_bytes());
    for part in &credential[2..] {
        key = mac(&key, part.as_bytes());
    }
    let is_right = stamp.starts_with(date) && hex(&mac(&key, text.as_bytes())) == value("Signature");
    if is_right { None } else { Some((403, "SignatureDoesNotMatch")) }
}

/// Whether a time such as 20261201T000000Z is at most 15 minutes from now.
fn is_present(stamp: &str) -> bool {
    let number = |from: usize, to: usize| stamp.get(from..to).and_then(|text| text.parse::<i64>().ok());
    let fields = [number(0, 4), number(4, 6), number(6, 8), number(9, 11), number(11, 13), number(13, 15)];
    let [Some(year), Some(month), Some(day), Some(hour), Some(minute), Some(second)] = fields else {
        return false;
    };
    // Years begin in March, so that the day of a leap year is their last.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    let then = days * 86_400 + hour * 3_600 + minute * 60 + second;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    then.abs_diff(now.cast_signed()) < 900
}

fn answer(state: &mut State, head: &Head, key: &str, content: Vec<u8>) -> Answer {
    let upload = head.parameter("uploadId");
    match (head.method.as_str(), key, upload) {
        ("GET", "", _) if head.parameter("list-type").as_deref() == Some("2") => list(state, head),
        ("PUT", key, None) if !key.is_empty() => put(state, head, key, content),
        ("PUT", key, Some(id)) => {
            let kept = state.kept(content);
            let number = head.parameter("partNumber").and_then(|number| number.parse().ok());
            match (state.uploads.get_mut(&id).filter(|upload| upload.key == key), number) {
                (Some(upload), Some(number @ 1..=10_000)) => {
                    let tag = kept.tag.clone();
                    upload.parts.insert(number, kept);
                    Answer::new(200, "").with("etag", tag)
                }
                (Some(_), _) => Answer::error(400, "InvalidArgument"),
                (None, _) => Answer::error(404, "NoSuchUpload"),
            }
        }
        ("POST", key, None) if head.parameter("uploads").is_some() => {
            state.number += 1;
            let id = format!("upload/{}+x", state.number);
            let text = format!(
                "<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
            );
            state.uploads.insert(id, Upload { key: key.to_owned(), parts: BTreeMap::new() });
            Answer::new(200, text)
        }
        ("POST", key, Some(id)) => complete(state, key, &id, &content),
        ("DELETE", _, Some(id)) => match state.uploads.remove(&id) {
            Some(_) => Answer::new(204, ""),
            None => Answer::error(404, "NoSuchUpload"),
        },
        ("DELETE", key, None) => {
            state.objects.remove(key);
            Answer::new(204, "")
        }
        ("GET" | "HEAD", key, None) => get(state, head, key),
        _ => Answer::error(405, "MethodNotAllowed"),
    }
}

fn put(state: &mut State, head: &Head, key: &str, content: Vec<u8>) -> Answer {
    let (expected, absent) = (head.header("if-match"), head.header("if-none-match"));
    let has_condition = !expected.is_empty() || !absent.is_empty();
    if has_condition && !state.has_conditions {
        return Answer::error(501, "NotImplemented");
    }
    match state.objects.get(key) {
        Some(_) if absent == "*" => return Answer::error(412, "PreconditionFailed"),
        Some(kept) if !expected.is_empty() && kept.tag != expected => {
            return Answer::error(412, "PreconditionFailed");
        }
        None if !expected.is_empty() => return Answer::error(404, "NoSuchKey"),
        _ => {}
    }
    let kept = state.kept(content);
    let tag = kept.tag.clone();
    state.objects.insert(key.to_owned(), kept);
    Answer::new(200, "").with("etag", tag)
}

fn get(state: &State, head: &Head, key: &str) -> Answer {
    let Some(kept) = state.objects.get(key) else { return Answer::error(404, "NoSuchKey") };
    let expected = head.header("if-match");
    if !expected.is_empty() && expected != kept.tag {
        return Answer::error(412, "PreconditionFailed");
    }
    let length = kept.bytes.len();
    let range = head.header("range").strip_prefix("bytes=").and_then(|range| range.split_once('-'));
    let answer = match range.map(|(from, to)| (from.parse(), to.parse())) {
        Some((Ok(from), Ok(to))) if from < length && from <= to => {
            let to: usize = length.min(to + 1);
            let range = format!("bytes {from}-{}/{length}", to - 1);
            Answer::new(206, &kept.bytes[from..to]).with("content-range", range)
        }
        Some(_) => return Answer::error(416, "InvalidRange"),
        None => Answer::new(200, &kept.bytes[..]),
    };
    let answer =
        if head.method == "HEAD" { answer.with("content-length", length.to_string()) } else { answer };
    answer.with("etag", kept.tag.clone())
}

fn list(state: &State, head: &Head) -> Answer {
    let prefix = head.parameter("prefix").unwrap_or_default();
    let after = head.parameter("continuation-token").unwrap_or_default();
    let mut found = state.objects.iter().filter(|(key, _)| key.starts_with(&prefix) && **key > after);
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
                    <ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>x</Name>"
        .to_owned();
    let mut last = "";
    for (key, kept) in found.by_ref().take(state.page_objects) {
        last = key;
        let escaped = escaped(key);
        text.push_str(&format!(
            "<Contents><Key>{escaped}</Key><ETag>{}</ETag><Size>{}</Size></Contents>",
            kept.tag.replace('"', "&quot;"),
            kept.bytes.len()
        ));
    }
    let is_truncated = found.next().is_some();
    text.push_str(&format!("<IsTruncated>{is_truncated}</IsTruncated>"));
    if is_truncated {
        text.push_str(&format!("<NextContinuationToken>{}</NextContinuationToken>", escaped(last)));
    }
    text.push_str("</ListBucketResult>");
    Answer::new(200, text)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

fn complete(state: &mut State, key: &str, id: &str, content: &[u8]) -> Answer {
    let Some(upload) = state.uploads.get(id).filter(|upload| upload.key == key) else {
        return Answer::error(404, "NoSuchUpload");
    };
    let text = String::from_utf8_lossy(content);
    let within = |part: &str, name: &str| -> Option<String> {
        let begun = part.split_once(&format!("<{name}>"))?.1;
        Some(begun.split_once(&format!("</{name}>"))?.0.to_owned())
    };
    let mut bytes = Vec::new();
    for part in text.split("<Part>").skip(1) {
        let number: Option<u32> = within(part, "PartNumber").and_then(|number| number.parse().ok());
        let kept = number.and_then(|number| upload.parts.get(&number));
        match kept.filter(|kept| within(part, "ETag").as_ref() == Some(&kept.tag)) {
            Some(kept) => bytes.extend_from_slice(&kept.bytes),
            None => return Answer::error(400, "InvalidPart"),
        }
    }
    state.uploads.remove(id);
    let kept = state.kept(bytes);
    state.objects.insert(key.to_owned(), kept);
    Answer::new(200, "<CompleteMultipartUploadResult><Key>x</Key></CompleteMultipartUploadResult>")
}
