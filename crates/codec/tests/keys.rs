//! Key sets against a `BTreeSet`.
//!
//! Key sets of random density agree in positions of members and non-members, and listings from every
//! position; also after their descriptor has been written and read back.

#![expect(clippy::cast_possible_truncation, reason = "small numbers of a test")]

use std::collections::BTreeSet;
use vervet_codec::{KeySet, KeySetView, Locate, NONE, OffsetPart, PADDING, Reader, Stride};

/// A small generator of random numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}

/// Checks a set of these keys, and one of keys with equal low bits.
fn check(keys: &BTreeSet<u64>, random: &mut Random, context: &str) {
    check_strided(keys, Stride::default(), random, context);
    if keys.contains(&u64::MAX) {
        // Never a key that is stored: it marks keys with other low bits.
        return;
    }
    let bits = 1 + random.below(8) as u32;
    let residue = random.below(1 << bits);
    let run = random.below(5) as u32;
    let ending = |key: &u64| match key >> 60 {
        1..=3 => (key >> (bits + run) << bits | residue) << run | key & ((1 << run) - 1),
        _ => *key,
    };
    let stride = Stride::new(bits, residue, run).expect("few bits");
    check_strided(&keys.iter().map(ending).collect(), stride, random, &format!("{context}, {stride:?}"));
}

fn check_strided(keys: &BTreeSet<u64>, stride: Stride, random: &mut Random, context: &str) {
    let keys: Vec<u64> = keys.iter().copied().collect();
    let mut section = vec![0xAA; 5];
    let written = KeySet::write_strided(&keys, stride, &mut section).expect("few keys");
    section.extend([0xFF; PADDING]);
    let mut meta = Vec::new();
    written.write_meta(&mut meta);
    let set = KeySet::read_meta(&mut Reader::new(&meta), section.len()).expect("descriptor");
    assert_eq!(set, written, "{context}");
    assert_eq!(set.len(), keys.len(), "{context}");
    let view = set.view(&section);
    let position_of = |key: u64| view.position(stride.close(key));
    for (position, key) in keys.iter().enumerate() {
        assert_eq!(position_of(*key) as usize, position, "{context}, key {key:#x}");
        for stranger in [key.wrapping_sub(1), key.wrapping_add(1), key ^ (1 << 60), random.next()] {
            let expected = keys.binary_search(&stranger).map_or(NONE, |position| position as u32);
            assert_eq!(position_of(stranger), expected, "{context}, key {stranger:#x}");
            let below = keys.partition_point(|key| *key < stranger) as u64;
            assert_eq!(set.lower_bound(&section, stranger), below, "{context}, key {stranger:#x}");
        }
    }
    for key in [0, 1, u64::MAX, 1 << 60] {
        assert_eq!(position_of(key) != NONE, keys.binary_search(&key).is_ok(), "{context}, key {key:#x}");
    }
    if let (KeySetView::Parts(parts), true) = (view, stride.is_none()) {
        assert!(parts.of_all(std::iter::empty()).is_none(), "{context}");
        for _ in 0..if keys.is_empty() { 0 } else { 50 } {
            // Members and non-members, with one tag or several.
            let mut some = Vec::new();
            for _ in 0..1 + random.below(3) {
                some.push(keys[random.below(keys.len() as u64) as usize] + random.below(2));
            }
            if random.below(3) == 0 {
                some.push((random.below(16) << 60) + random.below(9));
            }
            let one_tag = some.windows(2).all(|pair| pair[0] >> 60 == pair[1] >> 60);
            let part = parts.of_all(some.iter().copied());
            assert_eq!(part.is_some(), one_tag, "{context}, {some:x?}");
            let Some((base, part)) = part else { continue };
            for key in some {
                let position = OffsetPart { base, part }.position(key);
                assert_eq!(position, view.position(key), "{context}, key {key:#x}");
            }
        }
    }
    for _ in 0..20 {
        let start = random.below(keys.len() as u64 + 2);
        let limit = random.below(keys.len() as u64 + 2) as usize;
        let mut listed = Vec::new();
        let end = set.list(&section, start, limit, |key| listed.push(key));
        let from = (start as usize).min(keys.len());
        let expected = &keys[from..(from + limit).min(keys.len())];
        assert_eq!(listed, expected, "{context}, {limit} from {start}");
        assert_eq!(end, (from + expected.len()) as u64, "{context}");
    }
    // A random descriptor is refused or harmless.
    for _ in 0..50 {
        let mut broken = meta.clone();
        let at = random.below(broken.len() as u64) as usize;
        broken[at] ^= 1 << random.below(8);
        if let Ok(set) = KeySet::read_meta(&mut Reader::new(&broken), section.len()) {
            let view = set.view(&section);
            for key in keys.iter().take(10) {
                view.position(*key);
                let _ = set.lower_bound(&section, *key);
            }
            set.list(&section, 0, 10, |_| ());
        }
    }
}

#[test]
fn key_sets_agree_with_the_model() {
    let seed = std::env::var("VERVET_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_120_u64);
    println!("VERVET_SEED={seed}");
    let mut random = Random(seed | 1);
    for round in 0..300 {
        let tags = 1 + random.below(3);
        let mut keys = BTreeSet::new();
        for _ in 0..tags {
            let tag = 1 + random.below(12);
            let count = 1 + random.below(300);
            let bits = 1 + random.below(59);
            let base_bits = random.below(59);
            let base = random.below(1 << base_bits);
            for index in 0..count {
                let payload = if random.below(4) == 0 { index } else { random.below(1 << bits) };
                keys.insert(tag << 60 | ((base + payload) & ((1 << 60) - 1)));
            }
        }
        check(&keys, &mut random, &format!("seed {seed}, round {round}"));
    }
}

#[test]
fn small_sets() {
    let mut random = Random(7);
    for keys in [&[][..], &[0], &[u64::MAX], &[5, 6, 7], &[1 << 60, (1 << 60) + 63], &[63, 64, 127, 128]] {
        check(&keys.iter().copied().collect(), &mut random, &format!("{keys:?}"));
    }
}
