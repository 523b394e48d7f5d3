//! A persistent (copy-on-write) B+tree: an ordered set of items whose clones share unchanged nodes.
//!
//! # Shape
//! A leaf is a sorted slice of up to [`Item::LEAF_MAX`] items, an inner node a slice of up to [`INNER_MAX`]
//! children; each in one allocation of the exact size, counted by `Arc`. A child stores a lower bound of its
//! keys, its number of items and the sum of their weights, so that ranges are counted without being walked.
//! All leaves have the same depth.
//! # Invariants
//! 1. No key of child `i` is below its `first`, and all are below the `first` of child `i + 1`.
//! 2. A node that another tree can reach is never changed: it is copied, and so is its path from the root.
//! 3. A node never changes its height, so trees that share nodes share them at equal heights.
//! # Cost
//! For `n` items about `log(n / 22) / log(11)` inner nodes on a path. Insert and remove copy a leaf (1 KiB
//! for cells of 32 bytes) and, where shared, the inner nodes: one atomic increment for each of their
//! children, which is why inner nodes are small. `examples/measure_delta.rs` measures it. Tried 2026-11-21
//! for insertions of which every version is kept, on a shared machine under load: 8 children in place of 16
//! made no difference beyond the noise, leaves of 60 were slower by a third.
//! # Source
//! J. Driscoll, N. Sarnak, D. Sleator, R. Tarjan, "Making data structures persistent", JCSS 1989: path
//! copying. N. Sarnak, R. Tarjan, CACM 1986.
//! # Not here
//! Parent pointers and links between leaves, which path copying rules out: an iterator finds its next leaf by
//! the first key of that leaf.

use rustc_hash::FxHashSet;
use std::fmt::Debug;
use std::ops::{Add, AddAssign, Sub};
use std::sync::Arc;

/// Maximum number of children of an inner node.
const INNER_MAX: usize = 16;
/// Smaller nodes are joined with a neighbour.
const INNER_MIN: usize = INNER_MAX / 4;

/// An item of a tree.
pub(crate) trait TreeItem: Clone {
    /// Sort key of an item.
    type Key: Ord + Copy + Debug;

    /// Maximum number of items of a leaf. With cells of 32 bytes 30 are just few enough for the allocator's
    /// fast lists.
    const LEAF_MAX: usize = 30;

    /// The key; it never changes while the item is in a tree.
    fn key(&self) -> Self::Key;

    /// Some bits of the item: reading them loads it into the cache.
    fn touch(&self) -> u64 {
        0
    }

    /// Weight that is summed over ranges; it never changes while the item is in a tree.
    fn weight(&self) -> i64 {
        0
    }
}

/// Number of items of a range, and the sum of their weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct RangeSum {
    pub(crate) items: u64,
    pub(crate) weight: i64,
}

impl RangeSum {
    fn one<T: TreeItem>(item: &T) -> Self {
        Self { items: 1, weight: item.weight() }
    }

    fn of<T: TreeItem>(items: &[T]) -> Self {
        items.iter().fold(Self::default(), |sum, item| sum + Self::one(item))
    }
}

impl Add for RangeSum {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { items: self.items + other.items, weight: self.weight + other.weight }
    }
}

impl Sub for RangeSum {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { items: self.items - other.items, weight: self.weight - other.weight }
    }
}

impl AddAssign for RangeSum {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// The tree. See the header of this file.
#[derive(Clone, Debug)]
pub(crate) struct Tree<T: TreeItem> {
    root: Option<Child<T>>,
}

#[derive(Clone, Debug)]
struct Child<T: TreeItem> {
    first: T::Key,
    sum: RangeSum,
    node: Node<T>,
}

#[derive(Clone, Debug)]
enum Node<T: TreeItem> {
    Leaf(Arc<[T]>),
    Inner(Arc<[Child<T>]>),
}

impl<T: TreeItem> Default for Tree<T> {
    fn default() -> Self {
        Self { root: None }
    }
}

impl<T: TreeItem> Tree<T> {
    /// A tree of these items, with ascending keys.
    pub(crate) fn from_sorted(items: &[T]) -> Self {
        debug_assert!(items.is_sorted_by(|a, b| a.key() < b.key()));
        // Leaves some room, so that not every leaf is split by the first later insertion.
        let fill = T::LEAF_MAX - T::LEAF_MAX / 8;
        let leaves = items.chunks(fill).filter_map(|leaf| Child::leaf(leaf.into())).collect();
        Self { root: root_over(leaves) }
    }

