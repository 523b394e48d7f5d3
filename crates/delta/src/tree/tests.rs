//! Tests of the tree against a `BTreeMap`.
//!
//! It agrees with a `BTreeMap` under random operations, old versions stay unchanged, and differences are
//! found without visiting shared nodes.

use super::*;
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pair(u64, i64);

impl TreeItem for Pair {
    type Key = u64;

    fn key(&self) -> u64 {
        self.0
    }

    fn weight(&self) -> i64 {
        self.1
    }
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % limit.max(1)
    }
}

fn seed() -> u64 {
    let seed = std::env::var("VERVET_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_121_u64);
    println!("VERVET_SEED={seed}");
    seed
}

type Model = BTreeMap<u64, i64>;

/// Checks the invariants of the header.
fn validate(tree: &Tree<Pair>) {
    fn walk(child: &Child<Pair>, below: Option<u64>) -> (usize, RangeSum) {
        let (height, sum) = match &child.node {
            Node::Leaf(items) => {
                assert!(!items.is_empty() && items.len() <= Pair::LEAF_MAX);
                assert!(items.is_sorted_by(|a, b| a.0 < b.0));
                assert!(items.iter().all(|item| item.0 >= child.first));
                assert!(items.iter().all(|item| below.is_none_or(|below| item.0 < below)));
                (1, RangeSum::of(items))
            }
            Node::Inner(children) => {
                assert!(!children.is_empty() && children.len() <= INNER_MAX);
                assert!(children[0].first >= child.first);
                let bounds = children[1..].iter().map(|child| Some(child.first)).chain([below]);
                let walked: Vec<_> =
                    children.iter().zip(bounds).map(|(child, bound)| walk(child, bound)).collect();
                assert!(walked.iter().all(|(height, _)| *height == walked[0].0));
                (walked[0].0 + 1, walked.iter().fold(RangeSum::default(), |sum, (_, one)| sum + *one))
            }
        };
        assert_eq!(sum, child.sum);
        (height, sum)
    }
    if let Some(root) = &tree.root {
        let (height, sum) = walk(root, None);
        // Every level of a tree that was not only removed from has at least some fan-out.
        assert!(height <= 12 && sum.items > 0);
    }
}

fn check(tree: &Tree<Pair>, model: &Model, random: &mut Random, keys: u64, context: &str) {
    validate(tree);
    assert_eq!(tree.len(), model.len() as u64, "{context}");
    assert_eq!(tree.is_empty(), model.is_empty(), "{context}");
    for _ in 0..20 {
        let key = random.below(keys + 2);
        assert_eq!(tree.get(key).map(|pair| pair.1), model.get(&key).copied(), "{context}: get {key}");
        let first = model.range(key..).next().map(|(key, value)| Pair(*key, *value));
        assert_eq!(tree.first_from(key).copied(), first, "{context}: first from {key}");
        let sum = model
            .range(..key)
            .fold(RangeSum::default(), |sum, (key, value)| sum + RangeSum::one(&Pair(*key, *value)));
        assert_eq!(tree.sum_below(key), sum, "{context}: sum below {key}");
        let index = random.below(keys + 2);
        let nth = usize::try_from(index).ok().and_then(|index| model.iter().nth(index));
        assert_eq!(tree.nth(index).map(|pair| pair.0), nth.map(|(key, _)| *key), "{context}: nth {index}");
    }
    let from = random.below(keys + 2);
    let listed: Vec<_> = tree.iter_from(from).map(|pair| (pair.0, pair.1)).collect();
    assert_eq!(listed, model.range(from..).map(|(k, v)| (*k, *v)).collect::<Vec<_>>(), "{context}");
}

/// A key, and its weight in either tree.
type Difference = (u64, Option<i64>, Option<i64>);

/// The differences, and the number of keys visited.
fn differences(a: &Tree<Pair>, b: &Tree<Pair>) -> (Vec<Difference>, usize) {
    let (mut found, mut looked) = (Vec::new(), 0);
    a.differences(b, &mut |a, b| {
        looked += 1;
        if a != b {
            let key = a.or(b).map_or(0, |pair| pair.0);
            found.push((key, a.map(|pair| pair.1), b.map(|pair| pair.1)));
        }
    });
    (found, looked)
}

#[test]
fn agrees_with_a_map() {
    let seed = seed();
    for round in 0..60 {
        let mut random = Random(seed.wrapping_add(round).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let keys = 1 + (1 << random.below(14));
        let shrinking = random.below(2) == 0;
        let (mut tree, mut model) = (Tree::<Pair>::default(), Model::new());
        let mut versions: Vec<(Tree<Pair>, Model)> = Vec::new();
        for step in 0..3000_u64 {
            let context = format!("seed {seed}, round {round}, step {step}");
            let (key, value) = (random.below(keys), i64::try_from(random.below(3)).unwrap_or(0) - 1);
            let removes = if shrinking && step > 1500 { 8 } else { 3 };
            match random.below(10) {
                kind if kind < removes => {
                    // The nearest existing key, so that even a sparse tree shrinks.
                    let key = model.range(key..).next().map_or(key, |(key, _)| *key);
                    let removed = tree.remove(key).map(|pair| pair.1);
                    assert_eq!(removed, model.remove(&key), "{context}");
                }
                9 if step % 50 == 0 => {
                    let count = random.below(500);
                    let batch: Model = (0..count).map(|_| (random.below(keys), value)).collect();
                    let items: Vec<Pair> = batch.iter().map(|(key, value)| Pair(*key, *value)).collect();
                    tree.merge_sorted(&items);
                    model.extend(batch);
                }
                _ => {
                    let replaced = tree.insert(Pair(key, value)).map(|pair| pair.1);
                    assert_eq!(replaced, model.insert(key, value), "{context}");
                }
            }
            if step % 300 == 0 {
                check(&tree, &model, &mut random, keys, &context);
                versions.push((tree.clone(), model.clone()));
            }
        }
        versions.push((tree, model));
        for (number, (tree, model)) in versions.iter().enumerate() {
            let context = format!("seed {seed}, round {round}, version {number}");
            check(tree, model, &mut random, keys, &context);
            let (other, other_model) = &versions[versions.len() / 2];
            let expected: Vec<_> = (0..keys)
                .map(|key| (key, model.get(&key).copied(), other_model.get(&key).copied()))
                .filter(|(_, a, b)| a != b)
                .collect();
            assert_eq!(differences(tree, other).0, expected, "{context}");
        }
    }
}

#[test]
fn differences_skip_shared_nodes() {
    let items: Vec<Pair> = (0..100_000).map(|key| Pair(key * 2, 1)).collect();
    let old = Tree::from_sorted(&items);
    let mut new = old.clone();
    for key in [1, 77_777, 199_999] {
        new.insert(Pair(key, 1));
    }
    new.remove(5000);
    let (found, looked) = differences(&new, &old);
    let expected =
        [(1, Some(1), None), (5000, None, Some(1)), (77_777, Some(1), None), (199_999, Some(1), None)];
    assert_eq!(found, expected);
    assert!(looked <= 5 * Pair::LEAF_MAX, "{looked} items looked at");
    assert_eq!(differences(&old, &Tree::default()).0.len(), 100_000);
    assert_eq!(differences(&Tree::default(), &old).1, 100_000);
}

#[test]
fn ascending_keys_fill_leaves() {
    let mut tree = Tree::default();
    for key in 0..10_000 {
        tree.insert(Pair(key, 1));
    }
    validate(&tree);
    let mut leaves = 0;
    let mut at = Some(0);
    while let Some(key) = at {
        leaves += 1;
        at = tree.seek(key).1;
    }
    assert_eq!(leaves, 10_000_usize.div_ceil(Pair::LEAF_MAX));
}

#[test]
fn an_item_can_be_changed_in_one_version() {
    let old = Tree::from_sorted(&(0..1000).map(|key| Pair(key, 0)).collect::<Vec<_>>());
    let mut new = old.clone();
    // The weight stays the same, so only the identity can show the copy.
    let before: *const Pair = old.get(500).expect("it is there");
    let after: *const Pair = new.get_mut(500).expect("it is there");
    assert_ne!(before, after);
    assert_eq!(new.get_mut(5000), None);
    assert!(std::ptr::eq(old.get(500).expect("still"), before));
}
