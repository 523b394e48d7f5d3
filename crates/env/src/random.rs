//! Random sources: the operating system's, and a seeded generator.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// A source of random bytes.
pub trait Random: Send + Sync + fmt::Debug {
    /// Overwrites all of `bytes`.
    ///
    /// # Errors
    /// The operating system could not provide random bytes.
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()>;

    /// A random number.
    ///
    /// # Errors
    /// As [`Random::fill`].
    fn next_u64(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// The operating system's generator, suitable for secrets.
#[derive(Debug)]
pub struct RealRandom;

impl Random for RealRandom {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        getrandom::fill(bytes).map_err(io::Error::other)
    }
}

/// A deterministic generator: equal seeds (and equal orders of calls) give equal bytes. Not suitable for
/// secrets.
///
/// Source: S. Vigna, `SplitMix64`, <https://prng.di.unimi.it/splitmix64.c>.
#[derive(Debug)]
pub struct SeededRandom {
    state: AtomicU64,
}

impl SeededRandom {
    /// A generator that starts from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: AtomicU64::new(seed) }
    }

    /// The next number.
    pub fn next(&self) -> u64 {
        // Relaxed: each caller only needs a distinct state.
        let state = self.state.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `limit`, or 0 if `limit` is 0.
    pub fn below(&self, limit: u64) -> u64 {
        // The bias is below 2^-40 for every limit used in tests.
        self.next().checked_rem(limit).unwrap_or(0)
    }
}

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_deterministic_by_seed() {
        let draw = |seed| {
            let mut bytes = [0; 21];
            SeededRandom::new(seed).fill(&mut bytes).expect("never fails");
            bytes
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert!(RealRandom.next_u64().is_ok());
        assert_eq!(SeededRandom::new(1).below(0), 0);
    }
}
