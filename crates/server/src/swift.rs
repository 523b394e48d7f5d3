//! Queries that have shown themselves to be short, answered on the very thread that talks to the connection.
//!
//! To hand a query to another thread and its answer back takes two wake-ups, which is more than a lookup takes. So the
//! text of a query that was answered in [`SHORT`] is marked, and run at once when it comes again.
//!
//! # Shape
//! Marks of texts (`marks`).
//! # Invariants
//! 1. The thread is kept for [`KEPT`] at most, as closely as a query looks at its deadline; and what has taken longer than
//!    [`SHORT_STILL`] is marked no more.
//! 2. Nothing but a whole answer comes of it. A query that takes longer, is refused, has more rows than are sent in one
//!    piece, or panics, is run again the usual way, as if nothing had been: queries change nothing.
//! # Not here
//! Answers that are compressed, datasets that the request names: the usual way.

use crate::accept::{GRAPHS, ROWS};
use crate::encoding::Encoding;
use crate::marks::Marks;
use crate::query::Asked;
use crate::state::State;
use crate::stream::HELD_BYTES;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use vervet::Result;

/// Texts are marked by what they took from parsing to the last byte.
pub(crate) const SHORT: Duration = Duration::from_micros(250);

/// Marked texts that take longer lose their mark. Longer than [`SHORT`], as the thread may have been interrupted.
pub(crate) const SHORT_STILL: Duration = Duration::from_millis(1);

/// The deadline of a query that runs here.
pub(crate) const KEPT: Duration = Duration::from_millis(2);

/// Longer texts are not looked at.
pub(crate) const TEXT_BYTES_MAX: usize = 4 << 10;

/// Which texts were short.
#[derive(Debug, Default)]
pub(crate) struct Swift(Marks);

impl Swift {
    /// The hash of a text; `None` if it is never marked.
    fn hash(&self, asked: &Asked) -> Option<u64> {
        let usual = asked.encoding != Encoding::Identity || asked.options.dataset.is_some();
        (!usual && asked.text.len() <= TEXT_BYTES_MAX).then(|| self.0.hash(&asked.text))
    }

    /// Remembers how long a query took the usual way.
    pub(crate) fn took(&self, asked: &Asked, time: Duration) {
        if time <= SHORT
            && let Some(hash) = self.hash(asked)
        {
            self.0.set(hash);
        }
    }
}

/// An answer in one piece.
pub(crate) struct Answer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) content_type: &'static str,
}

/// The answer of a query that is known to be short; `None`: ask the usual way.
pub(crate) fn answer(state: &State, asked: &mut Asked) -> Option<Answer> {
    let hash = state.swift.hash(asked)?;
    if !state.swift.0.has(hash) {
        return None;
    }
    let begin = Instant::now();
    let most = asked.options.timeout;
    asked.options.timeout = Some(most.unwrap_or(KEPT).min(KEPT));
    let answer = catch_unwind(AssertUnwindSafe(|| attempt(state, asked)));
    asked.options.timeout = most;
    let answer = answer.ok().and_then(Result::ok).flatten();
    if answer.is_none() || begin.elapsed() > SHORT_STILL {
        state.swift.0.clear(hash);
    }
    answer
}

fn attempt(state: &State, asked: &Asked) -> Result<Option<Answer>> {
    let prepared = state.database.prepare_with(&asked.text, &asked.options)?;
    if prepared.is_heavy(&asked.options)? {
        return Ok(None);
    }
    let offers = if prepared.is_graph() { GRAPHS } else { ROWS };
    let Ok((format, content_type)) = asked.accepted.choose(offers) else { return Ok(None) };
    let mut out = Piece(Vec::with_capacity(1 << 10));
    let written = prepared.write_with(&asked.options, format, &mut out)?;
    state.metrics.rows_out.fetch_add(written.rows, Ordering::Relaxed);
    Ok(Some(Answer { bytes: out.0, content_type }))
}

/// Takes what is sent in one piece, and no more.
struct Piece(Vec<u8>);

impl Write for Piece {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > HELD_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accept::Accepted;
    use crate::auth::Users;
    use crate::options::ServerOptions;
    use vervet::{Database, Format, QueryOptions};

    fn state() -> State {
        let database = Database::in_memory();
        let text: String = (0..2000).map(|n| format!("<urn:s:{n}> <urn:p> \"value {n}\" .\n")).collect();
        database.load_text(Format::NTriples, &text).unwrap();
        let options = ServerOptions::default();
        let metrics = Arc::default();
        let users = Users::new(&options, &metrics).unwrap();
        State::new(database, options, users, metrics)
    }

    fn asked(text: &str) -> Asked {
        Asked {
            text: text.to_owned(),
            options: QueryOptions::default(),
            accepted: Accepted::default(),
            encoding: Encoding::Identity,
        }
    }

    #[test]
    fn a_text_that_was_short_is_answered_at_once() {
        let state = state();
        let mut short = asked("SELECT ?o { <urn:s:7> <urn:p> ?o }");
        assert!(answer(&state, &mut short).is_none(), "nothing is known of it");
        state.swift.took(&short, SHORT + Duration::from_nanos(1));
        assert!(answer(&state, &mut short).is_none(), "it was not short");
        state.swift.took(&short, SHORT);
        let whole = answer(&state, &mut short).expect("it was short");
        assert!(String::from_utf8(whole.bytes).unwrap().contains("value 7"));
        assert_eq!(whole.content_type, "application/sparql-results+json");
        let most = QueryOptions::default().timeout;
        assert_eq!(short.options.timeout, most, "the deadline of the usual way is as it was");
    }

    #[test]
    fn what_is_not_short_any_more_takes_the_usual_way() {
        let state = state();
        for text in [
            // Out of time, too many rows for one piece, heavy, wrong.
            "SELECT (COUNT(*) AS ?n) { ?a <urn:p> ?b . ?c <urn:p> ?d . FILTER(CONCAT(?b, ?d) = \"x\") }",
            "SELECT * { ?s <urn:p> ?o }",
            "SELECT * { ?a <urn:p> ?b . ?c <urn:p> ?d . ?e <urn:p> ?f }",
            "SELECT * {",
        ] {
            let mut asked = asked(text);
            state.swift.took(&asked, Duration::ZERO);
            let hash = state.swift.hash(&asked).unwrap();
            assert!(state.swift.0.has(hash));
            assert!(answer(&state, &mut asked).is_none(), "{text}");
            assert!(!state.swift.0.has(hash), "the mark of {text} is gone");
        }
    }

    #[test]
    fn some_are_never_marked() {
        let state = state();
        let mut compressed = asked("ASK {}");
        compressed.encoding = Encoding::Gzip;
        let mut other_graphs = asked("ASK {}");
        other_graphs.options.dataset = Some(vervet::Dataset { default: Some(Vec::new()), named: None });
        let long = asked(&format!("ASK {{}} #{}", "x".repeat(TEXT_BYTES_MAX)));
        for asked in [compressed, other_graphs, long] {
            assert!(state.swift.hash(&asked).is_none());
        }
    }
}
