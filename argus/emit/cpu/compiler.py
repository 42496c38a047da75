"""Compile units and the runtime with the clang and lld of the package `ziglang`, without a C library."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import platformdirs
from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.emit.cpu.unit import Unit, source_of

_DEVICE = Path(__file__).parent / "device"
_COMMON = (
    *("-x", "c++", "-c", "-std=c++17", "-g0", "-ffreestanding", "-fno-builtin", "-ffp-contract=off"),
    *("-fno-exceptions", "-fno-rtti", "-fno-math-errno", "-fno-stack-protector", "-fno-threadsafe-statics", "-w"),
)
_RUNTIME = ("-O2", "-target", "x86_64-linux-none")
_UNIT = ("-O1", "-fsanitize=thread", "-target", "x86_64-linux-gnu")
SECONDS = 120.0


@frozen
class Executable:
    """A compiled kernel. path: the executable. number: the kernel's place among those that it holds."""

    path: Path
    number: int = 0


def compile_unit(unit: Unit, seconds: float = SECONDS) -> Executable:
    """The executable of a unit, in the user's cache by the digest of its text and of the runtime.

    Raises ArgusError: E303 without `ziglang`, E304 if the compiler fails.
    """
    source = source_of((unit,))
    digest = hashlib.sha256(f"{_runtime(seconds).name}\n{source}".encode()).hexdigest()[:24]
    place = _folder() / f"{unit.symbol[:40]}-{digest}"
    if not place.exists():
        _build(source, place, unit.symbol, seconds)
    return Executable(place)


def compile_units(
    units: Sequence[Unit], folder: Path, name: str, seconds: float = SECONDS
) -> list[Executable | ArgusError]:
    """Many units of one target as one translation unit, in `folder` under `name`.

    If that fails, one by one: a unit that does not compile gives its error (E304) and spoils no other.
    Raises ArgusError (E303) without `ziglang`.
    """
    try:
        _build(source_of(units), folder / name, name, seconds)
    except ArgusError as error:
        if error.diagnostic.code != "E304":
            raise
        if len(units) == 1:
            return [error]
        alone = [compile_units((unit,), folder, f"{name}-{n}", seconds) for n, unit in enumerate(units)]
        return [each for (each,) in alone]
    return [Executable(folder / name, number) for number in range(len(units))]


def _build(source: str, place: Path, symbol: str, seconds: float) -> None:
    with tempfile.TemporaryDirectory(prefix="argus-cpu-", dir=place.parent) as name:
        scratch = Path(name)
        (scratch / "unit.cpp").write_text(source, encoding="utf-8")
        given = (f"-I{_DEVICE}", str(scratch / "unit.cpp"), "-o", str(scratch / "unit.o"))
        _run(("clang", *_COMMON, *_UNIT, *given), symbol, seconds)
        _link((scratch / "unit.o", _runtime(seconds)), scratch / "unit", symbol, seconds)
        (scratch / "unit").replace(place)


@cache
def _folder() -> Path:
    folder = platformdirs.user_cache_path("argus") / "cpu"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@cache
def _runtime(seconds: float) -> Path:
    """The runtime's object file, compiled once for its sources."""
    sources = sorted(_DEVICE.iterdir())
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in sources)).hexdigest()[:24]
    place = _folder() / f"runtime-{digest}.o"
    if not place.exists():
        with tempfile.TemporaryDirectory(prefix="argus-cpu-", dir=_folder()) as name:
            made = Path(name) / "runtime.o"
            _run(("clang", *_COMMON, *_RUNTIME, str(_DEVICE / "main.cpp"), "-o", str(made)), "runtime", seconds)
            made.replace(place)
    return place


def _link(objects: tuple[Path, ...], to: Path, symbol: str, seconds: float) -> None:
    _run(("ld.lld", "-static", *map(str, objects), "-o", str(to)), symbol, seconds)


@cache
def _zig() -> Path | None:
    found = importlib.util.find_spec("ziglang")
    places = [] if found is None else list(found.submodule_search_locations or [])
    return Path(places[0]) / "zig" if places else None


def _run(arguments: tuple[str, ...], symbol: str, seconds: float) -> None:
    zig = _zig()
    if zig is None:
        message = "no compiler to execute emitted text on the CPU: the package `ziglang` is not installed"
        raise ArgusError(Diagnostic("E303", "error", message, help="pip install 'argus[gfx942]'", kernel=symbol))
    try:
        done = subprocess.run(  # noqa: S603 reason: a fixed command
            (str(zig), *arguments), capture_output=True, text=True, errors="replace", timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise _failed(symbol, f"the compiler did not finish within {seconds:g} s", "") from None
    if done.returncode:
        raise _failed(symbol, f"`{arguments[0]}` ended with status {done.returncode}", done.stderr)


def _failed(symbol: str, what: str, output: str) -> ArgusError:
    errors = [line for line in output.splitlines() if "error" in line][:8]
    return ArgusError(
        Diagnostic(
            "E304",
            "error",
            f"the text of `{symbol}` did not compile for the CPU: {what}",
            facts=(("compiler", "\n".join(errors)),) if errors else (),
            help="report this with the kernel: the text is Argus's own; ziglang 0.17.0 is the compiler known to work",
            kernel=symbol,
        )
    )
