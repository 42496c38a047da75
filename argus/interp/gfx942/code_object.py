"""Code objects of gfx942: ELF sections, kernel descriptors, and the metadata of arguments.

[LLVM AMDGPU user guide: code object V5 and V6, kernel descriptor, ELF note records.]
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from attrs import field, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.interp.gfx942.metadata import unpacked

_HEADER = 64
_GFX942 = 0x4C
"""EF_AMDGPU_MACH_AMDGCN_GFX942, bits 7:0 of e_flags."""
_NOTE, _NOTE_METADATA = 7, 32
_WRITABLE, _LOADED = 1, 2
_RELOCATIONS, _RELATIVE, _ABSOLUTE = 4, 13, 3
"""SHT_RELA; R_AMDGPU_RELATIVE64, R_AMDGPU_ABS64."""


@frozen
class Section:
    """One section of the file. address: where it is loaded; data: its bytes, empty for one without.

    size: in memory, 0 for one that is not loaded. writable: whether the kernels may write to it.
    """

    name: str
    kind: int
    address: int
    data: bytes
    size: int = 0
    writable: bool = False


@frozen
class KernelArgument:
    """An argument in the kernarg segment, in bytes. kind: `global_buffer`, `by_value`, or one of the runtime's."""

    name: str
    offset: int
    size: int
    kind: str


@frozen
class Descriptor:
    """What the 64-byte kernel descriptor says. entry: the address of the first instruction.

    lds_bytes, scratch_bytes: group segment, and private segment per lane. vgprs, agprs: registers that a wave has,
    ArchVGPRs and AccVGPRs. user_sgprs: how many SGPRs the launch fills ahead of workgroup ids. user_values: the first
    of those that hold a value, what it is, and how many hold it.
    preloaded: how many words of the kernarg segment, from `preloaded_from` on, the last user SGPRs hold. ids: which
    workgroup ids follow, of x, y and z. lane_ids: how many of the work-item ids x, y, z are packed into v0, ten bits
    each. mode: the register MODE: float mode in bits 7:0, DX10_CLAMP in 8, IEEE in 9.
    """

    entry: int
    lds_bytes: int
    scratch_bytes: int
    kernarg_bytes: int
    vgprs: int
    agprs: int
    user_sgprs: int
    user_values: tuple[tuple[int, str, int], ...]
    preloaded: int
    preloaded_from: int
    ids: tuple[bool, bool, bool]
    lane_ids: int
    mode: int


@frozen
class CodeKernel:
    name: str
    descriptor: Descriptor
    arguments: tuple[KernelArgument, ...]
    most_threads: int


@frozen
class CodeObject:
    """A loaded code object. text: the machine code, at `address`. kernels: by name. lines: .debug_line and such."""

    text: bytes
    address: int
    kernels: Mapping[str, CodeKernel]
    sections: Mapping[str, Section] = field(factory=dict[str, Section], repr=False)
    relocations: tuple[tuple[int, int], ...] = ()
    """Where the code object holds an address of itself, and which one, both before it is loaded."""

    def kernel(self, name: str) -> CodeKernel:
        """Raises ArgusError (E420) if there is none of that name."""
        if name not in self.kernels:
            known = ", ".join(f"`{each}`" for each in self.kernels) or "none"
            raise damaged(f"it has no kernel `{name}`, found {known}")
        return self.kernels[name]


def damaged(reason: str) -> ArgusError:
    """E420."""
    return ArgusError(
        Diagnostic(
            "E420",
            "error",
            f"the code object cannot be executed: {reason}",
            help="give a code object of one kernel or more for gfx942, such as NAME.hsaco of a build",
        )
    )


