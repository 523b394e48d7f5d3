//! What a server that takes part in a load has received from the others and has for them.
//!
//! # Shape
//! Threads of connections put pieces of other servers here, and wait for what this server is to give; the
//! thread of the load waits for pieces, and publishes answers.
//! # Invariants
//! Every wait ends: with what it waits for, with the error that stops the load, or with the limits of its
//! thread.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vervet_dictionary::DictionaryBuilder;
use vervet_env::Bytes;
use vervet_model::{Error, ErrorKind, Result, ThreadLimits, lock};
use vervet_store::PartBuilder;

/// Longest wait without a look at the limits of the thread.
const WAIT: Duration = Duration::from_millis(100);

/// The longest piece of a server, in bytes.
const PIECE_BYTES_MAX: u64 = 8 << 30;

/// Part of the error of a load that another server has stopped.
const STOPPED: &str = " has stopped the load: ";

/// A step in which each server sends a piece to the first one, and all get one answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Round {
    Join,
    Counts,
    Routed,
    Survey,
    Sets,
    Catalog,
    /// All servers have stored the catalog.
    Stored,
    Published,
    /// Sent without waiting for the others.
    Left,
}

impl Round {
    pub(crate) const ALL: [Self; 9] = [
        Self::Join,
        Self::Counts,
        Self::Routed,
        Self::Survey,
        Self::Sets,
        Self::Catalog,
        Self::Stored,
        Self::Published,
        Self::Left,
    ];
}

/// Bytes that a server has for others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Blob {
    /// The answer of a round, at the first server.
    Answer(Round),
    /// The counts and the record of the dictionary, at the first server.
    DictionaryRecord,
    /// The file of the dictionary, at the first server.
    Dictionary,
    /// The classes of the vertices of a server.
    Classes,
}

/// See the header of this file.
pub(crate) struct State {
    inner: Mutex<Inner>,
    changed: Condvar,
    /// Set when the load stops: for loops that compute.
    pub(crate) stop: Arc<AtomicBool>,
}

#[derive(Default)]
struct Inner {
    pieces: BTreeMap<(Round, usize), Piece>,
    blobs: BTreeMap<Blob, Bytes>,
    terms: Terms,
    /// The number of the load, once this server has joined.
    build: Option<u64>,
    parts: Option<PartBuilder<'static>>,
    stopped: Option<Error>,
    /// Another server has stopped it, and has told all.
    was_told: bool,
}

/// What another server has sent of a piece.
struct Piece {
    bytes: Vec<u8>,
    total: u64,
}

/// The terms of all servers, at the first one.
#[derive(Default)]
struct Terms {
    /// Absent while it is in use, and before the first server has read its share.
    builder: Option<DictionaryBuilder>,
    /// The server whose terms are next; those before it are complete.
    next: usize,
    /// The first part of a term that is longer than a request.
    cut: Vec<u8>,
}

