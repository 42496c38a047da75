"""HIP for gfx942: one self-contained file per kernel, compiled by the clang of `ziglang`."""
