"""One of each statement, claim and element of the IR, for tests that must not forget one."""

from __future__ import annotations

from typing import get_args

from argus.core.algebra import coord, eq, le, sym
from argus.core.atoms.gfx942 import ds_read_b128, mfma_f32_32x32x8_bf16
from argus.core.dtype import bf16, f32, i32
from argus.core.index import Symbol
from argus.core.ir import (
    Advance,
    Alloc,
    Arrive,
    Assert,
    Assume,
    Atomic,
    Await,
    Both,
    Buffer,
    Cast,
    Claim,
    Commit,
    Compare,
    Copy,
    Covers,
    Distinct,
    Edit,
    Either,
    Equal,
    Equals,
    Fence,
    Fold,
    For,
    Get,
    Holds,
    If,
    Let,
    Lit,
    Map,
    Mma,
    Neither,
    Num,
    One,
    Op,
    Order,
    Peek,
    Policy,
    Products,
    Relation,
    Reset,
    Role,
    Roles,
    Staged,
    Stmt,
    Sync,
    Tag,
    TagOf,
    View,
    Wait,
    Where,
    WrittenOnce,
)
from argus.core.layout import row_major
from argus.core.tiling import TiledMma, spread
from argus.core.values.expr import element, reduce_

S = Symbol("s", "size", 0, 100)
K = Symbol("k", "loop")
AGENT, THREAD = Symbol("agent", "agent", 0, 1), Symbol("thread", "thread", 0, 127)
AT = sym(S)
MM = TiledMma(mfma_f32_32x32x8_bf16, (2, 2), (64, 64), 8, 32)
BY = spread((64, 32), 256, 8)
CELLS = Buffer("cells", "shared", bf16, (AT, AT), Staged(row_major((64, 32))))
TILE = Buffer("tile", "register", f32, (AT, AT), BY)
EVENT = Buffer("full", "barrier", i32, (AT,), Staged(row_major((4,))))
VIEW = View(CELLS, (AT, AT), (AT, coord(1)), le(AT, 3), AT)
WHOLE = View(TILE, TILE.shape, (coord(0), coord(1)))
SIGNAL = View(EVENT, (), (AT,))
OF = TagOf(VIEW, "k")
CONDITION = le(AT, 7)
TEST = Both((Holds(CONDITION), Either((Compare("<", Lit(0.5), Num(AT)), Neither(Holds(eq(AT, 2)))))))
ELEMENT = Where(TEST, Cast(f32, Op("neg", (Get(VIEW, (AT, coord(0))),))), Get(WHOLE, (coord(0), coord(1))))

CLAIMS: tuple[Claim, ...] = (
    Equal(OF, OF),
    Distinct((OF, OF)),
    Relation(((Symbol("x", "fresh"), OF),), le(sym(Symbol("x", "fresh")), AT)),
    Covers(OF, AT, AT, CONDITION),
    Order(OF),
    WrittenOnce(VIEW, (("m", AT),)),
    Products(VIEW, (((AT, coord(0)), (AT, coord(1))),)),
    Equals(VIEW, element("A", AT, coord(0)) * 2 + reduce_("sum", Symbol("j", "fresh"), 0, AT, AT)),
)

STATEMENTS: tuple[Stmt, ...] = (
    Alloc(EVENT, count=2),
    Let(Symbol("n", "fresh"), Peek(VIEW)),
    Let(Symbol("n", "fresh"), Atomic("add", VIEW, AT)),
    Copy(ds_read_b128, VIEW, WHOLE, BY, 0.0, SIGNAL, AT, "add", "streaming", CELLS),
    Map(WHOLE, ELEMENT),
    Fold(WHOLE, VIEW, 1, "max", "prefix", "warp"),
    Mma(mfma_f32_32x32x8_bf16, MM.tiling, WHOLE, VIEW, VIEW, CONDITION),
    Arrive(SIGNAL, 1, AT),
    Await(SIGNAL, AT),
    Sync("named", "arrive", 128),
    Commit("bulk"),
    Wait("bulk", 1, "reads"),
    Fence("device", "gpu"),
    Edit(CELLS, "replace", VIEW),
    Edit(CELLS, "release"),
    Advance(EVENT, AT),
    Policy("priority", (1,)),
    For(K, AT, AT, -2, (Sync(),), 4),
    If(CONDITION, (Sync(),), (Commit("vmem"),)),
    Roles(
        (
            Role("load", 0, 4, 1, 40, (Sync(),), AGENT, THREAD),
            Role("math", 4, 8, 128, None, (Commit("wgmma"),), AGENT, THREAD),
        )
    ),
    One((Advance(EVENT, AT),)),
    Tag(VIEW, (("m", AT), ("k", coord(1)))),
    Reset(CELLS),
    Assume(CONDITION),
    *(Assert(claim) for claim in CLAIMS),
)

assert {type(stmt) for stmt in STATEMENTS} == set(get_args(Stmt))
assert {type(claim) for claim in CLAIMS} == set(get_args(Claim))
