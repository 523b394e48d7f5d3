//! Parameters of device kernels, as the words of the structures in `kernels/*.cu`, field by field.

use crate::address::Address;
use std::ffi::CStr;

/// Maximum number of legs of an intersection (`LEGS_MAX`).
pub const LEGS_MAX: usize = 4;
/// Maximum number of tests of a launch (`TESTS_MAX`).
pub const TESTS_MAX: usize = 4;
/// Maximum number of columns that a launch copies (`COLUMNS_MAX`).
pub const COLUMNS_MAX: usize = 16;
/// Rows or candidates of one thread (`ITEMS`): a tile has this many for each thread of a block.
pub const ITEMS: u64 = 8;

/// A device kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Kernel {
    /// Finds the candidates of each row: [`Locate`].
    Locate = 0,
    /// Tests candidates and writes rows: [`Produce`].
    Produce = 1,
    /// Writes row numbers: [`Number`].
    Number = 2,
    /// Marks rows of another table: [`Mark`].
    Mark = 3,
    /// Adds the multiplicities of equal rows: [`Combine`].
    Combine = 4,
}

impl Kernel {
    /// All kernels, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Locate, Self::Produce, Self::Number, Self::Mark, Self::Combine];

    /// Name of its function, with a zero byte at the end.
    #[must_use]
    pub const fn symbol(self) -> &'static CStr {
        match self {
            Self::Locate => c"vervet_locate",
            Self::Produce => c"vervet_produce",
            Self::Number => c"vervet_number",
            Self::Mark => c"vervet_mark",
            Self::Combine => c"vervet_combine",
        }
    }

    /// Number of words of its parameters.
    #[must_use]
    pub const fn parameter_words(self) -> usize {
        // An operand and windows have 3 words each.
        const LEGS_WORDS: usize = 1 + 6 * LEGS_MAX;
        match self {
            Self::Locate => 1 + LEGS_WORDS + 5,
            Self::Produce => 5 + LEGS_WORDS + 1 + 11 * TESTS_MAX + 6 + 1 + 2 * COLUMNS_MAX + 3,
            Self::Number => 2,
            Self::Mark => 4,
            Self::Combine => 2 + COLUMNS_MAX + 7,
        }
    }
}

/// A value for each row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    /// The same for all.
    Constant(u64),
    /// A column.
    Column(Address),
    /// The candidate itself.
    Candidate,
}

impl Operand {
    fn push(self, words: &mut Vec<u64>) {
        words.extend(match self {
            Self::Constant(value) => [0, value, 0],
            Self::Column(column) => [1, 0, column.0],
            Self::Candidate => [2, 0, 0],
        });
    }
}

/// The windows of a segment that a launch may read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Windows {
    /// The last key of each window, ascending.
    pub last_keys: Address,
    /// The address of each window.
    pub addresses: Address,
    /// Number of windows, less than 2^29.
    pub count: u64,
}

impl Windows {
    fn push(self, words: &mut Vec<u64>) {
        words.extend([self.last_keys.0, self.addresses.0, self.count]);
    }
}

/// A leg of an intersection, or the only source of candidates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leg {
    /// The key in each row.
    pub key: Operand,
    /// The segment.
    pub windows: Windows,
}

/// Intervals of all values, with an outcome for each: 0 rejects a candidate, 1 accepts it, 2 leaves it
/// undecided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Intervals {
    /// The first value of each interval, ascending from 0.
    pub starts: Address,
    /// The outcome of each.
    pub outcomes: Address,
    /// Number of intervals, at least one.
    pub count: u64,
}

/// A relation of two ids: that of the same name in `vervet-expression`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Relation {
    /// The same bits.
    Same = 2,
    /// Equal values.
    Equal = 3,
    /// The left value is less.
    Less = 4,
}

