"""What the search for a faster kernel needs of a torch function or module: its nests, the designs of each, and float64.

The graph is captured on fake tensors: nothing of the problem's size is allocated or run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from inspect import isclass
from pathlib import Path
from typing import Any, cast

import attrs
import numpy as np
import numpy.typing as npt
import torch
from attrs import evolve, field, frozen
from torch.fx.node import map_aggregate

from argus.core.ir import Kernel, Program
from argus.kernels import layouts
from argus.kernels.config_names import name_of
from argus.kernels.schedules.hopper import Hopper
from argus.nests.affine import computed
from argus.nests.canonical import Canonical
from argus.nests.evaluate import nest_value
from argus.nests.nest import TensorType
from argus.nests.products import product_of_matrices
from argus.nests.rewrite import reductions
from argus.nests.text import canonical_text
from argus.nests.work import multiplies
from argus.torch.backend import captured
from argus.torch.compiled import KernelStep, form_of
from argus.torch.families import FAMILIES, Family, candidate, candidates, configurations
from argus.torch.planner import Planner
from argus.torch.rewrites import Rewrites
from argus.torch.steps import EagerStep, Tensor

Array = npt.NDArray[np.float64]
_torch: Any = torch
_PROOF_SECONDS = 300.0
_MOST_DESIGNS = 120
_CHANGES = 2
"""Fields in which a design differs from the one that is chosen without a search, at most."""
_FIXED = frozenset(("products", "wide", "compensated", "padded", "apart"))
"""Fields that decide what is computed, and how exactly, not how."""
_CLUSTERS = ((1,), (2, 1), (1, 2))
_LARGEST = 1 << 12
INPUTS, OF_INIT = "get_inputs", "get_init_inputs"


@frozen(eq=False)
class SearchedStep:
    """A kernel of a graph, whose nests are those of a canonical form.

    node: the operation of the graph whose result it is. sizes: of the kernel. designs: makes of each design's name its
    kernel or program; knobs: what each is. usual: the design that runs without a search. flops: by operand type;
    reads, writes: bytes. shapes: of the kernel's parameters, by name.
    """

    node: str
    text: str
    sizes: Mapping[str, int]
    designs: Mapping[str, partial[Kernel | Program]]
    knobs: Mapping[str, tuple[tuple[str, int | bool | str], ...]]
    usual: str
    flops: Mapping[str, float]
    reads: float
    writes: float
    types: Mapping[str, str]
    graph: Any = field(repr=False)
    form: Canonical = field(repr=False)

    def reference(self, **given: Array) -> dict[str, Array]:
        """The outputs in float64: at the graph's own shapes torch's, of the graph; at others the nests'."""
        own = _in_graph(self, given)
        return _of_nests(self.form, given) if own is None else own


# -- capture -------------------------------------------------------------------------------------------------


def definitions(path: Path) -> Mapping[str, Any]:
    """The names of a file, which is run."""
    namespace: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)  # noqa: S102 reason: the user's own file
    return namespace


def steps_of(path: Path, name: str) -> tuple[tuple[SearchedStep, ...], tuple[str, ...]]:
    """The kernels of a module's or function's graph in order, and what of it is no kernel.

    Raises KeyError for a name that the file does not define, ArgusError like `torch.compile(backend="argus")`.
    """
    names = definitions(path)
    found: list[Any] = []

    def compiler(graph: Any, _: Any) -> Any:  # noqa: ANN401 reason: torch's
        found.append(graph)
        return graph.forward

    def backend(module: Any, inputs: Any) -> Any:  # noqa: ANN401 reason: torch's
        return captured(module, inputs, compiler)

    _torch.compiler.reset()
    with _torch._subclasses.FakeTensorMode(), torch.no_grad():
        model = names[name]
        if isclass(model):
            model = model(*names.get(OF_INIT, list)())
        _torch.compile(model, backend=backend)(*names[INPUTS]())
    steps: list[SearchedStep] = []
    others: list[str] = []
    for graph in found:
        planner = Planner({}, _PROOF_SECONDS, rewrites=Rewrites({}))
        lowered, planned = planner.planned(graph)
        for step in planned:
            if isinstance(step, KernelStep):
                steps.append(_searched(step, lowered.types, graph))
            elif not step.allocates:
                others.append(str(step.called))
        others += [f"no graph of {each}" for each in _unused(lowered.outputs, planned)]
    return tuple(steps), tuple(others)


def _unused(outputs: Sequence[object], planned: Sequence[KernelStep | EagerStep]) -> Iterator[str]:
    """Results that no step computes: inputs that are returned."""
    made = {nest.output for step in planned if isinstance(step, KernelStep) for nest in step.nests}
    made |= {name for step in planned if isinstance(step, EagerStep) for name in step.results if name}
    yield from (each.name for each in outputs if isinstance(each, Tensor) and each.name not in made)


