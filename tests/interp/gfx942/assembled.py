"""Machine code for tests, made by the assembler of `ziglang`: an independent source of opcodes and encodings."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from argus.emit.tool import run_tool
from argus.interp.gfx942.code_object import CodeObject, read_code_object

_ASSEMBLER = ("clang", "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx942", "-x", "assembler", "-c")
_DESCRIPTOR = """
.rodata
.p2align 6
.amdhsa_kernel {name}
  .amdhsa_group_segment_fixed_size {lds}
  .amdhsa_private_segment_fixed_size {scratch}
  .amdhsa_kernarg_size 16
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_system_sgpr_workgroup_id_x 1
  .amdhsa_next_free_vgpr 512
  .amdhsa_next_free_sgpr 96
  .amdhsa_accum_offset 256
  .amdhsa_float_denorm_mode_32 3
.end_amdhsa_kernel
"""
_METADATA = """
  - .name: {name}
    .symbol: {name}.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: {lds}
    .private_segment_fixed_size: {scratch}
    .wavefront_size: 64
    .sgpr_count: 96
    .vgpr_count: 512
    .agpr_count: 256
    .max_flat_workgroup_size: 1024
    .args:
      - {{.address_space: global, .offset: 0, .size: 8, .value_kind: global_buffer}}
      - {{.address_space: global, .offset: 8, .size: 8, .value_kind: global_buffer}}
"""


def kernels(bodies: Mapping[str, str], lds: int = 1024, scratch: int = 0) -> CodeObject:
    """Kernels of two tensors: their addresses are in the kernarg segment at s[0:1], the workgroup's number is in s2.

    lds: bytes of a workgroup; scratch: of a lane.
    """
    text, described = "", ""
    for name, body in bodies.items():
        text += f".text\n.globl {name}\n.p2align 8\n.type {name},@function\n{name}:\n{body}\ns_endpgm\n"
        descriptor = _DESCRIPTOR.format(name=name, lds=lds, scratch=scratch)
        text += f".Lend_{name}:\n.size {name}, .Lend_{name}-{name}\n{descriptor}"
        described += _METADATA.format(name=name, lds=lds, scratch=scratch)
    text += f".amdgpu_metadata\n---\namdhsa.version: [1, 2]\namdhsa.kernels:{described}...\n.end_amdgpu_metadata\n"
    return read_code_object(_made(text))


def encoded(lines: list[str]) -> bytes:
    """The bytes of instructions."""
    code = kernels({"one": "\n".join(lines)})
    return code.text


def _made(text: str) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "k.s").write_text(text, encoding="utf-8")
        for command in ((*_ASSEMBLER, "k.s", "-o", "k.o"), ("ld.lld", "-shared", "k.o", "-o", "k.hsaco")):
            done = run_tool((sys.executable, "-m", "ziglang", *command), folder, 120)
            assert done is not None
            assert done.status == 0, done.errors[:2000]
        return (folder / "k.hsaco").read_bytes()