    /// Number of items.
    pub(crate) fn len(&self) -> u64 {
        self.root.as_ref().map_or(0, |root| root.sum.items)
    }

    /// Sum over all items.
    pub(crate) fn sum(&self) -> RangeSum {
        self.root.as_ref().map_or(RangeSum::default(), |root| root.sum)
    }

    /// Whether there are no items.
    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// The item with this key.
    pub(crate) fn get(&self, key: T::Key) -> Option<&T> {
        self.first_from(key).filter(|item| item.key() == key)
    }

    /// The first item whose key is not below `key`.
    pub(crate) fn first_from(&self, key: T::Key) -> Option<&T> {
        let (items, next) = self.seek(key);
        items.first().or_else(|| self.seek(next?).0.first())
    }

    /// The item with this key for mutation, except of its key and weight.
    pub(crate) fn get_mut(&mut self, key: T::Key) -> Option<&mut T> {
        let mut child = self.root.as_mut()?;
        loop {
            match &mut child.node {
                Node::Inner(children) => {
                    let at = child_of(children, key);
                    child = Arc::make_mut(children).get_mut(at)?;
                }
                Node::Leaf(items) => {
                    let at = items.binary_search_by_key(&key, TreeItem::key).ok()?;
                    return Arc::make_mut(items).get_mut(at);
                }
            }
        }
    }

    /// Adds an item; returns the replaced one with the same key.
    pub(crate) fn insert(&mut self, item: T) -> Option<T> {
        let Some(root) = &mut self.root else {
            self.root = Child::leaf([item].into());
            return None;
        };
        let (replaced, split) = root.insert(item);
        if let Some(right) = split
            && let Some(left) = self.root.take()
        {
            self.root = Child::inner([left, right].into());
        }
        replaced
    }

    /// Removes the item with this key.
    pub(crate) fn remove(&mut self, key: T::Key) -> Option<T> {
        let root = self.root.as_mut()?;
        let removed = root.remove(key);
        while let Some(root) = &self.root {
            match &root.node {
                Node::Leaf(items) if items.is_empty() => self.root = None,
                Node::Inner(children) if children.len() <= 1 => self.root = children.first().cloned(),
                _ => break,
            }
        }
        removed
    }

    /// Adds many items with ascending keys; an item replaces the one with the same key.
    ///
    /// # Cost
    /// Nodes without new items stay shared.
    pub(crate) fn merge_sorted(&mut self, items: &[T]) {
        debug_assert!(items.is_sorted_by(|a, b| a.key() < b.key()));
        match self.root.take() {
            None => *self = Self::from_sorted(items),
            Some(root) => {
                let mut merged = Vec::new();
                root.merge(items, &mut merged);
                self.root = root_over(merged);
            }
        }
    }

    /// The items from `key` on, ascending.
    pub(crate) fn iter_from(&self, key: T::Key) -> Iter<'_, T> {
        let (items, next) = self.seek(key);
        Iter { tree: self, items: items.iter(), next }
    }

    /// Sum over the items with keys below `key`.
    pub(crate) fn sum_below(&self, key: T::Key) -> RangeSum {
        let mut sum = RangeSum::default();
        let mut at = self.root.as_ref();
        while let Some(child) = at {
            at = match &child.node {
                Node::Inner(children) => {
                    let index = child_of(children, key);
                    children[..index].iter().for_each(|child| sum += child.sum);
                    children.get(index)
                }
                Node::Leaf(items) => {
                    let end = items.partition_point(|item| item.key() < key);
                    sum += RangeSum::of(&items[..end]);
                    None
                }
            };
        }
        sum
    }

    /// The item with this many predecessors.
    pub(crate) fn nth(&self, mut index: u64) -> Option<&T> {
        let mut child = self.root.as_ref()?;
        loop {
            match &child.node {
                Node::Inner(children) => {
                    child = children.iter().find(|child| {
                        let here = index < child.sum.items;
                        index -= if here { 0 } else { child.sum.items };
                        here
                    })?;
                }
                Node::Leaf(items) => return items.get(usize::try_from(index).ok()?),
            }
        }
    }

