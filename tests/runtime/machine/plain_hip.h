// What hip_runtime.h would give these kernels: coordinates, barriers, atomic additions.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define KERNEL extern "C" __global__ void
#define COORDINATES(name, part)                                                                    \
  struct name##_type {                                                                             \
    __declspec(property(get = get_x)) int x;                                                       \
    __declspec(property(get = get_y)) int y;                                                       \
    __device__ int get_x() const { return static_cast<int>(__builtin_amdgcn_##part##_x()); }       \
    __device__ int get_y() const { return static_cast<int>(__builtin_amdgcn_##part##_y()); }       \
  };                                                                                               \
  extern const __device__ __attribute__((weak)) name##_type name
COORDINATES(threadIdx, workitem_id);
COORDINATES(blockIdx, workgroup_id);
COORDINATES(blockDim, workgroup_size);
COORDINATES(gridSize, grid_size);
__device__ __attribute__((nodebug)) static inline void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
template <typename T> __device__ __attribute__((nodebug)) static inline T atomicAdd(T *at, T value) {
  return __hip_atomic_fetch_add(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <typename T> __device__ __attribute__((nodebug)) static inline T shuffled(T value, int lane) {
  return __builtin_bit_cast(T, __builtin_amdgcn_ds_bpermute(lane * 4, __builtin_bit_cast(int, value)));
}
