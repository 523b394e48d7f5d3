// All device kernels, as one translation unit.
#include "locate.cu"
#include "produce.cu"
#include "fold.cu"
