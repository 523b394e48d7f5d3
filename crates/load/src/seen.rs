//! Which vertices of a load rows and elements stand for, and which only edges name: counts for the end of a
//! load.
//!
//! # Cost
//! Two bits for each vertex of the target, and an access to one of them for each row and for each end of an
//! edge.

use vervet_model::Id;

/// See the header of this file.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Vertices with a row or an element of their own.
    declared: Bits,
    /// Ends of edges.
    ends: Bits,
    /// Vertices with lower numbers were there before this load.
    first: u64,
    /// Rows and elements of vertices that had one before.
    pub(crate) merged: u64,
}

impl Seen {
    /// `first`: how many vertices there were before this load.
    pub(crate) fn new(first: u64) -> Self {
        Self { first, ..Self::default() }
    }

    /// A row or an element is this vertex.
    pub(crate) fn declare(&mut self, vertex: Id) {
        if vertex.is_vertex() && !self.declared.insert(vertex.payload()) {
            self.merged += 1;
        }
    }

    /// An edge has this end.
    pub(crate) fn end(&mut self, vertex: Id) {
        if vertex.is_vertex() && vertex.payload() >= self.first {
            self.ends.insert(vertex.payload());
        }
    }

    /// How many new vertices only edges name.
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

/// A set of small numbers.
#[derive(Debug, Default)]
struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// Whether the number is new.
    fn insert(&mut self, number: u64) -> bool {
        let Ok(word) = usize::try_from(number / 64) else { return true };
        if word >= self.words.len() {
            // In steps that double, as a vector that is pushed to.
            self.words.resize((word + 1).next_power_of_two(), 0);
        }
        let bit = 1 << (number % 64);
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        is_new
    }
}
