// The subset of CUDA C++ that device kernels use. On a device the names map to CUDA's intrinsics; with
// VERVET_SIMULATED they map to simulated.hpp, which runs the same kernels as C++ on a CPU.
//
// Rules for kernels: no recursion, no allocation, no statics but VERVET_SHARED, no divergent barrier or
// shuffle, and no global atomics but those below.
#pragma once
#ifdef VERVET_SIMULATED
#include "simulated.hpp"
#else
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
#define VERVET_KERNEL(name, Parameters) extern "C" __global__ void name(const Parameters p)
#define VERVET_DEVICE __device__ __forceinline__
#define VERVET_SHARED __shared__
#define VERVET_BLOCK 256
#define VERVET_ALL_LANES 0xffffffffu
#define UNROLL _Pragma("unroll")
#define thread_number threadIdx.x
#define block_number blockIdx.x
#define block_count gridDim.x
VERVET_DEVICE u32 lane() { return threadIdx.x & 31; }
VERVET_DEVICE u64 shuffle_up(u64 value, u32 distance) { return __shfl_up_sync(VERVET_ALL_LANES, value, distance); }
VERVET_DEVICE u32 count_bits(u64 value) { return __popcll(value); }
VERVET_DEVICE void block_barrier() { __syncthreads(); }
VERVET_DEVICE u64 multiply_high(u64 a, u64 b) { return __umul64hi(a, b); }
VERVET_DEVICE u64 atomic_add(u64* at, u64 value) { return atomicAdd(at, value); }
VERVET_DEVICE u64 atomic_compare_exchange(u64* at, u64 expected, u64 value) {
  return atomicCAS(at, expected, value);
}
VERVET_DEVICE void atomic_min(u64* at, u64 value) { atomicMin(at, value); }
VERVET_DEVICE void atomic_max(u64* at, u64 value) { atomicMax(at, value); }
VERVET_DEVICE u64 load_acquire(const u64* at) {
  u64 value;
  asm volatile("ld.acquire.gpu.u64 %0,[%1];" : "=l"(value) : "l"(at) : "memory");
  return value;
}
VERVET_DEVICE void store_release(u64* at, u64 value) {
  asm volatile("st.release.gpu.u64 [%0],%1;" ::"l"(at), "l"(value) : "memory");
}
#endif
