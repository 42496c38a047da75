"""SentryWard, a verifier of PTX by others, as a second checker: its input from our launch description, and its finding.

It checks one launch at fixed sizes for races, deadlock and lifetimes of barriers. It neither reads tags nor claims, and
is given no reference, so it has no opinion on what a kernel computes. It is imported on demand and never installed.
"""

from __future__ import annotations

import json
import resource
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import islice, product
from math import prod
from pathlib import Path
from typing import Literal, cast

from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.dtype import DTYPES
from argus.core.ir import Kernel
from argus.emit.artifact import LaunchInfo, TensorMapArgument, cuda_launch, ended_map
from argus.emit.cuda.nvrtc import compile_ptx
from argus.emit.cuda.text import cuda_text
from argus.runtime.expressions import value_of

Opinion = Literal["clean", "fault", "none"]
Sizes = Mapping[str, int]
FAULTS = frozenset({"potential_race", "not_wellsynced", "invalid_lifecycle"})
CLEAN = "race_free"
_BYTES = {dtype.name: dtype.bits // 8 for dtype in DTYPES}
_ELEMENTS = {"bf16": "bf16", "f16": "f16", "f32": "f32", "i32": "s32", "u32": "u32"}
_LEADING: tuple[int, ...] = (3, 40, 100, 96, 8, 32, 64, 128, 260, 132, 192, 256, 512, 1, 1024)
_LAST: tuple[int, ...] = (300, 296, 100, 96, 132, 128, 256, 260, 64, 32, 8, 3, 1, 512, 1024)
"""Sizes to choose from: the last one of several tiles, if possible with a part of one at the end."""
_MOST_TRIED = 5000
_FEW_BLOCKS = range(2, 5)
"""Blocks of a launch that is large enough for races between blocks, and small enough to be judged in seconds."""


@frozen
class Limits:
    seconds: float = 60.0
    mebibytes: int = 4096


@frozen
class Finding:
    """result: SentryWard's verdict. codes: those of its diagnostics, each once. seconds: of its own run."""

    result: str
    codes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def opinion(self) -> Opinion:
        """clean: no fault in any schedule. fault: a finding. none: not supported, out of time, or refused."""
        return "clean" if self.result == CLEAN else "fault" if self.result in FAULTS else "none"


@frozen
class Compilation:
    """What SentryWard is asked about: the PTX of a kernel for sm_90a, and how it is launched."""

    ptx: str
    launch: LaunchInfo

    @property
    def uses_wgmma(self) -> bool:
        return "wgmma." in self.ptx


def compilation(kernel: Kernel) -> Compilation:
    """Emit a kernel and compile it to PTX. Raises ArgusError (E301, E303, E304, E501)."""
    made = cuda_text(kernel)
    return Compilation(compile_ptx(made.text, made.symbol), cuda_launch(kernel, made.symbol, made.plan, made.guards))


# -- input ---------------------------------------------------------------------------------------------------


def kernel_input(launch: LaunchInfo, sizes: Sizes) -> dict[str, object]:
    """SentryWard's input (`spverify.kernel-input/v1`) for a launch at these sizes.

    Tensors are distinct objects of global memory with unknown contents; tensor maps are stated in full, first axis
    innermost and strides in bytes. Raises ArgusError (E405) if a size has no value.
    """
    names = [f"{launch.symbol}_param_{place}" for place in range(len(launch.maps) + len(launch.arguments))]
    arguments = list(zip(names[len(launch.maps) :], launch.arguments, strict=True))
    grid = [value_of(extent, sizes) for extent in launch.grid]
    return {
        "schema": "spverify.kernel-input/v1",
        "entry": launch.symbol,
        "launch": {
            "grid_dim": grid + [1] * (3 - len(grid)),
            "block_dim": [launch.threads, 1, 1],
            "dynamic_shared_bytes": launch.shared_bytes,
        },
        "tma_descriptors": [_descriptor(name, made, sizes) for name, made in zip(names, launch.maps, strict=False)],
        "declarations": [
            {"parameter": name, "type": "pointer", "object": each.name}
            for name, each in arguments
            if each.kind == "pointer"
        ],
        "arguments": [
            {"parameter": name, "type": "u32", "value": value_of(each.name, sizes)}
            for name, each in arguments
            if each.kind == "int"
        ],
    }


def _descriptor(parameter: str, made: TensorMapArgument, sizes: Sizes) -> dict[str, object]:
    shape, strides = (tuple(value_of(each, sizes) for each in of) for of in (made.shape, made.strides))
    if made.ended:
        shape, strides = ended_map(shape, strides, _BYTES[made.dtype])
    return {
        "parameter": parameter,
        "object": made.tensor,
        "element_type": _ELEMENTS.get(made.dtype, f"u{8 * _BYTES[made.dtype]}"),
        "rank": len(shape),
        "global_shape": list(reversed(shape)),
        "global_strides_bytes": [stride * _BYTES[made.dtype] for stride in reversed(strides[:-1])],
        "box_shape": list(reversed(made.box)),
        "element_strides": [1] * len(shape),
        "swizzle": f"{made.swizzle}B" if made.swizzle else "none",
        "interleave": "none",
        "oob_fill": "zero",
    }


def chosen_sizes(launch: LaunchInfo) -> dict[str, int] | None:
    """The first sizes of a fixed list that meet every check of the launch, in two to four blocks if possible.

    None if no sizes of the list meet them.
    """
    names = [each.name for each in launch.arguments if each.kind == "int"]
    lists = [_LEADING] * (len(names) - 1) + [_LAST] * min(1, len(names))
    tried = (dict(zip(names, numbers, strict=True)) for numbers in islice(product(*lists), _MOST_TRIED))
    allowed = list[dict[str, int]]()
    for sizes in (sizes for sizes in tried if meets(launch, sizes)):
        if _blocks(launch, sizes) in _FEW_BLOCKS:
            return sizes
        allowed.append(sizes)
    return min(allowed, key=lambda sizes: _blocks(launch, sizes), default=None)


def _blocks(launch: LaunchInfo, sizes: Sizes) -> int:
    return prod(value_of(extent, sizes) for extent in launch.grid)


def meets(launch: LaunchInfo, sizes: Sizes) -> bool:
    """Whether sizes meet every check of the launch."""
    return all(value_of(check.condition, sizes) for check in launch.checks)


# -- findings ------------------------------------------------------------------------------------------------


def finding(made: Compilation, sizes: Sizes, limits: Limits | None = None) -> Finding:
    """SentryWard's finding on one launch. Raises ArgusError (E814) if it is not installed."""
    verify, limits = _verify(), limits or Limits()
    with tempfile.TemporaryDirectory() as folder:
        ptx, given = Path(folder) / "kernel.ptx", Path(folder) / "input.json"
        ptx.write_text(made.ptx, encoding="utf-8")
        given.write_text(json.dumps(kernel_input(made.launch, sizes)), encoding="utf-8")
        most = limits.mebibytes + _peak_mebibytes()
        report = verify(ptx, input=given, timeout_seconds=limits.seconds, memory_limit_mib=most)
    return read(report)


def _peak_mebibytes() -> int:
    """The peak of this process's memory, which the system counts in that of a process that it starts, too."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def read(report: Mapping[str, object]) -> Finding:
    """A report of SentryWard as a finding."""
    diagnostics = cast("Sequence[Mapping[str, object]]", report.get("diagnostics", ()))
    codes = dict.fromkeys(str(each.get("code", "")) for each in diagnostics)
    seconds = report.get("elapsed_seconds", 0.0)
    return Finding(str(report["result"]), tuple(codes), seconds if isinstance(seconds, float) else 0.0)


def installed() -> bool:
    """Whether SentryWard can be imported."""
    try:
        _verify()
    except ArgusError:
        return False
    return True


def _verify() -> Callable[..., Mapping[str, object]]:
    try:
        return cast("Callable[..., Mapping[str, object]]", import_module("sentryward").verify)
    except ImportError as error:
        message = f"`sentryward` is not installed: {error}"
        raise ArgusError(Diagnostic("E814", "error", message, help="pip install 'argus[sentryward]'")) from error