def read_code_object(data: bytes) -> CodeObject:
    """Read an ELF file. Raises ArgusError (E420) for one that is not a code object for gfx942, or is damaged."""
    try:
        return _read(data)
    except (struct.error, ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
        raise damaged(f"it is damaged ({error})") from error


def _read(data: bytes) -> CodeObject:
    if data[:4] != b"\x7fELF" or len(data) < _HEADER or data[4] != 2:
        raise damaged("it is not an ELF file of 64 bits; a bundle has to be unpacked first")
    machine, flags = struct.unpack_from("<H", data, 18)[0], struct.unpack_from("<I", data, 48)[0]
    if machine != 0xE0 or flags & 0xFF != _GFX942:
        raise damaged(f"it is for another machine (ELF machine {machine}, flags 0x{flags:x}), expected gfx942")
    sections = {each.name: each for each in _sections(data)}
    text = sections[".text"]
    described = {str(each[".name"]): each for each in _metadata(sections)}
    addresses = _symbols(sections)
    kernels = {
        name: _kernel(name, _at(sections.values(), addresses[f"{name}.kd"], 64), addresses[f"{name}.kd"], each)
        for name, each in described.items()
    }
    return CodeObject(text.data, text.address, kernels, sections, tuple(_relocations(sections)))


def _relocations(sections: Mapping[str, Section]) -> Iterator[tuple[int, int]]:
    for section in sections.values():
        if section.kind != _RELOCATIONS or not section.size:
            continue
        for at in range(0, len(section.data), 24):
            place, info, addend = struct.unpack_from("<QQq", section.data, at)
            value = 0
            if info & 0xFFFFFFFF == _ABSOLUTE:
                (value,) = struct.unpack_from("<Q", sections[".dynsym"].data, 24 * (info >> 32) + 8)
                if not value:
                    raise damaged("it refers to a symbol that is not in it")
            elif info & 0xFFFFFFFF != _RELATIVE:
                raise damaged(f"it has a relocation of the unknown type {info & 0xFFFFFFFF}")
            yield place, value + addend


def _sections(data: bytes) -> Iterator[Section]:
    start, size, count, names_at = (
        struct.unpack_from("<Q", data, 40)[0],
        *struct.unpack_from("<HHH", data, 58),
    )
    heads = [struct.unpack_from("<IIQQQQ", data, start + size * number) for number in range(count)]
    _, _, _, _, names, _ = heads[names_at]
    for name_at, kind, flags, address, offset, length in heads:
        name = data[names + name_at : data.index(b"\0", names + name_at)].decode()
        held = b"" if kind == 8 else data[offset : offset + length]
        loaded = bool(flags & _LOADED)
        yield Section(name, kind, address, held, length if loaded else 0, bool(flags & _WRITABLE))


def _symbols(sections: Mapping[str, Section]) -> dict[str, int]:
    table, names = sections[".symtab"].data, sections[".strtab"].data
    found: dict[str, int] = {}
    for at in range(0, len(table), 24):
        name_at, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", table, at)
        found[names[name_at : names.index(b"\0", name_at)].decode()] = value
    return found


def _at(sections: Iterable[Section], address: int, size: int) -> bytes:
    for each in sections:
        if each.address and each.address <= address and address + size <= each.address + len(each.data):
            return each.data[address - each.address :][:size]
    raise ValueError(f"nothing is loaded at 0x{address:x}")


def _metadata(sections: Mapping[str, Section]) -> list[dict[str, object]]:
    for section in sections.values():
        at, data = 0, section.data
        while section.kind == _NOTE and at + 12 <= len(data):
            name_size, size, kind = struct.unpack_from("<III", data, at)
            body = at + 12 + (name_size + 3) // 4 * 4
            if kind == _NOTE_METADATA:
                whole = cast("dict[str, object]", unpacked(data[body : body + size]))
                return cast("list[dict[str, object]]", whole["amdhsa.kernels"])
            at = body + (size + 3) // 4 * 4
    raise ValueError("no metadata of kernels")


def _kernel(name: str, raw: bytes, address: int, said: Mapping[str, object]) -> CodeKernel:
    arguments = tuple(
        KernelArgument(str(each.get(".name", "")), int(each[".offset"]), int(each[".size"]), str(each[".value_kind"]))
        for each in cast("list[dict[str, int]]", said.get(".args", []))
    )
    most = cast("int", said.get(".max_flat_workgroup_size", 1024))
    return CodeKernel(name, _descriptor(raw, address, said), arguments, most)


def _descriptor(raw: bytes, address: int, said: Mapping[str, object]) -> Descriptor:
    lds, scratch, kernarg, _, entry = struct.unpack_from("<IIIIq", raw, 0)
    rsrc3, rsrc1, rsrc2, properties, preload = struct.unpack_from("<IIIHH", raw, 44)
    agprs = cast("int", said.get(".agpr_count", 0))
    total = ((rsrc1 & 0x3F) + 1) * 8
    accumulators = ((rsrc3 & 0x3F) + 1) * 4
    return Descriptor(
        entry=address + entry,
        lds_bytes=lds,
        scratch_bytes=scratch,
        kernarg_bytes=kernarg,
        vgprs=min(total, accumulators) if agprs else total,
        agprs=max(0, total - accumulators),
        user_sgprs=rsrc2 >> 1 & 0x1F,
        user_values=tuple(_user_values(properties)),
        preloaded=preload & 0x7F,
        preloaded_from=preload >> 7,
        ids=(bool(rsrc2 >> 7 & 1), bool(rsrc2 >> 8 & 1), bool(rsrc2 >> 9 & 1)),
        lane_ids=(rsrc2 >> 11 & 3) + 1,
        mode=rsrc1 >> 12 & 0xFF | (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9,
    )


_USER_VALUES = (
    ("private segment buffer", 4),
    ("dispatch pointer", 2),
    ("queue pointer", 2),
    ("kernarg pointer", 2),
    ("dispatch id", 2),
    ("flat scratch", 2),
    ("private segment size", 1),
)
"""What user SGPRs hold, by the bit of the properties that asks for it, and how many take it."""


def _user_values(properties: int) -> Iterator[tuple[int, str, int]]:
    first = 0
    for bit, (name, count) in enumerate(_USER_VALUES):
        if properties >> bit & 1:
            yield first, name, count
            first += count
