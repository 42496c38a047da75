"""A kernel is proved for the graph it was made from, and refused for one that differs in a detail."""

# ruff: noqa: ARG005
# Reason: all functions share one signature, whatever they use of it.

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from attrs import evolve, frozen
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional

import argus
from argus.core.verdict import Proved
from argus.kernels.nests.made import template
from argus.language import Tensor
from argus.nests.affine import computed
from argus.nests.canonical import Canonical, canonical
from argus.nests.fusion import fused
from argus.nests.nest import Nest
from argus.torch.decompositions import decompositions
from argus.torch.families import FAMILIES, Family
from argus.torch.lowering import lowered
from argus.torch.steps import NestStep
from argus.torch.steps import Tensor as Result

F: Any = functional
T: Any = torch
Function = Callable[[Any, Any], Any]


@frozen
class Pair:
    """A function of a matrix and of a row of it, and another one."""

    right: Function
    perturbed: Function


PAIRS: dict[str, Pair] = {
    "gelu for relu": Pair(lambda x, b: F.relu(x + b), lambda x, b: F.gelu(x + b)),
    "silu for gelu": Pair(lambda x, b: F.gelu(x + b), lambda x, b: F.silu(x + b)),
    "gelu by tanh for gelu": Pair(lambda x, b: F.gelu(x), lambda x, b: F.gelu(x, approximate="tanh")),
    "another slope": Pair(lambda x, b: F.leaky_relu(x, 0.01), lambda x, b: F.leaky_relu(x, 0.02)),
    "another bound": Pair(lambda x, b: F.hardtanh(x), lambda x, b: F.hardtanh(x, -1.0, 1.5)),
    "another alpha": Pair(lambda x, b: F.elu(x), lambda x, b: F.elu(x, 0.5)),
    "elu for selu": Pair(lambda x, b: F.selu(x), lambda x, b: F.elu(x)),
    "another beta": Pair(lambda x, b: F.softplus(x), lambda x, b: F.softplus(x, 2.0)),
    "a minus for a plus": Pair(lambda x, b: x + b, lambda x, b: x - b),
    "operands exchanged": Pair(lambda x, b: x - b, lambda x, b: b - x),
    "a quotient for a product": Pair(lambda x, b: x * b, lambda x, b: x / b),
    "a term left out": Pair(lambda x, b: F.relu(x) * 2 + b, lambda x, b: F.relu(x) * 2),
    "another factor": Pair(lambda x, b: x * 0.5 + b, lambda x, b: x * 0.25 + b),
    "the bias after the activation": Pair(lambda x, b: F.relu(x + b), lambda x, b: F.relu(x) + b),
    "another diagonal": Pair(lambda x, b: torch.triu(x), lambda x, b: torch.triu(x, 1)),
    "the other triangle": Pair(lambda x, b: torch.triu(x), lambda x, b: torch.tril(x)),
    "transposed": Pair(lambda x, b: x * 2, lambda x, b: x.t() * 2),
    "a row for a column": Pair(lambda x, b: x + b, lambda x, b: x + b[:, None]),
    "flipped": Pair(lambda x, b: x + b, lambda x, b: x + b.flip(0)),
    "rolled": Pair(lambda x, b: x + b, lambda x, b: x + torch.cat([b[1:], b[:1]])),
    "padded on the other side": Pair(lambda x, b: F.pad(x, (1, 0))[:, :24], lambda x, b: F.pad(x, (0, 1))[:, 1:]),
    "another power": Pair(lambda x, b: x**2 + b, lambda x, b: x**3 + b),
    "another axis of a softmax": Pair(lambda x, b: F.softmax(x, 1), lambda x, b: F.softmax(x, 0)),
    "another temperature": Pair(lambda x, b: F.softmax(x, 1), lambda x, b: F.softmax(2 * x, 1)),
    "another epsilon": Pair(lambda x, b: F.layer_norm(x, (24,), b, b), lambda x, b: F.layer_norm(x, (24,), b, b, 1e-3)),
    "a norm without its mean": Pair(
        lambda x, b: F.layer_norm(x, (24,)), lambda x, b: x * torch.rsqrt((x * x).mean(1, True) + 1e-5)
    ),
    "a sum for a mean": Pair(lambda x, b: x.mean(1), lambda x, b: x.sum(1)),
    "a maximum for a minimum": Pair(lambda x, b: x.amin(1), lambda x, b: x.amax(1)),
    "another axis of a sum": Pair(lambda x, b: x.sum(1), lambda x, b: x.sum(0)),
    "an unbiased variance": Pair(lambda x, b: x.var(1, correction=0), lambda x, b: x.var(1)),
    "a transposed weight": Pair(lambda x, b: x @ x, lambda x, b: x @ x.t()),
    "a product without its bias": Pair(lambda x, b: x @ x + b, lambda x, b: x @ x),
}


def nest_of(function: Function) -> tuple[Nest, Any]:
    """The one nest of a function of two tensors, and the graph's tensors."""
    x, b = torch.empty(24, 24), torch.empty(24)
    trace: Any = make_fx(function, decomposition_table=decompositions(), tracing_mode="fake")
    graph = lowered(trace(x, b).graph, {})
    kept = {each.name for each in graph.outputs if isinstance(each, Result)}
    nests = fused([each.nest for each in graph.steps if isinstance(each, NestStep)], kept, lambda _, __: True)
    assert len(nests) == 1
    return nests[0], graph.types


def pair_of(name: str) -> tuple[Canonical, Canonical]:
    """Both nests over the same parameters, each the only one of a form that stores to the same output."""
    pair = PAIRS[name]
    (right, types), (other, _) = nest_of(pair.right), nest_of(pair.perturbed)
    both = canonical([right, evolve(other, output="other")], types)
    parameters = tuple(each for each in both.parameters if each.type.name != "Y1")
    one, two = both.nests
    return (
        evolve(both, nests=(one,), parameters=parameters),
        evolve(both, nests=(evolve(two, output="Y0"),), parameters=parameters),
    )


def family_of(form: Canonical) -> tuple[Family, Any]:
    sizes = {name: int(computed(extent, {})) for name, extent in form.sizes.items()}
    for family in FAMILIES:
        config = family.plan(form, sizes)
        if config is not None:
            return family, config
    raise AssertionError("no template takes the nest")


@pytest.mark.share(96)
@pytest.mark.parametrize("name", PAIRS)
def test_the_kernel_of_a_graph_is_refused_for_a_perturbed_one(name: str) -> None:
    form, perturbed = pair_of(name)
    family, config = family_of(form)
    made = family.schedule
    assert made is not None

    def schedule(_: Canonical, tensors: Mapping[str, Tensor], sizes: Mapping[str, Any], cfg: Any) -> None:  # noqa: ANN401 reason: the family's
        made(form, tensors, sizes, cfg)

    right = template(form, made, config, "right").trace()
    assert isinstance(argus.verify(right).verdict, Proved)
    wrong = template(perturbed, schedule, config, "wrong").trace()
    assert not isinstance(argus.verify(wrong).verdict, Proved)
