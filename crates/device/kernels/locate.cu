// Locate: for each row the range of its candidates, and the number of candidates up to it.
//
// With several legs (an intersection), the candidates of a row are the neighbours in its leg of least degree;
// a row with an empty leg has none. With `factors`, only the degree in the first leg is written.
#include "primitives.cuh"
#include "window.cuh"

#define LEGS_MAX 4

struct Leg {
  Operand key;
  Windows windows;
};

// The start of the candidates of a row: leg (3 bits), window (29 bits), entry (32 bits).
VERVET_DEVICE u64 start_word(u32 leg, const Entries& entries) {
  return (u64)leg << 61 | (u64)entries.window << 32 | entries.begin;
}

// Its words are those of `vervet_device::Locate`.
struct LocateParameters {
  u64 rows;
  u64 legs;
  Leg leg[LEGS_MAX];
  u64* starts;
  u64* ends;
  u64* factors;
  u64* states;
  Status* status;
};

VERVET_KERNEL(vervet_locate, LocateParameters) {
  VERVET_SHARED u64 shared[WARPS + 1];
  VERVET_SHARED u64 before;
  VERVET_SHARED u64 tile_of_block;
  u64 tiles = (p.rows + TILE - 1) / TILE;
  for (;;) {
    u64 tile = next_tile(p.status, &tile_of_block);
    if (tile >= tiles) return;
    u64 first = tile * TILE + (u64)thread_number * ITEMS;
    u32 degrees[ITEMS];
    u64 sum = 0;
    UNROLL
    for (int i = 0; i < ITEMS; i++) {
      u64 row = first + i;
      degrees[i] = 0;
      if (row < p.rows) {
        u32 best = 0;
        Entries least = entries_of(p.leg[0].windows, value_of(p.leg[0].key, row, 0));
        for (u32 leg = 1; leg < p.legs; leg++) {
          Entries other = entries_of(p.leg[leg].windows, value_of(p.leg[leg].key, row, 0));
          if (other.end - other.begin < least.end - least.begin) {
            least = other;
            best = leg;
          }
        }
        degrees[i] = least.end - least.begin;
        if (p.factors) p.factors[row] = degrees[i];
        else p.starts[row] = start_word(best, least);
      }
      sum += degrees[i];
    }
    u64 total;
    u64 own = block_scan(sum, &total, shared);
    u64 end = look_back(p.states, tile, total, &before) + own;
    UNROLL
    for (int i = 0; i < ITEMS; i++) {
      end += degrees[i];
      if (!p.factors && first + i < p.rows) p.ends[first + i] = end;
    }
    if (tile == tiles - 1 && thread_number == VERVET_BLOCK - 1) p.status->candidates = end;
  }
}