/// A test of a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Test {
    /// The entry `key -> neighbour` exists.
    Entry {
        /// The key.
        key: Operand,
        /// The neighbour.
        neighbour: Operand,
        /// The segment.
        windows: Windows,
    },
    /// The outcome of the interval of a value.
    Interval {
        /// The value.
        value: Operand,
        /// The intervals.
        intervals: Intervals,
    },
    /// Whether a relation holds is `wanted`. Rejects 0 on either side.
    Pair {
        /// The relation.
        relation: Relation,
        /// The left value.
        left: Operand,
        /// The right value.
        right: Operand,
        /// Whether it must hold.
        wanted: bool,
    },
}

impl Test {
    fn push(self, words: &mut Vec<u64>) {
        let zero = Operand::Constant(0);
        let (kind, wanted, key, neighbour, windows) = match self {
            Self::Entry { key, neighbour, windows } => (0, 1, key, neighbour, windows),
            Self::Interval { value, intervals: Intervals { starts, outcomes, count } } => {
                (1, 1, value, zero, Windows { last_keys: starts, addresses: outcomes, count })
            }
            Self::Pair { relation, left, right, wanted } => {
                (relation as u64, u64::from(wanted), left, right, Windows::default())
            }
        };
        words.extend([kind, wanted]);
        key.push(words);
        neighbour.push(words);
        windows.push(words);
    }
}

fn push_legs(legs: &[Leg], words: &mut Vec<u64>) {
    words.push(legs.len().min(LEGS_MAX) as u64);
    for place in 0..LEGS_MAX {
        let leg = legs.get(place).copied();
        let leg = leg.unwrap_or(Leg { key: Operand::Constant(0), windows: Windows::default() });
        leg.key.push(words);
        leg.windows.push(words);
    }
}

/// Parameters of [`Kernel::Locate`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Locate {
    /// Number of rows.
    pub rows: u64,
    /// Where candidates come from; at most [`LEGS_MAX`].
    pub legs: Vec<Leg>,
    /// Receives the start of the candidates of each row.
    pub starts: Address,
    /// Receives the number of candidates up to and including each row.
    pub ends: Address,
    /// If set, receives the degree of each row instead.
    pub factors: Address,
    /// A cleared word for each tile.
    pub states: Address,
    /// A cleared [`Status`].
    pub status: Address,
}

impl Locate {
    /// The words of the parameters.
    #[must_use]
    pub fn words(&self) -> Vec<u64> {
        let mut words = vec![self.rows];
        push_legs(&self.legs, &mut words);
        words.extend([self.starts, self.ends, self.factors, self.states, self.status].map(|at| at.0));
        words
    }
}

/// Parameters of [`Kernel::Produce`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Produce {
    /// Number of rows.
    pub rows: u64,
    /// The first candidate.
    pub first: u64,
    /// The end of the candidates.
    pub last: u64,
    /// [`Locate::starts`]; none: each row is its own, only candidate, without a value.
    pub starts: Address,
    /// [`Locate::ends`].
    pub ends: Address,
    /// [`Locate::legs`].
    pub legs: Vec<Leg>,
    /// Tests, in their order; at most [`TESTS_MAX`].
    pub tests: Vec<Test>,
    /// Keeps the candidates that no test rejects and some test does not decide, in place of those that all
    /// tests accept.
    pub undecided: bool,
    /// Multiplicities of the rows; none: 1.
    pub times: Address,
    /// Factors of the multiplicities; a row with factor 0 is dropped. None: 1.
    pub factors: Address,
    /// Receives the products.
    pub times_to: Address,
    /// If set, receives the number of passing candidates of each row, and nothing else is written.
    pub counts: Address,
    /// Receives the candidates.
    pub values_to: Address,
    /// Columns to copy, from and to; at most [`COLUMNS_MAX`].
    pub columns: Vec<(Address, Address)>,
    /// Output rows that fit.
    pub capacity: u64,
    /// A cleared word for each tile.
    pub states: Address,
    /// A cleared [`Status`].
    pub status: Address,
}

