//! State shared by all requests: the database, the options, permits, and the registry of running requests.
//!
//! # Shape
//! A request that works on the database holds a [`RunningRequest`]: a permit of [`crate::Limits::requests`],
//! or, if it is heavy, of [`crate::Limits::heavy_requests`], and a token that shutdown cancels.
//! # Invariants
//! Light requests never wait for heavy ones: a request returns its light permit before it waits for a heavy
//! one.

use crate::admission::Admission;
use crate::cancel::{CHECK_INTERVAL, CancelOnDrop};
use crate::commit_waits::CommitWaits;
use crate::gremlin::transactions::ForwardedTransactions;
use crate::http::reply::{Failure, Outcome};
use crate::network::body_memory::BodyMemory;
use crate::network::io_threads::TaskSpawner;
use crate::operations::feed_streams::FeedStreams;
use crate::operations::metrics::{GaugeGuard, Metrics};
use crate::operations::readiness::Readiness;
use crate::operations::running::{RegistryEntry, RequestDescription, RequestRegistry, STOPPED};
use crate::options::{Limits, ServerOptions};
use crate::security::auth::Users;
use crate::security::throttle::client_network;
use crate::worker_threads::{WorkerThreads, lower_priority};
use hyper::StatusCode;
use hyper::header::RETRY_AFTER;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use vervet::{CancelToken, Database};
use vervet_model::lock;

/// Most requests of transactions at another server at a time: fewer than the blocking threads of an I/O
/// thread, which check passwords, too.
const REMOTE_MAX: usize = 48;

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) database: Database,
    pub(crate) options: ServerOptions,
    pub(crate) users: Users,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) threads: Arc<WorkerThreads>,
    pub(crate) commit_waits: Arc<CommitWaits>,
    permits: Arc<Semaphore>,
    heavy_permits: Arc<Semaphore>,
    session_permits: Arc<Semaphore>,
    /// Transactions of clients of other servers.
    pub(crate) forwarded: Arc<ForwardedTransactions>,
    /// Of requests of transactions at another server, each of which has a blocking thread.
    pub(crate) remote_permits: Arc<Semaphore>,
    /// The I/O threads, once they run.
    pub(crate) tasks: Arc<OnceLock<TaskSpawner>>,
    pub(crate) feed_streams: Arc<FeedStreams>,
    pub(crate) body_memory: Arc<BodyMemory>,
    /// Open connections by client network.
    addresses: Arc<Mutex<HashMap<IpAddr, usize>>>,
    /// The running requests.
    pub(crate) registry: Arc<RequestRegistry>,
    /// The readiness as of the last probe.
    pub(crate) readiness: Arc<Readiness>,
    /// Whether the server is shutting down.
    pub(crate) ending: Arc<AtomicBool>,
}

impl State {
    pub(crate) fn new(
        database: Database,
        options: ServerOptions,
        users: Users,
        metrics: Arc<Metrics>,
    ) -> Self {
        metrics.register_database(&database, options.cluster.as_ref());
        if let Some(cluster) = &options.cluster {
            cluster.on_heavy_task(lower_priority);
            metrics.register_cluster(cluster);
        }
        let body_memory = Arc::new(BodyMemory::new(body_memory_bytes(&options.limits)));
        Self {
            feed_streams: FeedStreams::new(&database, options.limits.change_streams),
            database,
            users,
            metrics,
            admission: match options.cluster {
                Some(_) => Arc::new(Admission::without_fast_path()),
                None => Arc::default(),
            },
            threads: Arc::default(),
            commit_waits: Arc::default(),
            permits: Arc::new(Semaphore::new(options.limits.requests)),
            heavy_permits: Arc::new(Semaphore::new(options.limits.heavy_requests)),
            session_permits: Arc::new(Semaphore::new(options.limits.sessions)),
            body_memory,
            forwarded: Arc::default(),
            tasks: Arc::default(),
            remote_permits: Arc::new(Semaphore::new(REMOTE_MAX)),
            addresses: Arc::default(),
            registry: Arc::default(),
            readiness: Arc::default(),
            ending: Arc::default(),
            options,
        }
    }

