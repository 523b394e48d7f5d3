//! Sets of vertices declared by rows and elements, and of vertices used by edges: counts for the report of a
//! load.
//!
//! # Cost
//! Two bits per vertex of the target, and one bit access for each row and for each end of an edge.

use vervet_model::Id;

/// See the header of this file.
#[derive(Debug, Default)]
pub(crate) struct VertexSets {
    /// Vertices with a row or an element.
    declared: BitSet,
    /// Ends of edges.
    ends: BitSet,
    /// Number of vertices before this load.
    first: u64,
    /// Number of repeated declarations of vertices.
    pub(crate) merged: u64,
}

impl VertexSets {
    /// `first`: the number of vertices before this load.
    pub(crate) fn new(first: u64) -> Self {
        Self { first, ..Self::default() }
    }

    /// Records that a row or an element declares the vertex.
    pub(crate) fn declare(&mut self, vertex: Id) {
        if vertex.is_vertex() && !self.declared.insert(vertex.payload()) {
            self.merged += 1;
        }
    }

    /// Records that an edge ends at the vertex.
    pub(crate) fn end(&mut self, vertex: Id) {
        if vertex.is_vertex() && vertex.payload() >= self.first {
            self.ends.insert(vertex.payload());
        }
    }

    /// Number of new vertices that only edges name.
    pub(crate) fn missing(&self) -> u64 {
        let declared = self.declared.words.iter().copied().chain(std::iter::repeat(0));
        self.ends
            .words
            .iter()
            .zip(declared)
            .map(|(ends, declared)| u64::from((ends & !declared).count_ones()))
            .sum()
    }
}

/// A bit set.
#[derive(Debug, Default)]
struct BitSet {
    words: Vec<u64>,
}

impl BitSet {
    /// Inserts a number; false if it was present.
    fn insert(&mut self, number: u64) -> bool {
        let Ok(word) = usize::try_from(number / 64) else { return true };
        if word >= self.words.len() {
            // The size doubles, for amortized constant time.
            self.words.resize((word + 1).next_power_of_two(), 0);
        }
        let bit = 1 << (number % 64);
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        is_new
    }
}
