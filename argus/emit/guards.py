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
from argus.core.ir import Buffer, Kernel, Policy, Strided
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
    whole, target = common_symbol(every), _TEXTS[kernel.target.name]
    own = bool(checked_symbol(kernel, every))  # then the helpers are there
    lines = [line for each in every if not own for line in _predicate_helper(kernel, names, each)]
    for each in every:
        lines += _check(kernel, names, each, _Part("all", target.first, target.step))
        lines += _entry(kernel, names, (each,), each.symbol)
    return ("" if own else _HELPERS) + "\n".join([*lines, *(_entry(kernel, names, every, whole) if whole else ()), ""])


def common_symbol(every: Sequence[Guard]) -> str:
    """The entry point that runs all guards in one launch, the n-th in the n-th row of blocks; empty below two guards.

    Its arguments are the tensors of each guard in turn, then as of one, with a report word for each.
    """
    return f"{every[0].symbol.removesuffix('0')}s" if len(every) > 1 else ""


def checked_symbol(kernel: Kernel, every: Sequence[Guard]) -> str:
    """The entry point of the kernel that checks all contracts itself; empty if it does not ask for one.

    Its arguments are those of the kernel, then a report word for each contract, then whether to trap.
    """
    asks = any(isinstance(stmt, Policy) and stmt.name == "own_checks" for stmt in kernel.prologue)
    return f"{every[0].symbol.removesuffix('guard0')}checked" if every and asks else ""


def told_arguments(every: Sequence[Guard]) -> tuple[str, ...]:
    """The further parameters of that entry point."""
    return (*(f"u64* guard_told_{i}" for i in range(len(every))), "int guard_stop")


def own_checks(kernel: Kernel, names: Names) -> Iterator[str]:
    """In that entry point, the lines by which a block checks all contracts before it goes on."""
    sizes = "".join(f", {names.symbols[size]}" for size in kernel.sizes)
    for i, each in enumerate(guards(kernel, names)):
        held = ", ".join(names.buffers[buffer] for buffer in (each.buffer, *each.others))
        yield f"{each.symbol}_own({held}{sizes}, guard_told_{i}, guard_stop);"
    yield "__syncthreads();"


def own_check_text(kernel: Kernel, names: Names) -> str:
    """The text of what these lines call, ahead of the entry point."""
    every = guards(kernel, names)
    own = _Part("own", "threadIdx.x", f"{kernel.threads}", "u32")
    parts = ((*_predicate_helper(kernel, names, each), *_check(kernel, names, each, own)) for each in every)
    return _HELPERS + "\n".join([*(line for part in parts for line in part), ""])


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


@frozen
class _Part:
    """Which elements a thread checks. of: what has such threads. number: the type of an element's number."""

    of: str
    first: str
    step: str
    number: str = "long"


def _check(kernel: Kernel, names: Names, guard: Guard, part: _Part) -> Iterator[str]:
    """A device function by which the threads of a guard, or of a block, check all elements."""
    wide, target = CText(names, kernel.thread, _NO_UNIT), _TEXTS[kernel.target.name]
    extents = [wide.index(extent, "(long)") for extent in guard.buffer.shape]
    word = target.word
    at = [f"at{axis}" for axis in range(len(extents))]
    given = ", ".join([*guard.held.values(), *(names.symbols[size] for size in kernel.sizes), *at])
    count = " * ".join(f"({extent})" for extent in extents) or "1"
    yield f"// Data contract of `{guard.buffer.name}`."
    arguments = f"{_tensors(guard)}{_sizes(kernel, names)}, {word}* guard_told, int guard_stop"
    yield f"HELPER void {guard.symbol}_{part.of}({arguments}) {{"
    number = part.number
    yield f"    const {number} guard_count = {count}, guard_step = {part.step};"
    yield f"    const {number} guard_first = {part.first};"
    yield f"    for ({number} guard_at = guard_first; guard_at < guard_count; guard_at += guard_step) {{"
    yield f"        {number} guard_rest = guard_at;"
    for axis, extent in reversed(list(enumerate(extents))):
        short = "" if number == "long" else f"({number})"
        yield f"        const long at{axis} = guard_rest % {short}({extent});"
        yield f"        guard_rest /= {short}({extent});"
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
