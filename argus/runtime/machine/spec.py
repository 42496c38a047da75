"""What `argus sanitize` launches: grid, block, LDS and arguments, read from JSON.

`argus/report/schemas/sanitize-spec-1.json` describes the same documents; a test holds the two together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Literal, TypeGuard, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from argus.core.diagnostic import ArgusError, Diagnostic

SCHEMA = "argus.sanitize-spec/1"
MOST_THREADS, MOST_BYTES = 1024, 1 << 32
BUFFER_TYPES: dict[str, Any] = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16,
    "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64,
}  # fmt: skip
SCALAR_TYPES = tuple(name for name in BUFFER_TYPES if not name.startswith("f8"))
_STARTS = ("random", "zeros", "iota")
_ACCESS = ("read", "write", "read_write")
Array = npt.NDArray[Any]
Access = Literal["read", "write", "read_write"]


@frozen
class Expected:
    """What a buffer has to hold afterwards: |found - expected| <= absolute + relative * |expected|, NaN equals NaN."""

    file: str
    absolute: float = 0.0
    relative: float = 0.0


@frozen
class Buffer:
    """A pointer to an array. start: `random`, `zeros`, `iota` (0, 1, 2, ...), or the .npy file of `file`.

    low, high: bounds of random values, the upper one excluded.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: str
    file: str = ""
    seed: int = 0
    low: float | None = None
    high: float | None = None
    access: Access = "read_write"
    expected: Expected | None = None


@frozen
class Value:
    """An argument by value: its bytes as the kernel reads them."""

    raw: bytes


