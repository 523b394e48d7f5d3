//! Memory accounting of request bodies and messages of all clients, from their first byte until the end of
//! their request, and of results that wait for another server of a cluster.
//!
//! # Invariants
//! Permits cover received bytes, never announced ones: an announcement is free, and could lock out others. No
//! body that holds permits waits for more without a timeout, so a deadlock between bodies resolves itself.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes per semaphore permit.
const UNIT_BYTES: usize = 1 << 10;

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct BodyMemory(Arc<Semaphore>);

impl BodyMemory {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes_max.div_ceil(UNIT_BYTES).min(Semaphore::MAX_PERMITS))))
    }

    /// An empty share.
    pub(crate) fn reserve(&self) -> BodyReservation {
        BodyReservation { of: Arc::clone(&self.0), permit: None }
    }
}

/// The share of one body or message, released on drop.
#[derive(Debug)]
pub(crate) struct BodyReservation {
    of: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
}

impl BodyReservation {
    /// Grows the share to this many bytes, if they are available at once.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let missing = self.missing(bytes);
        if missing == 0 {
            return true;
        }
        let more = Arc::clone(&self.of).try_acquire_many_owned(missing);
        more.map(|more| self.add(more)).is_ok()
    }

    /// [`BodyReservation::grow`], waiting for up to `time`.
    pub(crate) async fn grow_within(&mut self, bytes: usize, time: Duration) -> bool {
        let more = Arc::clone(&self.of).acquire_many_owned(self.missing(bytes));
        match tokio::time::timeout(time, more).await {
            Ok(Ok(more)) => {
                self.add(more);
                true
            }
            _ => false,
        }
    }

    /// Units missing for this many bytes.
    fn missing(&self, bytes: usize) -> u32 {
        let units = self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        u32::try_from(bytes.div_ceil(UNIT_BYTES).saturating_sub(units)).unwrap_or(u32::MAX)
    }

    fn add(&mut self, more: OwnedSemaphorePermit) {
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            none => *none = Some(more),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_return_their_permits_on_drop() {
        let bodies = BodyMemory::new(10 << 10);
        let (mut a, mut b) = (bodies.reserve(), bodies.reserve());
        assert!(a.grow(1) && a.grow(1024) && a.grow(6 << 10) && a.grow(5 << 10));
        assert!(b.grow(4 << 10) && !b.grow((4 << 10) + 1));
        assert_eq!(bodies.0.available_permits(), 0);
        drop(a);
        assert!(b.grow(10 << 10) && !b.grow((10 << 10) + 1));
        drop(b);
        assert_eq!(bodies.0.available_permits(), 10);
    }
}
