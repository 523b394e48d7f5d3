//! What all requests share: the database, the limits, who waits for a turn, and what runs.
//!
//! # Shape
//! A request that works on the database holds a [`Running`]: a place among [`crate::Limits::requests`], for
//! heavy queries and traversals another among [`crate::Limits::heavy_requests`], and a token that the end of
//! the server cancels.
//! # Invariants
//! Light requests never wait for heavy ones: a request gives its first place back before it waits for a heavy
//! one.

use crate::admission::Admission;
use crate::auth::Users;
use crate::bodies::Bodies;
use crate::metrics::{Counted, Metrics};
use crate::options::{Limits, ServerOptions};
use crate::reply::{Failure, Outcome};
use crate::running::{Description, Entry, Registry};
use crate::threads::Threads;
use crate::throttle::party;
use hyper::StatusCode;
use hyper::header::RETRY_AFTER;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    pub(crate) admission: Arc<Admission>,
    pub(crate) threads: Arc<Threads>,
    places: Arc<Semaphore>,
    heavy_places: Arc<Semaphore>,
    sessions: Arc<Semaphore>,
    pub(crate) bodies: Arc<Bodies>,
    /// Connections by address.
    addresses: Arc<Mutex<HashMap<IpAddr, usize>>>,
    /// What runs.
    pub(crate) registry: Arc<Registry>,
    /// Memory is about to be given back to the system.
    pub(crate) releases: Arc<AtomicBool>,
    /// The server is to end.
    pub(crate) ending: Arc<AtomicBool>,
}

impl State {
    pub(crate) fn new(
        database: Database,
        options: ServerOptions,
        users: Users,
        metrics: Arc<Metrics>,
    ) -> Self {
        metrics.show(&database);
        let bodies = Arc::new(Bodies::new(bodies_bytes(&options.limits)));
        Self {
            database,
            users,
            metrics,
            admission: Arc::default(),
            threads: Arc::default(),
            places: Arc::new(Semaphore::new(options.limits.requests)),
            heavy_places: Arc::new(Semaphore::new(options.limits.heavy_requests)),
            sessions: Arc::new(Semaphore::new(options.limits.sessions)),
            bodies,
            addresses: Arc::default(),
            registry: Arc::default(),
            releases: Arc::default(),
            ending: Arc::default(),
            options,
        }
    }

    /// The same with other options and users: what runs, and what has been counted, goes on.
    pub(crate) fn successor(&self, options: ServerOptions, users: Users) -> Self {
        let before = &self.options.limits;
        resize(&self.places, before.requests, options.limits.requests);
        resize(&self.heavy_places, before.heavy_requests, options.limits.heavy_requests);
        resize(&self.sessions, before.sessions, options.limits.sessions);
        let bodies = match bodies_bytes(before) == bodies_bytes(&options.limits) {
            true => Arc::clone(&self.bodies),
            false => Arc::new(Bodies::new(bodies_bytes(&options.limits))),
        };
        Self {
            database: self.database.clone(),
            options,
            users,
            metrics: Arc::clone(&self.metrics),
            admission: Arc::clone(&self.admission),
            threads: Arc::clone(&self.threads),
            places: Arc::clone(&self.places),
            heavy_places: Arc::clone(&self.heavy_places),
            sessions: Arc::clone(&self.sessions),
            bodies,
            addresses: Arc::clone(&self.addresses),
            registry: Arc::clone(&self.registry),
            releases: Arc::clone(&self.releases),
            ending: Arc::clone(&self.ending),
        }
    }

    /// A place to run in, after a wait if need be. Cancelled by the end of the server, and by a request that
    /// stops it (`running`).
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

    /// Counts a connection of an address; `None`: the address has as many as it may.
    pub(crate) fn connect(&self, from: IpAddr) -> Option<Connected> {
        let party = party(from);
        let mut addresses = lock(&self.addresses);
        let count = addresses.entry(party).or_default();
        if *count >= self.options.limits.connections_per_address {
            return None;
        }
        *count += 1;
        Some(Connected { party, addresses: Arc::clone(&self.addresses) })
    }

    /// Waits until no request runs.
    pub(crate) async fn idle(&self) {
        let limits = &self.options.limits;
        for (places, all) in [(&self.heavy_places, limits.heavy_requests), (&self.places, limits.requests)] {
            // An error means that the semaphore is closed: no request can run.
            let _ = places.acquire_many(u32::try_from(all).unwrap_or(u32::MAX)).await;
        }
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

/// The memory of all bodies: one must always fit.
fn bodies_bytes(limits: &Limits) -> usize {
    limits.bodies_bytes.max(limits.document_bytes).max(limits.text_bytes)
}

/// Makes so many places of as many others. Those that are taken now go when they are given back.
fn resize(places: &Arc<Semaphore>, from: usize, to: usize) {
    places.add_permits(to.saturating_sub(from));
    let fewer = u32::try_from(from.saturating_sub(to)).unwrap_or(u32::MAX);
    let places = Arc::clone(places);
    if fewer > 0 {
        tokio::spawn(async move {
            if let Ok(permits) = places.acquire_many_owned(fewer).await {
                permits.forget();
            }
        });
    }
}

pub(crate) fn busy(message: &str, seconds: u64) -> Failure {
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, message)
        .hint("try again later")
        .header(RETRY_AFTER, seconds.max(1).to_string())
}

/// An open connection of an address.
#[derive(Debug)]
pub(crate) struct Connected {
    party: IpAddr,
    addresses: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Drop for Connected {
    fn drop(&mut self) {
        let mut addresses = lock(&self.addresses);
        if let Some(count) = addresses.get_mut(&self.party) {
            *count -= 1;
            if *count == 0 {
                addresses.remove(&self.party);
            }
        }
    }
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
