"""The structures that calls of FlashAttention-3 fill are those that its C functions read."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest

from benchmarks.peers import flash_attention_3_calls as calls

SOURCE = Path(__file__).parents[2] / "benchmarks" / "peers" / "flash_attention_3.cu"
STRUCTURES: dict[str, type[ctypes.Structure]] = {
    "fa3_tensor": calls.Strided,
    "fa3_attention": calls.Attention,
    "fa3_gradients": calls.Gradients,
}
TYPES = {"int64_t": ctypes.c_int64, "int": ctypes.c_int, "float": ctypes.c_float} | STRUCTURES


def declared(name: str) -> list[tuple[str, object]]:
    """The fields of a C structure, in order, with ctypes' types; each declaration has one type."""
    text = SOURCE.read_text(encoding="utf-8")
    body = re.search(rf"^struct {name} {{$(.*?)^}};$", text, re.MULTILINE | re.DOTALL)
    assert body is not None
    fields: list[tuple[str, object]] = []
    for declaration in body[1].split(";")[:-1]:
        kind, names = declaration.replace("const ", "").strip().split(maxsplit=1)
        fields += [
            (each.strip(" *"), ctypes.c_void_p if "*" in kind + each else TYPES[kind]) for each in names.split(",")
        ]
    return fields


@pytest.mark.parametrize("name", STRUCTURES)
def test_fields_are_those_of_the_c_structure(name: str) -> None:
    assert list(STRUCTURES[name]._fields_) == declared(name)
