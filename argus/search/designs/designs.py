"""Designs by name: their kernels, the sets of designs to try, and how techniques derive one design from another."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.kernels.config_names import name_of
from argus.kernels.fp8 import gemm_fp8
from argus.kernels.gemm import CONFIGS, configuration, gemm
from argus.search.techniques import TRANSFORMATIONS
from argus.search.transformation import Design
from argus.search.tuning.candidates import design_space

_SHIPPED = {config: name for name, config in reversed(CONFIGS.items())}


def name(design: Design) -> str:
    """The shipped name, or a name that encodes all fields."""
    return _SHIPPED.get(design) or name_of(design)


def design(named: str) -> Design:
    """The design of a name. Raises ArgusError (E906) for an unknown name."""
    found = configuration(named)
    if found is None:
        shipped_designs = ", ".join(CONFIGS)
        raise ArgusError(
            Diagnostic("E906", "error", f"`{named}` is no design", help=f"shipped ones are {shipped_designs}")
        )
    return found


def kernel_of(found: Design) -> Kernel:
    """The traced kernel of a design. Raises ArgusError (E1xx, E2xx) if it is ill-formed."""
    return gemm.instance(found, name(found))


def shipped_designs(target: str) -> Iterator[Design]:
    return (each for each in CONFIGS.values() if each.target.name == target)


def candidate_designs(target: str) -> Iterator[Design]:
    """Designs of a target to try techniques on: shipped ones, their derivations, then the planners' search space."""
    seen: set[Design] = set()
    before = (each for expert in shipped_designs(target) for _, each in derivation(expert))
    for found in (*shipped_designs(target), *before, *design_space(target).values()):
        if found not in seen:
            seen.add(found)
            yield found


def derivation(found: Design) -> tuple[tuple[str, Design], ...]:
    """A derivation of a design: ('', first design), then (technique, design) for each step.

    Undoes techniques one after the other, in reverse order of `TRANSFORMATIONS`; several uses of one are one step.
    """
    steps = [("", found)]
    while True:
        last = steps[0][1]
        undone = (
            (each, without)
            for each in reversed(tuple(TRANSFORMATIONS))
            if (without := _undo_fully(each, last)) is not None
        )
        step = next(undone, None)
        if step is None:
            return tuple(steps)
        steps[:1] = [("", step[1]), (step[0], last)]


def _undo_fully(technique: str, found: Design) -> Design | None:
    """Undo a technique as often as possible; None if the design does not have it."""
    reached: Design | None = None
    while (without := TRANSFORMATIONS[technique].undo(found if reached is None else reached)) is not None:
        reached = without
    return reached


def other_kernels(target: str) -> Iterator[tuple[str, Kernel]]:
    """Kernels of other families, by name, on which IR rewrites are tried as well."""
    if target == "sm_90a":
        yield from ((f"gemm_fp8 {each}", gemm_fp8.trace(each)) for each in gemm_fp8.instances())
