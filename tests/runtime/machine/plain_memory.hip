// Memory as other compilers use it: functions, constants, private arrays, pointers to any memory, tables of jumps.
#include "plain_hip.h"

__device__ const float weights[8] = {1, 2, 4, 8, 16, 32, 64, 128};
__device__ int counter = 5;

__device__ __attribute__((noinline)) float twice(float x, int *at) {
  *at += 1;
  return x * 2 + weights[*at & 7];
}

KERNEL calls(const float *in, float *out, int n) {
  int at = blockIdx.x * blockDim.x + threadIdx.x, own = at;
  if (at < n) out[at] = twice(in[at], &own) + static_cast<float>(own + counter);
}

template <int written> __device__ static inline void any_memory(const float *in, float *out, int n, int which) {
  __shared__ float shared[64];
  float own[8];
  for (int k = 0; k < written; k++) own[k] = in[(threadIdx.x + k) % n];
  shared[threadIdx.x] = in[threadIdx.x % n];
  __syncthreads();
  const float *from = which == 0 ? in : which == 1 ? static_cast<const float *>(shared) : own;
  out[threadIdx.x] = from[(threadIdx.x + which) & 7];  // fault of private
}

KERNEL pointers_right(const float *in, float *out, int n, int which) { any_memory<8>(in, out, n, which); }
KERNEL pointers_unwritten(const float *in, float *out, int n, int which) { any_memory<7>(in, out, n, which); }

KERNEL doubles(const double *in, double *out, int n) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) out[at] = __builtin_sqrt(__builtin_fabs(in[at])) / (in[at] * in[at] + 1.0);
}

KERNEL bytes(const unsigned *in, int *out, int n) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= n) return;
  unsigned v = in[at];
  long long wide = static_cast<long long>(v) * 123456789LL / ((at & 15) + 3);
  out[at] = static_cast<signed char>(v >> 8) * static_cast<int>(v >> 16 & 255) + static_cast<short>(v >> 16) +
            static_cast<int>(v % 7) + static_cast<int>(wide >> 32);
}

KERNEL jumps(const int *in, int *out, int n) {
  int at = blockIdx.x * blockDim.x + threadIdx.x, found = 0;
  if (at >= n) return;
  switch (__builtin_amdgcn_readfirstlane(in[blockIdx.x])) {
    case 0: found = at * 3; break;
    case 1: found = at ^ 55; break;
    case 2: found = at / 3; break;
    case 3: found = in[at]; break;
    case 4: found = -at; break;
    case 5: found = at % 11; break;
    default: __builtin_trap();
  }
  out[at] = found;
}
