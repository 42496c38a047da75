"""Programs that the property tests share: the kernels of the corpus, and the means to edit a traced one."""

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
    """The module in a file, run afresh under its own name."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def templates(path: Path) -> tuple[Template, ...]:
    """The kernels of a file, in its order."""
    values = cast("Mapping[str, object]", vars(load(path))).values()
    return tuple(value for value in values if isinstance(value, Template))


def proved_kernels() -> dict[str, Kernel]:
    """The kernels of tests/corpus/proved, by file."""
    found = {path.stem: templates(path) for path in sorted((CORPUS / "proved").glob("*.py"))}
    return {name: template.trace() for name, several in found.items() for template in several}


KERNELS = proved_kernels()
"""What the verifier proves as it stands."""


def is_product(kernel: Kernel) -> bool:
    """Whether a kernel has the tensors of one product of two matrices."""
    return [tensor.name for tensor in kernel.parameters] == ["A", "B", "C"] and all(
        len(tensor.shape) == 2 for tensor in kernel.parameters
    )


OTHERS = (
    *("scaled_output", "relu_output", "causal_trips", "band_of_k", "columns_left_out"),
    *(name for name, kernel in KERNELS.items() if not is_product(kernel)),
)
PRODUCTS = {name: kernel for name, kernel in KERNELS.items() if name not in OTHERS}
"""Those whose output is A B^T itself."""


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
    """A kernel after edits. claims: whether what it claims, and the tags of its inputs, are as they were."""

    kernel: Kernel
    edits: tuple[str, ...]
    claims: bool = True


def with_edit(kernel: Kernel, old: Stmt, new: Sequence[Stmt], text: str, *, claims: bool = True) -> Mutant:
    """The kernel with one statement replaced, and a note of it."""
    edit = f"{text}: {type(old).__name__} at {old.span}"
    return Mutant(with_stmts(kernel, old, new), (edit,), claims)


def exchanged(kernel: Kernel, exchange: Mapping[int, Any], text: str) -> Mutant:
    """The kernel with objects exchanged by identity, and a note of it."""
    parts = {name: replace_objects(getattr(kernel, name), exchange) for name in ("prologue", "roles", "epilogue")}
    return Mutant(evolve(kernel, **parts), (text,))


def one_of(kernel: Kernel, random: Random, *kinds: type[Any]) -> Any:  # noqa: ANN401 reason: of the kinds asked for
    """A statement of these kinds, if the kernel has any."""
    found = [stmt for stmt in walk(kernel.body) if isinstance(stmt, kinds)]
    return random.choice(found) if found else None
