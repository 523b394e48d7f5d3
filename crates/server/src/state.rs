//! What all requests share: the database, the limits, who waits for a turn, and what runs.
//!
//! # Shape
//! A request that works on the database holds a [`Running`]: a place among [`crate::Limits::requests`], for heavy
//! queries and traversals another among [`crate::Limits::heavy_requests`], and a token that the end of the server cancels.
//! # Invariants
//! Light requests never wait for heavy ones: a request gives its first place back before it waits for a heavy one.

use crate::admission::Admission;
use crate::auth::Users;
use crate::metrics::{Counted, Metrics};
use crate::options::ServerOptions;
use crate::reply::{Failure, Outcome};
use crate::running::{Description, Entry, Registry};
use hyper::StatusCode;
use hyper::header::RETRY_AFTER;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use vervet::{CancelToken, Database};

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) database: Database,
    pub(crate) options: ServerOptions,
    pub(crate) users: Users,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) admission: Admission,
    places: Arc<Semaphore>,
    heavy_places: Arc<Semaphore>,
    sessions: Arc<Semaphore>,
    /// What runs.
    pub(crate) registry: Arc<Registry>,
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
        metrics.show(&database);
        Self {
            database,
            users,
            metrics,
            admission: Admission::default(),
            places: Arc::new(Semaphore::new(options.limits.requests)),
            heavy_places: Arc::new(Semaphore::new(options.limits.heavy_requests)),
            sessions: Arc::new(Semaphore::new(options.limits.sessions)),
            registry: Arc::default(),
            releases: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            options,
        }
    }

    /// A place to run in, after a wait if need be. Cancelled by the end of the server, and by whoever stops it (`running`).
    ///
    /// # Errors
    /// 503 if too many wait, or it takes too long.
    pub(crate) async fn place(&self, description: Description) -> Outcome<Running> {
        let place = self.acquire(&self.places).await?;
        let entry = self.registry.add(description);
        if self.ending.load(Ordering::Acquire) {
            entry.token.cancel();
        }
        Ok(Running {
            token: entry.token.clone(),
            entry,
            registry: Arc::clone(&self.registry),
            slow: self.options.slow_query,
            place: Some(place),
            heavy: None,
            _counted: Counted::new(&self.metrics.running),
        })
    }

    /// Makes a running request one that may be heavy.
    ///
    /// # Errors
    /// As [`State::place`].
    pub(crate) async fn heavy_place(&self, running: &mut Running) -> Outcome<()> {
        running.place = None;
        let place = self.acquire(&self.heavy_places).await?;
        running.entry.set_heavy();
        running.heavy = Some((place, Counted::new(&self.metrics.heavy)));
        Ok(())
    }

    /// A place for a session of Gremlin; `None`: there are as many as there may be.
    pub(crate) fn session_place(&self) -> Option<(OwnedSemaphorePermit, Counted)> {
        let place = Arc::clone(&self.sessions).try_acquire_owned().ok()?;
        Some((place, Counted::new(&self.metrics.sessions)))
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
        let waiting = self.metrics.waiting.get();
        if usize::try_from(waiting).is_ok_and(|waiting| waiting >= limits.queue) {
            return Err(busy("too many requests wait already", limits.queue_timeout.as_secs()));
        }
        let _waiting = Counted::new(&self.metrics.waiting);
        match tokio::time::timeout(limits.queue_timeout, Arc::clone(places).acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(busy("too many requests are running", limits.queue_timeout.as_secs())),
        }
    }

    /// Ends everything that runs, and what begins from now on.
    pub(crate) fn cancel_all(&self) {
        self.ending.store(true, Ordering::Release);
        self.registry.cancel_all();
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
    pub(crate) entry: Arc<Entry>,
    registry: Arc<Registry>,
    /// Requests that take longer are logged.
    slow: Option<Duration>,
    place: Option<OwnedSemaphorePermit>,
    heavy: Option<(OwnedSemaphorePermit, Counted)>,
    _counted: Counted,
}

impl Running {
    /// A guard that cancels this request unless it is disarmed.
    pub(crate) fn guard(&self) -> CancelOnDrop {
        CancelOnDrop(Some(self.token.clone()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.registry.remove(&self.entry, self.slow);
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
