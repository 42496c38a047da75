"""A template as a kernel or program: its parameters are those of the canonical form, whose nests claim its results."""

# Without `from __future__ import annotations`: kernels are traced with this file.

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, Protocol

from argus.kernels.nests.claims import claim
from argus.kernels.nests.fragments import STORED
from argus.kernels.signatures import of_tensors
from argus.language import Int, ProgramTemplate, Template, Tensor, assume, kernel, program
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
        sizes: dict[str, Any] = {**others, **sizes_of(form, named)}
        for one, other in form.ties:
            assume(computed(one, sizes) == computed(other, sizes))
        for each in form.sizes:
            assume(sizes[each] >= 1)
        schedule(form, named, sizes, cfg)
        for nest in form.nests:
            claim(nest, named, sizes)

    vars(made)["__signature__"], made.__annotations__ = _signature(form, integers)
    return kernel(target=config.target, threads=config.threads, configs={"": config}, name=name)(made)


def program_template(
    form: Canonical,
    launches: Schedule,
    config: Any,  # noqa: ANN401 reason: a frozen class
    name: str,
    multiply: Callable[[Any, Any], Any] | None = None,
) -> ProgramTemplate:
    """The program that computes the nests by launches, with the claim of each nest; multiply: as `claims.claim`."""
    assert not _integers(form)

    def made(*tensors: Tensor, cfg: Any) -> None:  # noqa: ANN401 reason: as above
        named = {each.type.name: tensor for each, tensor in zip(form.parameters, tensors, strict=True)}
        sizes = sizes_of(form, named)
        for one, other in form.ties:
            assume(computed(one, sizes) == computed(other, sizes))
        launches(form, named, sizes, cfg)
        for nest in form.nests:
            claim(nest, named, sizes, multiply)

    function = of_tensors(made, specs_of(form), config.__class__)
    function.__name__ = name
    return program(configs={"": config})(function)


def sizes_of(form: Canonical, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """The sizes that are extents of these parameters."""
    sizes: dict[str, Any] = {}
    for each in form.parameters:
        if each.type.name in tensors:
            sizes |= dict(zip(each.type.extents, tensors[each.type.name].shape, strict=True))
    return sizes


def specs_of(form: Canonical) -> dict[str, Any]:
    """The annotation of each parameter."""
    return {each.type.name: _spec(each.type) for each in form.parameters}


def has_own_integers(form: Canonical) -> bool:
    """Whether a size is the extent of no parameter, which programs do not take."""
    return bool(_integers(form))


def _signature(form: Canonical, integers: Sequence[str]) -> tuple[Signature, dict[str, Any]]:
    parameters = [Parameter(each.type.name, Parameter.POSITIONAL_OR_KEYWORD) for each in form.parameters]
    keywords = [Parameter(each, Parameter.KEYWORD_ONLY) for each in ("cfg", *integers)]
    return Signature([*parameters, *keywords]), {**specs_of(form), **dict.fromkeys(integers, Int)}


def _integers(form: Canonical) -> list[str]:
    """The sizes that are the extent of no parameter."""
    known = {extent for each in form.parameters for extent in each.type.extents}
    return [each for each in form.sizes if each not in known]


def _spec(of: TensorType) -> Any:  # noqa: ANN401 reason: an annotation
    return Tensor[" ".join(of.extents), STORED[of.dtype]]
