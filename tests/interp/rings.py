"""A Hopper GEMM with a stage ring, built statement by statement, with parameters and optional faults."""

from __future__ import annotations

from attrs import evolve, field, frozen

from argus.core import algebra
from argus.core.algebra import add, ceil_div, const, coord, eq, floordiv, mod, mul, sub, sym
from argus.core.atoms.registry import atom_named
from argus.core.dtype import bf16, f32
from argus.core.index import Cond, Index, Symbol
from argus.core.ir import (
    Advance,
    Alloc,
    Arrive,
    Assert,
    Assume,
    Await,
    Buffer,
    Cast,
    Commit,
    Copy,
    Covers,
    Fence,
    For,
    Get,
    If,
    Kernel,
    Map,
    Mma,
    One,
    Role,
    Roles,
    Stmt,
    Sync,
    Tag,
    TagOf,
    Wait,
    WrittenOnce,
    whole,
)
from argus.core.layout import TV
from argus.core.target import sm_90a
from argus.core.tiling import WarpgroupMma, subtile
from tests.interp.pieces import barrier, counter, event, fragment, one_thread, shared, tensor, use, view

Body = tuple[Stmt, ...]
M, N, K = (Symbol(name, "size", 1) for name in "MNK")
BOX = 16


@frozen
class Config:
    """The knobs. bn: columns of a tile. blocks: of the grid. by_tma: the epilogue stores through boxes."""

    stages: int = 3
    consumers: int = 2
    lag: int = 1
    bn: int = 16
    bk: int = 16
    blocks: int = 1
    by_tma: bool = False
    fault: str = ""


@frozen
class Ring:
    """Buffers and atoms of one kernel."""

    config: Config
    a: Buffer
    b: Buffer
    full: Buffer
    empty: Buffer
    boxes: Buffer
    tensors: tuple[Buffer, Buffer, Buffer]
    block: Symbol = field(factory=lambda: Symbol("block", "block", 0))
    tile: Symbol = field(factory=lambda: Symbol("t", "loop", 0))

    @property
    def bm(self) -> int:
        return 64 * self.config.consumers

    def has(self, fault: str) -> bool:
        return self.config.fault == fault

    def slot(self, use: Index) -> Index:
        return mod(use, self.config.stages)

    def phase(self, use: Index) -> Index:
        return floordiv(use, self.config.stages)

    @property
    def place(self) -> tuple[Index, Index]:
        """Row and column of the tile."""
        columns = ceil_div(sym(N), self.config.bn)
        return floordiv(sym(self.tile), columns), mod(sym(self.tile), columns)

    @property
    def depth(self) -> Index:
        return ceil_div(sym(K), self.config.bk)

    def tiles(self, body: Body) -> For:
        count = mul(ceil_div(sym(M), self.bm), ceil_div(sym(N), self.config.bn))
        return For(self.tile, sym(self.block), count, self.config.blocks, body)


def gemm(config: Config) -> Kernel:
    """C = A B^T in tiles of 64 rows a consumer, persistent over the grid."""
    s = config.stages
    tensors = tensor("A", bf16, M, K), tensor("B", bf16, N, K), tensor("C", bf16, M, N)
    bm = 64 * config.consumers
    ring = Ring(
        config,
        shared("a", bf16, s, bm, config.bk),
        shared("b", bf16, s, config.bn, config.bk),
        barrier("full", s),
        barrier("empty", s),
        shared("boxes", bf16, config.consumers, 2, 64, BOX),
        tensors,
    )
    arrivals = 1 if ring.has("empty count 1") else config.consumers
    setup: list[Stmt] = [Tag(whole(t), names) for t, names in zip(tensors, _names(), strict=False)]
    setup += [Assume(eq(mod(sym(K), 8), 0)), Assume(eq(mod(sym(N), 8), 0))]
    setup += [Alloc(ring.a), Alloc(ring.b), Alloc(ring.boxes), Alloc(ring.full, 1), Alloc(ring.empty, arrivals)]
    if not ring.has("no init fence"):
        setup.append(Fence("barrier_init"))
    if not ring.has("no init barrier"):
        setup.append(Sync())
    roles = (_producer(ring), _consumer(ring))
    done = Assert(WrittenOnce(whole(tensors[2]), (("m", coord(0)), ("n", coord(1)))))
    return Kernel(
        f"ring_{config.fault or 'gemm'}".replace(" ", "_"),
        sm_90a,
        tensors,
        (M, N, K),
        128 * (1 + config.consumers),
        (const(config.blocks),),
        (ring.block,),
        Symbol("thread", "thread", 0),
        tuple(setup),
        Roles(roles),
        (done,),
    )


