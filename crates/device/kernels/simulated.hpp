// A device in software: every thread of a block is a fibre of one thread of the operating system.
//
// Barriers, shuffles and atomics have their exact meaning. A fibre runs until it reaches a barrier or a
// shuffle; a seed decides the order in which the fibres of a block run between two of them, so code that
// lacks a barrier gives different results with different seeds. The blocks of a launch run one after the
// other: what one block may see of another that runs at the same time is not simulated.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

typedef uint8_t u8;
typedef uint32_t u32;
typedef unsigned long long u64;
typedef int32_t i32;

// Two warps: the least block in which warps have to cooperate.
#ifndef VERVET_BLOCK
#define VERVET_BLOCK 64
#endif
#define VERVET_KERNEL(name, Parameters) static void name(const Parameters& p)
#define VERVET_DEVICE static inline
#define VERVET_SHARED static thread_local
#define UNROLL

namespace simulated {

enum class State { Ready, AtBarrier, AtShuffle, Done };

const size_t STACK_BYTES = 128 << 10;

struct Fibre {
  u8* stack = nullptr;
  State state = State::Ready;
#if defined(__x86_64__)
  void* stack_pointer = nullptr;
#else
  ucontext_t context;
#endif
};

typedef void (*Body)(const void* parameters);

struct Block {
  Fibre fibres[VERVET_BLOCK];
  u64 exchanged[VERVET_BLOCK];
  u32 current = 0;
  u32 number = 0;
  u32 count = 1;
  u64 random = 1;
  Body body = nullptr;
  const void* parameters = nullptr;
#if defined(__x86_64__)
  void* scheduler = nullptr;
#else
  ucontext_t scheduler;
#endif
  ~Block() {
    for (Fibre& fibre : fibres)
      if (fibre.stack) munmap(fibre.stack, STACK_BYTES);
  }
};

inline thread_local Block block;

#if defined(__x86_64__)
// Saves the registers that a call preserves, and continues on another stack.
extern "C" void vervet_simulated_switch(void** from, void* to);
asm(R"(
.text
.p2align 4
.globl vervet_simulated_switch
.hidden vervet_simulated_switch
.type vervet_simulated_switch,@function
vervet_simulated_switch:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  ret
.size vervet_simulated_switch,.-vervet_simulated_switch
)");
#endif

inline void to_scheduler(State state) {
  Fibre& fibre = block.fibres[block.current];
  fibre.state = state;
#if defined(__x86_64__)
  vervet_simulated_switch(&fibre.stack_pointer, block.scheduler);
#else
  swapcontext(&fibre.context, &block.scheduler);
#endif
}

inline void to_fibre(u32 number) {
  block.current = number;
  Fibre& fibre = block.fibres[number];
#if defined(__x86_64__)
  vervet_simulated_switch(&block.scheduler, fibre.stack_pointer);
#else
  swapcontext(&block.scheduler, &fibre.context);
#endif
}

inline void entry() {
  block.body(block.parameters);
  to_scheduler(State::Done);
  __builtin_trap();  // A fibre that is done is not resumed.
}

inline bool start(Fibre& fibre) {
  if (!fibre.stack) {
    void* memory = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    fibre.stack = (u8*)memory;
  }
  fibre.state = State::Ready;
#if defined(__x86_64__)
  // The first switch pops six registers and returns to `entry`, which finds the stack as after a call.
  void** top = (void**)(fibre.stack + STACK_BYTES - 16);
  *--top = nullptr;
  *--top = (void*)entry;
  for (int i = 0; i < 6; i++) *--top = nullptr;
  fibre.stack_pointer = top;
#else
  getcontext(&fibre.context);
  fibre.context.uc_stack.ss_sp = fibre.stack;
  fibre.context.uc_stack.ss_size = STACK_BYTES;
  fibre.context.uc_link = nullptr;
  makecontext(&fibre.context, entry, 0);
#endif
  return true;
}

inline u64 next_random() {
  u64& x = block.random;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return x;
}

// Runs one block; false: its threads wait for each other for ever, or there is no memory for stacks.
inline bool run_block() {
  for (Fibre& fibre : block.fibres)
    if (!start(fibre)) return false;
  for (;;) {
    // Fibres run in a rotation of their order, forwards or backwards.
    u64 random = next_random();
    u32 shift = random % VERVET_BLOCK;
    bool backwards = random >> 32 & 1;
    for (u32 k = 0; k < VERVET_BLOCK; k++) {
      u32 number = (k + shift) % VERVET_BLOCK;
      if (backwards) number = VERVET_BLOCK - 1 - number;
      if (block.fibres[number].state == State::Ready) to_fibre(number);
    }
    u32 ready = 0, done = 0, at_barrier = 0;
    for (u32 warp = 0; warp < VERVET_BLOCK; warp += 32) {
      u32 arrived = 0;
      for (u32 l = 0; l < 32; l++) arrived += block.fibres[warp + l].state == State::AtShuffle;
      if (arrived == 32)
        for (u32 l = 0; l < 32; l++) block.fibres[warp + l].state = State::Ready;
    }
    for (Fibre& fibre : block.fibres) {
      ready += fibre.state == State::Ready;
      done += fibre.state == State::Done;
      at_barrier += fibre.state == State::AtBarrier;
    }
    if (done == VERVET_BLOCK) return true;
    if (ready > 0) continue;
    // As on a device, a barrier needs all threads of the block.
    if (at_barrier != VERVET_BLOCK) return false;
    for (Fibre& fibre : block.fibres) fibre.state = State::Ready;
  }
}

inline u64 exchange(u64 value, u32 source) {
  u32 self = block.current;
  block.exchanged[self] = value;
  to_scheduler(State::AtShuffle);
  u64 result = block.exchanged[(self & ~31u) + (source & 31)];
  to_scheduler(State::AtShuffle);
  return result;
}

}  // namespace simulated

#define thread_number (simulated::block.current)
#define block_number (simulated::block.number)
#define block_count (simulated::block.count)
VERVET_DEVICE u32 lane() { return thread_number & 31; }
VERVET_DEVICE u64 shuffle_up(u64 value, u32 distance) {
  u32 own = lane();
  return simulated::exchange(value, own >= distance ? own - distance : own);
}
VERVET_DEVICE u32 count_bits(u64 value) { return __builtin_popcountll(value); }
VERVET_DEVICE void block_barrier() { simulated::to_scheduler(simulated::State::AtBarrier); }
VERVET_DEVICE u64 multiply_high(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
VERVET_DEVICE u64 atomic_add(u64* at, u64 value) { return __atomic_fetch_add(at, value, __ATOMIC_RELAXED); }
VERVET_DEVICE u64 atomic_compare_exchange(u64* at, u64 expected, u64 value) {
  u64 before = *at;
  if (before == expected) *at = value;
  return before;
}
VERVET_DEVICE void atomic_min(u64* at, u64 value) { if (value < *at) *at = value; }
VERVET_DEVICE void atomic_max(u64* at, u64 value) { if (value > *at) *at = value; }
VERVET_DEVICE u64 load_acquire(const u64* at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
VERVET_DEVICE void store_release(u64* at, u64 value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
