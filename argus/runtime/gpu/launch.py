"""Loads built kernels and launches them.

A launch takes tensors by address and shape (any object with `data_ptr`, `shape` and `stride`, such as a torch tensor),
encodes the kernel's tensor maps, and checks the conditions that its proof assumes.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from pathlib import Path
from threading import Lock
from typing import Any, cast

from attrs import field, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.expressions import value_of
from argus.runtime.gpu.arguments import Array, Contract, TensorLayout
from argus.runtime.gpu.driver import GpuDriver
from argus.runtime.gpu.find import find_driver
from argus.runtime.gpu.guards import GuardedTensor, Guards, Promises
from argus.runtime.gpu.tensor_maps import TensorMaps

_PARTS = {"symbol", "grid", "threads", "shared_bytes", "maps", "arguments", "checks"}
_MOST_BLOCKS = (2**31 - 1, 65_535, 65_535)
_FEW = 4096
"""The most integers that each block of a kernel checks; a guard checks more."""


@frozen
class PreparedKernel:
    """A kernel at given sizes, whose conditions hold and whose grid is known. maps, values: its arguments in order."""

    driver: GpuDriver
    function: object
    shape: tuple[int, ...]
    maps: tuple[tuple[TensorLayout, Mapping[str, Any]], ...]
    values: tuple[TensorLayout | int, ...]
    contracts: tuple[Contract, ...] = ()
    early: bool = False
    loaded: LoadedKernel = field(kw_only=True, eq=False)

    @property
    def runs(self) -> bool:
        """Whether the grid has blocks."""
        return 0 not in self.shape[:3]

    def bind(self, tensors: Mapping[str, Array], stream: int = 0, promises: Promises = "fetch") -> Callable[[], None]:
        """A function that launches the kernel on these tensors, by name; the tensors must outlive its launches.

        For an empty grid it does nothing. promises: "fetch" reads the integers that have a data contract now, which
        waits for the GPU; "stop" and "tell" check them on the GPU ahead of every launch, see `guards`.
        Raises ArgusError: E405 for a tensor without the layout that the kernel expects, E402 for integers that violate
        a contract.
        """
        if not self.runs:
            return _nothing
        own = self.checks_itself(promises)
        guarded = [] if own else self.guarded(tensors, stream, promises)
        maps = [self.loaded.tensor_maps.of(made, place, tensors[place.tensor]) for place, made in self.maps]
        numbers = [_argument(value, tensors) for value in self.values]
        function = self.function
        if own:
            function = self.loaded.functions[self.loaded.launch["checked"]]
            numbers += self._told(tensors, stop=promises == "stop")
        places = [*(made.getPtr() for made in maps), *map(ctypes.addressof, numbers)]
        alive = (maps, numbers)
        launch = self.driver.launcher(function, self.shape, places, alive, stream, early=self.early)
        return partial(self.loaded.guards.launch, (*guarded, launch)) if guarded or own else launch

    @property
    def is_of_addresses(self) -> bool:
        """Whether a launch depends on its tensors by their addresses alone: no tensor map, no contract."""
        return self.runs and not self.maps and not self.contracts

    def bind_places(self, order: Sequence[str], stream: int) -> Callable[[tuple[int, ...]], None]:
        """A function of the addresses of tensors, in this order, that launches the kernel on them.

        They must have the layouts that `bind` checks, and be all that the kernel takes.
        """
        named: dict[str, ctypes.c_void_p] = {}
        numbers: list[ctypes.c_void_p | ctypes.c_int] = []
        for value in self.values:
            numbers.append(ctypes.c_int(value) if isinstance(value, int) else ctypes.c_void_p())
            if isinstance(value, TensorLayout):
                named[value.tensor] = cast(ctypes.c_void_p, numbers[-1])
        places = [ctypes.addressof(each) for each in numbers]
        launch = self.driver.launcher(self.function, self.shape, places, numbers, stream, early=self.early)
        pointers = [named.pop(name, None) for name in order]
        assert not named
        lock = Lock()

        def launched(addresses: tuple[int, ...]) -> None:
            with lock:  # threads share the arguments, which the driver copies
                for pointer, address in zip(pointers, addresses, strict=True):
                    if pointer is not None:
                        pointer.value = address
                launch()

        return launched

    def checks_itself(self, promises: Promises) -> bool:
        """Whether its blocks check its contracts, all that it was built with, in place of guards."""
        whole = self.loaded.launch
        built = len(self.contracts) == len(whole.get("contracts", ()))
        few = sum(prod(each.place.shape) for each in self.contracts) <= _FEW
        return promises != "fetch" and bool(self.contracts) and built and few and bool(whole.get("checked"))

    def _told(self, tensors: Mapping[str, Array], *, stop: bool) -> list[Any]:
        """The further arguments of the entry point that checks contracts."""
        for each in self.contracts:
            each.check_layouts(tensors)
        words = (self.loaded.guards.prepare(each)[1] for each in self._guarded_tensors(self.contracts))
        return [*(ctypes.c_void_p(int(word)) for word in words), ctypes.c_int(stop)]

    @staticmethod
    def _guarded_tensors(contracts: Sequence[Contract]) -> list[GuardedTensor]:
        return [GuardedTensor(each.guard, each.place.tensor, each.condition, each.place.shape) for each in contracts]

    def guarded(self, tensors: Mapping[str, Array], stream: int, promises: Promises) -> list[Callable[[], None]]:
        """The launches that check the contracts; none with "fetch", which checks them now.

        Raises ArgusError like `bind`.
        """
        for contract in self.contracts:
            if promises == "fetch":
                contract.check(self.driver, tensors)
            else:
                contract.check_layouts(tensors)
        if promises == "fetch":
            return []
        groups = (self.contracts,) if self._has_common_guard() else tuple((each,) for each in self.contracts)
        return [self._guard(each, tensors, stream, stop=promises == "stop") for each in groups]

    def _has_common_guard(self) -> bool:
        """Whether one launch checks all contracts: that is built for all that the kernel has."""
        whole = self.loaded.launch
        return len(self.contracts) > 1 and len(self.contracts) == len(whole["contracts"]) and bool(whole.get("guards"))

    def _guard(
        self, contracts: Sequence[Contract], tensors: Mapping[str, Array], stream: int, *, stop: bool
    ) -> Callable[[], None]:
        """The launch that checks contracts: one, or all. Raises ArgusError (E405) for a kernel that was built without
        guards, or too many elements.
        """
        shapes, words = zip(*map(self.loaded.guards.prepare, self._guarded_tensors(contracts)), strict=True)
        read = [tensors[place.tensor].data_ptr() for each in contracts for place in (each.place, *each.others)]
        sizes = [ctypes.c_int(value) for value in self.values if isinstance(value, int)]
        numbers = [*map(ctypes.c_void_p, read), *sizes, *(ctypes.c_void_p(int(word)) for word in words)]
        numbers.append(ctypes.c_int(stop))
        symbol = contracts[0].guard if len(contracts) == 1 else self.loaded.launch["guards"]
        blocks, _, *others = max(shapes)
        shape = (blocks, len(contracts), *others)
        function, places = self.loaded.guards.functions[symbol], [ctypes.addressof(each) for each in numbers]
        return self.driver.launcher(function, shape, places, numbers, stream, early=self.early)


def _nothing() -> None:
    """The launch of an empty grid."""


def _argument(value: TensorLayout | int, tensors: Mapping[str, Array]) -> ctypes.c_void_p | ctypes.c_int:
    if isinstance(value, int):
        return ctypes.c_int(value)
    value.check(tensors[value.tensor])
    return ctypes.c_void_p(tensors[value.tensor].data_ptr())


@frozen
class LoadedKernel:
    """A kernel loaded on the device. launch: the launch description from NAME.json.

    functions: the device functions of its guards, by entry point.
    """

    name: str
    launch: Mapping[str, Any]
    function: object
    driver: GpuDriver
    functions: Mapping[str, object] = field(factory=dict[str, object])
    guards: Guards = field(init=False, eq=False)
    tensor_maps: TensorMaps = field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "guards", Guards(self.driver, self.functions))
        object.__setattr__(self, "tensor_maps", TensorMaps(self.driver))

    def bind(
        self, tensors: Mapping[str, Array], sizes: Mapping[str, int], stream: int = 0, promises: Promises = "fetch"
    ) -> Callable[[], None]:
        """A function that launches the kernel on these tensors, by name, with these sizes; see `PreparedKernel.bind`.

        Raises ArgusError (E405) if a condition of the launch does not hold.
        """
        return self.prepare(sizes).bind(tensors, stream, promises)

    def synchronise(self) -> None:
        """Wait until all launches have finished. Raises ArgusError: E402 if a guard found a violation, else E409."""
        try:
            self.driver.synchronise()
        finally:
            self.guards.check()

    def prepare(self, sizes: Mapping[str, int]) -> PreparedKernel:
        """The kernel at these sizes. Raises ArgusError (E405) if a condition of the launch does not hold."""
        for check in self.launch["checks"]:
            if not value_of(check["condition"], sizes):
                message = f"`{self.name}` cannot be launched: {check['condition']} does not hold ({check['why']})"
                facts = tuple((name, str(value)) for name, value in sizes.items())
                raise ArgusError(Diagnostic("E405", "error", message, facts=facts, help="choose other sizes"))
        grid = [int(value_of(extent, sizes)) for extent in self.launch["grid"]]
        grid += [1] * (3 - len(grid))
        if any(extent > most for extent, most in zip(grid, _MOST_BLOCKS, strict=True)):
            message = f"`{self.name}` cannot be launched: its grid is {tuple(grid)}, expected at most {_MOST_BLOCKS}"
            raise ArgusError(Diagnostic("E405", "error", message, help="choose smaller sizes"))
        shape = (*grid, self.launch["threads"], 1, 1, self.launch["shared_bytes"])
        maps = tuple((_place(made, made["tensor"], sizes), made) for made in self.launch["maps"])
        values = tuple(_value(argument, sizes) for argument in self.launch["arguments"])
        contracts = tuple(
            Contract(
                _place(each, each["tensor"], sizes),
                each["condition"],
                dict(sizes),
                each.get("guard", ""),
                tuple(_place(other, other["tensor"], sizes) for other in each.get("others", ())),
            )
            for each in self.launch.get("contracts", ())
        )
        early = bool(self.launch.get("early"))
        return PreparedKernel(self.driver, self.function, shape, maps, values, contracts, early, loaded=self)


def load(description: Path, driver: GpuDriver | None = None) -> LoadedKernel:
    """Load NAME.json and the code beside it into the current context. driver: that of this machine by default.

    Raises ArgusError: E406 without a driver, E407 if the code is for another GPU, E405 if the driver refuses it, or
    if a file is damaged or absent.
    """
    used = find_driver() if driver is None else driver
    data, code = _files(description, used.code_suffix)
    launch = data["launch"]
    guards = [each["guard"] for each in launch.get("contracts", ()) if each.get("guard")]
    guards += [launch[each] for each in ("guards", "checked") if launch.get(each)]
    made = used.load(code, launch["symbol"], launch["shared_bytes"], guards)
    return LoadedKernel(data["kernel"], launch, made.function, used, made.others)


def _files(description: Path, suffix: str) -> tuple[Mapping[str, Any], bytes]:
    """The description, and the code in the file beside it."""
    try:
        data = cast("Mapping[str, Any]", json.loads(description.read_text(encoding="utf-8")))
        code = description.with_suffix(suffix).read_bytes()
        lacking = ({"kernel", "launch"} - data.keys()) or (_PARTS - data["launch"].keys())
    except (OSError, ValueError, AttributeError) as problem:
        raise _unreadable(description, str(problem)) from problem
    if lacking:
        raise _unreadable(description, f"{', '.join(sorted(lacking))} missing")
    return data, code


def _unreadable(description: Path, why: str) -> ArgusError:
    message = f"the built kernel `{description}` cannot be read: {why}"
    return ArgusError(Diagnostic("E405", "error", message, help="build it again"))


def _place(described: Mapping[str, Any], tensor: str, sizes: Mapping[str, int]) -> TensorLayout:
    """The layout that a tensor map or a pointer argument expects; a pointer's tensor is row-major."""
    shape = tuple(value_of(extent, sizes) for extent in described["shape"])
    given = described.get("strides")
    strides = row_major(shape) if given is None else tuple(value_of(stride, sizes) for stride in given)
    return TensorLayout(tensor, shape, strides, described.get("align", 16))


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a row-major tensor, in elements."""
    strides: list[int] = []
    stride = 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    return tuple(reversed(strides))


def _value(argument: Mapping[str, Any], sizes: Mapping[str, int]) -> TensorLayout | int:
    """An argument after the tensor maps: the expected layout of a pointer's tensor, or a size."""
    return _place(argument, argument["name"], sizes) if argument["kind"] == "pointer" else sizes[argument["name"]]
