"""What the assembler says of a kernel, as data."""

from __future__ import annotations

import re

from attrs import frozen

from argus.core.diagnostic import InternalError

SERIALISED = {f"C75{number}" for number in range(10, 16)}
"""Warnings that matrix instructions wait for one another: the accumulator is touched between them."""

_USED = re.compile(r"Used (\d+) registers(?:, used (\d+) barriers)?")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_SHARED = re.compile(r"(\d+) bytes smem")
_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_WARNING = re.compile(r"\((C75\d\d)\)[^\n]*")


@frozen
class AssemblerReport:
    """registers: of a thread at launch. barriers: named barriers. stack, spills: bytes a thread. shared: static bytes.

    warnings: code and line for each remark of the assembler on the matrix unit or on registers.
    """

    registers: int
    barriers: int
    stack: int
    spill_stores: int
    spill_loads: int
    shared: int
    warnings: tuple[tuple[str, str], ...]

    @property
    def spills(self) -> bool:
        return self.spill_stores > 0 or self.spill_loads > 0

    @property
    def serialised(self) -> bool:
        """Whether matrix instructions wait for one another."""
        return any(code in SERIALISED for code, _ in self.warnings)


def parse_report(log: str, symbol: str = "") -> AssemblerReport:
    """The report of a kernel: of the entry point `symbol`, or of a file's only one.

    Raises InternalError if a figure is missing.
    """
    log = _of(log, symbol)
    used, stack = _USED.search(log), _STACK.search(log)
    if used is None or stack is None:
        raise InternalError("the assembler reported no registers or no stack frame")
    shared = _SHARED.search(log)
    return AssemblerReport(
        registers=int(used[1]),
        barriers=int(used[2] or 0),
        stack=int(stack[1]),
        spill_stores=int(stack[2]),
        spill_loads=int(stack[3]),
        shared=0 if shared is None else int(shared[1]),
        warnings=tuple((found[1], found[0]) for found in _WARNING.finditer(log)),
    )


def _of(log: str, symbol: str) -> str:
    """What stands before the first entry point, and what is said of this one; all of it where there is none."""
    parts = _ENTRY.split(log)
    names, told = parts[1::2], parts[2::2]
    if symbol not in names:
        return log
    return parts[0] + told[names.index(symbol)]
