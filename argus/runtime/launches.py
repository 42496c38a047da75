"""Launches that are kept: a product like one before looks up what to launch by addresses alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import get_ident
from typing import Any, TypeVar

from attrs import define, field, frozen

from argus.runtime.cuda.arguments import Array
from argus.runtime.cuda.launch import Loaded, row_major
from argus.runtime.programs import LoadedProgram, Workspace

_MOST_BOUND, _MOST_READY = 256, 4096
Extents = tuple[int, ...]
Named = Mapping[str, Array]
Launch = Callable[[], None]
Product = Callable[[tuple[Any, ...], Extents], Any]
"""Of operands and their addresses."""
K = TypeVar("K")
V = TypeVar("V")


@frozen
class Call:
    """What a launch depends on besides addresses and the stream.

    sizes: of the kernel, by name. strides: of the operands that may lie with strides of their own.
    """

    sizes: tuple[tuple[str, int], ...]
    strides: tuple[Extents, ...] = ()


@define
class Schedule:
    """A kernel, or a program of several, in the context of a device, with launches of the calls and addresses seen
    lately.
    """

    kernel: Loaded | LoadedProgram
    context: object
    prepared: dict[tuple[object, ...], Launch] = field(factory=dict[tuple[object, ...], Launch], init=False)

    def enter(self) -> None:
        """Make its context current in this thread: where torch has done nothing yet there is none."""
        self.kernel.driver.call("cuCtxSetCurrent", self.context)

    def spaces(self, call: Call) -> tuple[Workspace, ...]:
        """What a call needs room for besides operands and result. Raises ArgusError (E405) as `launch` does."""
        program = self.kernel if isinstance(self.kernel, LoadedProgram) else None
        return () if program is None else program.prepare(dict(call.sizes)).workspaces

    def launch(self, call: Call, places: Extents, tensors: Callable[[], Named], stream: int) -> Launch:
        """Launch, and return what launches the same again.

        places: the addresses of operands, result and workspaces. tensors: these by name, for which only a new place
        asks.

        Raises ArgusError (E405) if the schedule does not take the shape.
        """
        key = call, places, stream
        launch = self.prepared.get(key)
        if launch is None:
            launch = self.kernel.bind(tensors(), dict(call.sizes), stream)
            _put(self.prepared, key, launch, _MOST_BOUND)
        launch()
        return launch


@frozen
class Machine:
    """One device of torch, by the shortest ways there are.

    index: its number. current: the number of the current device. on: makes one current for a while. stream: the
    current stream of a device. empty: makes memory on the current device by shape, strides and type of elements.
    """

    index: int
    current: Callable[[], int]
    on: Callable[[int], Any]
    stream: Callable[[int], int]
    empty: Callable[[Extents, Extents, object], Any] | None

    def result(self, like: Any, shape: Extents, dtype: object) -> Any:  # noqa: ANN401 reason: torch's
        """Memory for a result, row-major; the device is current, and `like` lies there."""
        return like.new_empty(shape, dtype=dtype) if self.empty is None else self.empty(shape, row_major(shape), dtype)

    def room(self, like: Any, spaces: Sequence[tuple[Workspace, object]]) -> dict[str, Any]:  # noqa: ANN401 reason: torch's
        """Memory for workspaces, by name: torch's own, free again for what follows in the stream when the call ends."""
        return {each.name: self.result(like, each.shape, dtype) for each, dtype in spaces}


def machine(torch: Any, index: int) -> Machine:  # noqa: ANN401 reason: an extra
    """What torch keeps to itself is used where it is there: the same as the public ways, without objects around it."""
    inner = getattr(torch, "_C", None)
    guards = getattr(getattr(inner, "_dynamo", None), "guards", None)

    def on(number: int) -> Any:  # noqa: ANN401 reason: torch's
        return torch.cuda.device(number)

    return Machine(
        index,
        getattr(inner, "_cuda_getDevice", torch.cuda.current_device),
        on,
        getattr(inner, "_cuda_getCurrentRawStream", lambda _index: torch.cuda.current_stream().cuda_stream),
        getattr(guards, "_empty_strided_cuda", None),
    )


def product_of(
    schedule: Schedule,
    call: Call,
    used: Machine,
    result: tuple[Extents, object],
    named: Callable[..., Named],
    spaces: Sequence[tuple[Workspace, object]] = (),
) -> Product:
    """Products of operands whose types, shapes, strides and device are known to be right: only addresses are new.

    result: its shape and type of elements. named: of operands and result what the kernel takes, by name. spaces:
    workspaces, each with its type of elements.
    """
    index, current, stream = used.index, used.current, used.stream
    shape, dtype = result
    empty = None if used.empty is None else partial(used.empty, shape, row_major(shape), dtype)
    entered: set[int] = set()
    seen: dict[Extents, Launch] = {}

    # What this reads is local to it: a call takes few microseconds.
    def product(operands: tuple[Any, ...], places: Extents) -> Any:  # noqa: ANN401 reason: torch's
        if current() != index:
            with used.on(index):
                return product(operands, places)
        # In these threads the context is current whenever the device is.
        if get_ident() not in entered:
            schedule.enter()
            entered.add(get_ident())
        out = operands[0].new_empty(shape, dtype=dtype) if empty is None else empty()
        room = used.room(operands[0], spaces) if spaces else {}
        key = *places, out.data_ptr(), *(each.data_ptr() for each in room.values()), stream(index)
        launch = seen.get(key)
        if launch is None:
            given = partial(_with_room, named, operands, out, room)
            _put(seen, key, schedule.launch(call, key[:-1], given, key[-1]), _MOST_BOUND)
        else:
            launch()
        return out

    return product


def _with_room(named: Callable[..., Named], operands: tuple[Any, ...], out: Any, room: Named) -> Named:  # noqa: ANN401 reason: torch's
    return {**named(*operands, out), **room}


def keep(table: dict[tuple[object, ...], V], key: tuple[object, ...], value: V) -> None:
    """Without an end to the kinds of calls there would be none to the table."""
    _put(table, key, value, _MOST_READY)


def _put(table: dict[K, V], key: K, value: V, most: int) -> None:
    if len(table) >= most:
        table.clear()
    table[key] = value
