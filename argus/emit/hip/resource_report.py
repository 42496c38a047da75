"""Parse LLVM's resource remarks and assembly of a gfx942 kernel."""

from __future__ import annotations

import re
from collections import Counter

from attrs import frozen

from argus.core.diagnostic import InternalError

# Remarks of -Rpass-analysis=kernel-resource-usage: `NAME: NUMBER`, the name as in the keys.
_REMARKS = {
    "sgprs": "TotalSGPRs",
    "vgprs": "VGPRs",
    "agprs": "AGPRs",
    "scratch_bytes": "ScratchSize [bytes/lane]",
    "occupancy": "Occupancy [waves/SIMD]",
    "sgpr_spills": "SGPRs Spill",
    "vgpr_spills": "VGPRs Spill",
    "lds_bytes": "LDS Size [bytes/block]",
}
_BLOCK = re.compile(r"^(?:\.LBB\w+:|; %bb\.\d+:)", re.MULTILINE)
_PRODUCT = re.compile(r"^\s+v_mfma", re.MULTILINE)
_MOVE = re.compile(r"^\s+(?:v_accvgpr|scratch_)", re.MULTILINE)
_IDLE = re.compile(r"^\s+s_nop (\d+)", re.MULTILINE)
_COUNTED = re.compile(r"^\s+((?:v_mfma|v_accvgpr|ds|global|buffer|flat|scratch|s_barrier|s_waitcnt|s_setprio)\w*)\b")


@frozen
class ResourceReport:
    """Resources of one compiled kernel.

    sgprs, vgprs, agprs: 32-bit registers, per wave or lane. registers: vgprs and agprs as the hardware allocates them.
    scratch_bytes: scratch memory per lane. occupancy: waves per SIMD. spills: spilled registers. lds_bytes: LDS per
    block.
    instructions: (opcode, static count) of memory, matrix and synchronisation instructions, and of moves to and from
    AGPRs. beside: VGPR-AGPR moves, scratch accesses and idle cycles (s_nop) per matrix instruction, over the basic
    blocks that contain one.
    """

    sgprs: int
    vgprs: int
    agprs: int
    registers: int
    scratch_bytes: int
    occupancy: int
    sgpr_spills: int
    vgpr_spills: int
    lds_bytes: int
    instructions: tuple[tuple[str, int], ...]
    beside: float = 0.0

    def count(self, prefix: str) -> int:
        """Static count of the opcodes that start with `prefix`, such as `v_mfma` or `ds_read_b128`."""
        return sum(number for opcode, number in self.instructions if opcode.startswith(prefix))

    @property
    def spills(self) -> bool:
        """Whether the kernel spills vector registers or uses scratch."""
        return self.vgpr_spills > 0 or self.scratch_bytes > 0


def parse_report(remarks: str, assembly: str) -> ResourceReport:
    """The report of a file with one kernel, from the compiler's remarks and its assembly.

    Raises InternalError if a figure is missing: the compiler is then a version this parser does not know.
    """
    found = {field: _number(rf"remark:\s+{re.escape(name)}: (\d+)", remarks, name) for field, name in _REMARKS.items()}
    registers = _number(r"^\s+\.vgpr_count:\s+(\d+)$", assembly, ".vgpr_count")
    opcodes = Counter(match[1] for line in assembly.splitlines() if (match := _COUNTED.match(line)))
    return ResourceReport(
        **found, registers=registers, instructions=tuple(sorted(opcodes.items())), beside=_moves_per_mma(assembly)
    )


def _number(pattern: str, text: str, name: str) -> int:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise InternalError(f"the compiler reported no figure `{name}`")
    return int(match[1])


def _moves_per_mma(assembly: str) -> float:
    """`ResourceReport.beside`, over the basic blocks that contain an MFMA."""
    blocks = [block for block in _BLOCK.split(assembly) if _PRODUCT.search(block)]
    products = sum(len(_PRODUCT.findall(block)) for block in blocks)
    moves = sum(len(_MOVE.findall(block)) for block in blocks)
    idle = sum(int(states) + 1 for block in blocks for states in _IDLE.findall(block))
    return round((moves + idle) / products, 4) if products else 0.0
