"""Implementations of the layout algebra by name, for `Law.check` and `search`: Argus, and libraries that are installed.

A library of your own is one call: `adapted("mine", mine.Layout, {"composition": mine.compose, ...})`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from argus.core.layout.faults import LayoutError
from argus.core.layout.inttuple import checked
from argus.core.layout.values import Layout
from argus.testing.laws.implementation import ARGUS, Function, Implementation
from argus.testing.peers import imported

THEIRS = {"cute_complement": "complement"}
"""A law's function, where a library has it by another name: the complement of pycute and tensor-layouts is CuTe's."""


def adapted(name: str, build: Callable[[Any, Any], object], functions: Mapping[str, Function]) -> Implementation:
    """A library whose functions take and return its own layouts.

    build: makes one of its layouts of a shape and a stride. functions: by the names of `Implementation`. Results with
    the attributes `shape` and `stride` become layouts of Argus. Whatever the library raises becomes a LayoutError
    (E815), and so does a result that is no layout, such as one with an extent of 0.
    """
    return Implementation(name, {each: _adapt(name, build, function) for each, function in functions.items()})


def _adapt(name: str, build: Callable[[Any, Any], object], function: Function) -> Function:
    def call(*operands: object) -> object:
        try:
            found = function(*[_theirs(build, each) for each in operands])
            return _ours(found)
        except Exception as error:
            raise LayoutError(
                "E815",
                f"{name} refused: {type(error).__name__}: {error}",
                help="a refusal counts as the library's answer",
            ) from error

    return call


def _theirs(build: Callable[[Any, Any], object], value: object) -> object:
    if isinstance(value, Layout):
        return build(value.shape, value.stride)
    return (
        tuple([_theirs(build, each) for each in cast(tuple[object, ...], value)]) if isinstance(value, tuple) else value
    )


def _ours(value: Any) -> object:  # noqa: ANN401 reason: a result of another library
    if hasattr(value, "shape") and hasattr(value, "stride"):
        return Layout(checked(value.shape, "shape"), checked(value.stride, "stride"))
    return value


def implementation(name: str) -> Implementation:
    """`argus`, `pycute` or `tensor-layouts`. Raises LayoutError (E814) for another name, or if it is not installed."""
    match name:
        case "argus":
            return ARGUS
        case "pycute":
            module: Any = imported("pycute", "pycute", "put cutlass/python on the path (PYTHONPATH)")
        case "tensor-layouts":
            module = imported("tensor-layouts", "tensor_layouts", "pip install tensor-layouts")
        case _:
            raise LayoutError(
                "E814",
                f"no implementation is named `{name}`",
                help="choose argus, pycute or tensor-layouts, or use `adapted`",
            )
    # Swizzles are not converted, so no law about them applies.
    names = [
        each
        for each in ARGUS.functions
        if each != "swizzle" and callable(getattr(module, THEIRS.get(each, each), None))
    ]
    functions: dict[str, Function] = {each: getattr(module, THEIRS.get(each, each)) for each in names}
    functions |= {"composition": getattr(module, "composition", None) or module.compose}
    functions["call"] = _called
    return adapted(name, module.Layout, functions)


def _called(layout: Callable[[int], int], index: int) -> int:
    return layout(index)
