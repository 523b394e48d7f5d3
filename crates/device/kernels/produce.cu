// Produce: tests candidates and writes a row for each that passes, with the columns that later steps read.
//
// One thread handles one candidate, not one row, so a vertex with millions of neighbours is spread over many
// blocks. The rows of a tile are found by two searches in `ends`, and the row of a candidate by one more in a
// copy of that part in shared memory.
#include "primitives.cuh"
#include "window.cuh"

#define TESTS_MAX 4

// What a test finds for a candidate: `vervet_expression::IdOutcome`.
enum Outcome { REJECTED = 0, ACCEPTED = 1, UNDECIDED = 2 };

enum TestKind {
  TEST_ENTRY = 0,      // the entry `key -> neighbour` exists
  TEST_INTERVALS = 1,  // the outcome of the interval of `key`
  TEST_SAME = 2,       // relations of `key` and `neighbour`; `wanted`: whether the relation must hold
  TEST_EQUAL = 3,
  TEST_LESS = 4,
};

struct Test {
  u64 kind;
  u64 wanted;
  Operand key;
  Operand neighbour;
  Windows windows;  // intervals: their first values as `last_keys`, ascending from 0; outcomes as `addresses`
};

// Sets of tags of ids: `vervet_model::Tag`.
#define TAGS_RESOURCE 0x0006u   // vertices and edges
#define TAGS_INLINE 0x7ff0u     // values inside the id
#define TAGS_INTEGER 0x1820u    // integers, whose payloads compare with each other
#define TAGS_CANONICAL 0x0710u  // different ids of one of these tags are different values, in their order
#define TAG_OF_LITERALS 0x0008u
#define TAG_OF_DOUBLES 0x0080u
#define PAYLOAD_MASK ((1ull << 60) - 1)

// The same as `equal_ids` and `compare_ids` in `vervet_expression`.
VERVET_DEVICE u32 relation_outcome(const Test& test, u64 a, u64 b) {
  if (a == 0 || b == 0) return REJECTED;
  u32 a_tag = 1u << (a >> 60), b_tag = 1u << (b >> 60);
  bool integers = (a_tag & TAGS_INTEGER) && (b_tag & TAGS_INTEGER);
  u64 a_payload = a & PAYLOAD_MASK, b_payload = b & PAYLOAD_MASK;
  bool holds = a == b;
  if (test.kind == TEST_EQUAL) {
    if (integers) {
      holds = a_payload == b_payload;
    } else if (holds) {
      if (!(a_tag & (TAGS_RESOURCE | (TAGS_INLINE & ~TAG_OF_DOUBLES)))) return UNDECIDED;
    } else {
      u32 others = TAGS_RESOURCE | TAG_OF_LITERALS | TAGS_INLINE;
      bool different = ((a_tag & TAGS_RESOURCE) && (b_tag & others)) ||
                       ((b_tag & TAGS_RESOURCE) && (a_tag & others)) ||
                       (a_tag == b_tag && (a_tag & TAGS_CANONICAL));
      if (!different) return UNDECIDED;
    }
  } else if (test.kind == TEST_LESS) {
    if (!integers && !(a_tag == b_tag && (a_tag & TAGS_CANONICAL))) return UNDECIDED;
    holds = a_payload < b_payload;
  }
  return holds == (test.wanted != 0) ? ACCEPTED : REJECTED;
}

VERVET_DEVICE u32 outcome_of(const Test& test, u64 row, u64 candidate) {
  u64 key = value_of(test.key, row, candidate);
  if (test.kind == TEST_INTERVALS) {
    u64 low = 1, high = test.windows.count;
    while (low < high) {
      u64 middle = (low + high) / 2;
      if (test.windows.last_keys[middle] <= key) low = middle + 1;
      else high = middle;
    }
    return (u32)test.windows.addresses[low - 1];
  }
  u64 neighbour = value_of(test.neighbour, row, candidate);
  if (test.kind == TEST_ENTRY) return is_member(test.windows, key, neighbour) ? ACCEPTED : REJECTED;
  return relation_outcome(test, key, neighbour);
}

// Its words are those of `vervet_device::Produce`.
struct ProduceParameters {
  u64 rows;
  u64 first;            // candidates from `first` to `last`
  u64 last;
  const u64* starts;    // null: each row is its own, only candidate
  const u64* ends;
  u64 legs;             // of the intersection; the candidate must be a neighbour in each
  Leg leg[LEGS_MAX];
  u64 tests;
  Test test[TESTS_MAX];
  u64 undecided;        // nonzero: keeps the candidates that no test rejects and some test does not decide
  const u64* times;     // multiplicities of the rows; null: 1
  const u64* factors;   // multiplied with them; a row with factor 0 is dropped
  u64* times_to;
  u64* counts;          // if set: counts passing candidates by row and writes nothing else
  u64* values_to;       // receives the candidates
  u64 columns;
  const u64* from[COLUMNS_MAX];
  u64* to[COLUMNS_MAX];
  u64 capacity;
  u64* states;
  Status* status;
};

// The first row in [low, high) whose end is above `candidate`.
VERVET_DEVICE u64 row_of(const u64* ends, u64 low, u64 high, u64 candidate) {
  while (low < high) {
    u64 middle = (low + high) / 2;
    if (ends[middle] <= candidate) low = middle + 1;
    else high = middle;
  }
  return low;
}