def _searched(step: KernelStep, types: Mapping[str, TensorType], graph: Any) -> SearchedStep:  # noqa: ANN401 reason: torch's
    form = step.form
    sizes = {name: int(computed(extent, {})) for name, extent in form.sizes.items()}
    made = dict(_designs(step, types, sizes))
    first = candidates(step.family, form, sizes)
    usual = next((f"{step.family.name}_{each.config}" for each in first), next(iter(made)))
    shapes = {each.type.name: [int(computed(extent, sizes)) for extent in each.type.shape] for each in form.parameters}
    count = len(form.parameters) - len(form.nests)
    sources = {each.source: each for each in form.parameters[:count]}
    return SearchedStep(
        step.nests[0].output,
        canonical_text(form),
        sizes,
        {name: made for name, (made, _) in made.items()},
        {name: knobs for name, (_, knobs) in made.items()},
        usual,
        _flops(form, sizes),
        sum(_bytes(each.type.dtype, shapes[each.type.name]) for each in sources.values()),
        sum(_bytes(each.type.dtype, shapes[each.type.name]) for each in form.parameters[count:]),
        {each.type.name: each.type.dtype for each in form.parameters},
        graph,
        form,
    )


_SIZES = {"f32": 4, "bf16": 2, "f16": 2, "i64": 8, "i32": 4, "bool": 1}


def _bytes(dtype: str, shape: Sequence[int]) -> float:
    return float(_SIZES[dtype] * np.prod(shape, dtype=float))


_OF_F32 = 6
"""Products of bf16 parts for one of f32, the fastest way to one as exact."""


def _flops(form: Canonical, sizes: Mapping[str, int]) -> dict[str, float]:
    """Operations of matrix units: of sums of products of two tensors, so many that arithmetic decides."""
    found: dict[str, float] = {}
    for nest in form.nests:
        if not multiplies(nest, sizes):
            continue
        kinds = {each.type.dtype for each in form.parameters[: -len(form.nests)]}
        for term in reductions(nest.body)[:1]:
            extents = [int(computed(axis.extent, sizes)) for axis in (*nest.domain, *term.axes)]
            kind = "bf16" if "f32" in kinds else min(kinds & {"bf16", "f16"}, default="bf16")
            times = _OF_F32 if "f32" in kinds else 1
            found[kind] = found.get(kind, 0.0) + 2.0 * times * float(np.prod(extents, dtype=float))
    return found


# -- designs -------------------------------------------------------------------------------------------------


def _designs(
    step: KernelStep, types: Mapping[str, TensorType], sizes: Mapping[str, int]
) -> Iterator[tuple[str, tuple[partial[Kernel | Program], tuple[tuple[str, int | bool | str], ...]]]]:
    """Each template that takes the nests, with the configuration that it is given and those around it."""
    reduces = any(reductions(each.body) for each in step.nests)
    families = [step.family, *(each for each in FAMILIES if each.reduces == reduces and each is not step.family)]
    seen: set[str] = set()
    for family in families:
        form = step.form if family is step.family else form_of(step.nests, types, family, {})
        if not _same_parameters(form, step.form):
            continue
        own = sizes if family is step.family else {n: int(computed(extent, {})) for n, extent in form.sizes.items()}
        planned = configurations(family, form, own)
        for config in (each for first in planned for each in _around(first, form, sizes)):
            if len(seen) == _MOST_DESIGNS:
                return
            name = f"{family.name}_{name_of(config)}"
            if name in seen:
                continue
            seen.add(name)
            knobs = (("kind", family.name), *_fields(config))
            yield name, (partial(_traced, family, form, config), knobs)


def _same_parameters(one: Canonical, other: Canonical) -> bool:
    """Whether kernels of two forms take the same tensors and sizes, so that one may stand for the other."""
    return one.sizes == other.sizes and [(each.type, each.source) for each in one.parameters] == [
        (each.type, each.source) for each in other.parameters
    ]


def _traced(family: Family, form: Canonical, config: Any) -> Kernel | Program:  # noqa: ANN401 reason: each family's own
    return candidate(family, form, config).traced()[0]


def _fields(config: Any) -> Iterator[tuple[str, int | bool | str]]:  # noqa: ANN401 reason: any configuration
    for each in attrs.fields(cast("type[Any]", type(config))):
        value = getattr(config, each.name)
        yield each.name, value if isinstance(value, int) else str(value).strip("(),").replace(", ", "x")


def _around(first: Any, form: Canonical, sizes: Mapping[str, int]) -> Iterator[Any]:  # noqa: ANN401 reason: any configuration
    """A configuration, those that differ from it in one field, then in two; of products in bf16 all that fit first."""
    seen = {first}
    yield first
    for each in _of_products(first, form, sizes):
        if each not in seen:
            seen.add(each)
            yield each
    level = [first]
    for _ in range(_CHANGES):
        following: list[Any] = []
        for before in level:
            for changed in _changed(before):
                if changed not in seen:
                    seen.add(changed)
                    following.append(changed)
                    yield changed
        level = following