    /// The state after a reload. It shares running requests, permits and metrics with `self`.
    pub(crate) fn with_options(&self, mut options: ServerOptions, users: Users) -> Self {
        // A configuration does not name it, and a server stays a part of its cluster.
        options.cluster = self.options.cluster.clone();
        let before = &self.options.limits;
        resize(&self.permits, before.requests, options.limits.requests);
        resize(&self.heavy_permits, before.heavy_requests, options.limits.heavy_requests);
        resize(&self.session_permits, before.sessions, options.limits.sessions);
        let streams = &self.feed_streams.permits;
        resize(streams, before.change_streams, options.limits.change_streams);
        let body_memory = match body_memory_bytes(before) == body_memory_bytes(&options.limits) {
            true => Arc::clone(&self.body_memory),
            false => Arc::new(BodyMemory::new(body_memory_bytes(&options.limits))),
        };
        Self {
            database: self.database.clone(),
            options,
            users,
            metrics: Arc::clone(&self.metrics),
            admission: Arc::clone(&self.admission),
            threads: Arc::clone(&self.threads),
            commit_waits: Arc::clone(&self.commit_waits),
            permits: Arc::clone(&self.permits),
            heavy_permits: Arc::clone(&self.heavy_permits),
            session_permits: Arc::clone(&self.session_permits),
            forwarded: Arc::clone(&self.forwarded),
            tasks: Arc::clone(&self.tasks),
            remote_permits: Arc::clone(&self.remote_permits),
            feed_streams: Arc::clone(&self.feed_streams),
            body_memory,
            addresses: Arc::clone(&self.addresses),
            registry: Arc::clone(&self.registry),
            readiness: Arc::clone(&self.readiness),
            ending: Arc::clone(&self.ending),
        }
    }

    /// Acquires a light permit, waiting if necessary, and registers the request. Its token is cancelled by
    /// shutdown and by a stop request (`running`).
    ///
    /// # Errors
    /// 503 if the queue is full, or on timeout.
    pub(crate) async fn acquire_permit(&self, description: RequestDescription) -> Outcome<RunningRequest> {
        let permit = self.acquire(&self.permits).await?;
        let mut running = self.register_remote(description);
        (running.permit, running.slow) = (Some(permit), self.options.slow_query);
        Ok(running)
    }

    /// Registers a request that another server of the cluster executes, as [`State::acquire_permit`] does,
    /// but without a permit: the other server has one for it, and logs it if it is slow.
    pub(crate) fn register_remote(&self, description: RequestDescription) -> RunningRequest {
        let entry = self.registry.add(description);
        if self.ending.load(Ordering::Acquire) {
            entry.token.cancel();
        }
        RunningRequest {
            token: entry.token.clone(),
            entry,
            registry: Arc::clone(&self.registry),
            slow: None,
            permit: None,
            heavy: None,
            _counted: GaugeGuard::new(&self.metrics.running),
        }
    }

    /// Exchanges the permit of a request for a heavy one.
    ///
    /// # Errors
    /// As [`State::acquire_permit`].
    pub(crate) async fn acquire_heavy_permit(&self, running: &mut RunningRequest) -> Outcome<()> {
        running.permit = None;
        let permit = self.acquire(&self.heavy_permits).await?;
        running.entry.set_heavy();
        running.heavy = Some((permit, GaugeGuard::new(&self.metrics.heavy)));
        Ok(())
    }

    /// A permit for a Gremlin session; `None` at the limit.
    pub(crate) fn acquire_session_permit(&self) -> Option<(OwnedSemaphorePermit, GaugeGuard)> {
        let permit = Arc::clone(&self.session_permits).try_acquire_owned().ok()?;
        Some((permit, GaugeGuard::new(&self.metrics.sessions)))
    }

