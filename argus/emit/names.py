"""Assign C identifiers to a kernel's symbols and buffers: the user's own names wherever C allows them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from attrs import frozen

from argus.core.index import Symbol
from argus.core.ir import Alloc, Buffer, For, Kernel, Let, Roles, walk

_HELPER_NAMES = """
    bf16 f16 f32 i32 s16x4 f32x4 f32x16 b16 b32 b64 b128 guard descriptor operand floor_div floor_mod min max meet
    wave THREADS HELPER MOVES __global__ __device__ __shared__ u32 u64 TensorMap memory base arrive hold pair
    shared_address barrier_init arrive_expect await_parity meet_arrive bulk_commit bulk_wait bulk_wait_reads
    await_launch_before let_next_begin exp2_near tanh_near reciprocal prefetch_map arrive_at arrive_at_of_all
    await_parity_of_all cluster_arrive cluster_wait fence_for_all in_shared_of
    wgmma_fence wgmma_commit wgmma_wait descriptor_mn registers_up registers_down swizzled
    fence_async_proxy fence_barrier_init tile_of remapped own_tile in_shared cp_async_4 cp_async_8
    cp_async_16 cp_async_commit cp_async_wait bulk_load bulk_store uint2 uint4 make_uint2 make_uint4
"""
_CPP = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const constexpr
    const_cast continue decltype default delete do double dynamic_cast else enum explicit export extern false float
    for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
    protected public register reinterpret_cast requires return short signed sizeof static static_assert static_cast
    struct switch template this thread_local throw true try typedef typeid typename union unsigned using virtual
    void volatile wchar_t while xor xor_eq
"""
_RESERVED = frozenset(f"{_HELPER_NAMES} {_CPP}".split())
# Names that the emitter generates for locals, and for helpers whose name carries a width.
_GENERATED_NAMES = re.compile(
    r"at\d+(_\d+)?|quotient\d+|base\d+|value|kk|mm|nn|\w+_buffer|(buffer_)?(load|store|fill)_b\d+|tma_(load|store)_\dd(_to)?|"
    r"(ld|st)matrix_x\d(_trans)?|mma_m16n8k16_[a-z0-9]+|wgmma_m64n\d+k\d+_f32_[a-z0-9]+_(ss|rs)(_a_mn)?(_b_mn)?|guard_\w+|__.*"
)


@frozen
class Names:
    """Unique identifiers."""

    symbols: Mapping[Symbol, str]
    buffers: Mapping[Buffer, str]
    kernel: str


def assign_names(kernel: Kernel) -> Names:
    """Assign names in program order. Tags and assertions do not change them."""
    taken: set[str] = set()
    symbols: dict[Symbol, str] = {}
    buffers: dict[Buffer, str] = {}
    name = _fresh_name(kernel.name, taken)
    for thing in _named_objects(kernel):
        if isinstance(thing, Symbol):
            symbols.setdefault(thing, _fresh_name(thing.name, taken))
        else:
            buffers.setdefault(thing, _fresh_name(thing.name, taken))
    return Names(symbols, buffers, name)


def _named_objects(kernel: Kernel) -> Iterator[Symbol | Buffer]:
    yield from kernel.parameters
    yield from kernel.sizes
    yield from kernel.blocks
    yield kernel.thread
    for stmt in walk(kernel.body):
        if isinstance(stmt, Alloc):
            yield stmt.buffer
        elif isinstance(stmt, For | Let):
            yield stmt.symbol
        elif isinstance(stmt, Roles):
            for role in stmt.roles:
                yield from (role.number, role.thread)


def _fresh_name(name: str, taken: set[str]) -> str:
    """The name itself if it is free, else its first free numbered variant."""
    stem = re.sub(r"\W", "_", name, flags=re.ASCII) or "unnamed"
    if stem[0].isdigit() or stem in _RESERVED or _GENERATED_NAMES.fullmatch(stem):
        stem = f"{stem.strip('_')}_" if not stem[0].isdigit() else f"n{stem}"
    found, count = stem, 1
    while found in taken or found in _RESERVED or _GENERATED_NAMES.fullmatch(found):
        count += 1
        found = f"{stem}_{count}"
    taken.add(found)
    return found