impl Produce {
    /// The words of the parameters.
    #[must_use]
    pub fn words(&self) -> Vec<u64> {
        let mut words = vec![self.rows, self.first, self.last, self.starts.0, self.ends.0];
        push_legs(&self.legs, &mut words);
        words.push(self.tests.len().min(TESTS_MAX) as u64);
        let zero = Operand::Constant(0);
        let none = Test::Entry { key: zero, neighbour: zero, windows: Windows::default() };
        for place in 0..TESTS_MAX {
            self.tests.get(place).unwrap_or(&none).push(&mut words);
        }
        words.push(u64::from(self.undecided));
        words.extend([self.times, self.factors, self.times_to, self.counts, self.values_to].map(|at| at.0));
        words.push(self.columns.len().min(COLUMNS_MAX) as u64);
        let column = |place| self.columns.get(place).copied().unwrap_or_default();
        words.extend((0..COLUMNS_MAX).map(|place| column(place).0.0));
        words.extend((0..COLUMNS_MAX).map(|place| column(place).1.0));
        words.extend([self.capacity, self.states.0, self.status.0]);
        words
    }
}

/// Parameters of [`Kernel::Number`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Number {
    /// Number of rows.
    pub rows: u64,
    /// Receives the numbers of the rows, from 0.
    pub to: Address,
}

impl Number {
    /// The words of the parameters.
    #[must_use]
    pub fn words(&self) -> Vec<u64> {
        vec![self.rows, self.to.0]
    }
}

/// Parameters of [`Kernel::Mark`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Number of rows.
    pub rows: u64,
    /// A position for each row.
    pub positions: Address,
    /// The mark at each of these positions becomes this value, unless it is greater.
    pub value: u64,
    /// The marks.
    pub marks: Address,
}

impl Mark {
    /// The words of the parameters.
    #[must_use]
    pub fn words(&self) -> Vec<u64> {
        vec![self.rows, self.positions.0, self.value, self.marks.0]
    }
}

/// Parameters of [`Kernel::Combine`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Combine {
    /// Number of rows.
    pub rows: u64,
    /// The columns; at most [`COLUMNS_MAX`]. Rows are equal if all of them are.
    pub columns: Vec<Address>,
    /// Bit set of columns: a row with a double or a literal there is not combined with others.
    pub alone: u64,
    /// Whether the total of each distinct row is 1.
    pub once: bool,
    /// Multiplicities of the rows; none: 1.
    pub times: Address,
    /// Cleared; receives the sum of the multiplicities of equal rows at one of them.
    pub totals: Address,
    /// Cleared words, a power of two and more than rows.
    pub slots: Address,
    /// Number of slots.
    pub slot_count: u64,
    /// A cleared [`Status`].
    pub status: Address,
}

impl Combine {
    /// The words of the parameters.
    #[must_use]
    pub fn words(&self) -> Vec<u64> {
        let mut words = vec![self.rows, self.columns.len().min(COLUMNS_MAX) as u64];
        words.extend((0..COLUMNS_MAX).map(|place| self.columns.get(place).copied().unwrap_or_default().0));
        words.extend([self.alone, u64::from(self.once), self.times.0, self.totals.0, self.slots.0]);
        words.extend([self.slot_count.saturating_sub(1), self.status.0]);
        words
    }
}

/// Number of words of a [`Status`].
pub const STATUS_WORDS: usize = 7 + TESTS_MAX;

/// Counters of one launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// Output rows.
    pub rows: u64,
    /// Candidates of all input rows.
    pub candidates: u64,
    /// Whether a multiplicity, or the output, was too large.
    pub overflow: bool,
    /// Bounds of the new values; the first is above the second if there are none.
    pub bounds: (u64, u64),
    /// Candidates that passed each test and those before it.
    pub passed: [u64; TESTS_MAX],
    /// Whether a test did not decide some candidate.
    pub undecided: bool,
}

impl Status {
    /// The words before a launch.
    pub const CLEARED: [u64; STATUS_WORDS] = {
        let mut words = [0; STATUS_WORDS];
        words[4] = u64::MAX;
        words
    };

    /// The status with these words.
    #[must_use]
    pub fn from_words(words: [u64; STATUS_WORDS]) -> Self {
        let [rows, candidates, overflow, _tiles, least, greatest, passed @ .., undecided] = words;
        let (overflow, undecided) = (overflow != 0, undecided != 0);
        Self { rows, candidates, overflow, bounds: (least, greatest), passed, undecided }
    }
}