def _names() -> tuple[tuple[tuple[str, Index], ...], ...]:
    return (("m", coord(0)), ("k", coord(1))), (("n", coord(0)), ("k", coord(1)))


def _producer(ring: Ring) -> Role:
    config = ring.config
    filled, k = counter("filled"), Symbol("k", "loop", 0)
    let, u = use(filled, "u")
    m, n = ring.place
    columns = sub(sub(ring.depth, 1), sym(k)) if ring.has("B backwards") else sym(k)
    size = (ring.bm + config.bn) * config.bk * 2
    full = event(ring.full, ring.slot(u))
    body: list[Stmt] = [let]
    if not ring.has("no empty wait"):
        body.append(Await(event(ring.empty, ring.slot(u)), sub(ring.phase(u), 1)))
    announced = {"half the bytes": size // 2, "bytes of B alone": config.bn * config.bk * 2}.get(config.fault, size)
    body.append(Arrive(full, 1, const(announced)))
    for source, target, row, column in (
        (ring.tensors[0], ring.a, m, sym(k)),
        (ring.tensors[1], ring.b, n, columns),
    ):
        rows = int(target.shape[1].range[0] or 0)
        tile = rows, config.bk
        at = add(mul(row, rows), coord(0)), add(mul(column, config.bk), coord(1))
        into = view(target, tile, ring.slot(u), coord(0), coord(1))
        body.append(
            Copy(atom_named("tma_load_2d"), view(source, tile, *at), into, one_thread(*tile), edge=0, signal=full)
        )
    body.append(Advance(filled, const(1)))
    loop = ring.tiles((For(k, const(0), ring.depth, 1, tuple(body)),))
    let_end, e = use(filled, "e")
    finish: list[Stmt] = [let_end]
    for step in range(config.stages):
        at = add(e, step)
        finish.append(Await(event(ring.empty, ring.slot(at)), sub(ring.phase(at), 1)))
    number, thread = Symbol("load", "agent", 0, 0), Symbol("load_thread", "thread", 0, 0)
    return Role("load", 0, 4, 1, 40, (Alloc(filled), loop, *finish), number, thread)


def _consumer(ring: Ring) -> Role:
    config = ring.config
    number = Symbol("wg", "agent", 0, config.consumers - 1)
    thread = Symbol("math_thread", "thread", 0, 127)
    mm = WarpgroupMma(atom_named(f"wgmma_m64n{config.bn}k16_f32_bf16_ss"), "k", config.bk)
    acc = fragment("acc", f32, mm.C, "math")
    waited, released = counter("waited"), counter("released")
    k = Symbol("k", "loop", 0)
    release, main = _release(ring, released), _main(ring, mm, acc, number, k, waited)
    early = ring.has("early release")
    later = release if config.lag == 0 else (If(algebra.le(config.lag, sym(k)), release),)
    step = (*main, *release, Wait("wgmma", config.lag)) if early else (*main, Wait("wgmma", config.lag), *later)
    depth = sub(ring.depth, 1) if ring.has("consumer leaves early") else ring.depth
    final: list[Stmt] = [] if ring.has("no final wait") else [Wait("wgmma", 0)]
    if config.lag and not early:
        final.append(For(Symbol("r", "loop", 0), const(0), algebra.minimum(config.lag, depth), 1, release))
    covers = Assert(Covers(TagOf(whole(acc), "k"), const(0), sym(K)))
    epilogue = _by_tma(ring, acc, number) if config.by_tma else _plain(ring, acc, number)
    tile = ring.tiles((Fence("wgmma"), For(k, const(0), depth, 1, step), *final, covers, *epilogue))
    ends: Body = (One((Wait("bulk", 0),)),) if config.by_tma and not ring.has("no wait at the end") else ()
    body = (Alloc(acc), Alloc(waited), Alloc(released), tile, *ends)
    return Role("math", 4, 4 * config.consumers, 128, 232, body, number, thread)


def _main(ring: Ring, mm: WarpgroupMma, acc: Buffer, number: Symbol, k: Symbol, waited: Buffer) -> Body:
    config = ring.config
    let, v = use(waited, "v")
    slot = ring.slot(add(v, 1)) if ring.has("wrong slot") else ring.slot(v)
    phase = add(ring.phase(v), 1) if ring.has("wrong parity") else ring.phase(v)
    if ring.has("phase restarted"):
        phase = ring.phase(sym(k))
    a = view(ring.a, (64, config.bk), slot, add(mul(sym(number), 64), coord(0)), coord(1))
    b = view(ring.b, (config.bn, config.bk), slot, coord(0), coord(1))
    init: Cond = eq(sym(k), 0)
    wait = Await(event(ring.full, ring.slot(v)), phase)
    return let, wait, Mma(mm.atom, mm.tiling(config.bk), whole(acc), a, b, init), Advance(waited, const(1))


def _release(ring: Ring, released: Buffer) -> Body:
    let, r = use(released, "r")
    arrive = One((Arrive(event(ring.empty, ring.slot(r)), 1, const(0)),))
    return let, arrive, Advance(released, const(1))


def _plain(ring: Ring, acc: Buffer, number: Symbol) -> Body:
    held = acc.layout
    assert isinstance(held, TV)
    out = fragment("out", bf16, held, "math")
    m, n = ring.place
    row = add(mul(m, ring.bm), add(mul(sym(number), 64), coord(0)))
    target = view(ring.tensors[2], held.tile, row, add(mul(n, ring.config.bn), coord(1)))
    cast = Map(whole(out), Cast(bf16, Get(whole(acc), (coord(0), coord(1)))))
    return Alloc(out), cast, Copy(atom_named("st_global_b32"), whole(out), target, held, edge=0)


def _by_tma(ring: Ring, acc: Buffer, number: Symbol) -> Body:
    held = acc.layout
    assert isinstance(held, TV)
    parts = [_part(ring, acc, number, j) for j in range(held.tile[1] // BOX)]
    return tuple(stmt for part in parts for stmt in part)


def _part(ring: Ring, acc: Buffer, number: Symbol, j: int) -> Body:
    """Columns [16 j, 16 j + 16): through one of two boxes of this warpgroup, out by a bulk store."""
    held = acc.layout
    assert isinstance(held, TV)
    piece = subtile(held, (64, BOX))
    out = fragment(f"out{j}", bf16, piece, "math")
    box = view(ring.boxes, (64, BOX), sym(number), const(j % 2), coord(0), coord(1))
    m, n = ring.place
    row = add(mul(m, ring.bm), add(mul(sym(number), 64), coord(0)))
    target = view(ring.tensors[2], (64, BOX), row, add(mul(n, ring.config.bn), add(coord(1), BOX * j)))
    part = view(acc, (64, BOX), coord(0), add(coord(1), BOX * j))
    sync, proxy = Sync("math", "meet", 128), Fence("async_proxy")
    wait: list[Stmt] = [One((Wait("bulk", 1, "reads"),)), sync]
    if ring.has("no bulk wait"):
        wait = [sync]
    elif ring.has("no barrier after the wait"):
        wait = wait[:1]
    elif ring.has("wait by the wrong thread"):
        both = Sync("both", "meet", 128 * ring.config.consumers)
        wait = [If(eq(sym(number), 0), (One((Wait("bulk", 0, "reads"),)),)), both]
    write: list[Stmt] = [Copy(atom_named("stmatrix_x4"), whole(out), box, piece)]
    if ring.has("fence before the writes"):
        write = [proxy, *write]
    elif ring.has("fence by the issuer only"):
        write = [*write, One((proxy,))]
    elif not ring.has("no proxy fence"):
        write = [*write, proxy]
    if not ring.has("no barrier before the store"):
        write.append(sync)
    store = Copy(atom_named("tma_store_2d"), box, target, one_thread(64, BOX), edge=0)
    cast = Map(whole(out), Cast(bf16, Get(part, (coord(0), coord(1)))))
    return (*wait, Alloc(out), cast, *write, One((store, Commit("bulk"))))


def unfenced(kernel: Kernel) -> Kernel:
    """The same without the fences of products."""
    assert kernel.roles is not None
    load, math = kernel.roles.roles
    tile = math.body[3]
    assert isinstance(tile, For)
    rest = evolve(tile, body=tile.body[1:])
    return evolve(kernel, roles=Roles((load, evolve(math, body=(*math.body[:3], rest, *math.body[4:])))))
