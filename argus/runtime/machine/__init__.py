"""The machine code of gfx942 kernels, executed on the CPU and compared with the interpreter."""
