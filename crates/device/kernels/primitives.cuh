// Block-wide scan and decoupled look-back: the position of each thread's output among the outputs of all
// threads of a launch, in one pass.
//
// Source: D. Merrill, M. Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", NVIDIA 2016.
// Tiles take their numbers from a counter, so a tile only waits for tiles that have started before it.
//
// Shared memory of these functions may be read until the next barrier, and each has a barrier before its last
// read. So a function that is called again in a loop needs one more barrier in between; in both kernels those
// of the other two functions are there.
#pragma once
#include "dialect.cuh"

#define ITEMS 8
#define TILE (VERVET_BLOCK * ITEMS)
#define WARPS (VERVET_BLOCK / 32)

// Maximum number of columns that a launch reads or copies.
#define COLUMNS_MAX 16

// Counters of one launch, cleared before it. Its words are those of `vervet_device::Status`.
struct Status {
  u64 rows;        // output rows
  u64 candidates;  // candidates of all input rows
  u64 overflow;    // nonzero: a multiplicity or the output was too large
  u64 tiles;       // the next tile
  u64 least;       // bounds of the new values
  u64 greatest;
  u64 passed[4];   // candidates that passed each test and those before it
  u64 undecided;   // nonzero: a test did not decide some candidate that passed those before it
};

// The sum of `value` over the threads before this one; `total`: over all threads of the block.
VERVET_DEVICE u64 block_scan(u64 value, u64* total, u64* shared) {
  u32 own_lane = lane(), warp = thread_number >> 5;
  u64 sum = value;
  for (u32 distance = 1; distance < 32; distance <<= 1) {
    u64 other = shuffle_up(sum, distance);
    if (own_lane >= distance) sum += other;
  }
  if (own_lane == 31) shared[warp] = sum;
  block_barrier();
  if (thread_number == 0) {
    u64 before = 0;
    for (u32 w = 0; w < WARPS; w++) {
      u64 of_warp = shared[w];
      shared[w] = before;
      before += of_warp;
    }
    shared[WARPS] = before;
  }
  block_barrier();
  *total = shared[WARPS];
  return shared[warp] + sum - value;
}

// State of a tile: 2 bits of flags and a sum of 62 bits; 0: not known yet.
#define SUM_OF_TILE (1ull << 62)
#define SUM_UP_TO_TILE (2ull << 62)
#define SUM_MASK ((1ull << 62) - 1)

// The sum of all tiles before `tile`, whose own sum is `sum`.
VERVET_DEVICE u64 look_back(u64* states, u64 tile, u64 sum, u64* shared) {
  if (thread_number == 0) {
    u64 before = 0;
    if (tile == 0) {
      store_release(&states[0], SUM_UP_TO_TILE | sum);
    } else {
      store_release(&states[tile], SUM_OF_TILE | sum);
      bool complete = false;
      for (u64 other = tile - 1; !complete;) {
        u64 state = load_acquire(&states[other]);
        if (state != 0) {
          before += state & SUM_MASK;
          complete = (state & SUM_UP_TO_TILE) != 0;
          other--;
        }
      }
      store_release(&states[tile], SUM_UP_TO_TILE | (before + sum));
    }
    *shared = before;
  }
  block_barrier();
  return *shared;
}

// The next tile for this block.
VERVET_DEVICE u64 next_tile(Status* status, u64* shared) {
  if (thread_number == 0) *shared = atomic_add(&status->tiles, 1);
  block_barrier();
  return *shared;
}
