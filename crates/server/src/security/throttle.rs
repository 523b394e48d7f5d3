//! Throttling of password guesses by client address.
//!
//! # Shape
//! An address verifies one password at a time; [`WAITING_MAX`] more may wait for that, further ones are
//! refused. After [`FREE_FAILURES`] wrong passwords each further one is delayed, twice as long each time, up
//! to [`DELAY_MAX`]. The count resets after [`FAILURES_EXPIRE_AFTER`] without a failure. So a guessing
//! address gets some fifteen guesses a minute, and others do not wait for it: it occupies at most one of the
//! server's verification permits.
//! # Invariants
//! Wrong passwords, however many, never delay right passwords of other addresses. IPv6 addresses count by
//! their first 64 bits, since one party owns such a network.
//! # Not here
//! Account lockout, which would let attackers lock users out. Addresses behind a proxy, which all share the
//! proxy's.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use vervet_model::lock;

/// Wrong passwords without a delay: people mistype.
const FREE_FAILURES: u32 = 3;

/// The delay after the first failure beyond them; it doubles with each further one.
const DELAY_FIRST: Duration = Duration::from_millis(250);

/// The maximum delay.
const DELAY_MAX: Duration = Duration::from_secs(4);

/// When failures are forgotten.
const FAILURES_EXPIRE_AFTER: Duration = Duration::from_secs(60);

/// The maximum number of waiting logins of one address.
const WAITING_MAX: usize = 16;

/// The maximum number of addresses in the table; beyond it, idle ones are evicted.
const ADDRESSES_MAX: usize = 10_000;

/// The part of an address that identifies one party.
pub(crate) fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64))),
        address => address,
    }
}

/// See the header of this file.
#[derive(Debug, Default)]
pub(crate) struct Throttle(Mutex<HashMap<IpAddr, Arc<Address>>>);

#[derive(Debug)]
struct Address {
    permits: Arc<Semaphore>,
    failures: Mutex<Failures>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    count: u32,
    last: Option<Instant>,
}

impl Failures {
    fn has_expired(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| now.duration_since(last) >= FAILURES_EXPIRE_AFTER)
    }

    /// The delay before the next password.
    fn delay(&self, now: Instant) -> Duration {
        let Some(last) = self.last else { return Duration::ZERO };
        let beyond = match self.count.checked_sub(FREE_FAILURES) {
            Some(beyond) if !self.has_expired(now) => beyond,
            _ => return Duration::ZERO,
        };
        let delay = DELAY_FIRST.saturating_mul(1 << beyond.min(16)).min(DELAY_MAX);
        delay.saturating_sub(now.duration_since(last))
    }

    fn add(&mut self, now: Instant) {
        let before = if self.has_expired(now) { 0 } else { self.count };
        *self = Self { count: before.saturating_add(1), last: Some(now) };
    }
}

/// The permit to verify one password of an address.
#[derive(Debug)]
pub(crate) struct VerificationPermit {
    address: Arc<Address>,
    _permit: OwnedSemaphorePermit,
}

impl VerificationPermit {
    /// Records a wrong password.
    pub(crate) fn failed(self) {
        lock(&self.address.failures).add(Instant::now());
    }

    /// Records a right password.
    pub(crate) fn succeeded(self) {
        *lock(&self.address.failures) = Failures::default();
    }
}

impl Throttle {
    /// Waits for the turn of an address; `None`: too many of its passwords are waiting.
    pub(crate) async fn acquire(&self, from: IpAddr) -> Option<VerificationPermit> {
        let (address, permit) = {
            let mut addresses = lock(&self.0);
            if addresses.len() >= ADDRESSES_MAX {
                let now = Instant::now();
                addresses.retain(|_, address| address.is_busy() || !lock(&address.failures).has_expired(now));
            }
            if addresses.len() >= ADDRESSES_MAX {
                addresses.retain(|_, address| address.is_busy());
            }
            let address = Arc::clone(addresses.entry(client_network(from)).or_insert_with(Address::new));
            // The map, each waiting or running login, and this function hold references to an address.
            if Arc::strong_count(&address) >= WAITING_MAX + 3 {
                return None;
            }
            (Arc::clone(&address), Arc::clone(&address.permits).acquire_owned())
        };
        let permit = permit.await.ok()?;
        let delay = lock(&address.failures).delay(Instant::now());
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        Some(VerificationPermit { address, _permit: permit })
    }
}

impl Address {
    fn new() -> Arc<Self> {
        Arc::new(Self { permits: Arc::new(Semaphore::new(1)), failures: Mutex::default() })
    }

    /// Whether a password of this address waits or is being verified.
    fn is_busy(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s6_delays_double_and_expire() {
        let begin = Instant::now();
        let mut failures = Failures::default();
        let mut delays = Vec::new();
        for _ in 0..10 {
            delays.push(failures.delay(begin).as_millis());
            failures.add(begin);
        }
        assert_eq!(delays, [0, 0, 0, 250, 500, 1000, 2000, 4000, 4000, 4000]);
        assert_eq!(failures.delay(begin + Duration::from_secs(3)), Duration::from_secs(1));
        assert_eq!(failures.delay(begin + Duration::from_secs(5)), Duration::ZERO);
        failures.add(begin + FAILURES_EXPIRE_AFTER);
        assert_eq!(failures.count, 1, "the others are forgotten");
    }

    #[test]
    fn ipv6_addresses_count_by_network() {
        let of = |text: &str| client_network(text.parse().expect("an address"));
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2::1"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }

    #[tokio::test]
    async fn s6_an_address_has_one_permit_and_others_do_not_wait() {
        let throttle = Arc::new(Throttle::default());
        let [bad, good] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse::<IpAddr>().expect("an address"));
        let first = throttle.acquire(bad).await.expect("the first");
        let waiting: Vec<_> = (0..WAITING_MAX + 4)
            .map(|_| {
                let throttle = Arc::clone(&throttle);
                tokio::spawn(async move { throttle.acquire(bad).await.is_some() })
            })
            .collect();
        // All tasks share one thread, so they have run as far as they can.
        tokio::task::yield_now().await;
        assert_eq!(waiting.iter().filter(|task| task.is_finished()).count(), 4, "these were refused");
        throttle.acquire(good).await.expect("another address does not wait").succeeded();
        first.succeeded();
        for (at, task) in waiting.into_iter().enumerate() {
            assert_eq!(task.await.expect("it ends"), at < WAITING_MAX);
        }
    }

    #[tokio::test]
    async fn addresses_are_evicted_beyond_the_limit() {
        let throttle = Throttle::default();
        let permit = throttle.acquire("10.0.0.1".parse().expect("an address")).await.expect("a turn");
        for number in 0..2 * u32::try_from(ADDRESSES_MAX).expect("it is small") {
            let address = IpAddr::V4((number + (11 << 24)).into());
            throttle.acquire(address).await.expect("a turn").failed();
        }
        assert!(lock(&throttle.0).len() <= ADDRESSES_MAX);
        assert!(lock(&throttle.0).contains_key(&"10.0.0.1".parse().expect("an address")));
        permit.failed();
    }
}
