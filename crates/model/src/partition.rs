//! Partitions: the parts into which a graph is cut, by the ids of its vertices, edges and values.
//!
//! # Shape
//! Every id has a slot, a number below [`SLOTS`]: bits of the number of a vertex, edge or literal of the
//! dictionary, and a hash of a value inside an id. Of `2^bits` partitions, the low `bits` of the slot name
//! the one that owns the id. So twice as many partitions cut each one in two, and no id moves between the
//! others.
//!
//! The slot of a number begins above its `run_bits` lowest bits: `2^run_bits` consecutive numbers are in one
//! partition. Terms are numbered as they occur, so what a file says together mostly stays together: fewer
//! reads of other partitions, and neighbours in fewer bits.
//! # Not here
//! The statements of a partition (`vervet-partition`), and the servers that have them.

use crate::{Id, Tag};

/// Number of slots, and the maximum number of partitions.
pub const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 12;

/// The longest runs have `2^RUN_BITS_MAX` numbers.
const RUN_BITS_MAX: u32 = 12;

/// Runs of vertices that each partition has at least, so that partitions are of about one size.
const RUNS_MIN: u64 = 32;

/// How a graph is cut: into a number of partitions that is a power of two. The default is one partition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Partitioning {
    bits: u32,
    run_bits: u32,
}

impl Partitioning {
    /// One partition, the whole graph.
    pub const WHOLE: Self = Self { bits: 0, run_bits: 0 };

    /// This number of partitions; `None` if it is not a power of two up to [`SLOTS`].
    #[must_use]
    pub const fn new(count: usize) -> Option<Self> {
        if count.is_power_of_two() && count <= SLOTS {
            Some(Self { bits: count.trailing_zeros(), run_bits: 0 })
        } else {
            None
        }
    }

    /// These partitions of runs of `2^run_bits` numbers; `None`: more than 4,096.
    #[must_use]
    pub const fn with_runs(self, run_bits: u32) -> Option<Self> {
        if run_bits <= RUN_BITS_MAX { Some(Self { run_bits, ..self }) } else { None }
    }

    /// These partitions of the longest runs that leave each partition several of `vertices` vertices.
    #[must_use]
    pub const fn for_vertices(self, vertices: u64) -> Self {
        let mut run_bits = RUN_BITS_MAX;
        while run_bits > 0 && vertices >> (self.bits + run_bits) < RUNS_MIN {
            run_bits -= 1;
        }
        Self { run_bits, ..self }
    }

    /// Consecutive numbers of one partition are `2^run_bits`.
    #[must_use]
    pub const fn run_bits(self) -> u32 {
        self.run_bits
    }

    /// Number of partitions.
    #[must_use]
    pub const fn count(self) -> usize {
        1 << self.bits
    }

    /// Whether there is one partition.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        self.bits == 0
    }

    /// The partition that owns `id`, from 0.
    #[inline]
    #[must_use]
    pub const fn owner(self, id: Id) -> usize {
        slot(id, self.run_bits) & (self.count() - 1)
    }
}

/// The slot of an id, of numbers in runs of `2^run_bits`. A part of the format of databases: it never
/// changes.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "below the number of slots")]
const fn slot(id: Id, run_bits: u32) -> usize {
    let bits = match id.tag() {
        Tag::Vertex | Tag::Edge | Tag::Literal => id.payload() >> run_bits,
        _ => mix(id.bits()) >> 28,
    };
    (bits & (SLOTS as u64 - 1)) as usize
}

/// The mixer of SplitMix64 (Steele et al., OOPSLA 2014).
const fn mix(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inline_id;

    #[test]
    fn a_number_of_partitions_is_a_power_of_two() {
        for (count, is_one) in [(0, false), (1, true), (3, false), (16, true), (4_096, true), (8_192, false)]
        {
            let found = Partitioning::new(count);
            assert_eq!(found.is_some(), is_one, "{count}");
            assert!(found.is_none_or(|found| found.count() == count), "{count}");
        }
    }

    /// These are a format: databases on disk depend on them.
    #[test]
    fn slots_never_change() {
        assert_eq!(
            [0, 5, 4_095, 4_096, 70_000].map(|number| slot(Id::vertex(number), 0)),
            [0, 5, 4_095, 0, 368]
        );
        assert_eq!(
            [0, 5, 4_095, 1 << 20, 70_000].map(|number| slot(Id::vertex(number), 8)),
            [0, 0, 15, 0, 273]
        );
        assert_eq!(slot(Id::edge(4_097), 0), 1);
        assert_eq!(slot(Id::literal(17), 0), 17);
        let values = [("a", "string"), ("1", "integer"), ("2026-11-27", "date")];
        let found = values.map(|(text, datatype)| {
            slot(
                inline_id(text, &format!("http://www.w3.org/2001/XMLSchema#{datatype}"))
                    .expect("a value inside an id"),
                8,
            )
        });
        assert_eq!(found, [2_562, 1_823, 3_101]);
    }

    #[test]
    fn doubling_cuts_each_partition_in_two() {
        let of = |bits, run_bits| Partitioning { bits, run_bits };
        for (run_bits, number) in
            (0..9).flat_map(|run_bits| (0..10_000).map(move |number| (run_bits, number)))
        {
            let (four, eight) = (of(2, run_bits), of(3, run_bits));
            for id in [Id::vertex(number), Id::new(Tag::Integer, number * 7_919)] {
                assert_eq!(eight.owner(id) % 4, four.owner(id));
            }
        }
    }

    #[test]
    fn runs_leave_each_partition_several() {
        let four = Partitioning::new(4).expect("a power of two");
        for (vertices, run_bits) in
            [(0, 0), (255, 0), (256, 1), ((1 << 19) - 1, 11), (1 << 19, 12), (1 << 40, 12)]
        {
            assert_eq!(four.for_vertices(vertices).run_bits(), run_bits, "{vertices}");
        }
        assert!(four.with_runs(13).is_none());
    }
}
