"""Matchers: questions about a kernel, by name. Each is true of kernels that some technique can still improve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from argus.core.algebra import TRUE
from argus.core.ir import Commit, Copy, For, Kernel, Map, Mma, Policy, Wait, walk
from argus.core.walk import symbols
from argus.policy import anatomy

Matcher = Callable[[Kernel], bool]

_WIDE_LOAD = 128
"""Bits that a thread moves at once at most."""
_COLUMNS, _ROWS, _SLOTS, _SPLITS, _WARPGROUP = 256, 128, 8, 8, 128
_SPAN = 128
"""Bytes of the widest rows in shared memory."""
_LARGE_MFMA, _SCHEDULERS, _BYTE = 32, 4, 8


def _hopper(kernel: Kernel) -> bool:
    return kernel.target.name == "sm_90a"


# -- how tiles come in ----------------------------------------------------------------------------------------


def multiplies(kernel: Kernel) -> bool:
    """There are products in a loop."""
    return bool(anatomy.loops(kernel))


def one_slot(kernel: Kernel) -> bool:
    """Every trip of a loop takes its operands from the same place in shared memory."""
    taken = tuple(anatomy.staged(kernel))
    return any(not symbols(*view.at) & anatomy.trips(loop) for loop, view in taken)


def few_slots(kernel: Kernel) -> bool:
    """Operands have several slots, and fewer than eight."""
    found = [
        anatomy.extent(view.buffer.shape[0])
        for loop, view in anatomy.staged(kernel)
        if symbols(view.at[0]) & anatomy.trips(loop)
    ]
    return any(slots is not None and slots < _SLOTS for slots in found)


def narrow_loads(kernel: Kernel) -> bool:
    """Threads load operands by fewer than 16 bytes at once."""
    return any(each.atom.box is None and each.atom.vector_bits < _WIDE_LOAD for each in anatomy.loads(kernel))


def through_registers(kernel: Kernel) -> bool:
    """Operands go from global memory to registers, and from there to shared memory."""
    return any(each.target.buffer.space == "register" for each in anatomy.loads(kernel))


def loaded_by_threads(kernel: Kernel) -> bool:
    """Threads load the operands, not a copy engine that the machine has."""
    return _hopper(kernel) and any(each.atom.box is None for each in anatomy.loads(kernel))


def conflicting(kernel: Kernel) -> bool:
    """Lanes that are served together ask for different words of one bank."""
    return any(degree > 1 for _, degree in anatomy.conflicts(kernel))


def shallow_slices(kernel: Kernel) -> bool:
    """A trip multiplies no more of K than the widest row in shared memory."""
    return any(0 < _depth(each) <= _SPAN for each in anatomy.products(kernel))


def _depth(each: Mma) -> int:
    """Bytes of K."""
    return (anatomy.extent(each.a.shape[1]) or 0) * each.a.buffer.dtype.bits // 8


def branching_loads(kernel: Kernel) -> bool:
    """Loads that end at the edge of a tensor do so by comparing, not by a descriptor that knows its length."""
    return any(each.atom.edge == "none" and each.edge is not None for each in anatomy.loads(kernel))


# -- what multiplies ------------------------------------------------------------------------------------------


def narrow_tiles(kernel: Kernel) -> bool:
    """A product has fewer than 256 columns."""
    return any((anatomy.extent(each.b.shape[0]) or 0) < _COLUMNS for each in anatomy.products(kernel))


def low_tiles(kernel: Kernel) -> bool:
    """All that multiply have fewer than 128 rows between them."""
    found = anatomy.multiplying(kernel)
    return bool(found) and sum(_rows(group) for group in found) < _ROWS


def _rows(group: anatomy.Group) -> int:
    sums = {each.target.buffer: anatomy.extent(each.a.shape[0]) or 0 for each in group.stmts if isinstance(each, Mma)}
    return group.agents * sum(sums.values())


def one_warpgroup(kernel: Kernel) -> bool:
    """One warpgroup multiplies."""
    return _hopper(kernel) and sum(_threads(kernel, each) for each in anatomy.multiplying(kernel)) == _WARPGROUP


def _threads(kernel: Kernel, group: anatomy.Group) -> int:
    return kernel.threads if group.role is None else group.role.warps * group.role.unit


def no_roles(kernel: Kernel) -> bool:
    """All threads do the same."""
    return kernel.roles is None


def waits_for_each(kernel: Kernel) -> bool:
    """No product is under way when the next is begun."""
    waits = (stmt for loop in anatomy.loops(kernel) for stmt in walk(loop.body) if isinstance(stmt, Wait))
    return any(each.queue == "wgmma" and each.pending == 0 for each in waits)


def even_registers(kernel: Kernel) -> bool:
    """Roles that load have as many registers as those that multiply."""
    return kernel.roles is not None and all(role.registers is None for role in kernel.roles.roles)


def in_step(kernel: Kernel) -> bool:
    """Those that multiply do so at the same time: they share tiles, or nobody runs ahead."""
    found = anatomy.multiplying(kernel)
    if not _hopper(kernel):
        return bool(found) and not anatomy.skewed(kernel)
    return any(_share_a_tile(group) for group in found)


def _share_a_tile(group: anatomy.Group) -> bool:
    if group.role is None or group.agents == 1:
        return False
    number = group.role.number
    views = [view for stmt in group.stmts if isinstance(stmt, Mma) for view in (stmt.a, stmt.b)]
    return any(number in symbols(*view.at) for view in views)


def rows_first(kernel: Kernel) -> bool:
    """Rows of the first tensor fill those of the matrix unit, however few they are."""
    first = kernel.parameters[0]
    loaded = {each.target.buffer for each in anatomy.loads(kernel) if each.source.buffer is first}
    return _hopper(kernel) and any(each.a.buffer in loaded for each in anatomy.products(kernel))


def large_products(kernel: Kernel) -> bool:
    """Matrix instructions of 32 x 32, whose results come late."""
    return any(each.atom.mnk is not None and each.atom.mnk[0] == _LARGE_MFMA for each in anatomy.products(kernel))


def sums_anywhere(kernel: Kernel) -> bool:
    """The compiler chooses which registers of gfx942 sums are in."""
    return bool(kernel.target.accumulation) and any(
        each.target.buffer.file == "any" for each in anatomy.products(kernel)
    )


def narrow_fragments(kernel: Kernel) -> bool:
    """A lane of gfx942 reads fewer than 16 bytes of shared memory at once."""
    read = anatomy.copies(kernel, "shared", "register")
    wanted = anatomy.fed(kernel)
    return not _hopper(kernel) and any(
        each.target.buffer in wanted and each.atom.vector_bits < _WIDE_LOAD for each in read
    )


def whole_fragments(kernel: Kernel) -> bool:
    """Waves of gfx942 read all fragments of a step before its first product."""
    return not _hopper(kernel) and any(_products_of(loop) == 1 for loop in anatomy.loops(kernel))


def _products_of(loop: For) -> int:
    return sum(isinstance(stmt, Mma) for stmt in walk(loop.body))


def few_waves(kernel: Kernel) -> bool:
    """A block of gfx942 has one wave for each scheduler of its processor, or fewer."""
    return not _hopper(kernel) and kernel.threads <= _SCHEDULERS * kernel.target.unit


def sums_of_bytes(kernel: Kernel) -> bool:
    """The matrix unit adds up products of 8-bit numbers over all of K."""
    loops = anatomy.loops(kernel)
    found = (stmt for loop in loops for stmt in walk(loop.body) if isinstance(stmt, Mma))
    return any(each.a.buffer.dtype.bits == _BYTE and each.init is not TRUE for each in found)


# -- in which order -------------------------------------------------------------------------------------------


def plain_order(kernel: Kernel) -> bool:
    """Tiles follow each other along the rows of C."""
    turned = any(isinstance(stmt, Policy) and stmt.name == "remap_xcd" for stmt in walk(kernel.body))
    return not turned and all(anatomy.operations(each.target) <= {"//", "%", "*"} for each in anatomy.stores(kernel))


def one_tile_a_block(kernel: Kernel) -> bool:
    """A block ends with its first tile: no loop goes around that of the products."""
    inner = set(anatomy.loops(kernel))
    outer = [s for s in walk(kernel.body) if isinstance(s, For) and s not in inner and inner & set(walk(s.body))]
    return bool(inner) and not outer


def no_cluster(kernel: Kernel) -> bool:
    """Blocks know nothing of each other."""
    return kernel.peers == 1


def one_block_a_sum(kernel: Kernel) -> bool:
    """Every block sums over all of K, from its beginning."""
    return multiplies(kernel) and not anatomy.blocks_in_depth(kernel)


def few_splits(kernel: Kernel) -> bool:
    """Blocks share out K, fewer than eight of them."""
    return anatomy.blocks_in_depth(kernel) and 1 < prod(kernel.cluster) < _SPLITS


# -- how tiles leave ------------------------------------------------------------------------------------------


def direct_stores(kernel: Kernel) -> bool:
    """Sums go from registers to global memory."""
    return bool(anatomy.copies(kernel, "register", "global"))


def boxes_in_turn(kernel: Kernel) -> bool:
    """A tile leaves in several groups of bulk stores, a meeting before each."""
    return any(sum(_leaves(s) for s in group.stmts) > 1 for group in anatomy.multiplying(kernel))


def _leaves(stmt: object) -> bool:
    return isinstance(stmt, Commit) and stmt.queue == "bulk"


def several_boxes(kernel: Kernel) -> bool:
    """Parts of a tile leave through more than one box, in turn."""
    boxes = {each.source.at[1] for each in anatomy.copies(kernel, "shared", "global") if len(each.source.at) > 1}
    return boxes_in_turn(kernel) and len(boxes) > 1


# -- what a compiler is told ----------------------------------------------------------------------------------


def rolled(kernel: Kernel) -> bool:
    """A loop of gfx942 around products is not to be unrolled."""
    return not _hopper(kernel) and any(loop.unroll is None for loop in anatomy.loops(kernel))


def free_schedule(kernel: Kernel) -> bool:
    """The compiler may move other instructions among those of a product."""
    return not _hopper(kernel) and multiplies(kernel) and not anatomy.advised(kernel, "sched_barrier")


def no_priority(kernel: Kernel) -> bool:
    """Waves that multiply issue like any others."""
    return not _hopper(kernel) and multiplies(kernel) and not anatomy.advised(kernel, "priority")


def late_loads(kernel: Kernel) -> bool:
    """A load to registers stands behind arithmetic, before which it might begin."""
    return any(
        isinstance(before, Map) and any(_to_registers(after) for after in body[place + 1 :])
        for body in anatomy.lists(kernel)
        for place, before in enumerate(body)
    )


def _to_registers(stmt: object) -> bool:
    return isinstance(stmt, Copy) and stmt.target.buffer.space == "register"


_ALL: tuple[Matcher, ...] = (
    boxes_in_turn,
    branching_loads,
    conflicting,
    direct_stores,
    even_registers,
    few_slots,
    few_splits,
    few_waves,
    free_schedule,
    in_step,
    large_products,
    late_loads,
    loaded_by_threads,
    low_tiles,
    multiplies,
    narrow_fragments,
    narrow_loads,
    narrow_tiles,
    no_cluster,
    no_priority,
    no_roles,
    one_block_a_sum,
    one_slot,
    one_tile_a_block,
    one_warpgroup,
    plain_order,
    rolled,
    rows_first,
    several_boxes,
    shallow_slices,
    sums_anywhere,
    sums_of_bytes,
    through_registers,
    waits_for_each,
    whole_fragments,
)
MATCHERS: Mapping[str, Matcher] = {matcher.__name__: matcher for matcher in _ALL}
"""By name."""
