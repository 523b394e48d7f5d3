//! Runs a request that is a transaction of its own.
//!
//! # Shape
//! On the fast path, on a light thread, or among heavy ones (`crate::admission`). A request that changes the
//! graph runs at another server if this one does not take changes (`remote`).

use super::job::{Job, SessionHost};
use super::remote;
use super::run::{self, Rerouted};
use crate::admission::Tier;
use crate::worker_threads;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Runs a job, and sends its response.
pub(super) async fn run<H: SessionHost>(host: Arc<H>, mut job: Job) {
    let state = Arc::clone(host.state());
    if !job.needs_worker_to_parse() {
        if let Err(error) = job.prepare(&state, &host.access()) {
            return match job.message {
                Some(_) if error.is_elsewhere() => remote::run_single(&*host, job).await,
                _ => host.refuse_boxed(job, error).await,
            };
        }
        if let Some(outcome) = run::run_on_fast_path(&state, &mut job) {
            return run::send_outcome(job.response, outcome, &state).await;
        }
    }
    let mut running = match state.acquire_permit(job.describe(&host.access())).await {
        Ok(running) => running,
        Err(failure) => return job.response.fail(failure.into()).await,
    };
    let mut guard = running.guard();
    job.progress = Some(running.entry.progress.clone());
    let mut rerouted;
    if job.is_heavy(&state) {
        rerouted = Some(Rerouted::TooHeavy(job));
    } else {
        let worker_host = Arc::clone(&host);
        let light = worker_threads::light(&state.threads, move |sender: oneshot::Sender<_>| {
            let access = worker_host.access();
            let rerouted =
                run::run_sessionless((worker_host.state(), &access), job, &running.token, Tier::Light);
            let _ = sender.send((rerouted, running));
        });
        // After a panic, dropping its reply has sent the error.
        let Ok((after, still)) = light.await else { return guard.disarm() };
        (rerouted, running) = (after, still);
    }
    if let Some(Rerouted::TooHeavy(job)) = rerouted {
        if let Err(failure) = state.acquire_heavy_permit(&mut running).await {
            guard.disarm();
            return job.response.fail(failure.into()).await;
        }
        let worker_host = Arc::clone(&host);
        let work = move |sender: oneshot::Sender<_>| {
            let access = worker_host.access();
            let rerouted =
                run::run_sessionless((worker_host.state(), &access), job, &running.token, Tier::Heavy);
            drop(running);
            let _ = sender.send(rerouted);
        };
        // Without a thread, or after a panic, dropping its reply has sent the error.
        rerouted = worker_threads::heavy(&state.threads, work).await.ok().flatten();
    } else {
        drop(running);
    }
    guard.disarm();
    match rerouted {
        Some(Rerouted::Challenge(job)) => host.queue_until_login_boxed(job).await,
        Some(Rerouted::Elsewhere(job)) => remote::run_single(&*host, job).await,
        // A heavy job is not too heavy for its tier.
        Some(Rerouted::TooHeavy(_)) | None => {}
    }
}