impl State {
    pub(crate) fn new() -> Self {
        Self { inner: Mutex::default(), changed: Condvar::new(), stop: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// Waits until `ready` returns a value.
    fn wait<T>(&self, mut ready: impl FnMut(&mut Inner) -> Option<T>) -> Result<T> {
        let mut inner = self.lock();
        loop {
            if let Some(error) = &inner.stopped {
                return Err(error.clone());
            }
            if let Some(value) = ready(&mut inner) {
                return Ok(value);
            }
            ThreadLimits::check()?;
            inner = self.changed.wait_timeout(inner, WAIT).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits a moment.
    pub(crate) fn wait_a_moment(&self) -> Result<()> {
        let mut is_over = false;
        self.wait(|_| std::mem::replace(&mut is_over, true).then_some(()))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_all();
        changed
    }

    /// Stops the load: every wait ends with this error, or with an earlier one.
    pub(crate) fn stop(&self, error: Error) {
        self.change(|inner| inner.stopped.get_or_insert(error).kind());
        // Relaxed: the flag carries no data.
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The error of a request, for the server that sent it: if this server, `own`, has stopped the load, that
    /// it has.
    pub(crate) fn told(&self, error: Error, own: &str) -> Error {
        let inner = self.lock();
        match &inner.stopped {
            Some(stopped) if inner.was_told => stopped.clone(),
            Some(stopped) => stopped_by(own, stopped.message()),
            None => error.context(format_args!("server {own}")),
        }
    }

    /// This server has joined the load with this number.
    pub(crate) fn set_build(&self, build: u64) {
        self.change(|inner| inner.build = Some(build));
    }

    /// The number of the load, once this server has joined.
    pub(crate) fn build(&self) -> Option<u64> {
        self.lock().build
    }

    /// Another server has stopped the load.
    pub(crate) fn stop_by(&self, server: &str, reason: &str) {
        self.stop_as_told(stopped_by(server, reason));
    }

    /// Stops with this error of a server that tells all others.
    fn stop_as_told(&self, error: Error) {
        self.change(|inner| inner.was_told |= inner.stopped.is_none());
        self.stop(error);
    }

    /// The error of a request to another server, which may say that the load has stopped there.
    pub(crate) fn heard(&self, error: Error) -> Error {
        if error.message().contains(STOPPED) {
            self.stop_as_told(error.clone());
        }
        error
    }

    /// Whether another server has stopped the load, and has told all.
    pub(crate) fn was_told(&self) -> bool {
        self.lock().was_told
    }

    /// Waits until the load is stopped, at most this long.
    pub(crate) fn wait_for_stop(&self, time: Duration) {
        let is_running = |inner: &mut Inner| inner.stopped.is_none();
        drop(self.changed.wait_timeout_while(self.lock(), time, is_running));
    }

    /// Why the load was stopped, if it was.
    pub(crate) fn stopped(&self) -> Option<Error> {
        self.lock().stopped.clone()
    }

    /// Why the load was stopped, else `error`.
    pub(crate) fn reason(&self, error: Error) -> Error {
        self.lock().stopped.clone().unwrap_or(error)
    }

    /// Adds a part of the piece of a server.
    pub(crate) fn add_piece(
        &self,
        (round, from): (Round, usize),
        (offset, total): (u64, u64),
        bytes: &[u8],
    ) -> Result<()> {
        let wrong = || Error::corrupt("a piece of another server", "its parts do not fit");
        if total > PIECE_BYTES_MAX {
            return Err(wrong());
        }
        self.change(|inner| {
            if round == Round::Join && offset == 0 {
                // A server that was started again before all had begun.
                inner.pieces.remove(&(round, from));
            }
            let piece = inner.pieces.entry((round, from)).or_insert(Piece { bytes: Vec::new(), total });
            let end = offset.saturating_add(bytes.len() as u64);
            if piece.total != total || piece.bytes.len() as u64 != offset || end > total {
                return Err(wrong());
            }
            piece.bytes.extend_from_slice(bytes);
            Ok(())
        })
    }

    /// The servers below `count`, but the first one, whose piece is not complete.
    pub(crate) fn missing(&self, round: Round, count: usize) -> Vec<usize> {
        let inner = self.lock();
        let is_whole = |server: &usize| {
            inner.pieces.get(&(round, *server)).is_some_and(|piece| piece.bytes.len() as u64 == piece.total)
        };
        (1..count).filter(|server| !is_whole(server)).collect()
    }

    /// Waits for the pieces of all servers from 1 to `count`.
    pub(crate) fn collect(&self, round: Round, count: usize) -> Result<Vec<Vec<u8>>> {
        self.wait(|inner| {
            let is_whole = |server: usize| {
                inner
                    .pieces
                    .get(&(round, server))
                    .is_some_and(|piece| piece.bytes.len() as u64 == piece.total)
            };
            if !(1..count).all(is_whole) {
                return None;
            }
            (1..count).map(|server| Some(inner.pieces.remove(&(round, server))?.bytes)).collect()
        })
    }

    /// Publishes bytes for other servers.
    pub(crate) fn publish(&self, blob: Blob, bytes: Bytes) {
        self.change(|inner| _ = inner.blobs.insert(blob, bytes));
    }

    /// Waits for bytes that this server publishes.
    pub(crate) fn blob(&self, blob: Blob) -> Result<Bytes> {
        self.wait(|inner| inner.blobs.get(&blob).cloned())
    }

    /// Gives the terms of the first server, to which the others add theirs.
    pub(crate) fn set_terms(&self, builder: DictionaryBuilder) {
        self.change(|inner| inner.terms = Terms { builder: Some(builder), next: 1, cut: Vec::new() });
    }

    /// Adds terms of a server, when those of the servers before it are complete: so numbers do not depend on
    /// which server is faster.
    pub(crate) fn add_terms(
        &self,
        from: usize,
        bytes: &[u8],
        (is_last, is_cut): (bool, bool),
        numbers: &mut Vec<u32>,
    ) -> Result<()> {
        if is_cut {
            // The server waits for its turn with the last part.
            self.wait(|inner| (inner.terms.next == from).then(|| inner.terms.cut.extend_from_slice(bytes)))?;
            return Ok(());
        }
        let mut builder = self.wait(|inner| {
            let is_next = inner.terms.next == from;
            if is_next { inner.terms.builder.take() } else { None }
        })?;
        // Other terms wait for this call, but nothing else does.
        let mut all = self.change(|inner| std::mem::take(&mut inner.terms.cut));
        let bytes = if all.is_empty() {
            bytes
        } else {
            all.extend_from_slice(bytes);
            &all
        };
        let added = builder.intern_transferred(bytes, numbers);
        let is_complete = is_last && added.is_ok();
        self.change(|inner| {
            inner.terms.builder = Some(builder);
            inner.terms.next += usize::from(is_complete);
        });
        added
    }

    /// The texts of these vertices, when the terms of all servers are there.
    pub(crate) fn texts_of(&self, vertices: &FxHashMap<u64, usize>) -> Result<FxHashMap<u64, Box<str>>> {
        let builder = self.wait(|inner| inner.terms.builder.take())?;
        let mut texts = FxHashMap::default();
        builder.for_each_text(&mut |id, text| {
            if vertices.contains_key(&id.bits()) {
                texts.insert(id.bits(), text.into());
            }
        });
        self.change(|inner| inner.terms.builder = Some(builder));
        Ok(texts)
    }

    /// Waits for the terms of all `count` servers.
    pub(crate) fn take_terms(&self, count: usize) -> Result<DictionaryBuilder> {
        self.wait(|inner| {
            let is_complete = inner.terms.next == count;
            if is_complete { inner.terms.builder.take() } else { None }
        })
    }

    /// Begins to take halves.
    pub(crate) fn set_parts(&self, parts: PartBuilder<'static>) {
        self.change(|inner| inner.parts = Some(parts));
    }

    /// Adds halves for this server.
    pub(crate) fn add_halves(&self, bytes: &[u8]) -> Result<()> {
        let mut parts = self.wait(|inner| inner.parts.take())?;
        let added = parts.add_bytes(bytes);
        self.change(|inner| inner.parts = Some(parts));
        added
    }

    /// Takes all halves; no more come.
    pub(crate) fn take_parts(&self) -> Result<PartBuilder<'static>> {
        self.lock().parts.take().ok_or_else(|| Error::internal("halves are still being added"))
    }
}

/// The error of a load that another server has stopped.
fn stopped_by(server: &str, reason: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("server {server}{STOPPED}{reason}"))
        .with_hint("nothing has changed; correct it, and start the load at all servers again")
}
