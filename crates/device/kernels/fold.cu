// Fold: kernels that write one word for a row of another table, in any order: positions of rows, marks of
// rows that have a match, and the sum of the multiplicities of equal rows.
//
// None of them has a barrier: threads meet only in atomics, and what they read was written by an earlier
// launch.
#include "primitives.cuh"

// Its words are those of `vervet_device::Number`.
struct NumberParameters {
  u64 rows;
  u64* to;  // receives 0, 1, 2, ...
};

VERVET_KERNEL(vervet_number, NumberParameters) {
  u64 stride = (u64)block_count * VERVET_BLOCK;
  for (u64 row = (u64)block_number * VERVET_BLOCK + thread_number; row < p.rows; row += stride) p.to[row] = row;
}

// Its words are those of `vervet_device::Mark`.
struct MarkParameters {
  u64 rows;
  const u64* positions;  // a position for each row
  u64 value;
  u64* marks;            // the mark at that position becomes `value`, unless it is greater
};

VERVET_KERNEL(vervet_mark, MarkParameters) {
  u64 stride = (u64)block_count * VERVET_BLOCK;
  for (u64 row = (u64)block_number * VERVET_BLOCK + thread_number; row < p.rows; row += stride) {
    atomic_max(&p.marks[p.positions[row]], p.value);
  }
}

// Combines equal rows: the first thread that enters a row into a hash table represents all equal ones. Its
// words are those of `vervet_device::Combine`.
struct CombineParameters {
  u64 rows;
  u64 columns;
  const u64* column[COLUMNS_MAX];
  u64 alone;         // bit set of columns: a row with a double or a literal there is never combined
  u64 once;          // nonzero: the total of each representative is 1
  const u64* times;  // multiplicities of the rows; null: 1
  u64* totals;       // cleared; receives the sum of the multiplicities at the representative, 0 elsewhere
  u64* slots;        // cleared; a row number and one, or 0
  u64 mask;          // number of slots less one; slots are a power of two, and more than rows
  Status* status;
};

#define TAG_LITERAL 3
#define TAG_DOUBLE 7
#define TAG_COMPUTED 15

// A finalizer of MurmurHash3 (A. Appleby, 2011): every bit of the input changes half of the output's.
VERVET_DEVICE u64 mixed(u64 value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccdull;
  value ^= value >> 33;
  value *= 0xc4ceb9fe1a85ec53ull;
  return value ^ value >> 33;
}

VERVET_DEVICE void add_total(const CombineParameters& p, u64 row, u64 times) {
  u64 before = atomic_add(&p.totals[row], times);
  if (before + times < before) atomic_max(&p.status->overflow, 1);
}

VERVET_KERNEL(vervet_combine, CombineParameters) {
  u64 stride = (u64)block_count * VERVET_BLOCK;
  // The sum of the last rows of this thread that had the same representative: one atomic for all.
  u64 pending = 0, pending_row = 0;
  for (u64 row = (u64)block_number * VERVET_BLOCK + thread_number; row < p.rows; row += stride) {
    u64 times = p.times ? p.times[row] : 1;
    u64 hash = 0;
    bool is_alone = false;
    for (u64 column = 0; column < p.columns; column++) {
      u64 value = p.column[column][row];
      u64 tag = value >> 60;
      hash = mixed(hash ^ value) + column;
      is_alone |= (p.alone >> column & 1) && (tag == TAG_LITERAL || tag == TAG_DOUBLE || tag == TAG_COMPUTED);
    }
    if (is_alone) {
      p.totals[row] = times;
      continue;
    }
    u64 representative = row;
    for (u64 slot = hash & p.mask;; slot = (slot + 1) & p.mask) {
      u64 seen = atomic_compare_exchange(&p.slots[slot], 0, row + 1);
      if (seen == 0) break;
      representative = seen - 1;
      bool is_equal = true;
      for (u64 column = 0; column < p.columns && is_equal; column++) {
        is_equal = p.column[column][row] == p.column[column][representative];
      }
      if (is_equal) break;
      representative = row;
    }
    if (p.once) {
      // Every thread writes the same.
      atomic_max(&p.totals[representative], 1);
    } else if (pending && pending_row == representative && pending + times >= pending) {
      pending += times;
    } else {
      if (pending) add_total(p, pending_row, pending);
      pending = times;
      pending_row = representative;
    }
  }
  if (pending) add_total(p, pending_row, pending);
}
