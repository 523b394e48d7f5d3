// A CUDA driver in software, for tests: the functions that cuda.rs calls, on memory of the host.
// As on a GPU: cuda.rs sizes launches for it.
#define VERVET_BLOCK 256
#include "../kernels/simulated.cpp"
#include <cstdlib>
#include <map>
#include <mutex>

namespace {
std::mutex lock;  // of allocations
std::map<u64, size_t> allocations;
size_t used = 0;
const size_t TOTAL = 64 << 20;
thread_local bool current = false;
int broken = 0;  // every call fails with this error
char functions[5], module, context;  // functions: by their numbers
const char* const NAMES[] = {"vervet_locate", "vervet_produce", "vervet_number", "vervet_mark", "vervet_combine"};
const size_t SIZES[] = {sizeof(LocateParameters), sizeof(ProduceParameters), sizeof(NumberParameters),
                        sizeof(MarkParameters), sizeof(CombineParameters)};
int result(int own) { return broken ? broken : own; }
}  // namespace

extern "C" {
int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }
int cuDriverGetVersion(int* version) {
  *version = 12090;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
int cuDeviceTotalMem_v2(size_t* total, int device) {
  *total = TOTAL;
  return device == 7 ? 0 : 101;
}
int cuDeviceGet(int* device, int ordinal) {
  if (ordinal != 0) return 101;  // no such device
  *device = 7;
  return 0;
}
int cuDeviceGetName(char* name, int length, int device) {
  if (device != 7) return 101;
  strncpy(name, "driver in software", length);
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (device != 7) return 101;
  switch (attribute) {
    case 16: *value = 3; return 0;  // multiprocessors
    case 75: *value = 9; return 0;  // compute capability
    case 76: *value = 0; return 0;
  }
  return 1;
}
int cuDevicePrimaryCtxRetain(void** out, int) {
  *out = &context;
  return 0;
}
int cuDevicePrimaryCtxRelease(int) {
  current = false;
  return allocations.empty() ? 0 : 1;
}
int cuCtxSetCurrent(void* handle) {
  current = handle == &context;
  return 0;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = TOTAL - used;
  *total = TOTAL;
  return result(current ? 0 : 201);
}
int cuMemAlloc_v2(u64* address, size_t bytes) {
  if (!current) return 201;
  std::lock_guard<std::mutex> guard(lock);
  if (bytes > TOTAL - used) return 2;
  *address = (u64)malloc(bytes);
  allocations[*address] = bytes;
  used += bytes;
  return result(0);
}
int cuMemFree_v2(u64 address) {
  std::lock_guard<std::mutex> guard(lock);
  if (!allocations.count(address)) return 1;
  used -= allocations[address];
  allocations.erase(address);
  free((void*)address);
  return 0;
}
int cuMemcpyHtoD_v2(u64 to, const void* from, size_t bytes) {
  if (!broken) memcpy((void*)to, from, bytes);
  return result(current ? 0 : 201);
}
int cuMemcpyDtoH_v2(void* to, u64 from, size_t bytes) {
  if (!broken) memcpy(to, (void*)from, bytes);
  return result(current ? 0 : 201);
}
int cuMemsetD8_v2(u64 at, unsigned char value, size_t bytes) {
  if (!broken) memset((void*)at, value, bytes);
  return result(current ? 0 : 201);
}
int cuModuleLoadData(void** out, const void* image) {
  bool is_known = strcmp((const char*)image, "kernels") == 0 || memcmp(image, "\x7f" "ELF", 4) == 0;
  if (!is_known) return 209;  // no kernel image for this device
  *out = &module;
  return current ? 0 : 201;
}
int cuModuleGetFunction(void** out, void* of, const char* name) {
  if (of != &module) return 400;
  for (int number = 0; number < 5; number++) {
    if (strcmp(name, NAMES[number]) == 0) {
      *out = &functions[number];
      return 0;
    }
  }
  return 500;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads, size_t) {
  *blocks = function == &functions[0] ? 4 : 2;
  return threads == 256 ? 0 : 1;
}
int cuLaunchKernel(void* function, unsigned grid, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz,
                   unsigned shared, void* stream, void** parameters, void** extra) {
  if (!current) return 201;
  if (y != 1 || z != 1 || threads != 256 || ty != 1 || tz != 1 || shared || stream || extra) return 1;
  if (broken) return broken;
  // A kernel that fails, after some launches: nothing works from then on.
  static int launches = 0;
  const char* last = getenv("VERVET_FAKE_CUDA_LAUNCHES");
  if (last && ++launches > atoi(last)) return broken = 719;
  size_t number = (char*)function - functions;
  int done = vervet_simulated_launch(number, (const u64*)parameters[0], SIZES[number] / 8, grid, 1);
  return done == 0 ? 0 : 719;
}
// For tests: from now on calls fail with this error; 0: no more.
void vervet_break(int error) { broken = error; }
}
