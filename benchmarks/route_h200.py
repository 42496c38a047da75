"""Checks and times routing on an H200: `python benchmarks/route_h200.py order`, or `... route`.

order: compares what `argus.expert_order` gives for random ids, equal, skewed and of no expert among them, with torch's
stable sort, in memory that was poisoned before, and calls in a CUDA graph; then times it beside operators of torch that
find the same, in both regimes, and for several numbers of assignments that a block has (`--divisions`).

route: compares what `argus.route` gives for random scores of all types, with equal ones among them, with float64 and
torch's stable sort, and that a wrong choice has infinite weights; then times it beside torch's softmax and top-k and
beside a kernel in Triton, the fastest of several sizes of its blocks.

Times are of launches in CUDA graphs, of 20 calls each.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import route_weights
from graph_times import host_time, times

import argus
from argus.ops.expert_order import Division, ordered
from argus.ops.grouped_tiles import count_of

CHECKED, ROUNDS, HEIGHT = 100, 7, 128
POISON = -7777
SIZES = (
    (1, 8, 256),
    (64, 8, 256),
    (512, 8, 64),
    (1024, 8, 256),
    (2048, 8, 256),
    (8192, 2, 8),
    (8192, 8, 64),
    (8192, 8, 256),
    (8192, 8, 512),
    (32768, 8, 256),
)
"""Tokens, choices of each, and experts."""
DIVISIONS = (Division(1024, 1024, 128), Division(1024, 512, 64))
NAMES = ("ids", "offsets", "order", "tokens", "inverse", "tile_starts", "tile_experts")


def by_torch(torch: Any, ids: Any, experts: int, height: int) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    """The same order by operators of torch, and tiles by loops of the host."""
    flat = ids.reshape(-1).clamp(0, experts - 1)
    order = torch.sort(flat, stable=True)[1]
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(order.numel(), device=order.device)
    counts = torch.bincount(flat, minlength=experts).tolist()
    offsets = [0]
    for count in counts:
        offsets.append(offsets[-1] + count)
    tiles = [(row, e) for e in range(experts) for row in range(offsets[e], offsets[e + 1], height)]
    tiles += [(flat.numel(), experts - 1)] * (count_of(flat.numel(), experts, height) - len(tiles))

    def made(values: Sequence[int]) -> Any:  # noqa: ANN401 reason: as above
        return torch.tensor(values, device="cuda", dtype=torch.int32)

    return {
        "ids": ids,
        "offsets": made(offsets),
        "order": order,
        "tokens": order // ids.shape[1],
        "inverse": inverse.view_as(ids),
        "tile_starts": made([*(row for row, _ in tiles), flat.numel()]),
        "tile_experts": made([e for _, e in tiles]),
    }


def random_ids(torch: Any, random: Random) -> tuple[Any, int]:  # noqa: ANN401 reason: untyped
    """Ids and the number of experts: few and many, all equal, skewed, some of no expert."""
    experts = random.choice((1, 2, 7, 8, 63, 64, 255, 256, 511, 512))
    tokens = random.choice((0, 1, random.randint(1, 600), random.randint(600, 1100), random.randint(1, 40000)))
    shape, kind = (tokens, random.randint(1, 8)), random.choice((torch.int32, torch.int64))
    how = random.choice(("uniform", "uniform", "skewed", "one", "outside"))
    low, high = (-3, experts + 3) if how == "outside" else (0, experts)
    ids = torch.randint(low, high, shape, device="cuda", dtype=kind)
    if how == "skewed":
        ids = (ids * torch.rand(shape, device="cuda") ** 4).to(kind)
    if how == "one":
        ids[...] = random.randrange(experts)
    return ids, experts


def poison(torch: Any, ids: Any, experts: int) -> None:  # noqa: ANN401 reason: untyped
    """Leave memory that is given out again, all of it of one number."""
    count = ids.numel()
    lengths = (experts + 1, count, count, count, count, count_of(count, experts, HEIGHT) + 1, 128 * experts)
    held = [torch.full((length,), POISON, device="cuda", dtype=torch.int32) for length in lengths]
    torch.cuda.synchronize()
    del held


def orders_rightly(torch: Any, count: int) -> bool:  # noqa: ANN401 reason: untyped
    random, bad = Random("ids"), list[str]()  # noqa: S311 reason: a seed makes the ids repeatable
    torch.manual_seed(0)
    for number in range(count):
        ids, experts = random_ids(torch, random)
        poison(torch, ids, experts)
        found = argus.expert_order(ids, experts, height=HEIGHT)
        wanted = by_torch(torch, ids, experts, HEIGHT)
        if wrong := [name for name in NAMES if not bool((getattr(found, name) == wanted[name]).all())]:
            bad.append(f"{number}: {tuple(ids.shape)} of {experts}: {wrong}")
    said = f"WRONG {len(bad)}: {bad[:4]}" if bad else "all right"
    print(f"orders of {count} random ids: {said}", flush=True)
    return not bad


def replays_rightly(torch: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether a graph orders the ids that there are when it runs."""
    right = 0
    for tokens, experts in ((64, 256), (8192, 256)):
        ids = torch.zeros((tokens, 8), device="cuda", dtype=torch.int32)
        graph, held = torch.cuda.CUDAGraph(), list[Any]()
        argus.expert_order(ids, experts, height=HEIGHT)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            held.append(argus.expert_order(ids, experts, height=HEIGHT))
        for _ in range(20):
            ids.copy_(torch.randint(0, experts, ids.shape, device="cuda", dtype=torch.int32))
            graph.replay()
            wanted = by_torch(torch, ids, experts, HEIGHT)
            right += all(bool((getattr(held[0], name) == wanted[name]).all()) for name in NAMES)
    print(f"orders in graphs: {right} of 40 right", flush=True)
    return right == 40


