"""A kernel as one self-contained CUDA file for sm_90a.

Statements keep their order; each follows a comment with its line in the user's program. `Tag` and `Assert` emit
nothing. Shared tensors and mbarriers are addresses in one dynamic allocation, planned by `argus.emit.cuda.plan`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Copy, Kernel, Stmt, walk
from argus.emit.c_expr import CText
from argus.emit.cuda import copies, lanes, matrices, products, reductions
from argus.emit.cuda.context import Context
from argus.emit.cuda.next_divisions import EARLY, uses_next_divisions
from argus.emit.cuda.plan import Plan, plan_of
from argus.emit.cuda.prelude import PRELUDE
from argus.emit.cuda.statements import Writer
from argus.emit.cuda.unrolling import ARRIVE_IF, arrives_without_branch
from argus.emit.elements import CHOSEN, chooses_registers
from argus.emit.faults import not_built
from argus.emit.fp8 import cuda_helpers
from argus.emit.functions import function_texts
from argus.emit.guards import Guard, checked_symbol, guard_text, guards, own_check_text, own_checks, told_arguments
from argus.emit.hip.text import source_line
from argus.emit.integers import element_reads
from argus.emit.names import assign_names
from argus.emit.scope import Scope, c_type

_AXES = "xyz"
_NO_UNIT = 1 << 30
"""CUDA text has no `wave` local: no divisor is a multiple of this."""


@frozen
class CudaText:
    """text: the file. symbol: the entry point. plan: what a launch provides. guards: kernels to launch ahead of it."""

    text: str
    symbol: str
    plan: Plan
    guards: tuple[Guard, ...] = ()


def cuda_text(kernel: Kernel, mark: Callable[[Stmt], str] = source_line) -> CudaText:
    """Emit the file. mark: what the comment ahead of a statement says, one line.

    Raises ArgusError: E301 for another target, E501 for a construct without an emitted form.
    """
    if mark is not source_line:
        return _emitted(kernel, mark)
    found = _EMITTED.get(id(kernel))
    if found is None:
        while len(_EMITTED) >= _MOST_EMITTED:
            del _EMITTED[next(iter(_EMITTED))]
        found = _EMITTED[id(kernel)] = kernel, _emitted(kernel, mark)
    return found[1]


_EMITTED: dict[int, tuple[Kernel, CudaText]] = {}
"""The texts of some kernels by their identity: a kernel is verified, checked at its launch and built."""
_MOST_EMITTED = 64


def _emitted(kernel: Kernel, mark: Callable[[Stmt], str]) -> CudaText:
    if kernel.target.name != "sm_90a":
        message = f"no CUDA text for the target `{kernel.target}`: expected `sm_90a`"
        raise ArgusError(Diagnostic("E301", "error", message, kernel=kernel.name))
    if len(kernel.blocks) > len(_AXES):
        raise not_built("a grid of more than three axes", kernel.span, kernel.name)
    names = assign_names(kernel)
    text = CText(names, kernel.thread, _NO_UNIT, elements=element_reads(kernel, names))
    scope = Scope(text, kernel.thread, kernel.threads, {}, "sm_90a")
    plan = plan_of(kernel, names.buffers)
    context = Context(scope, plan, kernel.thread, kernel.threads)
    lines = list(_entry(kernel, context, mark))
    every = guards(kernel, names)
    head = f"// {kernel.name} for {kernel.target}, emitted by Argus.\n{PRELUDE}{''.join(_helpers(kernel, lines))}"
    text = "\n".join([head, *lines, ""])
    if checked := checked_symbol(kernel, every):
        more = _entry(kernel, context, mark, checked, (told_arguments(every), tuple(own_checks(kernel, names))))
        text += own_check_text(kernel, names) + "\n".join([*more, ""])
    return CudaText(text + guard_text(kernel, names), names.kernel, plan, every)


def _entry(
    kernel: Kernel,
    context: Context,
    mark: Callable[[Stmt], str],
    symbol: str = "",
    checked: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
) -> Iterator[str]:
    """The kernel, or the entry point of this symbol that checks its contracts. checked: its further parameters, and the
    lines that check.
    """
    arguments, checks = checked
    yield from _heading(kernel, context, symbol or context.names.kernel, arguments)
    yield from (f"    {line}" for line in _locals(kernel, context))
    yield from (f"    {line}" for line in Writer(context, kernel, mark).kernel_body(checks))
    yield "}"


def _helpers(kernel: Kernel, lines: Sequence[str]) -> Iterator[str]:
    yield from cuda_helpers(kernel, lines)
    yield from function_texts("sm_90a", lines)
    if chooses_registers(lines):
        yield CHOSEN
    if uses_next_divisions(lines):
        yield EARLY
    if arrives_without_branch(lines):
        yield ARRIVE_IF
    yield from reductions.helpers(kernel)
    yield from lanes.helpers(kernel)
    yield from copies.helpers(kernel)
    yield from matrices.helpers(kernel)
    yield from products.helpers(kernel)


def _heading(kernel: Kernel, context: Context, symbol: str, more: Sequence[str]) -> Iterator[str]:
    """The signature: tensor maps, then pointers to tensors, then sizes. more: further parameters."""
    names = context.names
    written = {stmt.target.buffer for stmt in walk(kernel.body) if isinstance(stmt, Copy)}
    maps = [f"const __grid_constant__ TensorMap {each.name}" for each in context.plan.maps.values()]
    tensors = [
        f"{'' if b in written else 'const '}{c_type(b.dtype)}* {names.buffers[b]}" for b in context.plan.pointers
    ]
    sizes = [f"int {names.symbols[size]}" for size in kernel.sizes]
    together = ""
    if kernel.peers > 1:
        extents = (*kernel.cluster, *(1 for _ in _AXES[len(kernel.cluster) :]))
        together = f" __cluster_dims__({', '.join(map(str, extents))})"
    yield f'extern "C" __global__ void __launch_bounds__({kernel.threads}, {kernel.resident}){together}'
    yield f"{symbol}({', '.join([*maps, *tensors, *sizes, *more])}) {{"


def _locals(kernel: Kernel, context: Context) -> Iterator[str]:
    yield f"const int {context.names.symbols[kernel.thread]} = threadIdx.x;"
    for axis, block in zip(_AXES, kernel.blocks, strict=False):
        yield f"const int {context.names.symbols[block]} = blockIdx.{axis};"
    if context.plan.maps:
        fetched = " ".join(f"prefetch_map(&{each.name});" for each in context.plan.maps.values())
        yield f"if ({context.names.symbols[kernel.thread]} == 0) {{ {fetched} }}"
    yield "extern __shared__ __align__(1024) unsigned char memory[];"
    yield "const u32 base = shared_address(memory) + 1023 & ~1023u;"
    for buffer, offset in context.plan.offsets.items():
        yield f"const u32 {context.name_of(buffer)} = base + {offset};"
