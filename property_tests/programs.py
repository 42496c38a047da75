"""The corpus kernels that property tests use, and helpers to edit a traced kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from argus.core.dsl.kernel import Template
from argus.core.ir import Kernel, Stmt, walk
from argus.core.ir.surgery import replace_objects, with_stmts

Array = npt.NDArray[Any]
CORPUS = Path(__file__).parents[1] / "tests" / "corpus"


def load(path: Path) -> Any:  # noqa: ANN401 reason: a module
    """Execute a file as a new module of its name."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def templates(path: Path) -> tuple[Template, ...]:
    """The kernel templates of a file, in order."""
    values = cast("Mapping[str, object]", vars(load(path))).values()
    return tuple(value for value in values if isinstance(value, Template))


def proved_kernels() -> dict[str, Kernel]:
    """The kernels of tests/corpus/proved, by file."""
    found = {path.stem: templates(path) for path in sorted((CORPUS / "proved").glob("*.py"))}
    return {name: template.trace() for name, several in found.items() for template in several}


KERNELS = proved_kernels()
"""The proved kernels of the corpus, before any edit."""


def is_product(kernel: Kernel) -> bool:
    """Whether a kernel has the tensors of one matrix product, A, B and C."""
    return [tensor.name for tensor in kernel.parameters] == ["A", "B", "C"] and all(
        len(tensor.shape) == 2 for tensor in kernel.parameters
    )


OTHERS = (
    *("scaled_output", "relu_output", "causal_trips", "band_of_k", "columns_left_out"),
    *(name for name, kernel in KERNELS.items() if not is_product(kernel)),
)
PRODUCTS = {name: kernel for name, kernel in KERNELS.items() if name not in OTHERS}
"""The kernels whose output is A B^T itself."""


def within_bound(a: Array, b: Array, c: Array) -> bool:
    """|C - A B^T| <= u |A B^T| + (1 + u) e.

    e = 2 K 2^-24 |A| |B|^T bounds fp32 sums of exact products in any order; u = 2^-8 is the rounding to bf16.
    """
    left, right = a.astype(np.float64), b.astype(np.float64)
    exact = left @ right.T
    error = 2 * a.shape[1] * 2.0**-24 * (np.abs(left) @ np.abs(right).T)
    unit = 2.0**-8
    return bool((np.abs(c.astype(np.float64) - exact) <= unit * np.abs(exact) + (1 + unit) * error).all())


# -- edits ---------------------------------------------------------------------------------------------------


@frozen(eq=False)
class Mutant:
    """A kernel after edits. claims: whether its claims and the tags of its inputs are unchanged."""

    kernel: Kernel
    edits: tuple[str, ...]
    claims: bool = True


def with_edit(kernel: Kernel, old: Stmt, new: Sequence[Stmt], text: str, *, claims: bool = True) -> Mutant:
    """The kernel with one statement replaced, and a description of the edit."""
    edit = f"{text}: {type(old).__name__} at {old.span}"
    return Mutant(with_stmts(kernel, old, new), (edit,), claims)


def exchanged(kernel: Kernel, exchange: Mapping[int, Any], text: str) -> Mutant:
    """The kernel with objects replaced by identity, and a description of the edit."""
    parts = {name: replace_objects(getattr(kernel, name), exchange) for name in ("prologue", "roles", "epilogue")}
    return Mutant(evolve(kernel, **parts), (text,))


def one_of(kernel: Kernel, random: Random, *kinds: type[Any]) -> Any:  # noqa: ANN401 reason: of the kinds asked for
    """A random statement of these kinds; None if there is none."""
    found = [stmt for stmt in walk(kernel.body) if isinstance(stmt, kinds)]
    return random.choice(found) if found else None
