"""Loads built programs and launches their kernels in stream order, on the caller's tensors and workspaces."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from attrs import evolve, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.expressions import value_of
from argus.runtime.gpu.arguments import Array, Contract
from argus.runtime.gpu.driver import GpuDriver
from argus.runtime.gpu.guards import Promises
from argus.runtime.gpu.launch import LoadedKernel, PreparedKernel, load


@frozen
class Workspace:
    """A tensor that the caller passes besides the program's parameters; its initial contents do not matter."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@frozen
class PreparedProgram:
    """A program at given sizes. launches: each kernel, with the program's tensor name for each of its parameters."""

    launches: tuple[tuple[PreparedKernel, Mapping[str, str]], ...]
    workspaces: tuple[Workspace, ...]

    def bind(self, tensors: Mapping[str, Array], stream: int = 0, promises: Promises = "fetch") -> Callable[[], None]:
        """A function that launches all kernels on these tensors, the workspaces among them; they must outlive it.

        promises: as for `PreparedKernel.bind`; a contract that several kernels have is checked ahead of the first.
        Raises ArgusError like `PreparedKernel.bind`.
        """
        bound: list[Callable[[], None]] = []
        checked: set[_Checked] = set()
        for kernel, given in self.launches:
            named = {own: tensors[name] for own, name in given.items()}
            others = tuple(each for each in kernel.contracts if _checked(each, given) not in checked)
            checked |= {_checked(each, given) for each in others}
            bound.append(evolve(kernel, contracts=others).bind(named, stream, promises))
        return partial(_in_order, tuple(bound))


_Checked = tuple[object, ...]
"""What a contract asks of which tensors of the program."""


def _checked(contract: Contract, given: Mapping[str, str]) -> _Checked:
    """Equal for contracts of two launches that ask the same, at the same sizes: no kernel writes what a contract of it
    reads, and a proof counts on none whose tensors an earlier launch has written.
    """
    read = tuple((each.tensor, given[each.tensor], each.shape) for each in (contract.place, *contract.others))
    sizes = tuple((name, contract.sizes[name]) for name in sorted(contract.sizes) if name in contract.condition)
    return contract.condition, sizes, *read


def _in_order(launches: Sequence[Callable[[], None]]) -> None:
    for launch in launches:
        launch()


@frozen
class LoadedProgram:
    """A program loaded on the device. spaces: its workspaces, from the description."""

    name: str
    launches: tuple[tuple[LoadedKernel, Mapping[str, str]], ...]
    spaces: tuple[Mapping[str, Any], ...]

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
        return PreparedProgram(launches, spaces)

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
    except (OSError, ValueError, KeyError, TypeError) as problem:
        message = f"the built program `{description}` cannot be read: {problem}"
        raise ArgusError(Diagnostic("E405", "error", message, help="build it again")) from problem
    launches = tuple((load(description.parent / place, driver), given) for place, given in made)
    return LoadedProgram(name, launches, spaces)
