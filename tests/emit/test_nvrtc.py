"""NVRTC with its compilation cache, which returns no ptxas log for cached code."""

from __future__ import annotations

import pytest
from attrs import define, field

from argus.emit.cuda import nvrtc
from argus.emit.cuda.nvrtc import bindings, compile_cuda
from argus.emit.cuda.ptxas import parse_report

TEXT = 'extern "C" __global__ void twice(int* a) { a[threadIdx.x] *= 2; }'


@define
class Keeping:
    """The real compiler behind a cache like that of a machine with a driver."""

    known: set[tuple[bytes, ...]] = field(factory=set[tuple[bytes, ...]])
    silent: bool = False

    def nvrtcCompileProgram(self, program: object, count: int, options: list[bytes]) -> tuple[object]:
        found = tuple(options)
        self.silent = found in self.known and b"--no-cache" not in found
        self.known.add(found)
        (done,) = bindings().nvrtcCompileProgram(program, count, options)
        return (done,)

    def nvrtcGetProgramLog(self, program: object, log: bytearray) -> None:
        if not self.silent:
            bindings().nvrtcGetProgramLog(program, log)

    def __getattr__(self, name: str) -> object:
        return getattr(bindings(), name)


def test_a_repeated_compilation_has_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Keeping()
    monkeypatch.setattr(nvrtc, "bindings", lambda: made)
    first, second = (compile_cuda(TEXT, "twice", lines=False) for _ in range(2))

    assert len(made.known) == 1
    assert first.cubin == second.cubin
    assert parse_report(first.log) == parse_report(second.log)
