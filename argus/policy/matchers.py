"""Matchers: named predicates on a kernel's IR. Each is true of kernels that some technique can still improve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from argus.core.algebra import TRUE
from argus.core.ir import Commit, Copy, For, Kernel, Map, Mma, Policy, Wait, walk
from argus.core.walk import symbols
from argus.policy import anatomy

Matcher = Callable[[Kernel], bool]

_WIDE_LOAD = 128
"""Widest load of a thread in bits."""
_COLUMNS, _ROWS, _SLOTS, _SPLITS, _WARPGROUP = 256, 128, 8, 8, 128
_SPAN = 128
"""Bytes of the widest swizzled row in shared memory."""
_LARGE_MFMA, _SCHEDULERS, _BYTE = 32, 4, 8


def _hopper(kernel: Kernel) -> bool:
    return kernel.target.name == "sm_90a"


# -- loads ----------------------------------------------------------------------------------------------------


def has_mainloop(kernel: Kernel) -> bool:
    """The kernel has a loop around an `Mma`."""
    return bool(anatomy.mainloops(kernel))


def single_stage(kernel: Kernel) -> bool:
    """A mainloop reads its operands from the same shared-memory stage in every iteration."""
    taken = tuple(anatomy.shared_operand_views(kernel))
    return any(not symbols(*view.at) & anatomy.iteration_symbols(loop) for loop, view in taken)


def few_stages(kernel: Kernel) -> bool:
    """Operands have several stages, but fewer than eight."""
    found = [
        anatomy.constant_extent(view.buffer.shape[0])
        for loop, view in anatomy.shared_operand_views(kernel)
        if symbols(view.at[0]) & anatomy.iteration_symbols(loop)
    ]
    return any(slots is not None and slots < _SLOTS for slots in found)


def narrow_loads(kernel: Kernel) -> bool:
    """Threads load operands in units of less than 16 bytes."""
    return any(each.atom.box is None and each.atom.vector_bits < _WIDE_LOAD for each in anatomy.operand_loads(kernel))


def loads_via_registers(kernel: Kernel) -> bool:
    """Operands are loaded to registers first, then stored to shared memory."""
    return any(each.target.buffer.space == "register" for each in anatomy.operand_loads(kernel))


def no_tma_loads(kernel: Kernel) -> bool:
    """Threads load the operands although the machine has TMA."""
    return _hopper(kernel) and any(each.atom.box is None for each in anatomy.operand_loads(kernel))


def bank_conflicts(kernel: Kernel) -> bool:
    """Some shared-memory access has bank conflicts."""
    return any(degree > 1 for _, degree in anatomy.bank_conflicts(kernel))


def small_bk(kernel: Kernel) -> bool:
    """An iteration covers no more of K than one swizzled row of 128 bytes."""
    return any(0 < _depth(each) <= _SPAN for each in anatomy.mma_statements(kernel))


def _depth(each: Mma) -> int:
    """Bytes of K per row."""
    return (anatomy.constant_extent(each.a.shape[1]) or 0) * each.a.buffer.dtype.bits // 8


def predicated_loads(kernel: Kernel) -> bool:
    """Loads at a tensor's edge are predicated by comparisons instead of bounds-checked by a buffer descriptor."""
    return any(each.atom.edge == "none" and each.edge is not None for each in anatomy.operand_loads(kernel))


# -- matrix products ------------------------------------------------------------------------------------------


def small_bn(kernel: Kernel) -> bool:
    """An `Mma` has fewer than 256 columns."""
    return any((anatomy.constant_extent(each.b.shape[0]) or 0) < _COLUMNS for each in anatomy.mma_statements(kernel))


def small_bm(kernel: Kernel) -> bool:
    """The block's `Mma`s cover fewer than 128 rows together."""
    found = anatomy.mma_groups(kernel)
    return bool(found) and sum(_rows(group) for group in found) < _ROWS


def _rows(group: anatomy.Group) -> int:
    sums = {
        each.target.buffer: anatomy.constant_extent(each.a.shape[0]) or 0
        for each in group.stmts
        if isinstance(each, Mma)
    }
    return group.agents * sum(sums.values())


