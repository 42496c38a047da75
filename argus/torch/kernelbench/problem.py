"""A problem of KernelBench: a file that defines `Model`, `get_inputs` and `get_init_inputs`, at its sizes or others.

Other sizes are made by rewriting the integers that the file assigns at its top level, which its functions read.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from attrs import frozen

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


def load(path: Path, limit: int | None = None) -> Problem:
    """The problem, of its own sizes, or with integers above the limit reduced to about that. Runs the file's code."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    if limit is not None:
        for statement in tree.body:
            if isinstance(statement, ast.Assign):
                _reduce(statement, limit)
    namespace: dict[str, Any] = {"__name__": path.stem}
    exec(compile(tree, str(path), "exec"), namespace)  # noqa: S102 reason: the user's own checkout, in a process of its own
    return Problem(namespace, limit)


def _reduce(statement: ast.Assign, limit: int) -> None:
    target = statement.targets[0]
    name = target.id if isinstance(target, ast.Name) else ""
    for node in ast.walk(statement.value):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            node.value = reduced(name, node.value, limit)


def reduced(name: str, value: int, limit: int) -> int:
    """A smaller size: the limit for its multiples, otherwise a number below it with as odd an end; of a batch, 2."""
    if value <= min(limit, _KEPT):
        return value
    if "batch" in name.lower():
        return _BATCH
    if value <= limit:
        return value
    return limit if value % limit == 0 else limit // 2 + value % (limit // 2)


@frozen
class Runnable:
    """Problems at the sizes at which eager torch runs them, and why it is not run at others, by the limit."""

    problems: tuple[Problem, ...]
    dropped: Mapping[int, str]


def runnable(path: Path, limits: Sequence[int], elements: int, wanted: int, device: str = "cpu") -> Runnable:
    """The problem at the first limits, as many as wanted, at which eager torch runs it on the device.

    elements: the most that its inputs have together.
    """
    found: list[Problem] = []
    dropped: dict[int, str] = {}
    for limit in limits:
        if len(found) == wanted:
            break
        try:
            problem = load(path, limit)
            inputs = problem.inputs(0, device)
            count = sum(each.numel() for each in inputs if isinstance(each, torch.Tensor))
            if count > elements:
                dropped[limit] = f"its inputs have {count} elements, more than {elements}"
                continue
            with torch.no_grad():
                problem.model(0, device)(*inputs)
        except (RuntimeError, ValueError, AssertionError, IndexError, TypeError) as refusal:
            dropped[limit] = f"{type(refusal).__name__}: {(str(refusal).splitlines() or [''])[0][:120]}"
            continue
        found.append(problem)
    return Runnable(tuple(found), dropped)
