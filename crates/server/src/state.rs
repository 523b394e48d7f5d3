//! What all requests share: the database, the limits, who waits for a turn, and what runs.
//!
//! # Shape
//! A request that works on the database holds a [`Running`]: a place among [`crate::Limits::requests`], for heavy
//! queries and traversals another among [`crate::Limits::heavy_requests`], and a token that the end of the server cancels.
//! # Invariants
//! Light requests never wait for heavy ones: a request gives its first place back before it waits for a heavy one.

use crate::auth::Users;
use crate::gremlin::Weights;
use crate::metrics::{Gauge, Metrics};
use crate::options::ServerOptions;
use crate::reply::{Failure, Outcome};
use crate::swift::Swift;
use hyper::StatusCode;
use hyper::header::RETRY_AFTER;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use vervet::{CancelToken, Database};

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) database: Database,
    pub(crate) options: ServerOptions,
    pub(crate) users: Users,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) swift: Swift,
    pub(crate) weights: Weights,
    places: Arc<Semaphore>,
    heavy_places: Arc<Semaphore>,
    sessions: Arc<Semaphore>,
    tokens: Arc<Mutex<HashMap<u64, CancelToken>>>,
    numbers: AtomicU64,
    /// Memory is about to be given back to the system.
    pub(crate) releases: AtomicBool,
    /// The server is to end.
    pub(crate) ending: AtomicBool,
}

impl State {
    pub(crate) fn new(
        database: Database,
        options: ServerOptions,
        users: Users,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            database,
            users,
            metrics,
            swift: Swift::default(),
            weights: Weights::default(),
            places: Arc::new(Semaphore::new(options.limits.requests)),
            heavy_places: Arc::new(Semaphore::new(options.limits.heavy_requests)),
            sessions: Arc::new(Semaphore::new(options.limits.sessions)),
            tokens: Arc::default(),
            numbers: AtomicU64::new(0),
            releases: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            options,
        }
    }

    /// A place to run in, after a wait if need be.
    ///
    /// # Errors
    /// 503 if too many wait, or it takes too long.
    pub(crate) async fn place(&self) -> Outcome<Running> {
        let place = self.acquire(&self.places).await?;
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let token = CancelToken::new();
        lock(&self.tokens).insert(number, token.clone());
        if self.ending.load(Ordering::Acquire) {
            token.cancel();
        }
        Ok(Running {
            token,
            number,
            tokens: Arc::clone(&self.tokens),
            place: Some(place),
            heavy: None,
            _gauge: Gauge::new(&self.metrics, |metrics| &metrics.running),
        })
    }

    /// Makes a running request one that may be heavy.
    ///
    /// # Errors
    /// As [`State::place`].
    pub(crate) async fn heavy_place(&self, running: &mut Running) -> Outcome<()> {
        running.place = None;
        let place = self.acquire(&self.heavy_places).await?;
        running.heavy = Some((place, Gauge::new(&self.metrics, |metrics| &metrics.heavy)));
        Ok(())
    }

    /// A place for a session of Gremlin; `None`: there are as many as there may be.
    pub(crate) fn session_place(&self) -> Option<(OwnedSemaphorePermit, Gauge)> {
        let place = Arc::clone(&self.sessions).try_acquire_owned().ok()?;
        Some((place, Gauge::new(&self.metrics, |metrics| &metrics.sessions)))
    }

    /// Waits until no heavy request runs.
    pub(crate) async fn no_heavy(&self) {
        let all = u32::try_from(self.options.limits.heavy_requests).unwrap_or(u32::MAX);
        // An error says that nobody gets a place any more.
        let _ = self.heavy_places.acquire_many(all).await;
    }

    async fn acquire(&self, places: &Arc<Semaphore>) -> Outcome<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(places).try_acquire_owned() {
            return Ok(place);
        }
        let limits = &self.options.limits;
        let waiting = self.metrics.waiting.load(Ordering::Relaxed);
        if usize::try_from(waiting).is_ok_and(|waiting| waiting >= limits.queue) {
            return Err(busy("too many requests wait already", limits.queue_timeout.as_secs()));
        }
        let _waiting = Gauge::new(&self.metrics, |metrics| &metrics.waiting);
        match tokio::time::timeout(limits.queue_timeout, Arc::clone(places).acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(busy("too many requests are running", limits.queue_timeout.as_secs())),
        }
    }

    /// Ends everything that runs, and what begins from now on.
    pub(crate) fn cancel_all(&self) {
        self.ending.store(true, Ordering::Release);
        for token in lock(&self.tokens).values() {
            token.cancel();
        }
    }
}

fn busy(message: &str, seconds: u64) -> Failure {
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, message)
        .hint("try again later")
        .header(RETRY_AFTER, seconds.max(1).to_string())
}

/// A request that works on the database.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) token: CancelToken,
    number: u64,
    tokens: Arc<Mutex<HashMap<u64, CancelToken>>>,
    place: Option<OwnedSemaphorePermit>,
    heavy: Option<(OwnedSemaphorePermit, Gauge)>,
    _gauge: Gauge,
}

impl Running {
    /// A guard that cancels this request unless it is disarmed.
    pub(crate) fn guard(&self) -> CancelOnDrop {
        CancelOnDrop(Some(self.token.clone()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.tokens).remove(&self.number);
    }
}

/// Cancels what a client has asked for when nobody waits for it any more.
#[derive(Debug)]
pub(crate) struct CancelOnDrop(Option<CancelToken>);

impl CancelOnDrop {
    /// All is done; there is nothing left to cancel.
    pub(crate) fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(token) = &self.0 {
            token.cancel();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
