"""What is claimed of a design that a search delivers, as data that others may check: the schema `argus.certificate/1`.

A certificate is untrusted input: it is read strictly, and each of its claims is computed again
(`argus.search.certificates.check`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Literal, NoReturn, cast

from attrs import frozen
from cattrs import ClassValidationError, transform_error

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.report.summary import Word
from argus.search.certificates.strict import objects, reader
from argus.search.evaluation.judgement import Reward

SCHEMA: Literal["argus.certificate/1"] = "argus.certificate/1"
NAME = "certificate.json"
_MOST_BYTES = 4 << 20
_PLAIN = re.compile(r"\w[\w.-]{0,199}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
Role = Literal["source", "code", "description", "ir", "loader", "assembly", "problem"]
ROLES: tuple[Role, ...] = ("source", "code", "description", "ir", "loader", "assembly", "problem")
"""What a delivered file is. assembly: where the compiler writes one. problem: the user's own file, if there is one."""


@frozen
class Problem:
    """name: as `argus optimize` takes it. sizes: extents by name."""

    name: str
    target: str
    sizes: Mapping[str, int]


@frozen
class Design:
    """knobs: what tells it from other designs. techniques: that it has."""

    name: str
    knobs: Mapping[str, str]
    techniques: tuple[str, ...]


@frozen
class Invariant:
    """compared: elements that its obligations compared, a block and iteration."""

    id: str
    title: str
    standing: str
    obligations: int
    compared: int


@frozen
class Proof:
    """solver: that was asked. invariants: that apply. results: what each output holds, in words."""

    verdict: Word
    solver: str
    obligations: int
    invariants: tuple[Invariant, ...]
    assumptions: tuple[str, ...]
    results: tuple[str, ...]
    uncovered: tuple[str, ...]


@frozen
class Run:
    """One run in the interpreter. worst: the largest error; allowed: what rounding may cause there."""

    shape: tuple[int, ...]
    seed: int
    elements: int
    outside: int
    worst: float
    allowed: float


@frozen
class Numbers:
    """How results were compared. tolerance: in words."""

    reference: str
    tolerance: str
    runs: tuple[Run, ...]


@frozen
class File:
    name: str
    bytes: int
    sha256: str


@frozen
class Time:
    """microseconds: of one call. light: the least that physics allows. share: of the speed of light that is reached.

    device: the name of the GPU; empty where times are predicted.
    """

    reward: Reward
    microseconds: float
    light: float
    share: float
    bottleneck: str
    device: str


@frozen
class Baseline:
    """What the design is compared with. microseconds: None where the run has not timed it. why: it, in words."""

    design: str
    why: str
    microseconds: float | None


@frozen
class Origin:
    """The search that found it. judged: candidates that it has looked at. reason: why it ended."""

    name: str
    seed: int
    judged: int
    reason: str


@frozen
class Certificate:
    """versions: of Argus, solvers and compilers that made it. compiler: the distribution that made the code."""

    schema: Literal["argus.certificate/1"]
    problem: Problem
    design: Design
    proof: Proof
    numbers: Numbers
    files: Mapping[Role, File]
    resources: Mapping[str, float]
    time: Time
    baseline: Baseline
    run: Origin
    compiler: str
    versions: Mapping[str, str]


def schema() -> dict[str, object]:
    """The JSON Schema (draft 2020-12) of a certificate."""
    text = files("argus.report").joinpath("schemas", "certificate-1.json").read_text(encoding="utf-8")
    return cast("dict[str, object]", json.loads(text))


def data_of(certificate: Certificate) -> dict[str, object]:
    """As JSON data."""
    return cast("dict[str, object]", _READER.unstructure(certificate))


def text_of(certificate: Certificate) -> str:
    return json.dumps(data_of(certificate), indent=2, allow_nan=False) + "\n"


def opened(path: Path) -> tuple[Certificate, Path]:
    """The certificate of a folder or of its file, and the folder.

    Raises ArgusError: E930 if it cannot be read, E931 if it is none.
    """
    place = path
    try:
        place = path / NAME if path.is_dir() else path
        if place.stat().st_size > _MOST_BYTES:
            _refuse("E930", f"`{place}` is larger than any certificate: more than {_MOST_BYTES:,} bytes")
        text = place.read_bytes().decode("utf-8")
    except OSError as problem:
        _refuse("E930", f"`{place}` cannot be read: {problem.strerror or problem}")
    except ValueError as problem:
        _refuse("E930", f"`{place}` is no text in UTF-8, or no path: {problem}")
    return read(text, str(place)), place.parent


def read(text: str, place: str) -> Certificate:
    """The certificate of a text. place: for the message. Raises ArgusError (E931)."""
    try:
        data = json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)
        return _READER.structure(data, Certificate)
    except ClassValidationError as problem:
        faults = [" ".join(each.split())[:200] for each in transform_error(problem)]
        _refuse("E931", f"`{place}` is no certificate: {_printable('; '.join(faults[:4]))}")
    except RecursionError:
        _refuse("E931", f"`{place}` is no certificate: its data lies too deep")
    except (ValueError, TypeError, KeyError) as problem:
        _refuse("E931", f"`{place}` is no certificate: {_printable(str(problem))}")


def _refuse(code: str, message: str) -> NoReturn:
    advice = "name the folder that `argus optimize --out` wrote, or the certificate.json in it"
    raise ArgusError(Diagnostic(code, "error", message, help=advice))


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


def _file(value: object, wanted: object) -> File:
    found = cast("File", objects(File, _READER)(value, wanted))
    if not _PLAIN.fullmatch(found.name) or not _SHA256.fullmatch(found.sha256):
        raise ValueError("expected the plain name of a file, and 64 hexadecimal digits")
    return found


_READER = reader()
_READER.register_structure_hook(File, _file)