    /// Calls `each` for every key in which the two trees differ, with the item of either; shared subtrees are
    /// not visited. Keys ascend. Equal items are reported if their leaves differ.
    pub(crate) fn differences(&self, other: &Self, each: &mut dyn FnMut(Option<&T>, Option<&T>)) {
        let mut ours: Vec<&Child<T>> = self.root.iter().collect();
        let mut theirs: Vec<&Child<T>> = other.root.iter().collect();
        loop {
            let (height, other_height) = (height_of(&ours), height_of(&theirs));
            if height == other_height {
                cancel(&mut ours, &mut theirs);
            }
            let top = height.max(other_height);
            if top <= 1 {
                break;
            }
            if height == top {
                ours = below(&ours);
            }
            if other_height == top {
                theirs = below(&theirs);
            }
        }
        let mut left = items_of(&ours).peekable();
        let mut right = items_of(&theirs).peekable();
        loop {
            match (left.peek(), right.peek()) {
                (None, None) => return,
                (Some(a), Some(b)) if a.key() == b.key() => each(left.next(), right.next()),
                (Some(a), Some(b)) if a.key() > b.key() => each(None, right.next()),
                (None, Some(_)) => each(None, right.next()),
                (Some(_), _) => each(left.next(), None),
            }
        }
    }

    /// The items of one leaf from `key` on, and a lower bound of the keys of the next leaf, which is above
    /// `key`.
    fn seek(&self, key: T::Key) -> (&[T], Option<T::Key>) {
        let Some(mut child) = self.root.as_ref() else { return (&[], None) };
        let mut next = None;
        loop {
            match &child.node {
                Node::Inner(children) => {
                    let at = child_of(children, key);
                    if let Some(sibling) = children.get(at + 1) {
                        next = Some(sibling.first);
                    }
                    match children.get(at) {
                        Some(inner) => child = inner,
                        None => return (&[], next),
                    }
                }
                Node::Leaf(items) => {
                    touch_all(items);
                    let start = items.partition_point(|item| item.key() < key);
                    return (&items[start..], next);
                }
            }
        }
    }
}

/// Items in ascending order.
pub(crate) struct Iter<'a, T: TreeItem> {
    tree: &'a Tree<T>,
    items: std::slice::Iter<'a, T>,
    next: Option<T::Key>,
}

impl<T: TreeItem> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Self { tree: self.tree, items: self.items.clone(), next: self.next }
    }
}

impl<'a, T: TreeItem> Iterator for Iter<'a, T> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        loop {
            if let Some(item) = self.items.next() {
                return Some(item);
            }
            let (items, next) = self.tree.seek(self.next?);
            (self.items, self.next) = (items.iter(), next);
        }
    }
}

impl<T: TreeItem> Child<T> {
    /// `None` if there are no items.
    fn leaf(items: Arc<[T]>) -> Option<Self> {
        Some(Self { first: items.first()?.key(), sum: RangeSum::of(&items), node: Node::Leaf(items) })
    }

    /// `None` if there are no children.
    fn inner(children: Arc<[Self]>) -> Option<Self> {
        let sum = children.iter().fold(RangeSum::default(), |sum, child| sum + child.sum);
        Some(Self { first: children.first()?.first, sum, node: Node::Inner(children) })
    }

    /// Returns the replaced item, and the right half if the node became too large.
    fn insert(&mut self, item: T) -> (Option<T>, Option<Self>) {
        let key = item.key();
        let added = RangeSum::one(&item);
        let (replaced, split) = match &mut self.node {
            Node::Leaf(items) => match items.binary_search_by_key(&key, TreeItem::key) {
                Ok(at) => (Some(std::mem::replace(&mut Arc::make_mut(items)[at], item)), None),
                Err(at) => (None, grow(items, at..at, [item], T::LEAF_MAX).and_then(Self::leaf)),
            },
            Node::Inner(children) => {
                let at = child_of(children, key);
                let (replaced, split) = Arc::make_mut(children)[at].insert(item);
                let right = split.and_then(|right| grow(children, at + 1..at + 1, [right], INNER_MAX));
                (replaced, right.and_then(Self::inner))
            }
        };
        self.first = self.first.min(key);
        self.sum += added;
        if let Some(replaced) = &replaced {
            self.sum = self.sum - RangeSum::one(replaced);
        }
        if let Some(right) = &split {
            self.sum = self.sum - right.sum;
        }
        (replaced, split)
    }

