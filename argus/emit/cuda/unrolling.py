"""Loops with matrix products or waits that are unrolled as asked.

The compiler does not unroll a loop of so many iterations as the sizes tell if it holds a barrier of a warpgroup. A loop
of a constant number of iterations within another one it does. So what ends an iteration and what begins the next one
overlap: a wait for the next stage is issued ahead of the arithmetic that follows the last product.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from argus.core.index import Const
from argus.core.ir import For, Mma, Wait, walk

ARRIVE_IF = """\
// Arrivals under a condition without a branch, which would keep the arithmetic around it apart.
HELPER void arrive_if(bool go, u32 at, u32 count) {
    asm volatile("{\\n.reg .pred go;\\nsetp.ne.u32 go, %0, 0;\\n@go mbarrier.arrive.shared::cta.b64 _, [%1], %2;\\n}" ::
                 "r"((u32)go), "r"(at), "r"(count) : "memory");
}
HELPER void arrive_at_if(bool go, u32 at, u32 rank, u32 count) {
    asm volatile("{\\n.reg .pred go;\\n.reg .b32 there;\\nsetp.ne.u32 go, %0, 0;\\n"
                 "mapa.shared::cluster.u32 there, %1, %2;\\n"
                 "@go mbarrier.arrive.shared::cluster.b64 _, [there], %3;\\n}" ::
                 "r"((u32)go), "r"(at), "r"(rank), "r"(count) : "memory");
}
"""
_FIRST, _WITHIN = "first_of_round", "of_round"
"""Variables of the emitted loops: no name of a user's has this form."""


def is_unrolled(loop: For) -> bool:
    """Whether the loop is unrolled here: asked to be, from 0 on, and no product of an iteration runs on in the next.

    Unrolling moves accumulators between registers, which wgmma in flight forbids.
    """
    asked = loop.unroll is not None and loop.unroll > 1 and loop.step == 1
    from_zero = isinstance(loop.start, Const) and loop.start.value == 0
    return asked and from_zero and _products_end(loop)


def _products_end(loop: For) -> bool:
    """Whether there are products, and the last of them in an iteration is waited for there."""
    running, found = False, False
    for stmt in walk(loop.body):
        if isinstance(stmt, Mma):
            running = found = True
        elif isinstance(stmt, Wait) and stmt.queue == "wgmma" and stmt.pending == 0:
            running = False
    return found and not running


def arrives_without_branch(lines: Iterable[str]) -> bool:
    """Whether lines of a kernel use `arrive_if` or `arrive_at_if`."""
    return any("arrive_if(" in line or "arrive_at_if(" in line for line in lines)


def unrolled(name: str, stop: str, times: int, body: Sequence[str]) -> list[str]:
    """The text of a loop over `name` from 0 to `stop`: so many iterations at a time, and then those that are left."""
    inner = [f"    {line}" for line in body]
    return [
        "{",
        f"    int {_FIRST} = 0;",
        "    #pragma unroll 1",
        f"    for (; {stop} - {_FIRST} >= {times}; {_FIRST} += {times}) {{",
        "        #pragma unroll",
        f"        for (int {_WITHIN} = 0; {_WITHIN} < {times}; ++{_WITHIN}) {{",
        f"            const int {name} = {_FIRST} + {_WITHIN};",
        *(f"        {line}" for line in inner),
        "        }",
        "    }",
        "    #pragma unroll 1",
        f"    for (int {name} = {_FIRST}; {name} < {stop}; ++{name}) {{",
        *(f"    {line}" for line in inner),
        "    }",
        "}",
    ]