def receives_rightly(torch: Any, count: int) -> bool:  # noqa: ANN401 reason: untyped
    """Whether received rows are ordered as torch's stable sort orders them."""
    random, right = Random("ranks"), 0  # noqa: S311 reason: a seed makes the numbers repeatable
    for _ in range(count):
        ranks = random.choice((1, 2, 4, 8, 64))
        experts = random.randint(1, 512 // ranks)
        counts = torch.randint(0, random.choice((2, 9, 200)), (ranks, experts), device="cuda", dtype=torch.int32)
        rows = int(counts.sum())
        owner = torch.arange(experts, device="cuda").repeat(ranks).repeat_interleave(counts.flatten().long())
        poison(torch, counts, experts)
        found = argus.received_order(counts, rows + 7, height=HEIGHT)
        sorted_owner, order = torch.sort(owner, stable=True)
        bounds = torch.searchsorted(sorted_owner, torch.arange(experts + 1, device="cuda"))
        same = [(found.order[:rows], order), (found.inverse[:rows][order], torch.arange(rows, device="cuda"))]
        right += all(bool((a == b).all()) for a, b in (*same, (found.offsets, bounds)))
    print(f"received rows: {right} of {count} right", flush=True)
    return right == count


def peer(torch: Any, ids: Any, experts: int) -> Callable[[], object]:  # noqa: ANN401 reason: untyped
    """The operators of torch that find offsets, order, tokens and inverse, without waiting for the GPU."""
    flat, choices = ids.reshape(-1), ids.shape[1]
    numbers = torch.arange(flat.numel(), device="cuda", dtype=torch.int32)
    bounds = torch.arange(experts + 1, device="cuda", dtype=torch.int32)

    def call() -> object:
        held, order = torch.sort(flat, stable=True)
        inverse = torch.empty_like(numbers)
        inverse[order] = numbers
        return torch.searchsorted(held, bounds, out_int32=True), order // choices, inverse

    return call


def order(torch: Any, chosen: argparse.Namespace) -> tuple[bool, list[dict[str, Any]]]:  # noqa: ANN401 reason: untyped
    """Checks and times `argus.expert_order`."""
    right = [orders_rightly(torch, chosen.check), replays_rightly(torch), receives_rightly(torch, chosen.check)]
    rows: list[dict[str, Any]] = []
    for tokens, choices, experts in SIZES[: chosen.most]:
        ids = torch.rand((tokens, experts), device="cuda").topk(min(choices, experts))[1].int()
        calls: dict[str, Callable[[], object]] = {"torch": peer(torch, ids, experts)}
        calls["argus"] = partial(argus.expert_order, ids, experts)
        calls["with tiles"] = partial(argus.expert_order, ids, experts, height=HEIGHT)
        if chosen.divisions:
            calls |= {str(each): partial(ordered, ids, experts, HEIGHT, each) for each in DIVISIONS}
        found = times(torch, calls, chosen.rounds)
        for regime, taken in found.items():
            rows.append({"part": "order", "sizes": [tokens, choices, experts], "regime": regime, "us": taken})
            said = ", ".join(f"{name} {each:.2f}" for name, each in taken.items())
            print(f"order {tokens} x {choices} of {experts} {regime}: {said} us", flush=True)
        print(f"  host: {host_time(torch, calls['argus']):.1f} us, torch {host_time(torch, calls['torch']):.1f}")
    return all(right), rows


PARTS = {"order": order, "route": route_weights.measure}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=tuple(PARTS))
    parser.add_argument("--check", type=int, default=CHECKED, help="random inputs that are compared")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--most", type=int, default=len(SIZES), help="sizes that are timed, from the first on")
    parser.add_argument("--divisions", action="store_true", help="time other divisions into blocks, too")
    parser.add_argument("--out", type=Path, help="a folder for the times as JSON")
    chosen = parser.parse_args()
    torch = import_module("torch")
    right, rows = PARTS[chosen.part](torch, chosen)
    if chosen.out:
        (chosen.out / f"{chosen.part}.json").write_text(json.dumps(rows))
    return int(not right)


if __name__ == "__main__":
    raise SystemExit(main())
