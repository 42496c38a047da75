"""Cached launches: a repeated product finds its bound launch by tensor addresses alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from attrs import define, field, frozen

from argus.runtime.gpu.arguments import Array
from argus.runtime.gpu.guards import Promises
from argus.runtime.gpu.launch import LoadedKernel, PreparedKernel, row_major
from argus.runtime.gpu.threads import OncePerThread
from argus.runtime.programs import LoadedProgram, PreparedProgram, Workspace

_MOST_BOUND, _MOST_READY = 256, 4096
Extents = tuple[int, ...]
Sizes = tuple[tuple[str, int], ...]
Named = Mapping[str, Array]
Launch = Callable[[], None]
Result = tuple[Extents, object]
"""The shape and the dtype of a result."""
Product = Callable[[tuple[Any, ...], Extents], Any]
"""A product as a function of its operands and their addresses; returns the result, or a tuple of several."""
AtPlaces = Callable[[Extents], None]
"""A launch on tensors at these addresses."""
K = TypeVar("K")
V = TypeVar("V")


@frozen
class Call:
    """What a launch depends on besides addresses and stream.

    sizes: of the kernel, by name. strides: of the operands that need not be row-major. promises: how integers with a
    data contract are checked; None where the kernel takes none.
    """

    sizes: Sizes
    strides: tuple[Extents, ...] = ()
    promises: Promises | None = None


@define
class Schedule:
    """A kernel or program loaded in a device's context, with caches: of what it is at the sizes of a call, and of
    launches by call and addresses.
    """

    kernel: LoadedKernel | LoadedProgram
    context: object
    prepared: dict[tuple[object, ...], Launch] = field(factory=dict[tuple[object, ...], Launch], init=False)
    sized: dict[Sizes, PreparedKernel | PreparedProgram] = field(
        factory=dict[Sizes, PreparedKernel | PreparedProgram], init=False
    )

    def enter(self) -> None:
        """Make the context current in this thread, which has none until torch has used the GPU there."""
        self.kernel.driver.enter(self.context)

    def spaces(self, call: Call) -> tuple[Workspace, ...]:
        """The workspaces of a call, besides operands and result. Raises ArgusError (E405) like `launch`."""
        found = self._at_sizes(call)
        return found.workspaces if isinstance(found, PreparedProgram) else ()

    def launch(self, call: Call, places: Extents, tensors: Callable[[], Named], stream: int) -> Launch:
        """Launch, and return a function that launches the same again.

        places: the addresses of operands, result and workspaces. tensors: returns these by name; called only for new
        addresses.

        Raises ArgusError: E405 if the kernel does not support the shape, E402 for integers that violate a contract.
        """
        key = call, places, stream
        launch = self.prepared.get(key)
        if launch is None:
            launch = self._bound(call, tensors(), stream)
            if not self.reads_to_bind(call):
                _put(self.prepared, key, launch, _MOST_BOUND)
        launch()
        return launch

    def bind_places(self, call: Call, order: Sequence[str]) -> Callable[[int], AtPlaces] | None:
        """By the stream, a function of addresses that launches on tensors there of the layouts of this call.

        order: the names of all tensors, in the order of the addresses. None for programs and kernels with tensor maps.
        """
        found = self._at_sizes(call)
        if isinstance(found, PreparedProgram) or not found.is_of_addresses:
            return None
        return partial(found.bind_places, tuple(order))

    def reads_to_bind(self, call: Call) -> bool:
        """Whether binding checks integers that have a data contract: they may change, so each launch binds again."""
        if call.promises not in (None, "fetch"):
            return False
        kernels = (
            [each for each, _ in self.kernel.launches] if isinstance(self.kernel, LoadedProgram) else [self.kernel]
        )
        return any(each.launch.get("contracts") for each in kernels)

    def _bound(self, call: Call, tensors: Named, stream: int) -> Launch:
        found = self._at_sizes(call)
        return found.bind(tensors, stream, call.promises or "fetch")

    def _at_sizes(self, call: Call) -> PreparedKernel | PreparedProgram:
        """Raises ArgusError (E405) if a condition of the launch does not hold."""
        found = self.sized.get(call.sizes)
        if found is None:
            found = self.kernel.prepare(dict(call.sizes))
            _put(self.sized, call.sizes, found, _MOST_BOUND)
        return found


@frozen
class TorchDevice:
    """The torch functions that a call needs for one device, each with the least overhead.

    index: the device's number. current: returns the current device's number. on: context manager that makes a device
    current. stream: the current stream of a device. empty: allocates on the current device by shape, strides and dtype.
    """

    index: int
    current: Callable[[], int]
    on: Callable[[int], Any]
    stream: Callable[[int], int]
    empty: Callable[[Extents, Extents, object], Any] | None

    def result(self, like: Any, shape: Extents, dtype: object) -> Any:  # noqa: ANN401 reason: torch's
        """A new row-major tensor for a result; the device must be current, and `like` must be on it."""
        return like.new_empty(shape, dtype=dtype) if self.empty is None else self.empty(shape, row_major(shape), dtype)

    def room(self, like: Any, spaces: Sequence[tuple[Workspace, object]]) -> dict[str, Any]:  # noqa: ANN401 reason: torch's
        """Tensors for workspaces, by name; after the call, torch may reuse the memory for later work in the stream."""
        return {each.name: self.result(like, each.shape, dtype) for each, dtype in spaces}


def torch_device(torch: Any, index: int) -> TorchDevice:  # noqa: ANN401 reason: an extra
    """Uses torch's private functions where they exist: they do the same as the public ones, with less overhead."""
    inner = getattr(torch, "_C", None)
    guards = getattr(getattr(inner, "_dynamo", None), "guards", None)

    def on(number: int) -> Any:  # noqa: ANN401 reason: torch's
        return torch.cuda.device(number)

    return TorchDevice(
        index,
        getattr(inner, "_cuda_getDevice", torch.cuda.current_device),
        on,
        getattr(inner, "_cuda_getCurrentRawStream", lambda _index: torch.cuda.current_stream().cuda_stream),
        getattr(guards, "_empty_strided_cuda", None),
    )


