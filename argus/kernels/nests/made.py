"""A template as a kernel: its parameters are those of the canonical form, whose nests claim what it computes."""

# Without `from __future__ import annotations`: kernels are traced with this file.

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, Protocol

from argus.kernels.nests.claims import claim
from argus.kernels.nests.fragments import STORED
from argus.language import Int, Template, Tensor, assume, kernel
from argus.nests.affine import computed
from argus.nests.canonical import Canonical
from argus.nests.nest import TensorType


class Config(Protocol):
    """A configuration of a template."""

    @property
    def target(self) -> Any: ...  # noqa: ANN401 reason: a target, which the language has no type for
    @property
    def threads(self) -> int: ...


Schedule = Callable[[Canonical, Mapping[str, Tensor], Mapping[str, Any], Any], None]
"""What a template does of a canonical form, its tensors and sizes by name, and a configuration: stores each output."""


def template(form: Canonical, schedule: Schedule, config: Config, name: str) -> Template:
    """The kernel that computes the nests by a schedule, with the claim of each nest attached."""
    integers = _integers(form)

    def made(*tensors: Tensor, cfg: Config, **others: Int) -> None:
        named = {each.type.name: tensor for each, tensor in zip(form.parameters, tensors, strict=True)}
        sizes: dict[str, Any] = dict(others)
        for each in form.parameters:
            sizes |= dict(zip(each.type.extents, named[each.type.name].shape, strict=True))
        for one, other in form.ties:
            assume(computed(one, sizes) == computed(other, sizes))
        for each in form.sizes:
            assume(sizes[each] >= 1)
        schedule(form, named, sizes, cfg)
        for nest in form.nests:
            claim(nest, named, sizes)

    parameters = [Parameter(each.type.name, Parameter.POSITIONAL_OR_KEYWORD) for each in form.parameters]
    keywords = [Parameter(each, Parameter.KEYWORD_ONLY) for each in ("cfg", *integers)]
    vars(made)["__signature__"] = Signature([*parameters, *keywords])
    made.__annotations__ = {each.type.name: _spec(each.type) for each in form.parameters} | dict.fromkeys(integers, Int)
    return kernel(target=config.target, threads=config.threads, configs={"": config}, name=name)(made)


def _integers(form: Canonical) -> list[str]:
    """The sizes that are the extent of no parameter."""
    known = {extent for each in form.parameters for extent in each.type.extents}
    return [each for each in form.sizes if each not in known]


def _spec(of: TensorType) -> Any:  # noqa: ANN401 reason: an annotation
    return Tensor[" ".join(of.extents), STORED[of.dtype]]
