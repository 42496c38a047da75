"""An emitted CUDA or HIP file as C++ for the CPU.

The text is kept, with its line numbers. Only definitions that need the machine leave it: those with inline assembly,
and the types and moves that the header of the target defines (`device/sm_90a.h`, `device/gfx942.h`). Builtins of the
GPU's compiler are functions of those headers. Helpers whose names carry parameters get a definition made from the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from attrs import frozen

from argus.emit.cpu.counterparts import counterpart
from argus.emit.cpu.shared_arrays import SharedArray

_LINKAGE = 'extern "C" '
_ENTRY = re.compile(rf"^{_LINKAGE}__global__ ", re.MULTILINE)
_NEEDS_MACHINE = re.compile(r"\basm\b|__cvta|address_space|__attribute__\(\((device|global|shared)")
_LDS_ARRAY = re.compile(r"__shared__ [\w ]+? (\w+)\[\d+\];")
_RESERVED = re.compile(r'asm volatile\("" : : : "a\d+"\);')
"""The accumulation registers that a kernel asks the compiler for."""
_MACRO_USES = re.compile(r"(MOVES|ARRIVES_AT)\(")
_QUALIFIERS = re.compile(
    r"^(\[\[maybe_unused\]\] )?static (__device__ )?(__forceinline__|inline)( __attribute__\(\(always_inline\)\))? "
)
_DEFINED = re.compile(r"#define (\w+)|(?:struct|using)(?: alignas\(\d+\))? (\w+)|HELPER [^(=]*?(\w+)\(")
_TYPES = (
    "u32",
    "u64",
    "f32",
    "i32",
    "bf16",
    "f16",
    "TensorMap",
    "b16",
    "b32",
    "b64",
    "b128",
    "s16x4",
    "f32x4",
    "f32x16",
    "i32x4",
    "i32x16",
)
_MACROS = ("HELPER", "THREADS", "MOVES", "ARRIVES_AT", "__builtin_inff", "__builtin_nanf")
_PROVIDED = frozenset((*_TYPES, *_MACROS, "hold", "in_shared", "shared_address", "meet", "load_b8", "store_b8"))
"""Names that the headers define although the emitted definition has no assembly."""


@frozen
class Unit:
    """text: C++ for the CPU, to stand in a namespace after the target's header. symbol: the kernel's.

    threads and cluster: launch bounds that the text states. arrays: those in shared memory that lie apart.
    """

    text: str
    symbol: str
    target: str
    threads: int
    cluster: tuple[int, int, int]
    arrays: tuple[SharedArray, ...] = ()


def unit_of(text: str, target: str, symbol: str) -> Unit:
    """The unit of an emitted file. A helper without a counterpart leaves the text, so that its use does not compile."""
    begin = _ENTRY.search(text)
    assert begin is not None, "an emitted file has an entry point"
    prelude, kernel = text[: begin.start()], text[begin.start() :]
    kernel = kernel[: kernel.index("\n}\n") + 3]
    kept: list[str] = []
    made: list[str] = []
    for line, item in definitions(prelude):
        if not leaves(item):
            kept += [f'#line {line} "{symbol}"', item]
        elif own := counterpart(defined_name(item) or ""):
            made.append(own)
    if target == "gfx942":
        kernel = _RESERVED.sub("", _LDS_ARRAY.sub(r"\g<0> CPU_LDS_ARRAY(\1)", kernel))
    first = prelude.count("\n") + 1
    parts = [*made, *kept, f'#line {first} "{symbol}"', kernel.removeprefix(_LINKAGE), ""]
    return Unit("\n".join(parts), symbol, target, _threads(kernel), _cluster(kernel))


def source_of(units: Sequence[Unit]) -> str:
    """One translation unit of kernels for the same target: a namespace each, and the table by which they are called.

    The header of the target is read once. Each kernel's LDS arrays have a section of their own, between guard zones.
    """
    parts = [f'#include "{units[0].target}.h"']
    for number, unit in enumerate(units):
        parts += [
            f'#define LDS_SECTION "lds_{number}"',
            f'#define LDS_ARRAYS "lds_arrays_{number}"',
            f"namespace unit_{number} {{",
            f"CPU_UNIT({number})",
            unit.text,
        ]
        parts += [
            f"CPU_ENTRY({unit.symbol})",
            f"CPU_UNIT_END({number})",
            "}",
            "#undef LDS_SECTION",
            "#undef LDS_ARRAYS",
        ]
    entries = " ".join(f"CPU_KERNEL({number})," for number in range(len(units)))
    return "\n".join([*parts, f'extern "C" const CpuKernel cpu_kernels[] = {{{entries}}};', ""])


def definitions(text: str) -> Iterator[tuple[int, str]]:
    """The top-level definitions of a prelude, each with the line on which it begins."""
    held: list[str] = []
    first = 1
    for number, line in enumerate(text.split("\n"), 1):
        if not held:
            if not line.strip() or line.startswith("//"):
                continue
            first = number
        held.append(line)
        block = "\n".join(held)
        if not line.endswith("\\") if held[0].startswith("#") else _ends(block):
            yield first, block
            held = []
    if held:
        yield first, "\n".join(held)


def _ends(block: str) -> bool:
    bare = re.sub(r'"(?:[^"\\]|\\.)*"|//[^\n]*', "", block)
    balanced = all(bare.count(left) == bare.count(right) for left, right in ("{}", "()"))
    return balanced and bare.rstrip().endswith(("}", ";", ")"))


def defined_name(item: str) -> str | None:
    """The name that a definition of a prelude defines."""
    head = _QUALIFIERS.sub("HELPER ", re.sub(r"^template <[^>]*>\s*", "", item))
    found = _DEFINED.match(head)
    return None if found is None else found[1] or found[2] or found[3]


def leaves(item: str) -> bool:
    """Whether a definition is the machine's, and so the header's."""
    return bool(_NEEDS_MACHINE.search(item) or _MACRO_USES.match(item)) or defined_name(item) in _PROVIDED


def _threads(kernel: str) -> int:
    found = re.search(r"(?:__launch_bounds__|THREADS)\((\d+)", kernel)
    assert found is not None, "an entry point states its number of threads"
    return int(found[1])


def _cluster(kernel: str) -> tuple[int, int, int]:
    found = re.search(r"__cluster_dims__\((\d+), (\d+), (\d+)\)", kernel)
    return (1, 1, 1) if found is None else (int(found[1]), int(found[2]), int(found[3]))
