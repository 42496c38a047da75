// Kernels as anybody writes them, each right, and with a fault that a comment marks.
#include "plain_hip.h"

template <bool right> __device__ static inline void reduce(const float *in, float *out, int n) {
  __shared__ float part[256];
  float sum = 0;
  for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < n; at += gridSize.x) sum += in[at];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];  // fault of reduce
    if (right) __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, part[0]);
}

template <int fault> __device__ static inline void count(const unsigned char *in, unsigned *out, int n) {
  __shared__ unsigned bins[256];
  if (fault != 2)
    for (int at = threadIdx.x; at < 256; at += blockDim.x) bins[at] = 0;  // fault of zeroing
  if (fault != 1) __syncthreads();
  for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < n; at += gridSize.x)
    atomicAdd(&bins[in[at]], 1u);  // fault of histogram
  __syncthreads();
  for (int at = threadIdx.x; at < 256; at += blockDim.x) atomicAdd(&out[at], bins[at]);
}

template <bool right> __device__ static inline void turn(const float *in, float *out, int rows, int columns) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int step = 0; step < 32; step += 8)
    if (x < columns && y + step < rows) tile[threadIdx.y + step][threadIdx.x] = in[(y + step) * columns + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int step = 0; step < 32; step += 8)
    if ((x < rows || !right) && y + step < columns)
      out[(y + step) * rows + x] = tile[threadIdx.x][threadIdx.y + step];  // fault of transpose
}

extern __shared__ float row[];

template <bool right> __device__ static inline void soften(const float *in, float *out, int columns) {
  float most = -__builtin_inff(), sum = 0;
  for (int at = threadIdx.x; at < columns; at += 64) {
    row[at] = in[blockIdx.x * columns + at];
    most = __builtin_fmaxf(most, row[at]);
  }
  for (int mask = 32; mask; mask /= 2) most = __builtin_fmaxf(most, shuffled(most, threadIdx.x ^ mask));
  for (int at = threadIdx.x; at < columns; at += 64) {
    row[at] = __builtin_expf(row[at] - most);
    sum += row[at];
  }
  for (int mask = 32; mask; mask /= 2) sum += shuffled(sum, threadIdx.x ^ mask);
  for (int at = threadIdx.x; at < columns + (right ? 0 : 1); at += 64)
    out[blockIdx.x * columns + at] = row[at] / sum;  // fault of softmax
}

KERNEL sum_right(const float *in, float *out, int n) { reduce<true>(in, out, n); }
KERNEL sum_without_barrier(const float *in, float *out, int n) { reduce<false>(in, out, n); }
KERNEL histogram_right(const unsigned char *in, unsigned *out, int n) { count<0>(in, out, n); }
KERNEL histogram_without_barrier(const unsigned char *in, unsigned *out, int n) { count<1>(in, out, n); }
KERNEL histogram_not_zeroed(const unsigned char *in, unsigned *out, int n) { count<2>(in, out, n); }
KERNEL transpose_right(const float *in, float *out, int rows, int columns) { turn<true>(in, out, rows, columns); }
KERNEL transpose_beyond(const float *in, float *out, int rows, int columns) { turn<false>(in, out, rows, columns); }
KERNEL softmax_right(const float *in, float *out, int columns) { soften<true>(in, out, columns); }
KERNEL softmax_beyond(const float *in, float *out, int columns) { soften<false>(in, out, columns); }