@frozen
class Spec:
    """folder: that file names in the document are relative to."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    dynamic_lds: int
    arguments: tuple[Buffer | Value, ...]
    folder: Path = field(default=Path())


def read_spec(path: Path) -> Spec:
    """Raises ArgusError (E422) for a file that cannot be read, or that is no such document."""
    try:
        data: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise refused(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    return spec_of(data, path.parent)


def spec_of(data: object, folder: Path) -> Spec:
    """Raises ArgusError (E422)."""
    top = _Object("the document", data, {"schema", "grid", "block", "dynamic_lds", "arguments"})
    top.choice("schema", (SCHEMA,))
    block = top.extents("block", 1, MOST_THREADS)
    if np.prod(block) > MOST_THREADS:
        raise refused(f"`block` of the document: expected at most {MOST_THREADS} work-items, found {np.prod(block)}")
    arguments = tuple(_argument(number, each) for number, each in enumerate(top.array("arguments")))
    names = [each.name for each in arguments if isinstance(each, Buffer)]
    if len(set(names)) < len(names):
        raise refused("two buffers have the same name")
    return Spec(top.extents("grid", 1, 1 << 31), block, top.integer("dynamic_lds", 0, 1 << 16, 0), arguments, folder)


def refused(what: str) -> ArgusError:
    """E422."""
    return ArgusError(
        Diagnostic("E422", "error", f"the launch cannot be read: {what}", help="see docs/sanitize.md for an example")
    )


def _argument(number: int, data: object) -> Buffer | Value:
    where = f"argument {number}"
    kinds = [kind for kind in ("buffer", "scalar", "bytes") if kind in _held(where, data)]
    if len(kinds) != 1:
        raise refused(f"{where}: expected one of `buffer`, `scalar`, `bytes`")
    if kinds == ["buffer"]:
        return _buffer(number, _Object(where, data, _BUFFER_KEYS))
    if kinds == ["bytes"]:
        return Value(_Object(where, data, {"bytes"}).octets("bytes"))
    read = _Object(where, data, {"scalar", "value"})
    return Value(_scalar(read))


_BUFFER_KEYS = {"buffer", "shape", "init", "seed", "low", "high", "name", "access", "expected"}


def _buffer(number: int, read: _Object) -> Buffer:
    dtype = read.choice("buffer", tuple(BUFFER_TYPES))
    start, file = read.start("init")
    shape = read.extents("shape", 0, 8, most=MOST_BYTES)
    size = int(np.prod(shape, dtype=object)) * np.dtype(BUFFER_TYPES[dtype]).itemsize
    if not 0 < size <= MOST_BYTES:
        raise refused(f"{read.where}: expected 1 to {MOST_BYTES} bytes, found {size}")
    expected = None
    if "expected" in read.held:
        wanted = _Object(f"`expected` of {read.where}", read.held["expected"], {"file", "absolute", "relative"})
        expected = Expected(wanted.text("file"), wanted.size("absolute", 0.0), wanted.size("relative", 0.0))
    return Buffer(
        read.text("name", f"argument {number}"), dtype, shape, start, file, read.integer("seed", 0, 1 << 32, 0),
        read.number("low"), read.number("high"), cast(Access, read.choice("access", _ACCESS, "read_write")), expected,
    )  # fmt: skip


def _scalar(read: _Object) -> bytes:
    kind = np.dtype(BUFFER_TYPES[read.choice("scalar", SCALAR_TYPES)])
    if kind.kind not in "iu":
        return np.asarray(read.number("value", required=True)).astype(kind).tobytes()
    bounds = np.iinfo(kind)
    value = read.integer("value", int(bounds.min), int(bounds.max), None)
    return value.to_bytes(kind.itemsize, "little", signed=value < 0)


@frozen
class _Object:
    """A JSON object, with what to call it in messages."""

    where: str
    data: object
    known: set[str]
    held: Mapping[str, object] = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "held", _held(self.where, self.data))
        if unknown := sorted(set(self.held) - self.known):
            raise refused(f"{self.where}: unknown key `{unknown[0]}`, expected {', '.join(sorted(self.known))}")

    def _wrong(self, key: str, expected: str) -> ArgusError:
        found = "nothing" if key not in self.held else json.dumps(self.held[key])[:60]
        return refused(f"`{key}` of {self.where}: expected {expected}, found {found}")

    def choice(self, key: str, allowed: Sequence[str], default: str | None = None) -> str:
        value = self.held.get(key, default)
        if value not in allowed:
            raise self._wrong(key, "one of " + ", ".join(f'"{each}"' for each in allowed))
        return cast(str, value)

    def text(self, key: str, default: str | None = None) -> str:
        value = self.held.get(key, default)
        if not isinstance(value, str) or not value:
            raise self._wrong(key, "a text")
        return value

    def integer(self, key: str, least: int, most: int, default: int | None) -> int:
        value = self.held.get(key, default)
        if not _is_integer(value) or not least <= value <= most:
            raise self._wrong(key, f"an integer from {least} to {most}")
        return value

    def number(self, key: str, *, required: bool = False) -> float | None:
        """None for one that is left out."""
        value = self.held.get(key)
        if key not in self.held and not required:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise self._wrong(key, "a number")
        return float(value)

    def size(self, key: str, default: float) -> float:
        value = self.number(key)
        if value is not None and value < 0:
            raise self._wrong(key, "a number of at least 0")
        return default if value is None else value

    def array(self, key: str) -> Sequence[object]:
        value = self.held.get(key)
        if not isinstance(value, list):
            raise self._wrong(key, "an array")
        return cast("list[object]", value)

    def extents(self, key: str, least_axes: int, most_or_axes: int, *, most: int | None = None) -> tuple[int, ...]:
        """Extents of 1 and more: up to three, each up to a number, or up to so many axes if `most` is given."""
        axes, bound = (3, most_or_axes) if most is None else (most_or_axes, most)
        value = self.held.get(key)
        found = cast("list[object]", value) if isinstance(value, list) else []
        if not isinstance(value, list) or not least_axes <= len(found) <= axes:
            raise self._wrong(key, f"{least_axes} to {axes} integers")
        whole = [each for each in found if _is_integer(each) and 1 <= each <= bound]
        if len(whole) < len(found):
            raise self._wrong(key, f"integers from 1 to {bound}")
        return tuple(whole)

    def octets(self, key: str) -> bytes:
        value = self.held[key]
        if not isinstance(value, str) or not re.fullmatch(r"([0-9a-fA-F]{2})+", value):
            raise self._wrong(key, "hexadecimal digits of one byte or more")
        return bytes.fromhex(value)

    def start(self, key: str) -> tuple[str, str]:
        """How a buffer begins, and the file if it does with one."""
        value = self.held.get(key, "zeros")
        if isinstance(value, dict):
            return "file", _Object(f"`{key}` of {self.where}", cast("object", value), {"file"}).text("file")
        return self.choice(key, _STARTS, "zeros"), ""


def _held(where: str, data: object) -> Mapping[str, object]:
    if not isinstance(data, dict):
        raise refused(f"{where}: expected an object")
    return cast("dict[str, object]", data)


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
