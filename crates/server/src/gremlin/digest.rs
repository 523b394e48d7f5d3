//! Digests of results: whether two servers have given a client the same.
//!
//! # Shape
//! The digest of a response is the number of its results, and the sum of their hashes modulo 2^128. A second
//! number depends on the order of the results as well; it counts for requests that order them.
//! # Cost
//! A SHA-256 of each result, only in sessions at a server of a cluster that does not take changes.

use sha2::{Digest as _, Sha256};
use std::sync::{Arc, Mutex};
use vervet_model::lock;

/// Factor of the ordered number: odd, so no result loses its influence.
const FACTOR: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;

/// See the header of this file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Digest {
    pub(super) count: u64,
    pub(super) sum: u128,
    pub(super) ordered: u128,
}

impl Digest {
    fn add(&mut self, result: &[u8]) {
        let hash: [u8; 32] = Sha256::digest(result).into();
        let (half, _) = hash.split_first_chunk::<16>().expect("32 bytes have 16");
        let hash = u128::from_le_bytes(*half);
        self.count = self.count.wrapping_add(1);
        self.sum = self.sum.wrapping_add(hash);
        self.ordered = self.ordered.wrapping_mul(FACTOR).wrapping_add(hash);
    }

    /// Whether these are the same results.
    pub(super) fn matches(&self, other: &Self, has_order: bool) -> bool {
        (self.count, self.sum) == (other.count, other.sum) && (!has_order || self.ordered == other.ordered)
    }
}

/// The digest of a response in progress. Clones share it.
#[derive(Clone, Default, Debug)]
pub(super) struct SharedDigest(Arc<Mutex<State>>);

#[derive(Default, Debug)]
struct State {
    digest: Digest,
    is_complete: bool,
}

impl SharedDigest {
    /// Begins again: a request may run twice.
    pub(super) fn begin(&self) {
        *lock(&self.0) = State::default();
    }

    pub(super) fn add(&self, result: &[u8]) {
        lock(&self.0).digest.add(result);
    }

    pub(super) fn end(&self) {
        lock(&self.0).is_complete = true;
    }

    /// The digest of a complete response.
    pub(super) fn complete(&self) -> Option<Digest> {
        let state = lock(&self.0);
        state.is_complete.then_some(state.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(results: &[&str]) -> Digest {
        let mut digest = Digest::default();
        results.iter().for_each(|result| digest.add(result.as_bytes()));
        digest
    }

    #[test]
    fn digests_have_content_and_order() {
        let one = digest(&["a", "b", "b"]);
        assert!(one.matches(&digest(&["a", "b", "b"]), true));
        let other = digest(&["b", "a", "b"]);
        assert!(one.matches(&other, false) && !one.matches(&other, true));
        for other in [&["a", "b"][..], &["a", "a", "b"], &["a", "b", "b", "c"], &["ab", "b"], &[]] {
            assert!(!one.matches(&digest(other), false), "{other:?}");
        }
        // As many results with the same bytes, divided otherwise.
        assert!(!digest(&["ab", "c"]).matches(&digest(&["a", "bc"]), false));
        let shared = SharedDigest::default();
        shared.add(b"x");
        shared.begin();
        shared.add(b"a");
        assert_eq!(shared.complete(), None);
        shared.end();
        assert_eq!(shared.complete(), Some(digest(&["a"])));
    }
}
