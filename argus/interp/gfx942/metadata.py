"""MessagePack, as far as the notes of AMD code objects use it [MessagePack specification; LLVM AMDGPU user guide]."""

from __future__ import annotations

import struct
from typing import cast

_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_TEXTS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_BYTES = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I"}
_LISTS = {0xDC: ">H", 0xDD: ">I"}
_MAPS = {0xDE: ">H", 0xDF: ">I"}
_SINGLE: dict[int, bool | None] = {0xC0: None, 0xC2: False, 0xC3: True}


def unpacked(data: bytes) -> object:
    """The value that the bytes hold. Raises ValueError for bytes that are not one, and struct.error for cut ones."""
    return _value(data, 0)[0]


def _value(data: bytes, at: int) -> tuple[object, int]:
    if at >= len(data):
        raise ValueError("the metadata ends early")
    tag, at = data[at], at + 1
    if tag < 0x80:
        return tag, at
    if tag >= 0xE0:
        return tag - 256, at
    if tag < 0x90:
        return _map(data, at, tag & 15)
    if tag < 0xA0:
        return _list(data, at, tag & 15)
    if tag < 0xC0:
        return _text(data, at, tag & 31)
    if tag in _SINGLE:
        return _SINGLE[tag], at
    if tag in _NUMBERS:
        return cast("object", _number(data, at, _NUMBERS[tag])), at + struct.calcsize(_NUMBERS[tag])
    for kinds, read in ((_TEXTS, _text), (_BYTES, _bytes), (_LISTS, _list), (_MAPS, _map)):
        if tag in kinds:
            return read(data, at + struct.calcsize(kinds[tag]), int(_number(data, at, kinds[tag])))
    raise ValueError(f"the metadata has a value of the unknown type 0x{tag:02x}")


def _number(data: bytes, at: int, form: str) -> int | float:
    return struct.unpack_from(form, data, at)[0]


def _bytes(data: bytes, at: int, size: int) -> tuple[object, int]:
    if at + size > len(data):
        raise ValueError("the metadata ends early")
    return data[at : at + size], at + size


def _text(data: bytes, at: int, size: int) -> tuple[object, int]:
    found, end = _bytes(data, at, size)
    return cast("bytes", found).decode(), end


def _list(data: bytes, at: int, count: int) -> tuple[object, int]:
    found: list[object] = []
    for _ in range(count):
        value, at = _value(data, at)
        found.append(value)
    return found, at


def _map(data: bytes, at: int, count: int) -> tuple[object, int]:
    found: dict[str, object] = {}
    for _ in range(count):
        key, at = _value(data, at)
        found[str(key)], at = _value(data, at)
    return found, at