    /// Spawns a task on an I/O thread.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.tasks.get().expect("requests come once the I/O threads run").spawn(task)
    }

    /// Counts a connection of a client network; `None` at its limit.
    pub(crate) fn acquire_connection_permit(&self, from: IpAddr) -> Option<ConnectionPermit> {
        let client_network = client_network(from);
        let mut addresses = lock(&self.addresses);
        let count = addresses.entry(client_network).or_default();
        if *count >= self.options.limits.connections_per_address {
            return None;
        }
        *count += 1;
        Some(ConnectionPermit { client_network, addresses: Arc::clone(&self.addresses) })
    }

    /// Waits until no request runs.
    pub(crate) async fn wait_until_idle(&self) {
        let limits = &self.options.limits;
        for (permits, all) in [(&self.heavy_permits, limits.heavy_requests), (&self.permits, limits.requests)]
        {
            // An error means that the semaphore is closed, so no request runs.
            let _ = permits.acquire_many(u32::try_from(all).unwrap_or(u32::MAX)).await;
        }
        // Those at other servers have no permits.
        while !self.registry.is_empty() {
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    async fn acquire(&self, permits: &Arc<Semaphore>) -> Outcome<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
            return Ok(permit);
        }
        let limits = &self.options.limits;
        let waiting = self.metrics.waiting.get();
        if usize::try_from(waiting).is_ok_and(|waiting| waiting >= limits.queue) {
            return Err(overloaded("too many requests are waiting", limits.queue_timeout.as_secs()));
        }
        let _waiting = GaugeGuard::new(&self.metrics.waiting);
        match tokio::time::timeout(limits.queue_timeout, Arc::clone(permits).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(overloaded("too many requests are running", limits.queue_timeout.as_secs())),
        }
    }

    /// Cancels all running requests, and those that start from now on.
    pub(crate) fn cancel_all(&self) {
        self.ending.store(true, Ordering::Release);
        self.registry.cancel_all();
    }
}

/// The memory limit for all bodies: at least that of one body.
fn body_memory_bytes(limits: &Limits) -> usize {
    limits.bodies_bytes.max(limits.document_bytes).max(limits.text_bytes)
}

/// Changes the number of permits. Permits in use are removed when they are returned.
fn resize(permits: &Arc<Semaphore>, from: usize, to: usize) {
    permits.add_permits(to.saturating_sub(from));
    let fewer = u32::try_from(from.saturating_sub(to)).unwrap_or(u32::MAX);
    let permits = Arc::clone(permits);
    if fewer > 0 {
        tokio::spawn(async move {
            if let Ok(permits) = permits.acquire_many_owned(fewer).await {
                permits.forget();
            }
        });
    }
}

pub(crate) fn overloaded(message: &str, seconds: u64) -> Failure {
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, message)
        .hint("try again later")
        .header(RETRY_AFTER, seconds.max(1).to_string())
}

/// Counts an open connection during its lifetime.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    client_network: IpAddr,
    addresses: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut addresses = lock(&self.addresses);
        if let Some(count) = addresses.get_mut(&self.client_network) {
            *count -= 1;
            if *count == 0 {
                addresses.remove(&self.client_network);
            }
        }
    }
}

/// A running request, with its permits.
#[derive(Debug)]
pub(crate) struct RunningRequest {
    pub(crate) token: CancelToken,
    pub(crate) entry: Arc<RegistryEntry>,
    registry: Arc<RequestRegistry>,
    /// The threshold of the slow-query log; `None`: the request is not logged.
    slow: Option<Duration>,
    permit: Option<OwnedSemaphorePermit>,
    heavy: Option<(OwnedSemaphorePermit, GaugeGuard)>,
    _counted: GaugeGuard,
}

impl RunningRequest {
    /// A guard that cancels this request on drop.
    pub(crate) fn guard(&self) -> CancelOnDrop {
        CancelOnDrop::new(self.token.clone())
    }

    /// Why the request was cancelled; `None`: it was not.
    pub(crate) fn cancellation(&self) -> Option<&'static str> {
        let reason = if self.entry.is_stopped() { STOPPED } else { "this server is ending" };
        self.token.is_cancelled().then_some(reason)
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.registry.remove(&self.entry, self.slow);
    }
}