    fn remove(&mut self, key: T::Key) -> Option<T> {
        let removed = match &mut self.node {
            Node::Leaf(items) => {
                let at = items.binary_search_by_key(&key, TreeItem::key).ok()?;
                let removed = items.get(at).cloned();
                let rest = grow(items, at..at + 1, [], T::LEAF_MAX);
                debug_assert!(rest.is_none(), "a leaf grew by a removal");
                removed
            }
            Node::Inner(children) => {
                let at = child_of(children, key);
                let child = Arc::make_mut(children).get_mut(at)?;
                let removed = child.remove(key);
                if child.is_small() {
                    join_at(children, at);
                }
                removed
            }
        };
        if let Some(removed) = &removed {
            self.sum = self.sum - RangeSum::one(removed);
        }
        removed
    }

    fn is_small(&self) -> bool {
        match &self.node {
            Node::Leaf(items) => items.len() < T::LEAF_MAX / 4,
            Node::Inner(children) => children.len() < INNER_MIN,
        }
    }

    /// Appends the nodes of this height that result from merging `items` into this node.
    fn merge(&self, items: &[T], out: &mut Vec<Self>) {
        if items.is_empty() {
            out.push(self.clone());
            return;
        }
        match &self.node {
            Node::Leaf(own) => {
                let merged = merge_items(own, items);
                let leaves = even_chunks(&merged, T::LEAF_MAX);
                out.extend(leaves.filter_map(|leaf| Self::leaf(leaf.into())));
            }
            Node::Inner(children) => {
                let mut below = Vec::with_capacity(children.len());
                let mut rest = items;
                for (at, child) in children.iter().enumerate() {
                    let end = match children.get(at + 1) {
                        Some(next) => rest.partition_point(|item| item.key() < next.first),
                        None => rest.len(),
                    };
                    child.merge(&rest[..end], &mut below);
                    rest = &rest[end..];
                }
                let nodes = even_chunks(&below, INNER_MAX);
                out.extend(nodes.filter_map(|node| Self::inner(node.into())));
            }
        }
    }

    /// Identity of a node: equal for shared nodes at equal heights.
    fn address(&self) -> *const u8 {
        match &self.node {
            Node::Leaf(items) => items.as_ptr().cast(),
            Node::Inner(children) => children.as_ptr().cast(),
        }
    }

    fn height(&self) -> usize {
        let mut height = 1;
        let mut child = self;
        while let Node::Inner(children) = &child.node
            && let Some(first) = children.first()
        {
            (child, height) = (first, height + 1);
        }
        height
    }
}

/// Loads all of a leaf at once, so that its cache misses overlap: a binary search waits for each in turn. A
/// degree of a key with a cell, 100,000 cells in random order: 1200 ns without, 480 ns with it (2026-11-21, a
/// shared machine under load).
#[inline]
fn touch_all<T: TreeItem>(items: &[T]) {
    let line = (64 / size_of::<T>().max(1)).max(1);
    // Keeps the compiler from removing the unused loads.
    std::hint::black_box(items.iter().step_by(line).fold(0, |all, item| all ^ item.touch()));
}

/// Index of the child that covers `key`, or of the first child.
#[inline]
fn child_of<T: TreeItem>(children: &[Child<T>], key: T::Key) -> usize {
    children.partition_point(|child| child.first <= key).saturating_sub(1)
}

/// Replaces `range` by `new`. A result longer than `max` is split, and the right half returned: the split is
/// in the middle, or, where items are appended, such that the left one stays full.
fn grow<T: Clone, const NEW: usize>(
    slice: &mut Arc<[T]>,
    range: std::ops::Range<usize>,
    new: [T; NEW],
    max: usize,
) -> Option<Arc<[T]>> {
    let appends = range.start == slice.len();
    let (before, after) = (&slice[..range.start], &slice[range.end..]);
    let length = before.len() + NEW + after.len();
    // Iterators of known length, collected into one allocation.
    if length <= max {
        *slice = before.iter().cloned().chain(new).chain(after.iter().cloned()).collect();
        return None;
    }
    let all: Vec<T> = before.iter().cloned().chain(new).chain(after.iter().cloned()).collect();
    let (left, right) = all.split_at(if appends { length - 1 } else { length / 2 });
    *slice = left.into();
    Some(right.into())
}

