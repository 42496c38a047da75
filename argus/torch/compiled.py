"""A graph that is ready to run: kernels by the call path of all operators, and what eager torch runs between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, cast

import torch
from attrs import define, field, frozen
from torch.fx.node import map_aggregate

from argus.core.index import Index, Node
from argus.core.walk import symbols
from argus.nests.affine import computed
from argus.nests.canonical import Canonical, canonical
from argus.nests.nest import Nest, TensorType
from argus.ops.call_path import Plan, launch
from argus.ops.operands import ALIGNED, copy_aligned
from argus.runtime.launches import Product
from argus.torch.families import Family, candidates
from argus.torch.sizes import of_sizes
from argus.torch.steps import TORCH_TYPES, VIEWS, EagerStep, Lowered, Number, Tensor

Sizes = Mapping[str, int]


@frozen
class Prepared:
    """A call of a kernel at some sizes."""

    plan: Plan
    empty: bool


@define
class KernelStep:
    """Nests of one domain that a template computes. sources: of the kernel's operands, in order."""

    nests: tuple[Nest, ...]
    family: Family
    form: Canonical
    sources: tuple[str, ...] = ()
    prepared: dict[tuple[tuple[str, int], ...], Prepared] = field(factory=dict[tuple[tuple[str, int], ...], Prepared])
    ready: dict[object, Product] = field(factory=dict[object, Product])

    @staticmethod
    def of(nests: tuple[Nest, ...], family: Family, form: Canonical) -> KernelStep:
        count = len(form.parameters) - len(nests)
        return KernelStep(nests, family, form, tuple(each.source for each in form.parameters[:count]))

    def run(self, tensors: dict[str, Any], sizes: tuple[tuple[str, int], ...]) -> None:
        prepared = self.prepared.get(sizes)
        if prepared is None:
            prepared = self.prepared[sizes] = self._prepare(dict(sizes))
        operands = tuple([_dense(tensors[name]) for name in self.sources])
        if prepared.empty:
            device = operands[0].device
            empty: Any = torch.empty
            found: Any = [empty(shape, dtype=dtype, device=device) for shape, dtype in prepared.plan.results]
        else:
            found = self._launched(prepared, operands, sizes)
        results = tuple(cast(list[Any], found)) if isinstance(found, list | tuple) else (found,)
        for nest, each in zip(self.nests, results, strict=True):
            tensors[nest.output] = each

    def _launched(self, prepared: Prepared, operands: tuple[Any, ...], sizes: object) -> Any:  # noqa: ANN401 reason: torch's
        key = sizes, operands[0].get_device()
        product = self.ready.get(key)
        if product is not None:
            return product(operands, tuple([each.data_ptr() for each in operands]))
        found, product = launch(prepared.plan, tuple([each.detach() for each in operands]), "refuse")
        if product is not None:
            self.ready[key] = product
        return found

    def _prepare(self, sizes: Sizes) -> Prepared:
        own = {name: int(computed(extent, sizes)) for name, extent in self.form.sizes.items()}
        shapes = [tuple(int(computed(each, own)) for each in one.type.shape) for one in self.form.parameters]
        results = [
            (tuple(int(computed(axis.extent, sizes)) for axis in nest.domain), TORCH_TYPES[nest.dtype])
            for nest in self.nests
        ]
        names = [each.type.name for each in self.form.parameters]
        plan = Plan(
            results,
            tuple(own.items()),
            candidates(self.family, self.form, own),
            partial(_named, names, shapes),
            ordered=tuple(names),
        )
        return Prepared(plan, any(0 in shape for shape, _ in results))


def _dense(tensor: Any) -> Any:  # noqa: ANN401 reason: torch's
    """As `copy_aligned`, with less overhead where nothing is to be done."""
    if tensor.is_contiguous() and not tensor.data_ptr() % ALIGNED:
        return tensor
    return copy_aligned(tensor.detach())


def _named(names: Sequence[str], shapes: Sequence[tuple[int, ...]], *tensors: Any) -> Mapping[str, Any]:  # noqa: ANN401 reason: torch's
    """The kernel's tensors in its shapes; of truth values, their bytes."""
    plain = (each.view(torch.int8) if each.dtype == torch.bool else each for each in tensors)
    return {name: each.view(shape) for name, shape, each in zip(names, shapes, plain, strict=True)}


def form_of(nests: Sequence[Nest], types: Mapping[str, TensorType], family: Family, sizes: Sizes) -> Canonical:
    whole = family.whole(nests[0], types) if family.whole is not None and len(nests) == 1 else None
    nests = nests if whole is None else (whole,)
    if family.rewritten is not None and len(nests) == 1:
        nest, types = family.rewritten(nests[0], types)
        nests = (nest,)
    return canonical(nests, types, sizes, family.most_axes, join=family.join, ones=whole is not None)


# -- the whole graph -----------------------------------------------------------------------------------------


@define
class ViewStep:
    """A view of a tensor, by several operations of which each makes a view of the one before.

    known: of the call before, the tensor's strides, and the view's shape, strides and offset within it.
    """

    base: str
    name: str
    steps: tuple[EagerStep, ...]
    known: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int] | None = None

    def run(self, tensors: dict[str, Any]) -> None:
        base = tensors[self.base]
        if self.known is None or self.known[0] != base.stride():
            made = {self.base: base}
            for step in self.steps:
                _run_eager(step, made, {})
            view = made[self.name]
            offset = view.storage_offset() - base.storage_offset()
            self.known = base.stride(), tuple(view.shape), view.stride(), offset
        _, shape, strides, offset = self.known
        tensors[self.name] = base.as_strided(shape, strides, base.storage_offset() + offset)


Step = KernelStep | EagerStep
Run = Step | ViewStep


