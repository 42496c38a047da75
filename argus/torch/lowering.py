"""A graph of aten operations as steps: nests, which become kernels, and operations that eager torch runs."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Union, cast

import torch
from attrs import define, field, frozen
from torch.fx.node import map_aggregate

from argus.core.index import Const, Index, Symbol
from argus.nests.affine import Extents, is_scattered, product_of
from argus.nests.nest import Axis, Expr, Nest, Read, TensorType
from argus.nests.rewrite import reads
from argus.torch.devices import COPIES, apart, constant_of, device_of, tensors_of
from argus.torch.sinks import sinks_of
from argus.torch.sizes import fraction_of, index_of
from argus.torch.steps import (
    NAMES_OF_TYPES,
    TORCH_TYPES,
    VIEWS,
    Constant,
    EagerStep,
    Lowered,
    NestStep,
    Number,
    Step,
    Tensor,
)
from argus.torch.tables import contractions, convolutions, pointwise, reductions, views, windows
from argus.torch.tables.table import ENTRIES, NotCovered, constant
from argus.torch.values import Indices, Value, is_turned, number, turned

FAMILIES_OF_ENTRIES = (contractions, convolutions, pointwise, reductions, views, windows)
"""The modules whose entries are registered by their import."""
SMALL = 1 << 16
"""Elements that are computed again rather than kept for several uses."""

Held = Union[Value, Index, tuple["Value", ...], None]


def lowered(
    graph: Any,  # noqa: ANN401 reason: a graph of torch.fx
    eager: Mapping[str, str],
    stored: Collection[str] = (),
    *,
    whole: bool = False,
) -> Lowered:
    """The steps of a graph.

    eager: nodes that eager torch is to run, each with the reason. stored: nodes whose operands are to be in memory.
    whole: moments of rows that a cluster of blocks holds are not of parts.
    """
    return _Lowering(graph, eager, stored, whole).run()


@define
class _Lowering:
    """values: what each node is. numbers: those of sizes, among them. types: the tensors in memory by name."""

    graph: Any
    eager: Mapping[str, str]
    stored: Collection[str] = ()
    whole: bool = False
    values: dict[Any, Held] = field(factory=dict[Any, Held])
    types: dict[str, TensorType] = field(factory=dict[str, TensorType])
    steps: list[Step] = field(factory=list[Step])
    inputs: list[tuple[str, Index | None]] = field(factory=list[tuple[str, "Index | None"]])
    held: list[Constant] = field(factory=list[Constant])
    outputs: tuple[object, ...] = ()
    numbers: dict[Any, Number] = field(factory=dict[Any, Number])
    extents: dict[Symbol, Index] = field(factory=dict[Symbol, Index])
    sinks: dict[Any, set[Any]] = field(factory=dict[Any, set[Any]])
    device: torch.device | None = None

    def run(self) -> Lowered:
        self.device = device_of(self.graph)
        self.sinks = sinks_of(self.graph, self.eager)
        for node in self.graph.nodes:
            match node.op:
                case "placeholder" | "get_attr":
                    self._input(node)
                case "call_function":
                    self._call(node)
                    self._keep_if_used_often(node)
                case "output":
                    given: Any = node.args[0]
                    self.outputs = tuple(
                        self._output(each)
                        for each in cast(list[Any], given if isinstance(given, list | tuple) else [given])
                    )
                case _:
                    raise NotCovered(f"a node `{node.op}`")
        return Lowered(tuple(self.steps), self.types, tuple(self.inputs), tuple(self.held), self.outputs)

    # -- nodes ---

    def _input(self, node: Any) -> None:  # noqa: ANN401 reason: a node
        found = node.meta.get("val")
        size: Index | None = None
        if isinstance(found, torch.Tensor):
            self.values[node] = self._in_memory(node.name, found)
        elif isinstance(found, int | torch.SymInt):
            self.values[node] = size = index_of(found)
        if node.op == "placeholder":
            self.inputs.append((node.name, size))
        else:
            self.held.append(Constant(node.name, node.target))

    def _call(self, node: Any) -> None:  # noqa: ANN401 reason: a node
        found = node.meta.get("val")
        if isinstance(found, int | torch.SymInt):
            self.values[node] = index_of(found)
            return
        if isinstance(found, torch.SymFloat):
            quotient = fraction_of(found)
            self.values[node] = Value((), "f32", lambda _: quotient)
            self.numbers[node] = Number(quotient)
            return
        if node.target is operator.getitem:
            whole = self.values[node.args[0]]
            assert isinstance(whole, tuple)
            self.values[node] = whole[node.args[1]]
            return
        if self.device is not None and node.target in COPIES and found.device.type == "cpu" and not found.dim():
            self._in_eager(node, "")
            return
        try:
            self.values[node] = self._covered(node)
        except NotCovered as problem:
            self._in_eager(node, str(problem))

    def _covered(self, node: Any) -> Held:  # noqa: ANN401 reason: a node
        """Raises NotCovered for an operation without a meaning as a nest."""
        if node.name in self.eager:
            raise NotCovered(self.eager[node.name])
        packet = getattr(node.target, "overloadpacket", None)
        entry = ENTRIES.get(packet)
        if entry is None:
            raise NotCovered("the operation has no entry")
        self._types_of(node)
        count = len(self.steps)
        try:
            call = _Call(self, node, {each: self._moved(each) for each in apart(node, self.device)})
            found = entry(call, *node.args, **node.kwargs)
            for each in found if isinstance(found, tuple) else (found,):
                call.probe(each)  # what is not covered is found now
        except NotCovered:
            del self.steps[count:]
            raise
        return found

    def _moved(self, node: Any) -> Value:  # noqa: ANN401 reason: a node
        """A tensor of the CPU without axes, on the device of the graph: a constant once, another at each call."""
        name, constant = f"{node.name}__moved", constant_of(node)
        if name not in self.types and constant is not None:
            self.held.append(Constant(name, constant, self.device))
        elif name not in self.types:
            given, to = (Tensor(cast(str, self.store(node))),), torch.ops.aten._to_copy.default
            self.steps.append(EagerStep(name, str(to), "", to, given, {"device": self.device}, (name,), single=True))
        return self._in_memory(name, node.meta["val"])

    def _types_of(self, node: Any) -> None:  # noqa: ANN401 reason: a node
        for each in tensors_of(node.meta["val"]):
            if each.dtype not in NAMES_OF_TYPES:
                raise NotCovered(f"elements of {each.dtype}")
        joins = node.target is torch.ops.aten.cat.default  # of tensors that may have none
        for each in (node, *(() if joins else node.all_input_nodes)):
            extents = [extent for tensor in tensors_of(each.meta.get("val")) for extent in tensor.shape]
            if any(isinstance(extent, int) and not extent for extent in extents):
                raise NotCovered("a tensor without elements")

    def _in_eager(self, node: Any, why: str) -> None:  # noqa: ANN401 reason: a node
        for each in node.all_input_nodes:
            if each not in self.numbers and not self._is_own(node):
                self.store(each)
        given = self._given_to_own if self._is_own(node) else self._given
        args, keywords = (map_aggregate(each, given) for each in (node.args, dict(node.kwargs)))
        single = isinstance(found := node.meta.get("val"), torch.Tensor)
        made: list[Any] = [found] if single else list(found or ())
        names = [node.name if single else f"{node.name}__{k}" for k in range(len(made))]
        results = tuple(n if isinstance(each, torch.Tensor) else None for n, each in zip(names, made, strict=True))
        step = EagerStep(node.name, str(node.target), why, node.target, args, keywords, results, single)  # pyright: ignore[reportArgumentType]  # torch's
        self.steps.append(step)
        held = tuple(
            self._in_memory(name, each) if isinstance(each, torch.Tensor) else cast(Any, None)
            for name, each in zip(names, made, strict=True)
        )
        self.values[node] = held[0] if single else held

    @staticmethod
    def _is_own(node: Any) -> bool:  # noqa: ANN401 reason: a node
        """Whether it calls an operator of Argus."""
        return getattr(node.target, "namespace", "") == "argus"

    def _given_to_own(self, arg: Any) -> Any:  # noqa: ANN401 reason: an argument of an operation
        """The argument for an operator of Argus, which takes views."""
        if isinstance(arg, torch.fx.Node) and isinstance(self.values[arg], Value) and arg not in self.numbers:
            return Tensor(self._viewed(arg))
        return self._given(arg)

    def _given(self, arg: Any) -> Any:  # noqa: ANN401 reason: an argument of an operation
        """The argument for eager torch: tensors by name, sizes as index expressions."""
        if isinstance(arg, torch.SymInt):
            return index_of(arg)
        if not isinstance(arg, torch.fx.Node):
            return arg
        if arg in self.numbers:
            return self.numbers[arg]
        held = self.values[arg]
        return Tensor(cast(str, held.tensor)) if isinstance(held, Value) else held

    def _output(self, node: Any) -> object:  # noqa: ANN401 reason: a node or a constant
        if not isinstance(node, torch.fx.Node):
            return node
        if node in self.numbers:
            return self.numbers[node]
        name = self.store(node)
        return self.values[node] if name is None else Tensor(name)

    # -- tensors in memory ---

    def _in_memory(self, name: str, tensor: Any) -> Value:  # noqa: ANN401 reason: torch's
        dtype = NAMES_OF_TYPES.get(tensor.dtype, str(tensor.dtype))
        return self._held(TensorType(name, tuple(map(index_of, tensor.shape)), dtype))

    def _held(self, of: TensorType) -> Value:
        self.types[of.name] = of
        return Value(of.shape, of.dtype, lambda index: Read(of.name, index, of.dtype), of.name)

    def store(self, node: Any, *, of_columns: bool = False) -> str | None:  # noqa: ANN401 reason: a node
        """The name of the node's tensor in memory. of_columns: matrices are copied to it column by column."""
        held = self.values[node]
        if not isinstance(held, Value):
            return None
        if of_columns:
            self.values[node] = turned(self._nest(self.part_name(node), node, turned(held)))
        elif held.tensor is None:
            held = self.values[node] = self._nest(node.name, node, held)
        return held.tensor

    def axis(self, extent: Index) -> Axis:
        """A new axis."""
        made = Axis(f"a{len(self.extents)}", extent)
        self.extents[made.symbol] = extent
        return made

    def part(self, node: Any, value: Value) -> Value:  # noqa: ANN401 reason: a node
        return self._nest(self.part_name(node), node, value)

    def part_name(self, node: Any) -> str:  # noqa: ANN401 reason: a node
        parts = sum(isinstance(each, NestStep) and each.node == node.name for each in self.steps)
        return f"{node.name}__p{parts}"

    def call_operator(self, node: Any, operator: Any, args: Sequence[object]) -> Value:  # noqa: ANN401 reason: torch's
        """The result of an operator of Argus for a node."""
        given = tuple(Tensor(self._viewed(each)) for each in args)
        name = self.part_name(node)
        self.steps.append(EagerStep(name, str(operator), "", operator, given, {}, (name,), single=True))
        return self._in_memory(name, node.meta["val"])

    def _viewed(self, node: Any) -> str:  # noqa: ANN401 reason: a node
        """The name of a node's tensor, which may be a view of another."""
        held = self.values[node]
        if not isinstance(held, Value) or held.tensor is not None or node.target not in VIEWS:
            return cast(str, self.store(node))
        name = f"{node.name}__view"
        if name not in self.types:
            given = (Tensor(self._viewed(node.args[0])), *(map_aggregate(each, self._given) for each in node.args[1:]))
            self.steps.append(EagerStep(node.name, str(node.target), "", node.target, given, {}, (name,), single=True))
            self._in_memory(name, node.meta["val"])
        return name

    def emit(self, node: Any, nest: Nest) -> Value:  # noqa: ANN401 reason: a node
        self.steps.append(NestStep(nest, node.name))
        return self._held(nest.type)

    def _nest(self, name: str, node: Any, value: Value) -> Value:  # noqa: ANN401 reason: a node
        axes = tuple(map(self.axis, value.shape))
        return self.emit(node, Nest(name, value.dtype, axes, value.at([axis.index for axis in axes])))

    def _keep_if_used_often(self, node: Any) -> None:  # noqa: ANN401 reason: a node
        """Keep in memory what several nests need, if computing it again reads more than what it is."""
        held = self.values.get(node)
        if not isinstance(held, Value) or held.tensor is not None or len(self.sinks[node]) < 2:
            return
        count = product_of(held.shape)
        if isinstance(count, Const) and count.value <= SMALL:
            return
        axes = list(map(self.axis, held.shape))
        read = {each.tensor for each in reads(held.at([axis.index for axis in axes])) if self._is_large(each, count)}
        if len(read) > 1:
            self.store(node)

    def _is_large(self, read: Read, count: Index) -> bool:
        own = product_of(self.types[read.tensor].shape)
        if isinstance(own, Const) and isinstance(count, Const):
            return 2 * own.value >= count.value
        return own is count


