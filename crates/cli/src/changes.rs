//! `vervet changes`: the change feed of a database in a directory, or of a server.
//!
//! # Shape
//! A thread sends the requests to a server and reads the responses; the command itself writes what the thread
//! has read, so Ctrl-C ends a command that waits for the server. `--follow` reads the stream of events, which
//! has JSON; in RDF Patch, an event says that there is a commit to ask for.
//! # Invariants
//! A commit of `--follow` is written as a whole, each once: the next request begins after the last event.

use crate::arguments::{ChangesArguments, ChangesFormat};
use crate::http_client::{self, first_answer};
use crate::output::{Failure, Outcome, Output};
use crate::server_address::{self, server_address};
use crate::{interrupt, writer_lock};
use serde_json::Value;
use std::fmt::Display;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;
use ureq::BodyReader;
use ureq::http::Response;
use vervet::{Database, Error, ErrorKind, FeedLimits, FeedRefusal, QueryOptions};

/// Pieces of a response that wait to be written.
const PIECES: usize = 16;

/// Most bytes of a piece, but for one commit.
const PIECE_BYTES: usize = 64 << 10;

/// Time between two looks at whether Ctrl-C was pressed.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Time between two attempts to reach a server that was reached before.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Most bytes of the text of an error.
const REFUSAL_BYTES_MAX: u64 = 64 << 10;

/// Header of the position after a response.
const POSITION: &str = "vervet-position";

/// Receives the pieces of the output; an error: the command has ended.
type Pieces = SyncSender<Vec<u8>>;

pub(crate) fn run(arguments: &ChangesArguments) -> Outcome {
    let path = Path::new(&arguments.source);
    match server_address(&arguments.source) {
        Ok(address) if !path.is_dir() => of_server(arguments, &address),
        _ => of_database(arguments, path),
    }
}

/// Says on standard error where the next call goes on.
fn note_position(position: &dyn Display) {
    eprintln!("position {position}");
}

fn of_database(arguments: &ChangesArguments, path: &Path) -> Outcome {
    if arguments.follow {
        let message = "--follow needs a server: no other process changes a directory while it is read";
        let hint = format!(
            "vervet serve {0}, then: vervet changes HOST:PORT --follow; without --follow: vervet changes {0} --after \
             POSITION",
            path.display()
        );
        return Err(Failure::Usage(message.to_owned(), hint));
    }
    let running = interrupt::start();
    let database = Database::open(path)?;
    let refused = |refusal: FeedRefusal| {
        match refusal {
        FeedRefusal::Gone(error) => error.with_hint(format!(
            "export the database (vervet export {0}), and go on after the position that vervet changes {0} prints",
            path.display()
        )),
        refusal => held(refusal.into_error()),
    }
    };
    let mut feed = database.feed(arguments.after).map_err(refused)?;
    let options = QueryOptions { timeout: None, memory_limit_bytes: None, ..QueryOptions::default() };
    let options = options.with_cancel(&running.token);
    let (format, mut out) = (arguments.format.of_feed(), Output::standard());
    let written = database.write_feed(&mut feed, format, FeedLimits::default(), &options, &mut out);
    written.map_err(refused)?;
    out.finish()?;
    note_position(&feed.position());
    Ok(())
}

/// The error of a directory that a server has, with the command for that server.
fn held(error: Error) -> Error {
    match writer_lock::server_address(&error) {
        Some(address) => error.with_hint(format!("ask the server: vervet changes {address}")),
        None => error,
    }
}

fn of_server(arguments: &ChangesArguments, address: &str) -> Outcome {
    let login = http_client::login(arguments.user.as_deref(), arguments.token_file.as_deref())?;
    let urls = server_address::urls(Some(address), login.is_some());
    let after = arguments.after.map(|position| position.to_string());
    let (format, is_follower) = (arguments.format, arguments.follow);
    let work = move |pieces: &Pieces| {
        let server = Server { urls, login };
        match is_follower {
            true => server.follow(after, format, pieces),
            false => server.copy(after.as_deref(), format, pieces),
        }
    };
    // Before the thread: it ends with the process.
    let _running = interrupt::start();
    let mut out = Output::standard();
    match (relay(work, &mut out), is_follower && interrupt::requested().load(Ordering::Relaxed)) {
        (Ok(position), _) => {
            out.finish()?;
            position.iter().for_each(|position| note_position(position));
            Ok(())
        }
        // Everything that was written is whole.
        (Err(_), true) => Ok(()),
        (Err(failure), false) => Err(failure),
    }
}

