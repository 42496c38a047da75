"""What a process of its own is asked to launch, and what it leaves, as files of one folder.

`request.json` says what to launch, NAME.bin are the bytes of each tensor, and `result.json` is what came of it.
"""

from __future__ import annotations

import json
from pathlib import Path

from attrs import asdict, frozen

from argus.core.diagnostic import ArgusError, Diagnostic

RESULT = "result.json"


@frozen
class Tensor:
    """size: bytes of an element. read: whether its contents are sent, else it is poisoned; written: fetched."""

    name: str
    shape: tuple[int, ...]
    size: int
    read: bool
    written: bool

    def file(self, folder: Path) -> Path:
        return folder / f"{self.name}.bin"


@frozen
class Request:
    """description: NAME.json of the built kernel. repeats: launches that are timed, after the one that is judged."""

    description: str
    target: str
    tensors: tuple[Tensor, ...]
    sizes: dict[str, int]
    repeats: int

    def write(self, folder: Path) -> None:
        (folder / "request.json").write_text(json.dumps(asdict(self)), encoding="utf-8")


@frozen
class Result:
    """device: its name. milliseconds: of each timed launch."""

    device: str
    milliseconds: tuple[float, ...]


def write_result(folder: Path, result: Result | Diagnostic) -> None:
    """Leave times, or what went wrong."""
    data = asdict(result) if isinstance(result, Result) else _told(result)
    (folder / RESULT).write_text(json.dumps(data), encoding="utf-8")


def _told(problem: Diagnostic) -> dict[str, object]:
    return {"code": problem.code, "message": problem.message, "facts": problem.facts, "help": problem.help}


def read_request(folder: Path) -> Request:
    data = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    tensors = tuple(
        Tensor(each["name"], tuple(each["shape"]), each["size"], each["read"], each["written"])
        for each in data["tensors"]
    )
    return Request(data["description"], data["target"], tensors, data["sizes"], data["repeats"])


def read_result(folder: Path) -> Result:
    """What the worker left. Raises its diagnostic as ArgusError, OSError or ValueError if it left nothing."""
    data = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    if "code" in data:
        facts = tuple((name, value) for name, value in data["facts"])
        raise ArgusError(Diagnostic(data["code"], "error", data["message"], facts=facts, help=data["help"]))
    return Result(data["device"], tuple(data["milliseconds"]))
