"""`FILE:NAME`: a function or module of torch, whose graph gives claim, reference, shapes and designs.

The file defines `get_inputs`, and for a class `get_init_inputs` if it takes arguments, as files of KernelBench do. It
is the user's own and runs here, as kernel files do. Of a graph of several kernels one is searched: NAME#2 is the
second.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib import import_module
from math import log2
from pathlib import Path
from typing import Any

from argus.core.cost.machine import MACHINES
from argus.policy.bounds import CEILINGS, Bounds, Work, bounds
from argus.search.problems.families.space import FamilyDesign, FamilySpace, refuse
from argus.search.problems.kernel_file import digest_of

FORM = "FILE:NAME of a torch module or function"
_NAME = re.compile(r"torch:([0-9a-f]{16}):(\w+)#(\d+):(.+)")
_GIVEN = re.compile(r"(.+?\.py)(?::(\w+)(?:#([1-9]\d*))?)?")
_BENCH = re.compile(r"kernelbench:(\d+)/(\d+)(?:#([1-9]\d*))?")
_INPUTS, _MODEL = "get_inputs", "Model"


def is_torch_file(text: str) -> bool:
    """Whether a name is that of a file which defines inputs of a module and no kernel's reference."""
    found = _GIVEN.fullmatch(text)
    if found is None or not Path(found[1]).is_file():
        return False
    try:
        tree = ast.parse(Path(found[1]).read_text(encoding="utf-8"))
    except (SyntaxError, ValueError, OSError):
        return False
    return any(isinstance(each, ast.FunctionDef) and each.name == _INPUTS for each in tree.body)


def torch_name(text: str) -> str:
    """The full name of what a user names, such as `model.py:Model` or `model.py:Model#2`. Raises ArgusError (E903)."""
    found = _GIVEN.fullmatch(text)
    assert found is not None
    path, name = Path(found[1]).resolve(), found[2] or _MODEL
    return f"torch:{digest_of(path.read_bytes())}:{name}#{found[3] or _largest(str(path), name)}:{path}"


def benchmark_name(text: str, checkout: Path | None) -> str:
    """The file and name of `kernelbench:LEVEL/PROBLEM` in a checkout. Raises ArgusError (E903)."""
    found = _BENCH.fullmatch(text)
    if found is None:
        refuse(f"`{text}` is no problem of KernelBench", "expected kernelbench:LEVEL/PROBLEM, such as kernelbench:1/23")
    if checkout is None:
        refuse(f"`{text}` needs a checkout of KernelBench", "name its folder with --checkout")
    paths = sorted((checkout / "KernelBench" / f"level{found[1]}").glob(f"{found[2]}_*.py"))
    if not paths:
        refuse(f"`{checkout}` has no problem {found[2]} of level {found[1]}", "name the root of the checkout")
    return f"{paths[0]}:{_MODEL}" + (f"#{found[3]}" if found[3] else "")


def display(text: str) -> str | None:
    """The short name of a full one; None for the name of another kind of problem."""
    found = _NAME.fullmatch(text)
    return None if found is None else f"{Path(found[4]).name}:{found[2]}#{found[3]}"


def space(text: str, target: str) -> tuple[str, FamilySpace]:
    """The full name of a problem, and its space. Raises ArgusError (E903)."""
    found = _NAME.fullmatch(text)
    if found is None:
        refuse(f"`{text}` is no torch problem", f"expected {FORM}")
    if target != "sm_90a":
        refuse(f"torch modules are searched for sm_90a, found {target}", "name it with --target sm_90a")
    digest, name, number, path = found.groups()
    if not Path(path).is_file() or digest_of(Path(path).read_bytes()) != digest:
        refuse(f"`{path}` has changed since the run began", "start a new run, or restore the file")
    steps, others = _steps(path, name)
    if int(number) > len(steps):
        refuse(f"`{name}` has {len(steps)} kernels, found #{number}", "name one of them")
    step = steps[int(number) - 1]
    unfit = sorted(each for each, kind in step.types.items() if kind not in ("f32", "bf16", "f16"))
    if unfit:
        refuse(f"kernel {number} of `{name}` has tensors that are not floating-point", "random inputs need those")
    designs = {
        each: FamilyDesign(each, step.knobs[each], made, {"differs": float(_differs(step, each))}, made.args[2])
        for each, made in step.designs.items()
    }
    work = Work.of(step.flops, step.reads, step.writes)
    parts = [f"kernel {number} of {len(steps)} of the graph of `{name}`, the result of `{step.node}`"]
    if others:
        parts.append(f"eager torch runs {', '.join(dict.fromkeys(others))}")
    return text, FamilySpace(
        step.sizes,
        designs,
        step.reference,
        work,
        step.usual,
        'chosen by `torch.compile(backend="argus")` without a search',
        "sm_90a.torch",
        log2(1 + work.bytes / MACHINES["sm_90a"].target.processors),
        (),
        notes=("; ".join(parts),) if len(steps) > 1 or others else (),
        told=step.text,
        checked=False,
    )


def _differs(step: Any, name: str) -> int:  # noqa: ANN401 reason: torch is imported on demand
    usual, own = dict(step.knobs.get(step.usual, ())), dict(step.knobs[name])
    return sum(usual.get(key) != value for key, value in own.items())


@cache
def _steps(path: str, name: str) -> tuple[Any, Any]:
    try:
        searched: Any = import_module("argus.torch.searched")
    except ImportError as problem:
        refuse(f"a torch module needs torch, which is not installed: {problem}", "pip install 'argus[torch]'")
    try:
        found = searched.steps_of(Path(path), name)
    except KeyError as problem:
        refuse(f"`{path}` defines no {problem}", f"name a module or function of it, beside `{_INPUTS}`")
    if not found[0]:
        refuse(f"no operation of `{name}` becomes a kernel", "see docs/torch-compile.md")
    return found


def _largest(path: str, name: str) -> int:
    """The number of the kernel with the greatest bound."""
    steps, _ = _steps(path, name)

    def bound(number: int) -> float:
        step = steps[number]
        made: Bounds = bounds(Work.of(step.flops, step.reads, step.writes), CEILINGS["sm_90a"])
        return made.light

    return 1 + max(range(len(steps)), key=bound)
