"""The corpus kernels that property tests use, and helpers to edit a traced kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from attrs import define, evolve, field, frozen

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


@define(eq=False)
class Traced(Mapping[str, Kernel]):
    """Kernels by name, each traced when it is first asked for: collecting tests traces none."""

    _names: Sequence[str]
    _trace: Callable[[str], Kernel]
    _known: dict[str, Kernel] = field(factory=dict[str, Kernel], init=False)

    def __getitem__(self, name: str) -> Kernel:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._known:
            self._known[name] = self._trace(name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _proved(name: str) -> Kernel:
    (template,) = templates(CORPUS / "proved" / f"{name}.py")
    return template.trace()


_FILES = sorted((CORPUS / "proved").glob("*.py"))
KERNELS = Traced([path.stem for path in _FILES], _proved)
"""The proved kernels of the corpus, before any edit."""
WITH_ROLES = [path.stem for path in _FILES if re.search(r"\brole", path.read_text(encoding="utf-8"))]
"""Those with roles, by their text."""


def is_product(kernel: Kernel) -> bool:
    """Whether a kernel has the tensors of one matrix product, A, B and C, of bf16."""
    return [tensor.name for tensor in kernel.parameters] == ["A", "B", "C"] and all(
        len(tensor.shape) == 2 and tensor.dtype.name == "bf16" for tensor in kernel.parameters
    )


NOT_PRODUCTS = (
    "agents_exchange_tiles",
    "band_of_k",
    "causal_trips",
    "cluster_laps_of_two_lengths",
    "columns_left_out",
    "formula_gemm_relu",
    "formula_gemm_without_tags",
    "leaky_slope",
    "operands_turned",
    "relu_output",
    "scaled_output",
)


@cache
def products() -> tuple[str, ...]:
    """The kernels of the corpus whose output is A B^T itself; `test_products` repeats each.

    Only those are traced whose text names a C of bf16.
    """
    named = {
        path.stem for path in _FILES if re.search(r"\bC: Tensor\[[^\]]*\bbf16\]", path.read_text(encoding="utf-8"))
    }
    likely = (name for name in KERNELS if name in named and name not in NOT_PRODUCTS)
    return tuple(name for name in likely if is_product(KERNELS[name]))


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
