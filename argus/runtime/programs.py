"""Loads built programs and launches their kernels in stream order, on the caller's tensors and workspaces."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from attrs import evolve, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.dtype import DTYPES
from argus.runtime.expressions import value_of
from argus.runtime.gpu.arguments import Array, Contract
from argus.runtime.gpu.driver import GpuDriver
from argus.runtime.gpu.guards import Guards, Promises
from argus.runtime.gpu.launch import LoadedKernel, PreparedKernel, load

_BYTES = {dtype.name: dtype.bits // 8 for dtype in DTYPES}


@frozen
class Workspace:
    """A tensor that the caller passes besides the program's parameters; its initial contents do not matter."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def element(self) -> int:
        """Bytes of an element."""
        return _BYTES[self.dtype]


@frozen
class PreparedProgram:
    """A program at given sizes. launches: each kernel, with the program's tensor name for each of its parameters.

    read: the names of the parameters that no launch writes.
    """

    launches: tuple[tuple[PreparedKernel, Mapping[str, str]], ...]
    workspaces: tuple[Workspace, ...]
    read: frozenset[str] = frozenset()

    def bind(self, tensors: Mapping[str, Array], stream: int = 0, promises: Promises = "fetch") -> Callable[[], None]:
        """A function that launches all kernels on these tensors, the workspaces among them; they must outlive it.

        promises: as for `PreparedKernel.bind`. Contracts of integers that no launch writes are checked ahead of all,
        those of several kernels once; of a kernel with several, all are checked by one launch. A first launch that
        checks its contracts itself does so ahead of what it and the others read.
        Raises ArgusError like `PreparedKernel.bind`.
        """
        bound: list[Callable[[], None]] = []
        checked: set[_Checked] = set()
        launches = [each for each in self.launches if each[0].runs]
        if launches and launches[0] is not self.launches[0]:
            # It may read, ahead of its wait, what work ahead of the program writes.
            launches[0] = (evolve(launches[0][0], early=False), launches[0][1])
        own = bool(launches) and launches[0][0].checks_itself(promises) and self._reads_given(*launches[0])
        if own:
            checked |= {_checked(each, launches[0][1]) for each in launches[0][0].contracts}
        ahead = [each for each in launches if self._reads_given(*each)]
        for kernel, given in sorted(ahead, key=lambda each: -len(each[0].contracts)):
            asked = {_checked(each, given) for each in kernel.contracts}
            if asked - checked:
                named = {each: tensors[name] for each, name in given.items()}
                bound += kernel.guarded(named, stream, promises)
            checked |= asked
        for number, (kernel, given) in enumerate(launches):
            named = {each: tensors[name] for each, name in given.items()}
            first = own and number == 0
            others = tuple(each for each in kernel.contracts if first or _checked(each, given) not in checked)
            checked |= {_checked(each, given) for each in others}
            bound.append(evolve(kernel, contracts=others).bind(named, stream, promises))
        return partial(_in_order, tuple(bound), tuple(kernel.loaded.guards for kernel, _ in launches))

    def _reads_given(self, kernel: PreparedKernel, given: Mapping[str, str]) -> bool:
        """Whether no launch writes what the contracts of a kernel read."""
        read = {given[place.tensor] for each in kernel.contracts for place in (each.place, *each.others)}
        return bool(kernel.contracts) and read <= self.read


_Checked = tuple[object, ...]
"""What a contract asks of which tensors of the program."""


def _checked(contract: Contract, given: Mapping[str, str]) -> _Checked:
    """Equal for contracts of two launches that ask the same, at the same sizes: no kernel writes what a contract of it
    reads, and a proof counts on none whose tensors an earlier launch has written.
    """
    read = tuple((each.tensor, given[each.tensor], each.shape) for each in (contract.place, *contract.others))
    sizes = tuple((name, contract.sizes[name]) for name in sorted(contract.sizes) if name in contract.condition)
    return contract.condition, sizes, *read


def _in_order(launches: Sequence[Callable[[], None]], guards: Sequence[Guards]) -> None:
    """Raises ArgusError (E402) if a guard found a violated contract, of an earlier launch or of this one."""
    for each in guards:
        each.check()
    for launch in launches:
        launch()


@frozen
class LoadedProgram:
    """A program loaded on the device. spaces: its workspaces, from the description. read: as of `PreparedProgram`."""

    name: str
    launches: tuple[tuple[LoadedKernel, Mapping[str, str]], ...]
    spaces: tuple[Mapping[str, Any], ...]
    read: frozenset[str] = frozenset()

    @property
    def driver(self) -> GpuDriver:
        return self.launches[0][0].driver

    def prepare(self, sizes: Mapping[str, int]) -> PreparedProgram:
        """The program at these sizes. Raises ArgusError (E405) if a condition of a launch does not hold."""
        launches = tuple((kernel.prepare(sizes), given) for kernel, given in self.launches)
        spaces = tuple(
            Workspace(each["name"], each["dtype"], tuple(value_of(extent, sizes) for extent in each["shape"]))
            for each in self.spaces
        )
        return PreparedProgram(launches, spaces, self.read)

    def bind(
        self, tensors: Mapping[str, Array], sizes: Mapping[str, int], stream: int = 0, promises: Promises = "fetch"
    ) -> Callable[[], None]:
        """A function that launches the program on these tensors, by name, with these sizes; see `PreparedProgram.bind`.

        Raises ArgusError (E405) if a condition of a launch does not hold.
        """
        return self.prepare(sizes).bind(tensors, stream, promises)

    def synchronise(self) -> None:
        """Wait until all launches have finished; raises like `LoadedKernel.synchronise`."""
        for kernel, _ in self.launches:
            kernel.synchronise()


def load_program(description: Path, driver: GpuDriver | None = None) -> LoadedProgram:
    """Load a program's NAME.json, and the kernels beside it, into the current context.

    Raises ArgusError like `load`; E405 if the file is damaged or absent.
    """
    try:
        data = cast("Mapping[str, Any]", json.loads(description.read_text(encoding="utf-8")))
        name, spaces = str(data["program"]), tuple(data["workspaces"])
        made = [(str(each["description"]), dict(each["given"])) for each in data["launches"]]
        read = frozenset(map(str, data.get("read", ())))
    except (OSError, ValueError, KeyError, TypeError) as problem:
        message = f"the built program `{description}` cannot be read: {problem}"
        raise ArgusError(Diagnostic("E405", "error", message, help="build it again")) from problem
    launches = tuple((load(description.parent / place, driver), given) for place, given in made)
    return LoadedProgram(name, launches, spaces, read)
