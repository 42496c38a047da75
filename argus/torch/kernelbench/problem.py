"""A problem of KernelBench: a file that defines `Model`, `get_inputs` and `get_init_inputs`, at its sizes or others.

Other sizes are made by rewriting the integers that the file assigns at its top level, which its functions read, and
those of the function that makes inputs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, product
from math import inf
from pathlib import Path
from typing import Any

import torch
from attrs import frozen
from torch.utils.flop_counter import FlopCounterMode

_KEPT = 16
"""Integers up to this one stay: sizes of windows, strides, groups."""
_BATCH = 2
_torch: Any = torch


def _seed(seed: int) -> None:
    _torch.manual_seed(seed)


@frozen
class Problem:
    """A problem's definitions. limit: what its sizes were reduced to; None for its own."""

    namespace: Mapping[str, Any]
    limit: int | None

    def model(self, seed: int, device: str = "cpu") -> Any:  # noqa: ANN401 reason: a module of torch's
        with _torch.device(device):
            _seed(seed)
            made = self.namespace["Model"](*self.namespace["get_init_inputs"]())
        there = all(each.device.type == device for each in (*made.parameters(), *made.buffers()))
        return made if there else made.to(device)

    def inputs(self, seed: int, device: str = "cpu") -> list[Any]:
        """New ones, made on the device."""
        with _torch.device(device):
            _seed(seed)
            made = list(self.namespace["get_inputs"]())
        return [
            each.to(device) if isinstance(each, torch.Tensor) and each.device.type != device else each for each in made
        ]


def load(path: Path, limit: int | None = None, *, ratios: bool = False) -> Problem:
    """The problem, of its own sizes, or with integers above the limit reduced to about that. Runs the file's code.

    ratios: sizes are divided by one number, as models need where one size is a multiple of another; a batch, too, that
    is as large as another size.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    if limit is not None:
        found = list(_sizes(tree))
        own = {node.value for name, node in found if not _is_batch(name)}
        by = next(each for each in (1 << power for power in count()) if max(own, default=0) // each <= limit)
        for name, node in found:
            known = "" if node.value in own else name
            node.value = divided(known, node.value, by) if ratios else reduced(name, node.value, limit)
    namespace: dict[str, Any] = {"__name__": path.stem}
    exec(compile(tree, str(path), "exec"), namespace)  # noqa: S102 reason: the user's own checkout, in a process of its own
    return Problem(namespace, limit)


def _sizes(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """The integers of a file that are sizes, each with the name that it is assigned to, if any."""
    for statement in tree.body:
        name = ""
        if isinstance(statement, ast.Assign):
            target = statement.targets[0]
            name = target.id if isinstance(target, ast.Name) else ""
        elif not isinstance(statement, ast.FunctionDef) or statement.name != "get_inputs":
            continue
        yield from ((name, each) for each in ast.walk(statement) if _is_integer(each))


def _is_integer(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _is_batch(name: str) -> bool:
    return "batch" in name.lower()


def reduced(name: str, value: int, limit: int) -> int:
    """A smaller size: the limit for its multiples, otherwise a number below it with as odd an end; of a batch, 2."""
    if _is_batch(name):
        return min(value, _BATCH)
    if value <= limit:
        return value
    return limit if value % limit == 0 else limit // 2 + value % (limit // 2)


def divided(name: str, value: int, by: int) -> int:
    """A size over a number, unless it is one of those that stay; of a batch, 2."""
    if _is_batch(name):
        return min(value, _BATCH)
    return value if value <= _KEPT else max(1, value // by)


@frozen
class Runnable:
    """Problems at the sizes at which eager torch runs them, and why it is not run at others, by the limit."""

    problems: tuple[Problem, ...]
    dropped: Mapping[int, str]


def runnable(
    path: Path,
    limits: Sequence[int],
    elements: int,
    wanted: int,
    device: str = "cpu",
    operations: float = inf,
) -> Runnable:
    """The problem at the first limits, as many as wanted, at which eager torch runs it on the device.

    elements: the most that its inputs have together. operations: the most additions and multiplications of its products
    and convolutions. Where sizes of their own do not fit together, ratios are kept.
    """
    found: list[Problem] = []
    dropped: dict[int, str] = {}
    for ratios, limit in product((False, True), limits):
        if len(found) == wanted:
            break
        if any(each.limit == limit for each in found):
            continue
        try:
            problem = load(path, limit, ratios=ratios)
            inputs = problem.inputs(0, device)
            given = sum(each.numel() for each in inputs if isinstance(each, torch.Tensor))
            if given > elements:
                dropped.setdefault(limit, f"its inputs have {given} elements, more than {elements}")
                continue
            with torch.no_grad(), FlopCounterMode(display=False) as counter:
                problem.model(0, device)(*inputs)
            if counter.get_total_flops() > operations:
                dropped.setdefault(limit, f"it takes {counter.get_total_flops():.1e} operations")
                continue
        except (RuntimeError, ValueError, AssertionError, IndexError, TypeError) as refusal:
            said = f"{type(refusal).__name__}: {(str(refusal).splitlines() or [''])[0][:120]}"
            dropped.setdefault(limit, said)
            continue
        found.append(problem)
        dropped.pop(limit, None)
    return Runnable(tuple(found), dropped)
