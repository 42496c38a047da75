"""HIP for gfx942: one self-contained file a kernel, compiled by the clang of `ziglang`."""
