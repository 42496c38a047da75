"""Data model of a certificate, the checkable claims about a delivered design: the schema `argus.certificate/1`.

A certificate is untrusted input: it is parsed strictly, and `argus.search.certificates.check` recomputes its claims.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NoReturn, cast

from attrs import frozen
from cattrs import ClassValidationError, transform_error

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.report.summary import Word
from argus.search.certificates.strict import objects, strict_converter
from argus.search.evaluation.judgement import Reward

SCHEMA: Literal["argus.certificate/1"] = "argus.certificate/1"
NAME = "certificate.json"
_MOST_BYTES = 4 << 20
_PLAIN = re.compile(r"(?:\d{1,3}-\w[\w.-]{0,199}/)?\w[\w.-]{0,199}")
"""A file, or one in the folder of a launch."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
Role = Literal["source", "code", "description", "ir", "loader", "assembly", "problem"]
ROLES: tuple[Role, ...] = ("source", "code", "description", "ir", "loader", "assembly", "problem")
"""Roles of delivered files. assembly: if the compiler writes one. problem: the user's own file, if any."""


@frozen
class Problem:
    """The problem. name: as accepted by `argus optimize`. sizes: extents by name."""

    name: str
    target: str
    sizes: Mapping[str, int]


@frozen
class Design:
    """The design. knobs: its parameters. techniques: applied ones."""

    name: str
    knobs: Mapping[str, str]
    techniques: tuple[str, ...]


@frozen
class Invariant:
    """Result for one invariant. compared: elements compared by its obligations, per block and iteration."""

    id: str
    title: str
    standing: str
    obligations: int
    compared: int


@frozen
class Proof:
    """The proof. solver: used. invariants: applicable ones. results: the proved content of each output, as text."""

    verdict: Word
    solver: str
    obligations: int
    invariants: tuple[Invariant, ...]
    assumptions: tuple[str, ...]
    results: tuple[str, ...]
    uncovered: tuple[str, ...]


@frozen
class Run:
    """One run in the interpreter. outside: elements above the bound. worst: largest error; allowed: its bound."""

    shape: tuple[int, ...]
    seed: int
    elements: int
    outside: int
    worst: float
    allowed: float


@frozen
class Numbers:
    """Numeric comparison with the reference. tolerance: as text."""

    reference: str
    tolerance: str
    runs: tuple[Run, ...]


@frozen
class File:
    """A delivered file with its digest."""

    name: str
    bytes: int
    sha256: str


@frozen
class Time:
    """Time of one call. light: speed of light in microseconds. share: light / microseconds.

    device: name of the GPU; empty if the time is predicted. median: whether it is the median of a last round, instead
    of a single measurement or prediction.
    """

    reward: Reward
    microseconds: float
    light: float
    share: float
    bottleneck: str
    device: str
    median: bool = False


@frozen
class Baseline:
    """Baseline of the speedup. why: why this design. microseconds: None if the run has not timed it."""

    design: str
    why: str
    microseconds: float | None


@frozen
class Origin:
    """The search run. judged: number of candidates. reason: why it ended."""

    name: str
    seed: int
    judged: int
    reason: str


@frozen
class Certificate:
    """All claims. versions: of Argus, solvers and compilers used. compiler: package that compiled the code.

    launches: of a program of several, the files of each, which are no `files` then; the description is the program's.
    """

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
    launches: tuple[Mapping[Role, File], ...] = ()


def schema() -> dict[str, object]:
    """The JSON Schema (draft 2020-12) of a certificate."""
    text = files("argus.report").joinpath("schemas", "certificate-1.json").read_text(encoding="utf-8")
    return cast("dict[str, object]", json.loads(text))


def data_of(certificate: Certificate) -> dict[str, object]:
    """The certificate as JSON data, without what is as in most certificates: no median, one kernel."""
    data = cast("dict[str, Any]", _READER.unstructure(certificate))
    if not certificate.launches:
        del data["launches"]
    if not certificate.time.median:
        del data["time"]["median"]
    return data


def certificate_text(certificate: Certificate) -> str:
    """The certificate as JSON text."""
    return json.dumps(data_of(certificate), indent=2, allow_nan=False) + "\n"


def open_certificate(path: Path) -> tuple[Certificate, Path]:
    """Read the certificate of a folder, or a certificate file; returns it and the folder.

    Raises ArgusError: E930 if it cannot be read, E931 if it is malformed.
    """
    place = path
    try:
        place = path / NAME if path.is_dir() else path
        if place.stat().st_size > _MOST_BYTES:
            _refuse("E930", f"`{place}` has more than {_MOST_BYTES:,} bytes, the limit of a certificate")
        text = place.read_bytes().decode("utf-8")
    except OSError as problem:
        _refuse("E930", f"`{place}` cannot be read: {problem.strerror or problem}")
    except ValueError as problem:
        _refuse("E930", f"`{place}` is not UTF-8 text, or not a path: {problem}")
    return parse_certificate(text, str(place)), place.parent


def parse_certificate(text: str, place: str) -> Certificate:
    """Parse a certificate. place: shown in messages. Raises ArgusError (E931)."""
    try:
        data = json.loads(text, parse_constant=_reject_constant, object_pairs_hook=_unique_keys)
        return _READER.structure(data, Certificate)
    except ClassValidationError as problem:
        faults = [" ".join(each.split())[:200] for each in transform_error(problem)]
        _refuse("E931", f"`{place}` is not a certificate: {_printable('; '.join(faults[:4]))}")
    except RecursionError:
        _refuse("E931", f"`{place}` is not a certificate: its data is nested too deeply")
    except (ValueError, TypeError, KeyError) as problem:
        _refuse("E931", f"`{place}` is not a certificate: {_printable(str(problem))}")


def _refuse(code: str, message: str) -> NoReturn:
    advice = "name the folder that `argus optimize --out` wrote, or the certificate.json in it"
    raise ArgusError(Diagnostic(code, "error", message, help=advice))


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text)


def _reject_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key in an object")
    return found


def _file(value: object, wanted: object) -> File:
    found = cast("File", objects(File, _READER)(value, wanted))
    if not _PLAIN.fullmatch(found.name) or not _SHA256.fullmatch(found.sha256):
        raise ValueError("expected a file name, without a folder but that of a launch, and 64 hexadecimal digits")
    return found


_READER = strict_converter()
_READER.register_structure_hook(File, _file)
