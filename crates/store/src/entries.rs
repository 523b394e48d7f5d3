//! Sorted entries of one `[predicate, direction]`: the input of the segment encoder.
//!
//! # Shape
//! Three widths, so that plain triples are sorted as plain numbers (the others too, if they can be `packed`):
//! narrow (8 bytes: two 32-bit payloads whose tags are the same for all), pairs (16 bytes: two ids), quads
//! (32 bytes: two ids, graph, edge). The key is always the more significant half, so that sorting the numbers
//! sorts the entries.

/// Entries in ascending order of key, neighbour, graph, edge.
pub(crate) trait Entries: Sync {
    /// Whether an entry can have a graph or an edge.
    const COLUMNS: bool;
    /// Number of entries.
    fn len(&self) -> usize;
    /// Bits of the key of an entry.
    fn key(&self, index: usize) -> u64;
    /// Bits of the neighbour of an entry.
    fn neighbour(&self, index: usize) -> u64;
    /// Bits of the graph of an entry; 0 is the default graph.
    fn graph(&self, _index: usize) -> u64 {
        0
    }
    /// Bits of the edge of an entry; 0 is none.
    fn edge(&self, _index: usize) -> u64 {
        0
    }
}

/// `key payload << 32 | neighbour payload`.
pub(crate) struct Narrow<'a> {
    pub(crate) entries: &'a [u64],
    /// Tag of the keys, in place.
    pub(crate) key_tag: u64,
    /// Tag of the neighbours, in place.
    pub(crate) neighbour_tag: u64,
}

impl Entries for Narrow<'_> {
    const COLUMNS: bool = false;

    fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    fn key(&self, index: usize) -> u64 {
        self.key_tag | self.entries[index] >> 32
    }

    #[inline]
    fn neighbour(&self, index: usize) -> u64 {
        self.neighbour_tag | self.entries[index] & 0xFFFF_FFFF
    }
}

impl Entries for [[u64; 2]] {
    const COLUMNS: bool = false;

    fn len(&self) -> usize {
        <[_]>::len(self)
    }

    #[inline]
    fn key(&self, index: usize) -> u64 {
        self[index][0]
    }

    #[inline]
    fn neighbour(&self, index: usize) -> u64 {
        self[index][1]
    }
}

impl Entries for [[u64; 4]] {
    const COLUMNS: bool = true;

    fn len(&self) -> usize {
        <[_]>::len(self)
    }

    #[inline]
    fn key(&self, index: usize) -> u64 {
        self[index][0]
    }

    #[inline]
    fn neighbour(&self, index: usize) -> u64 {
        self[index][1]
    }

    #[inline]
    fn graph(&self, index: usize) -> u64 {
        self[index][2]
    }

    #[inline]
    fn edge(&self, index: usize) -> u64 {
        self[index][3]
    }
}

/// The distinct keys of sorted entries, ascending, and the start of the entries of each.
pub(crate) struct KeyRuns {
    pub(crate) keys: Vec<u64>,
    /// One more than keys; the last is the number of entries.
    pub(crate) starts: Vec<usize>,
}

impl KeyRuns {
    pub(crate) fn of<E: Entries + ?Sized>(entries: &E) -> Self {
        let mut runs = Self { keys: Vec::new(), starts: Vec::new() };
        // No key has all bits set: no id with that tag and payload is ever stored.
        let mut last = u64::MAX;
        for index in 0..entries.len() {
            let key = entries.key(index);
            if key != last {
                runs.keys.push(key);
                runs.starts.push(index);
                last = key;
            }
        }
        runs.starts.push(entries.len());
        runs
    }

    /// The number of entries of each key.
    pub(crate) fn degrees(&self) -> impl Iterator<Item = u64> + '_ {
        self.starts.windows(2).map(|pair| (pair[1] - pair[0]) as u64)
    }
}
