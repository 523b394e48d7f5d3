// Reproducible random numbers: a test prints its seed, and `VERVET_SEED=n` repeats it.

export function seeded(): { seed: number; next: (below: number) => number } {
  const seed = Number(process.env['VERVET_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
  let state = seed;
  // Mulberry32.
  const next = (below: number): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
  };
  return { seed, next };
}