VERVET_KERNEL(vervet_produce, ProduceParameters) {
  VERVET_SHARED u64 shared[WARPS + 1];
  VERVET_SHARED u32 ends_of_tile[TILE];
  VERVET_SHARED u64 bounds[2];
  VERVET_SHARED u64 extremes[2];
  VERVET_SHARED u64 passed[TESTS_MAX];
  VERVET_SHARED u64 before;
  VERVET_SHARED u64 tile_of_block;
  u64 tiles = (p.last - p.first + TILE - 1) / TILE;
  for (;;) {
    u64 tile = next_tile(p.status, &tile_of_block);
    if (tile >= tiles) return;
    u64 base = p.first + tile * TILE;
    u64 stop = base + TILE < p.last ? base + TILE : p.last;
    if (thread_number < 2 && p.ends) {
      bounds[thread_number] = row_of(p.ends, 0, p.rows, thread_number == 0 ? base : stop - 1);
    }
    if (thread_number == 0) {
      extremes[0] = ~0ull;
      extremes[1] = 0;
    }
    if (thread_number < TESTS_MAX) passed[thread_number] = 0;
    block_barrier();
    u64 low = bounds[0], rows_of_tile = bounds[1] - low + 1;
    // Rows without candidates may lie between those with some: then the ends may not fit.
    bool fits = p.ends && rows_of_tile <= TILE;
    if (fits) {
      for (u32 i = thread_number; i < rows_of_tile; i += VERVET_BLOCK) {
        u64 end = p.ends[low + i] - base;
        ends_of_tile[i] = end < TILE ? (u32)end : TILE;
      }
    }
    block_barrier();
    // Thread `t` has the candidates t, t + VERVET_BLOCK, ...: neighbouring threads read neighbouring entries.
    u64 row[ITEMS], value[ITEMS], least = ~0ull, greatest = 0;
    // `passes`: the candidates of this thread that passed each test, 8 bits for each.
    u32 kept = 0, passes = 0, any_undecided = 0;
    UNROLL
    for (int i = 0; i < ITEMS; i++) {
      u64 candidate = base + thread_number + (u64)i * VERVET_BLOCK;
      row[i] = 0;
      value[i] = 0;
      if (candidate < stop) {
        u64 r = candidate, v = 0;
        u32 own_leg = 0, seen = 0;
        bool pass = true;
        if (p.ends) {
          if (fits) {
            u32 wanted = (u32)(candidate - base), from = 0, to = (u32)rows_of_tile;
            while (from < to) {
              u32 middle = (from + to) / 2;
              if (ends_of_tile[middle] <= wanted) from = middle + 1;
              else to = middle;
            }
            r = low + from;
          } else {
            r = row_of(p.ends, low, low + rows_of_tile, candidate);
          }
          u64 start = p.starts[r];
          own_leg = (u32)(start >> 61);
          const u8* window = window_at(p.leg[own_leg].windows, start >> 32 & 0x1fffffff);
          v = neighbour_at(window, (start & 0xffffffff) + (candidate - (r ? p.ends[r - 1] : 0)));
        }
        if (p.factors && p.factors[r] == 0) pass = false;
        for (u32 leg = 0; leg < p.legs && pass; leg++) {
          if (leg != own_leg) pass = is_member(p.leg[leg].windows, value_of(p.leg[leg].key, r, v), v);
        }
        for (u32 t = 0; t < p.tests && pass; t++) {
          u32 outcome = outcome_of(p.test[t], r, v);
          seen |= outcome;
          pass = p.undecided ? outcome != REJECTED : outcome == ACCEPTED;
          passes += (u32)pass << (8 * t);
        }
        if (p.undecided && !(seen & UNDECIDED)) pass = false;
        any_undecided |= seen & UNDECIDED;
        row[i] = r;
        value[i] = v;
        if (pass) {
          kept |= 1u << i;
          if (v < least) least = v;
          if (v > greatest) greatest = v;
        }
      }
    }
    if (kept) {
      atomic_min(&extremes[0], least);
      atomic_max(&extremes[1], greatest);
    }
    for (u32 t = 0; t < p.tests; t++) {
      u32 count = passes >> (8 * t) & 0xff;
      if (count) atomic_add(&passed[t], count);
    }
    if (any_undecided) atomic_max(&p.status->undecided, 1);
    u64 total;
    u32 own = block_scan(count_bits(kept), &total, shared);
    u64 at = look_back(p.states, tile, total, &before) + own;
    UNROLL
    for (int i = 0; i < ITEMS; i++) {
      if (kept >> i & 1) {
        if (p.counts) {
          atomic_add(&p.counts[row[i]], 1);
        } else if (at < p.capacity) {
          for (u64 column = 0; column < p.columns; column++) p.to[column][at] = p.from[column][row[i]];
          if (p.values_to) p.values_to[at] = value[i];
          if (p.times_to) {
            u64 times = p.times ? p.times[row[i]] : 1, factor = p.factors ? p.factors[row[i]] : 1;
            p.times_to[at] = times * factor;
            if (multiply_high(times, factor)) atomic_max(&p.status->overflow, 1);
          }
        }
        at++;
      }
    }
    if (thread_number == 0 && total) {
      atomic_min(&p.status->least, extremes[0]);
      atomic_max(&p.status->greatest, extremes[1]);
    }
    if (thread_number < TESTS_MAX && passed[thread_number]) {
      atomic_add(&p.status->passed[thread_number], passed[thread_number]);
    }
    if (tile == tiles - 1 && thread_number == VERVET_BLOCK - 1) {
      p.status->rows = at;
      if (!p.counts && at > p.capacity) atomic_max(&p.status->overflow, 1);
    }
  }
}
