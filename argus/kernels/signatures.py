"""Functions of kernels and programs that take any number of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any

from argus.language import Int


def of_tensors(
    function: Callable[..., None], tensors: Mapping[str, Any], cfg: object, *sizes: str
) -> Callable[..., None]:
    """The function with these tensors as its parameters, of which it takes any number, a configuration, and sizes."""
    given = [Parameter(each, Parameter.POSITIONAL_OR_KEYWORD) for each in tensors]
    keywords = [Parameter(each, Parameter.KEYWORD_ONLY) for each in ("cfg", *sizes)]
    vars(function)["__signature__"] = Signature([*given, *keywords])
    function.__annotations__ = {**tensors, "cfg": cfg, **dict.fromkeys(sizes, Int)}
    return function
