//! Random numbers for tests, from a seed that every run prints.

/// Xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled",
/// TOMS 2016. The state must not be 0.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Any number.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `limit`, or 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// A number of any magnitude below 2^`bits`.
    pub fn magnitude(&mut self, bits: u64) -> u64 {
        let bits = self.below(bits + 1);
        self.below(1 << bits)
    }

    /// `true` once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A random element.
    ///
    /// # Panics
    /// If `from` is empty.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).expect("a position in memory")]
    }
}

/// The seed of this run: that of `VERVET_SEED`, or a fixed one; printed.
#[must_use]
pub fn seed() -> u64 {
    let seed = std::env::var("VERVET_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_120_u64);
    println!("VERVET_SEED={seed}");
    seed
}
