"""The time of a candidate where there is no GPU: of gfx942 from its machine code, else from the program."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from attrs import evolve, field, frozen

from argus.core.cost.machine import MACHINES
from argus.core.cost.occupancy import Compiled, occupancy
from argus.core.cost.predict import Bottleneck, Prediction, predict
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.emit.artifact import Artifact
from argus.emit.resources import compiled_from_report
from argus.interp.gfx942.timing.predict import CodePrediction
from argus.runtime.cpu.validate import emitted, every_text
from argus.runtime.machine.launch import of_file
from argus.runtime.machine.performance import MACHINE, machine_of, of_code, performance
from argus.runtime.run_sizes import sizes_of

_NOT_MODELLED = "E502"
_REMEMBERED = 64
"""Predictions that a process remembers: a certificate asks for those of the search, and for each claim again."""
_UNITS: dict[str, Bottleneck] = {
    "tensor": "tensor", "shared": "shared", "memory": "memory", "lines": "lines", "issue": "issue", "launch": "launch"
}  # fmt: skip


def predict_time(kernel: Kernel, sizes: Mapping[str, int], report: Compiled) -> Prediction:
    """Predict the time of a kernel at sizes. report: the compiler's.

    Code with an instruction that is not modelled gets the prediction from its program, with a note. Raises ArgusError:
    E303 and E304 as the compiler does, E402 for sizes that violate an assumption. Raises KeyError for a missing size.
    """
    if kernel.target.name != "gfx942":
        return predict(kernel, sizes, report)
    try:
        texts = tuple(each.text for each in every_text(kernel))
        found = _of_code(_Asked(texts, tuple(sizes.items()), kernel))
    except ArgusError as problem:
        return _of_program(kernel, sizes, report, problem)
    return _of_machine(kernel, found, report)


def _of_program(kernel: Kernel, sizes: Mapping[str, int], report: Compiled, problem: ArgusError) -> Prediction:
    """The prediction where an instruction is not modelled, with a note. Raises the problem if it is another."""
    if problem.diagnostic.code != _NOT_MODELLED:
        raise problem
    found = predict(kernel, sizes, report)
    note = f"predicted from the program, not from its machine code: {problem.diagnostic.message}"
    return evolve(found, notes=(*found.notes, note))


def _of_machine(kernel: Kernel, found: CodePrediction, report: Compiled) -> Prediction:
    machine = MACHINES[kernel.target.name]
    busy = {name: share * found.microseconds for name, share in found.busy.items()}
    parts = {**busy, "launch": machine.fitted.launch_us}
    return Prediction(
        microseconds=found.microseconds,
        bottleneck=_UNITS.get(found.limit, "latency"),
        parts=tuple(sorted(parts.items(), key=lambda part: -part[1])),
        notes=(*found.notes, *_spills(report)),
        occupancy=occupancy(kernel, machine, report),
    )


def predict_built(kernel: Kernel, sizes: Mapping[str, int], artifact: Artifact) -> Prediction:
    """As `predict_time`, of the code that a build has made, which is not compiled again."""
    report = compiled_from_report(artifact.report)
    if kernel.target.name != "gfx942":
        return predict(kernel, sizes, report)
    try:
        made = of_file(artifact.code, emitted(kernel).info)
        found = of_code(kernel, made, sizes_of(kernel, sizes), machine_of(MACHINE)).predicted
    except ArgusError as problem:
        return _of_program(kernel, sizes, report, problem)
    return _of_machine(kernel, found, report)


@frozen
class _Asked:
    """A prediction by what it depends on: emitted texts and sizes."""

    texts: tuple[str, ...]
    sizes: tuple[tuple[str, int], ...]
    kernel: Kernel = field(eq=False)


@lru_cache(maxsize=_REMEMBERED)
def _of_code(asked: _Asked) -> CodePrediction:
    return performance(asked.kernel, dict(asked.sizes)).predicted


def _spills(report: Compiled) -> tuple[str, ...]:
    """A note on registers in scratch memory."""
    return (f"the compiler spills {report.spilled} bytes per thread",) if report.spilled else ()