@frozen
class _Call:
    """One operation, as its entry sees it."""

    graph: _Lowering
    node: Any
    moved: Mapping[Any, Value]

    @property
    def name(self) -> str:
        return cast(str, self.node.target.overloadpacket.__name__)

    def results(self) -> list[tuple[Indices, str]]:
        return [
            (tuple(map(index_of, each.shape)), NAMES_OF_TYPES[each.dtype]) for each in tensors_of(self.node.meta["val"])
        ]

    @property
    def shape(self) -> Indices:
        return self.results()[0][0]

    @property
    def dtype(self) -> str:
        return self.results()[0][1]

    def value(self, arg: object) -> Value:
        if isinstance(arg, torch.fx.Node):
            held = self.moved.get(arg, self.graph.values[arg])
            if isinstance(held, Value):
                if held.dtype not in TORCH_TYPES:
                    raise NotCovered(f"elements of {held.dtype}")
                return self._in_memory(arg, held) if self.node.name in self.graph.stored else held
            raise NotCovered(f"`{arg.name}` as a number")
        if isinstance(arg, bool | int | float):
            return number(constant(arg).value, "f32" if isinstance(arg, float) else "i64")
        raise NotCovered(f"an operand {arg!r}")

    def is_dense(self, arg: object, *, turned: bool = False) -> bool:
        found: Any = arg.meta.get("val") if isinstance(arg, torch.fx.Node) else None
        whole = isinstance(found, torch.Tensor) and found.storage_offset() == 0
        return whole and (found.is_contiguous() or (turned and found.mT.is_contiguous()))

    def operand(self, arg: object) -> Value:
        value = self.value(arg)
        return self._in_memory(arg, value, strided=True) if isinstance(arg, torch.fx.Node) else value

    def _in_memory(self, arg: Any, value: Value, *, strided: bool = False) -> Value:  # noqa: ANN401 reason: a node
        """The value, in memory unless it is a view of what is; strided: in which each axis has one stride."""
        found = self.probe(value)
        copied = bool(reads(found))
        if isinstance(found, Read) and found.outside is None:
            copied = strided and is_scattered(found.index, self.graph.types[found.tensor].shape)
        if copied:
            axes = list(map(self.axis, value.shape))
            self.graph.store(arg, of_columns=strided and is_turned(value, axes, self.graph.types))
        return cast(Value, self.graph.values[arg]) if copied else value

    def probe(self, value: Value) -> Expr:
        """The element at new axes."""
        return value.at([self.axis(extent).index for extent in value.shape])

    def size(self, arg: object) -> Index:
        if isinstance(arg, torch.fx.Node):
            held = self.graph.values[arg]
            if isinstance(held, Value | tuple) or held is None:
                raise NotCovered(f"`{arg.name}` as a size")
            return held
        if isinstance(arg, int | torch.SymInt):
            return index_of(arg)
        raise NotCovered(f"a size {arg!r}")

    def axis(self, extent: Index) -> Axis:
        return self.graph.axis(extent)

    @property
    def whole(self) -> bool:
        return self.graph.whole

    def uses(self, result: int) -> bool:
        return any(user.target is not operator.getitem or user.args[1] == result for user in self.node.users)

    @property
    def extents(self) -> Extents:
        return self.graph.extents

    def new_name(self) -> str:
        return self.graph.part_name(self.node)

    def emitted(self, nest: Nest) -> Value:
        return self.graph.emit(self.node, nest)

    def called(self, operator: object, *args: object) -> Value:
        return self.graph.call_operator(self.node, operator, args)

    def stored(self, value: Value) -> Value:
        return self.graph.part(self.node, value)