/// Writes what `work` sends, and returns its result.
fn relay<T: Send + 'static>(
    work: impl FnOnce(&Pieces) -> vervet::Result<T> + Send + 'static,
    out: &mut Output,
) -> Outcome<T> {
    let (sender, pieces) = sync_channel(PIECES);
    let thread = std::thread::Builder::new().name("changes".to_owned()).spawn(move || work(&sender));
    let thread = thread.map_err(|error| Error::io("start a thread that reads the changes", &error))?;
    loop {
        if interrupt::requested().load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "cancelled").into());
        }
        match pieces.recv_timeout(CHECK_INTERVAL) {
            Ok(piece) => {
                out.write_all(&piece)?;
                out.flush()?;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let panicked = |_| Error::internal("the thread that reads the changes has ended");
    Ok(thread.join().map_err(panicked)??)
}

/// Sends a piece to the output.
fn send(pieces: &Pieces, piece: Vec<u8>) -> vervet::Result<()> {
    pieces.send(piece).map_err(|_| Error::new(ErrorKind::Cancelled, "the command has ended"))
}

/// A server and its credentials.
struct Server {
    urls: Vec<String>,
    /// The header `Authorization`.
    login: Option<String>,
}

impl Server {
    /// The response to a request for changes, and the URL.
    fn get(&self, parameters: &str) -> vervet::Result<(String, Response<ureq::Body>)> {
        first_answer(&self.urls, |url| {
            let url = format!("{url}/changes?{parameters}");
            let mut request = http_client::streaming_agent(&url, self.login.is_some()).get(&url);
            if let Some(login) = &self.login {
                request = request.header("Authorization", login);
            }
            let unreachable = |error: ureq::Error| {
                let error = Error::new(ErrorKind::Unavailable, format!("{url}: {error}"));
                error.with_hint("is the server running? a database without a server: vervet changes DIR")
            };
            let mut response = request.call().map_err(unreachable)?;
            if response.status().is_success() {
                return Ok((url, response));
            }
            let mut text = String::new();
            let body = response.body_mut().as_reader().take(REFUSAL_BYTES_MAX).read_to_string(&mut text);
            let status = response.status().as_u16();
            Err(refusal(&url, status, if body.is_ok() { &text } else { "" }))
        })
    }

    /// The commits after a position up to the newest one, and the position after them.
    fn copy(
        &self,
        after: Option<&str>,
        format: ChangesFormat,
        pieces: &Pieces,
    ) -> vervet::Result<Option<String>> {
        let after = after.map(|after| format!("&after={after}")).unwrap_or_default();
        let (url, response) = self.get(&format!("format={}{after}", format.name()))?;
        let position = position(&response);
        let mut body = response.into_body().into_reader();
        loop {
            let mut piece = vec![0; PIECE_BYTES];
            let length = body.read(&mut piece).map_err(|error| broken(&url, &error))?;
            if length == 0 {
                return Ok(position);
            }
            piece.truncate(length);
            send(pieces, piece)?;
        }
    }

    /// The commits after a position, as they come. Ends with an error alone.
    fn follow(
        &self,
        after: Option<String>,
        format: ChangesFormat,
        pieces: &Pieces,
    ) -> vervet::Result<Option<String>> {
        let mut after = match after {
            Some(after) => after,
            // A stream that breaks before its first event goes on from here.
            None => {
                let (url, response) = self.get("format=json")?;
                position(&response).ok_or_else(|| broken(&url, &"it has no position"))?
            }
        };
        let mut is_reached = false;
        loop {
            let followed = self.events(&mut after, format, pieces, &mut is_reached);
            match followed {
                // The server ends a stream from time to time.
                Ok(()) => {}
                Err(error) if is_reached && error.kind() == ErrorKind::Unavailable => {
                    tracing::warn!("{error}; trying again");
                }
                Err(error) => return Err(error),
            }
            std::thread::sleep(RETRY_INTERVAL);
        }
    }

    /// The commits of one stream.
    fn events(
        &self,
        after: &mut String,
        format: ChangesFormat,
        pieces: &Pieces,
        is_reached: &mut bool,
    ) -> vervet::Result<()> {
        let (url, response) = self.get(&format!("format=events&after={after}"))?;
        *is_reached = true;
        let mut events = Events::new(response.into_body().into_reader());
        while let Some(event) = events.next().map_err(|error| broken(&url, &error))? {
            match event {
                Event::Commit { position, data } => {
                    let piece = match format {
                        ChangesFormat::Json => data + "\n",
                        ChangesFormat::RdfPatch => self.patch(after)?,
                    };
                    send(pieces, piece.into_bytes())?;
                    *after = position;
                }
                Event::Gone(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The commit after a position, as RDF Patch.
    fn patch(&self, after: &str) -> vervet::Result<String> {
        let (url, response) = self.get(&format!("format=rdf-patch&limit=1&after={after}"))?;
        let mut text = String::new();
        let read = response.into_body().into_reader().read_to_string(&mut text);
        read.map_err(|error| broken(&url, &error))?;
        Ok(text)
    }
}

fn position(response: &Response<ureq::Body>) -> Option<String> {
    Some(response.headers().get(POSITION)?.to_str().ok()?.to_owned())
}

fn broken(url: &str, error: &dyn Display) -> Error {
    let message = format!("{url}: the response breaks off: {error}");
    Error::new(ErrorKind::Unavailable, message).with_hint("begin again after the last whole commit")
}

/// The error of a response: its lines `error: …` and `hint: …`.
fn refusal(url: &str, status: u16, text: &str) -> Error {
    let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
    let kind = if matches!(status, 429 | 503) { ErrorKind::Unavailable } else { ErrorKind::Input };
    let error = Error::new(kind, format!("{url}: {status}: {}", line("error:")));
    match (status, line("hint:")) {
        (401 | 403, _) => error.with_hint(http_client::LOGIN_HINT),
        (_, "") => error,
        (_, hint) => error.with_hint(hint.to_owned()),
    }
}

/// An event of a stream.
#[derive(Debug)]
enum Event {
    Commit {
        position: String,
        data: String,
    },
    /// The log no longer has the next commit.
    Gone(Error),
}

/// The server-sent events of a response.
struct Events<R>(BufReader<R>);

impl Events<BodyReader<'static>> {
    fn new(body: BodyReader<'static>) -> Self {
        Self(BufReader::new(body))
    }
}

impl<R: Read> Events<R> {
    /// The next event; `None`: the stream has ended.
    fn next(&mut self) -> std::io::Result<Option<Event>> {
        let (mut position, mut data, mut is_gone) = (None, None, false);
        loop {
            let mut line = String::new();
            // An event without its end is none.
            if self.0.read_line(&mut line)? == 0 || !line.ends_with('\n') {
                return Ok(None);
            }
            let line = line.trim_end_matches(['\n', '\r']);
            match line.split_once(": ") {
                Some(("id", text)) => position = Some(text.to_owned()),
                Some(("data", text)) => data = Some(text.to_owned()),
                Some(("event", text)) => is_gone = text == "gone",
                _ => {}
            }
            if !line.is_empty() {
                continue;
            }
            match (position.take(), data.take()) {
                (_, Some(data)) if is_gone => return Ok(Some(Event::Gone(gone(&data)))),
                (Some(position), Some(data)) => return Ok(Some(Event::Commit { position, data })),
                // A comment.
                _ => {}
            }
        }
    }
}

fn gone(data: &str) -> Error {
    let value: Value = serde_json::from_str(data).unwrap_or_default();
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    Error::new(ErrorKind::Input, text("message")).with_hint(text("hint"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_a_whole_or_not_at_all() {
        let text = ":\n\nid: 5-ab\ndata: {\"commit\":5}\n\n:\n\nid: 6-ab\ndata: {\"commit\"";
        let mut events = Events(BufReader::new(text.as_bytes()));
        let Some(Event::Commit { position, data }) = events.next().expect("readable") else {
            panic!("no commit")
        };
        assert_eq!((position.as_str(), data.as_str()), ("5-ab", "{\"commit\":5}"));
        assert!(events.next().expect("readable").is_none(), "it has no end");
        let text = "event: gone\ndata: {\"message\":\"lost\",\"hint\":\"export\"}\n\n";
        let mut events = Events(BufReader::new(text.as_bytes()));
        let Some(Event::Gone(error)) = events.next().expect("readable") else { panic!("no event") };
        assert_eq!((error.message(), error.hint()), ("lost", Some("export")));
    }

    #[test]
    fn refusals_have_the_reason_of_the_server() {
        let error = refusal("u", 410, "error: it is gone\nhint: export it\n");
        assert_eq!((error.message(), error.hint()), ("u: 410: it is gone", Some("export it")));
        assert_eq!(refusal("u", 503, "").kind(), ErrorKind::Unavailable);
        assert!(refusal("u", 401, "error: no").hint().is_some_and(|hint| hint.contains("--user")));
    }
}