def bind_product(
    schedule: Schedule,
    call: Call,
    used: TorchDevice,
    results: Sequence[Result],
    named: Callable[..., Named],
    spaces: Sequence[tuple[Workspace, object]] = (),
    move: Callable[[int], AtPlaces] | None = None,
) -> Product:
    """A function for products of operands whose dtypes, shapes, strides and device have been checked.

    named: maps operands and results to the kernel's tensors by name. spaces: workspaces, each with its dtype. move: of
    `Schedule.bind_places`, for addresses of operands and results.
    """
    index, current, stream = used.index, used.current, used.stream
    make = [_maker(used, *each) for each in results]
    kept = not schedule.reads_to_bind(call)
    entered = OncePerThread(schedule.enter)
    seen: dict[Extents, Launch] = {}
    moved: dict[int, AtPlaces] = {}

    # It reads only local variables, for speed: a call takes a few microseconds.
    def product(operands: tuple[Any, ...], places: Extents) -> Any:  # noqa: ANN401 reason: torch's
        if current() != index:
            with used.on(index):
                return product(operands, places)
        # In a thread that has entered once, the context is current whenever the device is.
        entered()
        outs = tuple([each(operands[0]) for each in make])
        if move is not None:
            where = stream(index)
            launched = moved.get(where)
            if launched is None:
                launched = moved[where] = move(where)
            launched((*places, *[each.data_ptr() for each in outs]))
            return one_or_all(outs)
        room = used.room(operands[0], spaces) if spaces else {}
        key = *places, *[each.data_ptr() for each in outs], *(each.data_ptr() for each in room.values()), stream(index)
        launch = seen.get(key)
        if launch is None:
            given = partial(_with_room, named, operands, outs, room)
            launch = schedule.launch(call, key[:-1], given, key[-1])
            if kept:
                _put(seen, key, launch, _MOST_BOUND)
        else:
            launch()
        return one_or_all(outs)

    return product


def one_or_all(results: tuple[Any, ...]) -> Any:  # noqa: ANN401 reason: torch's
    """The result, if there is one, or the tuple of all."""
    return results[0] if len(results) == 1 else results


def _maker(used: TorchDevice, shape: Extents, dtype: object) -> Callable[[Any], Any]:
    """A function that makes a new row-major tensor beside an operand."""
    if used.empty is None:
        return lambda operand: operand.new_empty(shape, dtype=dtype)
    empty = partial(used.empty, shape, row_major(shape), dtype)
    return lambda _: empty()


def _with_room(named: Callable[..., Named], operands: tuple[Any, ...], outs: tuple[Any, ...], room: Named) -> Named:
    return {**named(*operands, *outs), **room}


def store(table: dict[tuple[object, ...], V], key: tuple[object, ...], value: V) -> None:
    """Store a value in a table of bounded size: a full table is cleared first."""
    _put(table, key, value, _MOST_READY)


def _put(table: dict[K, V], key: K, value: V, most: int) -> None:
    if len(table) >= most:
        table.clear()
    table[key] = value
