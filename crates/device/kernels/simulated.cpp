// Launches of device kernels on the simulated device.
#define VERVET_SIMULATED
#include "kernels.cu"

namespace {
template <class Parameters, void (*kernel)(const Parameters&)>
void body(const void* parameters) {
  kernel(*(const Parameters*)parameters);
}

template <class Parameters, void (*kernel)(const Parameters&)>
int launch(const u64* words, u64 count, u32 blocks, u64 seed) {
  if (count * sizeof(u64) != sizeof(Parameters)) return 2;
  Parameters parameters;
  memcpy(&parameters, words, sizeof(Parameters));
  simulated::Block& block = simulated::block;
  block.random = seed | 1;
  block.body = body<Parameters, kernel>;
  block.parameters = &parameters;
  block.count = blocks;
  for (u32 number = 0; number < blocks; number++) {
    block.number = number;
    if (!simulated::run_block()) return 1;
  }
  return 0;
}
}  // namespace

// 0: done; 1: a deadlock, or no memory; 2: wrong parameters.
extern "C" int vervet_simulated_launch(u32 kernel, const u64* words, u64 count, u32 blocks, u64 seed) {
  switch (kernel) {
    case 0: return launch<LocateParameters, vervet_locate>(words, count, blocks, seed);
    case 1: return launch<ProduceParameters, vervet_produce>(words, count, blocks, seed);
    case 2: return launch<NumberParameters, vervet_number>(words, count, blocks, seed);
    case 3: return launch<MarkParameters, vervet_mark>(words, count, blocks, seed);
    case 4: return launch<CombineParameters, vervet_combine>(words, count, blocks, seed);
  }
  return 2;
}
