"""The worker process's request and result, as files in one folder.

`request.json` describes the launch, NAME.bin holds the bytes of each tensor, and `result.json` the result or
diagnostic.
"""

from __future__ import annotations

import json
from pathlib import Path

from attrs import asdict, frozen

from argus.core.diagnostic import ArgusError, Diagnostic

RESULT = "result.json"


@frozen
class Tensor:
    """A tensor argument. size: bytes per element. read: its contents are sent (otherwise it is filled with POISON).

    written: its contents are fetched after the launch.
    """

    name: str
    shape: tuple[int, ...]
    size: int
    read: bool
    written: bool

    def file(self, folder: Path) -> Path:
        return folder / f"{self.name}.bin"


@frozen
class Request:
    """A launch to run. description: path of the built kernel's NAME.json, or the built program's.

    repeats: timed launches after the first one, whose outputs are returned. program: whether all launches of a program
    are meant, on workspaces of its own.
    """

    description: str
    target: str
    tensors: tuple[Tensor, ...]
    sizes: dict[str, int]
    repeats: int
    program: bool = False

    def write(self, folder: Path) -> None:
        (folder / "request.json").write_text(json.dumps(asdict(self)), encoding="utf-8")


@frozen
class Result:
    """The result of a launch. device: the GPU's name. milliseconds: of each timed launch."""

    device: str
    milliseconds: tuple[float, ...]


def write_result(folder: Path, result: Result | Diagnostic) -> None:
    """Write the result, or the diagnostic of a failure."""
    data = asdict(result) if isinstance(result, Result) else _diagnostic_json(result)
    (folder / RESULT).write_text(json.dumps(data), encoding="utf-8")


def _diagnostic_json(problem: Diagnostic) -> dict[str, object]:
    return {"code": problem.code, "message": problem.message, "facts": problem.facts, "help": problem.help}


def read_request(folder: Path) -> Request:
    data = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    tensors = tuple(
        Tensor(each["name"], tuple(each["shape"]), each["size"], each["read"], each["written"])
        for each in data["tensors"]
    )
    return Request(data["description"], data["target"], tensors, data["sizes"], data["repeats"], data["program"])


def read_result(folder: Path) -> Result:
    """The worker's result. Raises its diagnostic as ArgusError; OSError or ValueError if it wrote none."""
    data = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    if "code" in data:
        facts = tuple((name, value) for name, value in data["facts"])
        raise ArgusError(Diagnostic(data["code"], "error", data["message"], facts=facts, help=data["help"]))
    return Result(data["device"], tuple(data["milliseconds"]))
