"""`Implementation`: the functions of a layout algebra by name, Argus's or another library's, that laws are about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import field, frozen

from argus.core.layout import coalesce, common, complement, compose, divide, inttuple, inverse, notation, recast
from argus.core.layout.faults import LayoutError
from argus.core.layout.inttuple import IntTuple
from argus.core.layout.placing import by_law
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.values import Layout

Function = Callable[..., Any]


@frozen
class Implementation:
    """A library under test.

    functions: by CuTe's name, such as `composition`; each takes and returns layouts, tilers and int-tuples of
    `argus.layout`, and raises LayoutError where it refuses. Each is an attribute, too: `library.composition(a, b)`.
    `call` (layout, index), `size` and `cosize` stand for the methods of a layout, `swizzle` (swizzle, offset) for a
    call, and `cute_complement` for the complement by the law `cute` (`argus.layout.by_law`).
    """

    name: str
    functions: Mapping[str, Function] = field(repr=False)

    def __getattr__(self, name: str) -> Function:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Function:
        """A function. Raises LayoutError (E814) if the library has none of that name."""
        if name not in self.functions:
            raise LayoutError(
                "E814", f"{self.name} has no `{name}`", help=f"give one of {', '.join(sorted(self.functions))}"
            )
        return self.functions[name]

    def offers(self, *names: str) -> bool:
        return all(name in self.functions for name in names)

    def but(self, **instead: Function) -> Implementation:
        """The implementation with some functions replaced, for tests of the laws themselves."""
        return Implementation(f"{self.name} but {', '.join(instead)}", {**self.functions, **instead})


def _call(layout: Layout, index: int) -> int:
    return layout(index)


def _swizzle(swizzle: Swizzle, offset: int) -> int:
    return swizzle(offset)


def _cute_complement(layout: Layout, cotarget: IntTuple) -> Layout:
    return by_law("cute").complement(layout, cotarget).layout


ARGUS = Implementation(
    "argus",
    {
        "call": _call,
        "swizzle": _swizzle,
        "size": Layout.size,
        "cosize": Layout.cosize,
        "crd2idx": inttuple.crd2idx,
        "idx2crd": inttuple.idx2crd,
        "coalesce": coalesce.coalesce,
        "filter": coalesce.filter,
        "flatten": coalesce.flatten_layout,
        "group": coalesce.group,
        "parse": notation.parse,
        "upcast": recast.upcast,
        "downcast": recast.downcast,
        "composition": compose.composition,
        "complement": complement.complement,
        "cute_complement": _cute_complement,
        "logical_divide": divide.logical_divide,
        "zipped_divide": divide.zipped_divide,
        "tiled_divide": divide.tiled_divide,
        "flat_divide": divide.flat_divide,
        "logical_product": divide.logical_product,
        "zipped_product": divide.zipped_product,
        "tiled_product": divide.tiled_product,
        "flat_product": divide.flat_product,
        "blocked_product": divide.blocked_product,
        "raked_product": divide.raked_product,
        "right_inverse": inverse.right_inverse,
        "left_inverse": inverse.left_inverse,
        "pseudo_inverse": inverse.pseudo_inverse,
        "nullspace": inverse.nullspace,
        "max_common_layout": common.max_common_layout,
    },
)
