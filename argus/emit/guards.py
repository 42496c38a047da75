"""Guards: small kernels that check data contracts on integer tensors on the device, without a host synchronisation.

Each tensor with a contract has one guard, which runs ahead of the kernel in the same stream; where there are several,
one more entry point runs all of them in a launch. A guard reports an element
that breaks the contract in one 64-bit word of host memory: element number plus one in the high half, value in the low
half, in one store so that two reports cannot mix. Then it traps, unless the launch asks it not to.

On gfx942 a trap ends the queue, so the release ahead of it makes the report visible to the host: it waits for the store
[LLVM AMDGPU user guide, "Memory model gfx942"].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from argus.core import algebra
from argus.core.index import Index, Read
from argus.core.ir import Buffer, Kernel, Strided
from argus.core.walk import topological
from argus.emit.c_expr import CText, ElementText
from argus.emit.cuda.plan import uses_pdl
from argus.emit.faults import not_built
from argus.emit.names import Names
from argus.emit.scope import c_type

THREADS, MOST_BLOCKS = 256, 1024
_NO_UNIT = 1 << 30
_HELPERS = """
HELPER long guard_within(long at, long extent) { return at < 0 ? 0 : at < extent ? at : extent - 1; }
"""


@frozen
class _Text:
    """What differs between targets. which: the number of a guard in a launch of all. first: the element that a thread
    begins with. step: to its next. report: the place of its report. visible: makes that visible to the host. begin:
    ahead of all accesses, where a guard may start before the launch ahead of it has ended, as its kernel may.
    """

    heading: str
    which: str
    first: str
    step: str
    word: str
    bits: str
    report: str
    visible: str
    trap: str
    begin: str = ""


_TEXTS = {
    "sm_90a": _Text(
        heading=f'extern "C" __global__ void __launch_bounds__({THREADS})',
        which="blockIdx.y",
        first=f"blockIdx.x * {THREADS}L + threadIdx.x",
        step=f"gridDim.x * {THREADS}L",
        word="u64",
        bits="u32",
        report="*(volatile u64*)guard_told",
        visible="__threadfence_system();",
        trap='asm volatile("trap;");',
        begin="let_next_begin(); await_launch_before();",
    ),
    "gfx942": _Text(
        heading=f'extern "C" __global__ THREADS({THREADS}, 1) void',
        which="__builtin_amdgcn_workgroup_id_y()",
        first=f"(long)__builtin_amdgcn_workgroup_id_x() * {THREADS} + __builtin_amdgcn_workitem_id_x()",
        # From the number of blocks that a launch has: otherwise only the dispatch packet holds it.
        step=f"min({MOST_BLOCKS}, max(1, (int)((guard_count + {THREADS - 1}) / {THREADS}))) * {THREADS}L",
        word="unsigned long",
        bits="unsigned",
        report="*(volatile __attribute__((address_space(1))) unsigned long*)guard_told",
        visible='__builtin_amdgcn_fence(__ATOMIC_RELEASE, "");',
        trap='asm volatile("s_trap 2");',
    ),
}


@frozen
class Guard:
    """A guard. symbol: its entry point, with arguments (tensor, the others that its contract reads, the kernel's sizes,
    report word, whether to trap).
    """

    buffer: Buffer
    symbol: str
    others: tuple[Buffer, ...] = ()

    @property
    def held(self) -> dict[str, str]:
        """The names in the text of the tensors that are read, the guarded one first."""
        names = {other.name: f"guard_other{place}" for place, other in enumerate(self.others)}
        return {self.buffer.name: "guard_held", **names}


def guards(kernel: Kernel, names: Names) -> tuple[Guard, ...]:
    """The guards of a kernel, in parameter order."""
    promised = [buffer for buffer in kernel.parameters if buffer.promise is not algebra.TRUE]
    return tuple(
        Guard(buffer, f"{names.kernel}_guard{place}", others_read(kernel, buffer))
        for place, buffer in enumerate(promised)
    )


def others_read(kernel: Kernel, buffer: Buffer) -> tuple[Buffer, ...]:
    """The other tensors that the contract of a tensor reads, in parameter order."""
    read = {node.array for node in topological([buffer.promise]) if isinstance(node, Read)} - {buffer.name}
    return tuple(other for other in kernel.parameters if other.name in read)


def guard_text(kernel: Kernel, names: Names) -> str:
    """The text of the guards, empty without contracts. Raises ArgusError (E501) for a condition without C text."""
    every = guards(kernel, names)
    if not every:
        return ""
    whole = common_symbol(every)
    lines = [line for each in every for line in _predicate_helper(kernel, names, each)]
    lines += [
        line for each in every for line in (*_check(kernel, names, each), *_entry(kernel, names, (each,), each.symbol))
    ]
    return _HELPERS + "\n".join([*lines, *(_entry(kernel, names, every, whole) if whole else ()), ""])


def common_symbol(every: Sequence[Guard]) -> str:
    """The entry point that runs all guards in one launch, the n-th in the n-th row of blocks; empty below two guards.

    Its arguments are the tensors of each guard in turn, then as of one, with a report word for each.
    """
    return f"{every[0].symbol.removesuffix('0')}s" if len(every) > 1 else ""


def _tensors(guard: Guard, suffix: str = "") -> str:
    pairs = zip((guard.buffer, *guard.others), guard.held.values(), strict=True)
    return ", ".join(f"const {c_type(buffer.dtype)}* {name}{suffix}" for buffer, name in pairs)


def _sizes(kernel: Kernel, names: Names) -> str:
    return "".join(f", int {names.symbols[size]}" for size in kernel.sizes)


def _predicate_helper(kernel: Kernel, names: Names, guard: Guard) -> Iterator[str]:
    """A device function that checks one element. Indices are clamped to the tensors; without elements, it fails."""
    buffer, held = guard.buffer, guard.held
    wide = CText(names, kernel.thread, _NO_UNIT)
    layouts = {
        each.name: (
            [wide.index(extent, "(long)") for extent in each.shape],
            [wide.factor(stride, "(long)") for stride in _row_major(kernel, each)],
        )
        for each in (buffer, *guard.others)
    }

    def element(array: str, at: Sequence[str]) -> str:
        extents, strides = layouts[array]
        inside = [f"guard_within({each}, {extent})" for each, extent in zip(at, extents, strict=True)]
        terms = [f"{place} * {stride}" for place, stride in zip(inside[:-1], strides[:-1], strict=True)]
        return f"{held[array]}[{' + '.join([*terms, *inside[-1:]]) or '0'}]"

    text = CText(names, kernel.thread, _NO_UNIT, elements=ElementText(lambda axis: f"at{axis}", element, "L"))
    axes = "".join(f", long at{axis}" for axis in range(len(buffer.shape)))
    yield f"HELPER bool {guard.symbol}_keeps({_tensors(guard)}{_sizes(kernel, names)}{axes}) {{"
    for other in guard.others:
        yield from (f"    if ({extent} < 1) return false;" for extent in layouts[other.name][0])
    yield f"    return {text.cond(buffer.promise, '(long)')};"
    yield "}"


def _row_major(kernel: Kernel, buffer: Buffer) -> tuple[Index, ...]:
    """Row-major strides. Raises ArgusError (E501) for any other layout, which launches refuse too."""
    found: list[Index] = []
    stride: Index = algebra.const(1)
    for extent in reversed(buffer.shape):
        found.insert(0, stride)
        stride = algebra.mul(stride, extent)
    if not isinstance(buffer.layout, Strided) or buffer.layout.strides != tuple(found):
        raise not_built(f"a data contract of `{buffer.name}`, which is not row-major", buffer.span, kernel.name)
    return tuple(found)


def _check(kernel: Kernel, names: Names, guard: Guard) -> Iterator[str]:
    """A device function by which the blocks of a guard check all elements."""
    wide, target = CText(names, kernel.thread, _NO_UNIT), _TEXTS[kernel.target.name]
    extents = [wide.index(extent, "(long)") for extent in guard.buffer.shape]
    word = target.word
    at = [f"at{axis}" for axis in range(len(extents))]
    given = ", ".join([*guard.held.values(), *(names.symbols[size] for size in kernel.sizes), *at])
    count = " * ".join(f"({extent})" for extent in extents) or "1"
    yield f"// Data contract of `{guard.buffer.name}`."
    arguments = f"{_tensors(guard)}{_sizes(kernel, names)}, {word}* guard_told, int guard_stop"
    yield f"HELPER void {guard.symbol}_all({arguments}) {{"
    yield f"    const long guard_count = {count}, guard_step = {target.step};"
    yield f"    const long guard_first = {target.first};"
    yield "    for (long guard_at = guard_first; guard_at < guard_count; guard_at += guard_step) {"
    yield "        long guard_rest = guard_at;"
    for axis, extent in reversed(list(enumerate(extents))):
        yield f"        const long at{axis} = guard_rest % ({extent});"
        yield f"        guard_rest /= ({extent});"
    yield f"        if ({guard.symbol}_keeps({given})) continue;"
    found = f"({word})(guard_at + 1) << 32 | ({target.bits})guard_held[guard_at]"
    yield f"        {target.report} = {found};"
    yield f"        {target.visible}"
    yield f"        if (guard_stop) {target.trap}"
    yield "    }"
    yield "}"


def _entry(kernel: Kernel, names: Names, every: Sequence[Guard], symbol: str) -> Iterator[str]:
    """The entry point that runs these guards, each in a row of blocks of its own."""
    target = _TEXTS[kernel.target.name]
    sizes = "".join(f", {names.symbols[size]}" for size in kernel.sizes)
    tensors = ", ".join(_tensors(each, f"_{i}") for i, each in enumerate(every))
    words = ", ".join(f"{target.word}* guard_told_{i}" for i in range(len(every)))
    if len(every) > 1:
        yield "// All data contracts."
    yield target.heading
    yield f"{symbol}({tensors}{_sizes(kernel, names)}, {words}, int guard_stop) {{"
    if target.begin and uses_pdl(kernel):
        yield f"    {target.begin}"
    for i, each in enumerate(every):
        held = ", ".join(f"{name}_{i}" for name in each.held.values())
        where = f"if ({target.which} == {i}) " if len(every) > 1 else ""
        yield f"    {where}{each.symbol}_all({held}{sizes}, guard_told_{i}, guard_stop);"
    yield "}"
