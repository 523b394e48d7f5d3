//! Answers of another server that are kept, since its partitions never change.
//!
//! # Shape
//! Many queries begin at the same elements and read the same entries. A short request is that of a step that
//! reads a few elements: its answer is kept at once. That to a longer one, which may be one of thousands of a
//! large query, is kept when it is sent a second time. Which answers go first when there is no room, the
//! library decides: those that were not asked for again.
//! # Why it is right
//! An answer is a function of the request and of one build of a graph, and a base is over one build. What was
//! changed since is in versions over the base, which each server has.
//! # Cost
//! A hash of each request, and of a kept answer a look-up and a copy. [`BYTES_MAX`] at most for all servers
//! of a base; a table of [`ASKED`] numbers for each server.
//! # Source
//! Which answers go: S3-FIFO and CLOCK, as the crate `quick_cache` combines them.

use crate::remote::{Answer, Remote};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use vervet_model::Result;
use xxhash_rust::xxh3::xxh3_64;

/// Maximum bytes of all answers that a base keeps, with their requests.
const BYTES_MAX: u64 = 64 << 20;

/// The answer to a request up to this length is kept at once, …
const SHORT_REQUEST_BYTES: usize = 512;
/// … if it is not longer than this.
const SHORT_ANSWER_BYTES: usize = 4 << 10;

/// A longer request is that of a large query, and not likely to be sent again.
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// Maximum bytes of an answer: longer lists are kept by `long_lists`.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Least bytes of a shard, which has a lock of its own.
const SHARD_BYTES: u64 = 1 << 20;
const SHARDS_MAX: usize = 64;

/// Memory of an answer beside the bytes of both.
const ENTRY_BYTES: u64 = 96;

/// About the bytes of an answer with its request, for the size of tables.
const TYPICAL_BYTES: u64 = 512;

/// Longer requests of which it is known that they were answered once.
const ASKED: usize = 1 << 13;

/// See the header of this file.
pub(crate) struct KeptAnswers {
    remote: Arc<dyn Remote>,
    /// Hashes of the longer requests that were answered last, each at the place that it says.
    asked: Box<[AtomicU64]>,
    /// Created with the first answer that is kept.
    answers: OnceLock<Answers>,
    bytes_max: u64,
}

type Answers = Cache<Box<[u8]>, Arc<[u8]>, Bytes>;

/// The memory of an answer with its request.
#[derive(Clone)]
struct Bytes;

impl Weighter<Box<[u8]>, Arc<[u8]>> for Bytes {
    fn weight(&self, request: &Box<[u8]>, answer: &Arc<[u8]>) -> u64 {
        (request.len() + answer.len()) as u64 + ENTRY_BYTES
    }
}

impl KeptAnswers {
    /// Another server, one of `servers`.
    pub(crate) fn new(remote: Arc<dyn Remote>, servers: usize) -> Self {
        let asked = (0..ASKED).map(|_| AtomicU64::new(0)).collect();
        let bytes_max = BYTES_MAX / servers.max(1) as u64;
        Self { remote, asked, answers: OnceLock::new(), bytes_max }
    }

    /// Notes that a request was answered; returns whether it was before, unless that was forgotten.
    fn was_asked(&self, request: &[u8]) -> bool {
        // Never that of an empty place.
        let hash = xxh3_64(request) | 1;
        let place = (hash >> 1) as usize % self.asked.len();
        // Relaxed: whether the second or the third answer is kept is all the same.
        self.asked[place].swap(hash, Ordering::Relaxed) == hash
    }

    fn keep(&self, request: Box<[u8]>, answer: &[u8]) {
        let is_short = request.len() <= SHORT_REQUEST_BYTES && answer.len() <= SHORT_ANSWER_BYTES;
        if answer.len() > ANSWER_BYTES_MAX || !(is_short || self.was_asked(&request)) {
            return;
        }
        let new = || {
            // So large that the longest answer fits into one, on a machine with any number of processors.
            let shards = usize::try_from(self.bytes_max / SHARD_BYTES).unwrap_or(1).clamp(1, SHARDS_MAX);
            let options = OptionsBuilder::new()
                .estimated_items_capacity(usize::try_from(self.bytes_max / TYPICAL_BYTES).unwrap_or(ASKED))
                .weight_capacity(self.bytes_max)
                .shards(shards)
                .build();
            let options = options.expect("all that it needs is set");
            Cache::with_options(options, Bytes, DefaultHashBuilder::default(), DefaultLifecycle::default())
        };
        self.answers.get_or_init(new).insert(request, answer.into());
    }
}

impl fmt::Debug for KeptAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.answers.get().map_or(0, Cache::len);
        f.debug_struct("KeptAnswers").field("remote", &self.remote).field("kept", &kept).finish()
    }
}

impl Remote for KeptAnswers {
    fn name(&self) -> &str {
        self.remote.name()
    }

    fn is_suspected(&self) -> bool {
        self.remote.is_suspected()
    }