def one_warpgroup(kernel: Kernel) -> bool:
    """Only one warpgroup executes `Mma`s."""
    return _hopper(kernel) and sum(_threads(kernel, each) for each in anatomy.mma_groups(kernel)) == _WARPGROUP


def _threads(kernel: Kernel, group: anatomy.Group) -> int:
    return kernel.threads if group.role is None else group.role.warps * group.role.unit


def no_roles(kernel: Kernel) -> bool:
    """The kernel is not warp-specialised."""
    return kernel.roles is None


def serial_wgmma(kernel: Kernel) -> bool:
    """Each wgmma group completes before the next is issued."""
    waits = (stmt for loop in anatomy.mainloops(kernel) for stmt in walk(loop.body) if isinstance(stmt, Wait))
    return any(each.queue == "wgmma" and each.pending == 0 for each in waits)


def equal_register_counts(kernel: Kernel) -> bool:
    """No role changes its register count (`setmaxnreg`)."""
    return kernel.roles is not None and all(role.registers is None for role in kernel.roles.roles)


def no_ping_pong(kernel: Kernel) -> bool:
    """Warpgroups or waves execute `Mma`s in lockstep: they share a tile, or none is skewed against another."""
    found = anatomy.mma_groups(kernel)
    if not _hopper(kernel):
        return bool(found) and not anatomy.has_partial_barrier(kernel)
    return any(_share_a_tile(group) for group in found)


def _share_a_tile(group: anatomy.Group) -> bool:
    if group.role is None or group.agents == 1:
        return False
    number = group.role.number
    views = [view for stmt in group.stmts if isinstance(stmt, Mma) for view in (stmt.a, stmt.b)]
    return any(number in symbols(*view.at) for view in views)


def no_swap_ab(kernel: Kernel) -> bool:
    """Rows of the first operand map to the M dimension of wgmma, however few they are."""
    first = kernel.parameters[0]
    loaded = {each.target.buffer for each in anatomy.operand_loads(kernel) if each.source.buffer is first}
    return _hopper(kernel) and any(each.a.buffer in loaded for each in anatomy.mma_statements(kernel))


def large_mfma(kernel: Kernel) -> bool:
    """The kernel uses 32 x 32 matrix instructions, which have a longer latency."""
    return any(each.atom.mnk is not None and each.atom.mnk[0] == _LARGE_MFMA for each in anatomy.mma_statements(kernel))


def unplaced_accumulators(kernel: Kernel) -> bool:
    """On gfx942, accumulators are not assigned to AGPRs explicitly."""
    return bool(kernel.target.accumulation) and any(
        each.target.buffer.file == "any" for each in anatomy.mma_statements(kernel)
    )


def narrow_lds_reads(kernel: Kernel) -> bool:
    """On gfx942, a lane reads operands from LDS in units of less than 16 bytes."""
    read = anatomy.copies(kernel, "shared", "register")
    wanted = anatomy.operand_buffers(kernel)
    return not _hopper(kernel) and any(
        each.target.buffer in wanted and each.atom.vector_bits < _WIDE_LOAD for each in read
    )


def whole_fragment_loads(kernel: Kernel) -> bool:
    """On gfx942, waves read all fragments of an iteration before its first `Mma`."""
    return not _hopper(kernel) and any(_mma_count(loop) == 1 for loop in anatomy.mainloops(kernel))


def _mma_count(loop: For) -> int:
    return sum(isinstance(stmt, Mma) for stmt in walk(loop.body))


def few_waves(kernel: Kernel) -> bool:
    """On gfx942, a block has at most one wave per SIMD."""
    return not _hopper(kernel) and kernel.threads <= _SCHEDULERS * kernel.target.unit


def fp8_accumulation(kernel: Kernel) -> bool:
    """8-bit products accumulate in the matrix unit over all of K, without promotion."""
    loops = anatomy.mainloops(kernel)
    found = (stmt for loop in loops for stmt in walk(loop.body) if isinstance(stmt, Mma))
    return any(each.a.buffer.dtype.bits == _BYTE and each.init is not TRUE for each in found)


# -- tile order -----------------------------------------------------------------------------------------------