/// Joins a small child with a neighbour; a child without items is removed.
fn join_at<T: TreeItem>(children: &mut Arc<[Child<T>]>, at: usize) {
    let (left, right) = if at + 1 < children.len() { (at, at + 1) } else { (at.saturating_sub(1), at) };
    if left == right {
        // An only child: its parent is small itself, and is joined by its own parent or is the root.
        if children.first().is_some_and(|child| child.sum.items == 0) {
            *children = [].into();
        }
        return;
    }
    let joined: Vec<Child<T>> = match (&children[left].node, &children[right].node) {
        (Node::Leaf(a), Node::Leaf(b)) => {
            let all = [&**a, b].concat();
            even_chunks(&all, T::LEAF_MAX).filter_map(|leaf| Child::leaf(leaf.into())).collect()
        }
        (Node::Inner(a), Node::Inner(b)) => {
            let all = [&**a, b].concat();
            even_chunks(&all, INNER_MAX).filter_map(|node| Child::inner(node.into())).collect()
        }
        // All leaves are equally deep.
        _ => return,
    };
    let (before, after) = (&children[..left], &children[right + 1..]);
    *children = before.iter().cloned().chain(joined).chain(after.iter().cloned()).collect();
}

/// A root over nodes of equal height.
fn root_over<T: TreeItem>(mut nodes: Vec<Child<T>>) -> Option<Child<T>> {
    while nodes.len() > 1 {
        let parents = even_chunks(&nodes, INNER_MAX).filter_map(|node| Child::inner(node.into()));
        nodes = parents.collect();
    }
    nodes.pop()
}

/// The fewest chunks of at most `max` items, of nearly equal length.
fn even_chunks<T>(all: &[T], max: usize) -> impl Iterator<Item = &[T]> {
    let count = all.len().div_ceil(max).max(1);
    (0..count).map(move |chunk| &all[all.len() * chunk / count..all.len() * (chunk + 1) / count])
}

/// Both sequences merged in ascending order; of equal keys the new item.
fn merge_items<T: TreeItem>(own: &[T], new: &[T]) -> Vec<T> {
    let mut merged = Vec::with_capacity(own.len() + new.len());
    let mut own = own.iter().peekable();
    for item in new {
        while let Some(before) = own.next_if(|own| own.key() < item.key()) {
            merged.push(before.clone());
        }
        own.next_if(|own| own.key() == item.key());
        merged.push(item.clone());
    }
    merged.extend(own.cloned());
    merged
}

fn height_of<T: TreeItem>(nodes: &[&Child<T>]) -> usize {
    nodes.first().map_or(0, |node| node.height())
}

/// The children of inner nodes; empty for leaves.
fn below<'a, T: TreeItem>(nodes: &[&'a Child<T>]) -> Vec<&'a Child<T>> {
    let children = nodes.iter().map(|node| match &node.node {
        Node::Inner(children) => &children[..],
        Node::Leaf(_) => &[],
    });
    children.flatten().collect()
}

/// Drops the nodes that are in both lists.
fn cancel<T: TreeItem>(ours: &mut Vec<&Child<T>>, theirs: &mut Vec<&Child<T>>) {
    let known: FxHashSet<*const u8> = ours.iter().map(|node| node.address()).collect();
    let shared: FxHashSet<*const u8> =
        theirs.iter().map(|node| node.address()).filter(|address| known.contains(address)).collect();
    ours.retain(|node| !shared.contains(&node.address()));
    theirs.retain(|node| !shared.contains(&node.address()));
}

fn items_of<'a, T: TreeItem>(leaves: &[&'a Child<T>]) -> impl Iterator<Item = &'a T> {
    leaves.iter().flat_map(|leaf| match &leaf.node {
        Node::Leaf(items) => items.iter(),
        Node::Inner(_) => [].iter(),
    })
}

#[cfg(test)]
mod tests;
