"""Parse ptxas's resource report and warnings."""

from __future__ import annotations

import re

from attrs import frozen

from argus.core.diagnostic import InternalError

SERIALISED = {f"C75{number}" for number in range(10, 16)}
"""Warnings that ptxas serialises wgmma instructions, for example because accumulators are accessed between them."""

_USED = re.compile(r"Used (\d+) registers(?:, used (\d+) barriers)?")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_SHARED = re.compile(r"(\d+) bytes smem")
_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_WARNING = re.compile(r"\((C75\d\d)\)[^\n]*")


@frozen
class AssemblerReport:
    """registers: per thread at launch. barriers: named barriers. stack, spills: bytes per thread. shared: static bytes.

    warnings: (code, line) of each ptxas remark on wgmma or registers.
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
        """Whether ptxas serialises wgmma instructions."""
        return any(code in SERIALISED for code, _ in self.warnings)


def parse_report(log: str, symbol: str = "") -> AssemblerReport:
    """The report of the entry point `symbol`, or of a file's only one.

    Raises InternalError if a figure is missing.
    """
    log = _entry_section(log, symbol)
    used, stack = _USED.search(log), _STACK.search(log)
    if used is None or stack is None:
        raise InternalError("ptxas reported no register count or no stack frame")
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


def _entry_section(log: str, symbol: str) -> str:
    """The log's header and the part about this entry point; the whole log if it names no such entry point."""
    parts = _ENTRY.split(log)
    names, sections = parts[1::2], parts[2::2]
    if symbol not in names:
        return log
    return parts[0] + sections[names.index(symbol)]