@frozen
class Compiled:
    """A graph that runs. steps: in order; gone: after each, the tensors that nothing needs any more.

    held: constants of the program, which lie where they are needed from the first call on: while a graph is compiled,
    torch makes fake tensors of copies. sized: whether a call gives sizes.
    """

    graph: Lowered
    steps: tuple[Run, ...]
    gone: tuple[tuple[str, ...], ...]
    held: dict[str, Any]
    devices: dict[str, torch.device]
    sized: bool = True

    @staticmethod
    def of(graph: Lowered, steps: Sequence[Step], module: Any) -> Compiled:  # noqa: ANN401 reason: torch's
        held = {each.name: getattr(module, each.target) for each in graph.held}
        devices = {each.name: each.device for each in graph.held if each.device is not None}
        shapes = [graph.types[name].shape for name, _ in graph.inputs if name in graph.types]
        numbers = [each for shape in shapes for each in shape] + [size for _, size in graph.inputs if size is not None]
        sized = any(map(symbols, numbers))
        outputs = {each.name for each in graph.outputs if isinstance(each, Tensor)}
        whole: Sequence[Run] = steps if sized else _with_whole_views(steps, outputs)
        return Compiled(graph, tuple(whole), _gone(graph, whole), held, devices, sized)

    def __call__(self, *given: Any) -> tuple[Any, ...]:  # noqa: ANN401 reason: torch's
        while self.devices:
            name, device = self.devices.popitem()
            self.held[name] = self.held[name].to(device)
        tensors = dict(self.held)
        tensors |= {name: each for (name, size), each in zip(self.graph.inputs, given, strict=True) if size is None}
        values = self._sizes(given) if self.sized else {}
        sizes = tuple(sorted(values.items()))
        for step, gone in zip(self.steps, self.gone, strict=True):
            match step:
                case KernelStep():
                    step.run(tensors, sizes)
                case ViewStep():
                    step.run(tensors)
                case EagerStep():
                    _run_eager(step, tensors, values)
            for name in gone:
                tensors.pop(name, None)
        return tuple([_result(each, tensors, values) for each in self.graph.outputs])

    def _sizes(self, given: Sequence[Any]) -> dict[str, int]:
        """The sizes of a call, by name."""
        values: dict[str, int] = {}
        pairs = tuple(zip(self.graph.inputs, given, strict=True))
        for (_, size), each in pairs:
            if size is not None:
                values |= _solved(size, int(each))
        for (name, size), each in pairs:
            if size is None and name in self.graph.types:
                values |= _of_shape(self.graph.types[name], each, values)
        return values


def _solved(size: Index, value: int) -> dict[str, int]:
    """A size's value, where it is a symbol by itself."""
    text = getattr(getattr(size, "symbol", None), "name", None)
    return {} if text is None else {text: value}


def _of_shape(of: TensorType, tensor: Any, known: Mapping[str, int]) -> dict[str, int]:  # noqa: ANN401 reason: torch's
    found: dict[str, int] = {}
    for extent, value in zip(of.shape, tensor.shape, strict=True):
        found |= {name: number for name, number in _solved(extent, int(value)).items() if name not in known}
    return found


def _result(each: object, tensors: Mapping[str, Any], sizes: Sizes) -> object:
    match each:
        case Tensor(name=name):
            return tensors[name]
        case Number(value=value):
            return of_sizes(value, sizes)
        case _ if isinstance(each, Node):
            return int(computed(each, sizes))
        case _:
            return each


def _run_eager(step: EagerStep, tensors: dict[str, Any], sizes: Sizes) -> None:
    def given(arg: Any) -> Any:  # noqa: ANN401 reason: an argument of an operation
        return _result(arg, tensors, sizes)

    if step.is_plain:
        args, keywords = [tensors[each.name] if isinstance(each, Tensor) else each for each in step.args], step.keywords
    else:
        args, keywords = map_aggregate(step.args, given), map_aggregate(dict(step.keywords), given)
    found = step.target(*args, **keywords)
    made: Any = (found,) if step.single else found or ()
    tensors |= {name: each for name, each in zip(step.results, made, strict=False) if name is not None}


def _with_whole_views(steps: Sequence[Step], outputs: Collection[str]) -> list[Run]:
    """The steps, in which a view of a view is one of the tensor, made where it is first needed."""
    views: dict[str, ViewStep] = {}
    found: list[Run] = []
    made: set[str] = set()
    for step in steps:
        is_view = isinstance(step, EagerStep) and step.target in VIEWS and step.allocates and step.is_plain
        if isinstance(step, EagerStep) and is_view:
            (source,), (name,) = step.reads, step.results
            before = views.get(source, ViewStep(source, source, ()))
            views[str(name)] = ViewStep(before.base, str(name), (*before.steps, step))
        needed = {str(step.results[0])} & set(outputs) if isinstance(step, EagerStep) and is_view else _read_by(step)
        new = sorted(needed & views.keys() - made)
        found += [views[each] for each in new] if is_view else [*(views[each] for each in new), step]
        made |= set(new)
    return found


def _read_by(step: Run) -> set[str]:
    match step:
        case KernelStep():
            return set(step.sources)
        case ViewStep():
            return {step.base}
        case EagerStep():
            return step.reads


def _gone(graph: Lowered, steps: Sequence[Run]) -> tuple[tuple[str, ...], ...]:
    """After each step, the tensors that no later one reads and that are not results."""
    kept = {each.name for each in graph.outputs if isinstance(each, Tensor)} | {each.name for each in graph.held}
    found: list[tuple[str, ...]] = []
    for step in reversed(steps):
        used = _read_by(step)
        found.append(tuple(sorted(used - kept)))
        kept |= used
    return tuple(reversed(found))