    fn probe(&self) {
        self.remote.probe();
    }

    fn send<'a>(&'a self, request: &[u8]) -> Result<Box<dyn Answer + 'a>> {
        if request.len() > REQUEST_BYTES_MAX {
            return self.remote.send(request);
        }
        if let Some(kept) = self.answers.get().and_then(|answers| answers.get(request)) {
            return Ok(Box::new(Kept(kept)));
        }
        let answer = self.remote.send(request)?;
        Ok(Box::new(ToKeep { answers: self, request: request.into(), answer }))
    }
}

/// An answer that was kept.
struct Kept(Arc<[u8]>);

impl Answer for Kept {
    fn receive(self: Box<Self>) -> Result<Vec<u8>> {
        Ok(self.0.to_vec())
    }

    fn is_kept(&self) -> bool {
        true
    }
}

/// An answer that may be kept.
struct ToKeep<'a> {
    answers: &'a KeptAnswers,
    request: Box<[u8]>,
    answer: Box<dyn Answer + 'a>,
}

impl Answer for ToKeep<'_> {
    fn receive(self: Box<Self>) -> Result<Vec<u8>> {
        let bytes = self.answer.receive()?;
        self.answers.keep(self.request, &bytes);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use vervet_model::{Error, ErrorKind};

    /// Answers with the request, repeated; fails while `fails`.
    #[derive(Debug, Default)]
    struct Echo {
        sent: AtomicUsize,
        length: usize,
        fails: std::sync::atomic::AtomicBool,
    }

    struct Ready(Result<Vec<u8>>);

    impl Answer for Ready {
        fn receive(self: Box<Self>) -> Result<Vec<u8>> {
            self.0
        }
    }

    impl Remote for Echo {
        fn name(&self) -> &str {
            "echo"
        }

        fn send<'a>(&'a self, request: &[u8]) -> Result<Box<dyn Answer + 'a>> {
            self.sent.fetch_add(1, Ordering::Relaxed);
            let answer = match self.fails.load(Ordering::Relaxed) {
                true => Err(Error::new(ErrorKind::Unavailable, "away")),
                false => Ok(request.iter().copied().cycle().take(self.length).collect()),
            };
            Ok(Box::new(Ready(answer)))
        }
    }

    fn ask(answers: &KeptAnswers, request: &[u8]) -> (Result<Vec<u8>>, bool) {
        let answer = answers.send(request).expect("it is sent");
        let is_kept = answer.is_kept();
        (answer.receive(), is_kept)
    }

    #[test]
    fn short_answers_are_kept_at_once_and_longer_ones_the_second_time() {
        let short = SHORT_ANSWER_BYTES;
        for (length, request, sent) in [(short, 3, 1), (short + 1, 3, 2), (short, SHORT_REQUEST_BYTES + 1, 2)]
        {
            let echo = Arc::new(Echo { length, ..Echo::default() });
            let answers = KeptAnswers::new(Arc::clone(&echo) as _, 2);
            for round in 0..5 {
                for byte in [1, 2] {
                    let (answer, is_kept) = ask(&answers, &vec![byte; request]);
                    assert_eq!(answer.expect("an answer"), vec![byte; length]);
                    assert_eq!(is_kept, round >= sent, "round {round}");
                }
            }
            assert_eq!(echo.sent.load(Ordering::Relaxed), 2 * sent);
        }
    }

    #[test]
    fn failures_and_long_messages_are_not_kept() {
        let echo = Arc::new(Echo { length: 8, ..Echo::default() });
        let answers = KeptAnswers::new(Arc::clone(&echo) as _, 1);
        echo.fails.store(true, Ordering::Relaxed);
        (0..4).for_each(|_| assert!(ask(&answers, b"one").0.is_err()));
        echo.fails.store(false, Ordering::Relaxed);
        assert!(matches!(ask(&answers, b"one"), (Ok(_), false)));
        assert!(matches!(ask(&answers, b"one"), (Ok(_), true)));
        let long = vec![1; REQUEST_BYTES_MAX + 1];
        (0..4).for_each(|_| assert!(!ask(&answers, &long).1));
        let echo = Arc::new(Echo { length: ANSWER_BYTES_MAX + 1, ..Echo::default() });
        let answers = KeptAnswers::new(echo, 1);
        (0..4).for_each(|_| assert!(!ask(&answers, b"one").1));
    }

    #[test]
    fn answers_have_a_limit_in_bytes() {
        let echo = Arc::new(Echo { length: ANSWER_BYTES_MAX, ..Echo::default() });
        let answers = KeptAnswers::new(echo, 64);
        for number in 0..100_u64 {
            for _ in 0..3 {
                ask(&answers, &number.to_le_bytes()).0.expect("an answer");
            }
        }
        let kept = answers.answers.get().expect("some are kept");
        assert!(kept.weight() <= BYTES_MAX / 64 && kept.len() > 4, "{} of {}", kept.weight(), kept.len());
    }
}