def _of_products(first: Any, form: Canonical, sizes: Mapping[str, int]) -> Iterator[Hopper]:  # noqa: ANN401 reason: as above
    of = product_of_matrices(form) if isinstance(first, Hopper) else None
    if of is not None:
        m, n, k = (int(computed(axis.extent, sizes)) for axis in (of.rows, of.columns, of.depth))
        known = layouts.configs_for(m, n, k, a_transposed=of.a_transposed, b_transposed=of.b_transposed)
        yield from (each for each in known.values() if isinstance(each, Hopper))


def _changed(config: Any) -> Iterator[Any]:  # noqa: ANN401 reason: any configuration
    """The configuration with one field changed: a truth value turned, a number doubled or halved, another cluster."""
    for each in attrs.fields(cast("type[Any]", type(config))):
        value = getattr(config, each.name)
        if each.name in _FIXED:
            continue
        if isinstance(value, bool):
            yield evolve(config, **{each.name: not value})
        elif isinstance(value, int):
            near = (2 * value, value // 2) if value > 1 else (2,) if value == 1 else ()
            yield from (evolve(config, **{each.name: number}) for number in near if 0 < number <= _LARGEST)
        elif each.name == "cluster":
            yield from (evolve(config, cluster=other) for other in _CLUSTERS if other != value)


# -- numbers -------------------------------------------------------------------------------------------------


def _of_nests(form: Canonical, given: Mapping[str, Array]) -> dict[str, Array]:
    """Outputs by name, as the nests compute them; sizes are those of the arrays."""
    sizes: dict[str, int] = {}
    for each in form.parameters:
        if each.type.name in given:
            sizes |= dict(zip(each.type.extents, given[each.type.name].shape, strict=True))
    names = [each.type.name for each in form.parameters[-len(form.nests) :]]
    found = (nest_value(nest, given, sizes) for nest in form.nests)
    return dict(zip(names, found, strict=True))


def _in_graph(step: SearchedStep, given: Mapping[str, Array]) -> dict[str, Array] | None:
    """Outputs by name, as torch computes them in float64; None at other shapes, or where a result is no node's."""
    form, count = step.form, len(step.form.nests)
    inputs = {each.source: each for each in form.parameters[:-count]}
    nodes = {node.name: node for node in step.graph.graph.nodes}
    if len(inputs) < len(form.parameters) - count or not {*inputs, *_graph_names(step)} <= nodes.keys():
        return None
    known: dict[Any, Any] = {}
    for source, each in inputs.items():
        node, array = nodes[source], given[each.type.name]
        wanted = [int(extent) for extent in node.meta["val"].shape]
        if array.size != int(np.prod(wanted, dtype=np.int64)) or array.shape != _own(step, each.type):
            return None
        known[node] = _torch.from_numpy(np.ascontiguousarray(array)).reshape(wanted)
    found: dict[str, Array] = {}
    for name, each in zip(_graph_names(step), form.parameters[-count:], strict=True):
        value = _computed(nodes[name], known)
        if value is None:
            return None
        found[each.type.name] = value.double().reshape(_own(step, each.type)).numpy()
    return found


def _graph_names(step: SearchedStep) -> tuple[str, ...]:
    """The nodes of the outputs, in order."""
    return (step.node,) if len(step.form.nests) == 1 else ()


def _own(step: SearchedStep, of: TensorType) -> tuple[int, ...]:
    return tuple(int(computed(extent, step.sizes)) for extent in of.shape)


def _computed(node: Any, known: dict[Any, Any]) -> Any:  # noqa: ANN401 reason: torch's
    """A node's value; None where it needs an input that is not known."""
    order: list[Any] = []
    pending = [node]
    while pending:
        each = pending.pop()
        if each not in known and each not in order:
            if each.op != "call_function":
                return None
            order.append(each)
            pending += each.all_input_nodes
    for each in reversed(list(dict.fromkeys(_in_order(order, node)))):
        if each not in known:
            args, keywords = (map_aggregate(given, partial(_value, known)) for given in (each.args, dict(each.kwargs)))
            known[each] = each.target(*cast(Any, args), **cast(Any, keywords))
    return known[node]


def _value(known: Mapping[Any, Any], arg: Any) -> Any:  # noqa: ANN401 reason: an argument of an operation
    return known[arg] if isinstance(arg, torch.fx.Node) else arg


def _in_order(needed: Sequence[Any], node: Any) -> Iterator[Any]:  # noqa: ANN401 reason: torch's
    """The nodes that are needed, last first."""
    wanted = set(needed)
    yield from (each for each in reversed(list(node.graph.nodes)) if each in wanted)