def row_major_order(kernel: Kernel) -> bool:
    """Blocks take tiles in row-major order."""
    remapped = any(isinstance(stmt, Policy) and stmt.name == "remap_xcd" for stmt in walk(kernel.body))
    return not remapped and all(
        anatomy.coordinate_operators(each.target) <= {"//", "%", "*"} for each in anatomy.output_stores(kernel)
    )


def not_persistent(kernel: Kernel) -> bool:
    """A block computes one tile: no loop encloses the mainloop."""
    inner = set(anatomy.mainloops(kernel))
    outer = [s for s in walk(kernel.body) if isinstance(s, For) and s not in inner and inner & set(walk(s.body))]
    return bool(inner) and not outer


def no_cluster(kernel: Kernel) -> bool:
    """Blocks are not in clusters."""
    return kernel.peers == 1


def no_split_k(kernel: Kernel) -> bool:
    """Every block reduces over all of K."""
    return has_mainloop(kernel) and not anatomy.is_split_k(kernel)


def few_splits(kernel: Kernel) -> bool:
    """Split-K with fewer than eight splits."""
    return anatomy.is_split_k(kernel) and 1 < prod(kernel.cluster) < _SPLITS


# -- epilogue -------------------------------------------------------------------------------------------------


def direct_stores(kernel: Kernel) -> bool:
    """The epilogue stores registers to global memory directly."""
    return bool(anatomy.copies(kernel, "register", "global"))


def multi_pass_epilogue(kernel: Kernel) -> bool:
    """The epilogue commits several groups of bulk stores, with a barrier before each."""
    return any(sum(_commits_bulk_group(s) for s in group.stmts) > 1 for group in anatomy.mma_groups(kernel))


def _commits_bulk_group(stmt: object) -> bool:
    return isinstance(stmt, Commit) and stmt.queue == "bulk"


def multi_buffer_epilogue(kernel: Kernel) -> bool:
    """The epilogue alternates between several shared-memory buffers."""
    boxes = {each.source.at[1] for each in anatomy.copies(kernel, "shared", "global") if len(each.source.at) > 1}
    return multi_pass_epilogue(kernel) and len(boxes) > 1


# -- compiler hints -------------------------------------------------------------------------------------------


def rolled_loops(kernel: Kernel) -> bool:
    """On gfx942, a mainloop has no unroll factor."""
    return not _hopper(kernel) and any(loop.unroll is None for loop in anatomy.mainloops(kernel))


def no_sched_barrier(kernel: Kernel) -> bool:
    """On gfx942, no scheduling barrier keeps other instructions out of an `Mma`'s."""
    return not _hopper(kernel) and has_mainloop(kernel) and not anatomy.has_policy_before_mma(kernel, "sched_barrier")


def no_priority(kernel: Kernel) -> bool:
    """On gfx942, waves execute `Mma`s at default priority."""
    return not _hopper(kernel) and has_mainloop(kernel) and not anatomy.has_policy_before_mma(kernel, "priority")


def hoistable_loads(kernel: Kernel) -> bool:
    """A load to registers follows arithmetic that it could be hoisted over."""
    return any(
        isinstance(before, Map) and any(_to_registers(after) for after in body[place + 1 :])
        for body in anatomy.statement_lists(kernel)
        for place, before in enumerate(body)
    )


def _to_registers(stmt: object) -> bool:
    return isinstance(stmt, Copy) and stmt.target.buffer.space == "register"


_ALL: tuple[Matcher, ...] = (
    bank_conflicts,
    direct_stores,
    equal_register_counts,
    few_splits,
    few_stages,
    few_waves,
    fp8_accumulation,
    has_mainloop,
    hoistable_loads,
    large_mfma,
    loads_via_registers,
    multi_buffer_epilogue,
    multi_pass_epilogue,
    narrow_lds_reads,
    narrow_loads,
    no_cluster,
    no_ping_pong,
    no_priority,
    no_roles,
    no_sched_barrier,
    no_split_k,
    no_swap_ab,
    no_tma_loads,
    not_persistent,
    one_warpgroup,
    predicated_loads,
    rolled_loops,
    row_major_order,
    serial_wgmma,
    single_stage,
    small_bk,
    small_bm,
    small_bn,
    unplaced_accumulators,
    whole_fragment_loads,
)
MATCHERS: Mapping[str, Matcher] = {matcher.__name__: matcher for matcher in _ALL}
"""By name."""
