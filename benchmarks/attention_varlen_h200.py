"""Times attention of packed sequences on an H200: `benchmarks/attention_varlen_h200.py build`, then `... run`.

build: traces, verifies and compiles every configuration into build/attention_varlen_h200; needs no GPU. run: checks
each against float64 on random mixes of lengths, empty sequences among them, with poisoned outputs between guard zones,
then times it, with offsets checked when bound and before every launch, vs. torch's FlashAttention-2 and
FlashAttention-3, if `benchmarks/peers/flash_attention_3.py` has built it: interleaved, in rounds of rotating order, in
both regimes. Writes varlen.json in `--out` and prints a table of ratios.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import accumulate, product
from math import inf, log
from pathlib import Path
from random import Random
from typing import Any

import built_variants
from attrs import frozen
from built_variants import Loaded, Rows

from argus.kernels.packed_attention import CONFIGS
from argus.ops.attention_varlen import FAMILIES

FOLDER = Path(__file__).resolve().parent.parent / "build" / "attention_varlen_h200"
ROUNDS, CHECKED, PEERS_CHECKED = 7, 120, 8
CLOSE, CLOSE_LSE = 2.0**-6, 2.0**-13
GUARD = 4096
"""Elements before and after an output that must stay as they are."""


@frozen
class Mix:
    """Sequences of so many queries and keys, H heads of D elements, G of keys and values."""

    name: str
    queries: tuple[int, ...]
    keys: tuple[int, ...]
    H: int = 16
    G: int = 16
    D: int = 128

    def pairs(self, *, causal: bool) -> int:
        """The pairs of a query and a key that it sees, in one head."""
        whole = sum(s * t for s, t in zip(self.queries, self.keys, strict=True))
        if not causal:
            return whole
        both = zip(self.queries, self.keys, strict=True)
        return sum(max(0, t - s) * s + min(s, t) * (min(s, t) + 1) // 2 for s, t in both)


def alike(name: str, lengths: Sequence[int], heads: tuple[int, int] = (16, 16), width: int = 128) -> Mix:
    return Mix(name, tuple(lengths), tuple(lengths), *heads, width)


def mixes() -> list[Mix]:
    random = Random(0)  # noqa: S311 reason: a seed makes the mixes repeatable
    long = [random.randint(1, 8192) for _ in range(12)]
    short = [random.randint(1, 1024) for _ in range(64)]
    one = [8192, *(random.randint(16, 512) for _ in range(60))]
    many = [random.randint(1, 128) for _ in range(2000)]
    both = [
        alike(f"{name} d{d}", each, (2048 // d, 2048 // d), d)
        for d in (128, 64)
        for name, each in (("to 8192", long), ("to 1024", short))
    ]
    wide = alike("to 8192 d256", long, (8, 8), 256)
    return [
        *both,
        wide,
        alike("one long", one),
        alike("to 8192, 64/8", long[:6], (64, 8)),
        alike("8 of 2048", [2048] * 8),
        alike("2000 to 128", many),
    ]


def variants() -> dict[str, tuple[str, int, str]]:
    """The element type, the head dimension and the configuration of each."""
    return {
        f"d{width}_{config}{'_f16' if dtype == 'torch.float16' else ''}": (dtype, width, config)
        for dtype, widths in FAMILIES.items()
        for width in widths
        for config in CONFIGS[width]
    }


def build(chosen: argparse.Namespace) -> int:
    traced = {
        name: partial(FAMILIES[dtype][width].trace, config) for name, (dtype, width, config) in variants().items()
    }
    return built_variants.build(chosen, FOLDER, traced)


# -- on the GPU ----------------------------------------------------------------------------------------------


@frozen
class Given:
    """The operands, packed: (rows, heads, elements), with offsets of sequences."""

    q: Any
    k: Any
    v: Any
    starts_q: Any
    starts_k: Any


def operands(torch: Any, mix: Mix, dtype: Any) -> Given:  # noqa: ANN401 reason: untyped
    def rows(lengths: Sequence[int], heads: int) -> Any:  # noqa: ANN401 reason: untyped
        return torch.randn((sum(lengths), heads, mix.D), device="cuda", dtype=dtype)

    def starts(lengths: Sequence[int]) -> Any:  # noqa: ANN401 reason: untyped
        return torch.tensor([0, *accumulate(lengths)], device="cuda", dtype=torch.int32)

    k, v = rows(mix.keys, mix.G), rows(mix.keys, mix.G)
    return Given(rows(mix.queries, mix.H), k, v, starts(mix.queries), starts(mix.keys))


def guarded(torch: Any, extents: tuple[int, ...], dtype: Any) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    """A tensor of NaN within guard zones of ones, and all of that memory."""
    count = 1
    for extent in extents:
        count *= extent
    whole = torch.ones(count + 2 * GUARD, device="cuda", dtype=dtype)
    inside = whole[GUARD : GUARD + count]
    inside.fill_(float("nan"))
    return inside.view(extents), whole


def bound(
    torch: Any,  # noqa: ANN401 reason: untyped
    kernel: Any,  # noqa: ANN401 reason: as above
    mix: Mix,
    given: Given,
    results: tuple[Any, Any],
    promises: str = "fetch",
) -> Callable[[], None]:
    sizes = {"H": mix.H, "S": sum(mix.queries), "G": mix.G, "T": sum(mix.keys), "N": len(mix.queries) + 1}
    sizes |= {"sequences": len(mix.queries), "longest": max(mix.queries)}
    tensors = {
        "Q": given.q.transpose(0, 1),
        "K": given.k.transpose(0, 1),
        "V": given.v.transpose(0, 1),
        "O": results[0],
        "LSE": results[1],
        "scale": torch.full((1,), mix.D**-0.5 / log(2.0), device="cuda"),
        "starts_q": given.starts_q,
        "starts_k": given.starts_k,
    }
    launch = kernel.prepare(sizes).bind(tensors, torch.cuda.current_stream().cuda_stream, promises)
    return built_variants.keeping(launch, tensors)


def exact(torch: Any, mix: Mix, given: Given, *, causal: bool) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    """The outputs in float64, one sequence after another."""
    outs, sums = list[Any](), list[Any]()
    for b, (rows, keys) in enumerate(zip(mix.queries, mix.keys, strict=True)):
        first, begin = int(given.starts_q[b]), int(given.starts_k[b])
        q = given.q[first : first + rows].double().transpose(0, 1)
        k, v = (
            each[begin : begin + keys].double().transpose(0, 1).repeat_interleave(mix.H // mix.G, dim=0)
            for each in (given.k, given.v)
        )
        scores = (q @ k.mT) * mix.D**-0.5
        if causal:
            row, key = torch.arange(rows, device="cuda"), torch.arange(keys, device="cuda")
            scores.masked_fill_(key[None, :] > row[:, None] + keys - rows, -inf)
        outs.append((torch.softmax(scores, -1).nan_to_num(0.0) @ v).transpose(0, 1))
        sums.append(torch.logsumexp(scores, -1))
    return torch.cat(outs), torch.cat(sums, -1)


def errors(torch: Any, kernel: Any, mix: Mix, dtype: Any, *, causal: bool) -> tuple[float, float]:  # noqa: ANN401 reason: untyped
    """The largest errors of both outputs; nan where an element was not written, inf where a guard zone was."""
    given = operands(torch, mix, dtype)
    o, around = guarded(torch, (sum(mix.queries), mix.H, mix.D), dtype)
    lse, beside = guarded(torch, (mix.H, sum(mix.queries)), torch.float32)
    bound(torch, kernel, mix, given, (o, lse))()
    torch.cuda.synchronize()
    for whole in (around, beside):
        if not bool((whole[:GUARD] == 1).all()) or not bool((whole[-GUARD:] == 1).all()):
            return inf, inf
    return apart(torch, mix, given, (o, lse), causal=causal)


def apart(torch: Any, mix: Mix, given: Given, found: tuple[Any, Any], *, causal: bool) -> tuple[float, float]:  # noqa: ANN401 reason: untyped
    """The largest differences of O and LSE, (rows, heads, elements) and (heads, rows), from float64."""
    wanted, sums = exact(torch, mix, given, causal=causal)
    off = torch.where(found[1] == sums, 0.0, found[1].double() - sums)  # both may be -inf
    return (found[0].double() - wanted).abs().max().item(), off.abs().max().item()


def random_mix(random: Random, width: int) -> Mix:
    """At least one query and one key in all; lengths of 0, 1, about those of tiles, and others."""
    count, groups = random.randint(1, 6), random.randint(1, 3)

    def length() -> int:
        return random.choice((0, 0, 1, random.randint(1, 40), random.randint(120, 136), random.randint(1, 600)))

    queries, keys = [length() for _ in range(count)], [length() for _ in range(count)]
    if random.random() < 0.4:
        keys = list(queries)
    if not sum(queries) or not sum(keys):
        queries, keys = [*queries, 3], [*keys, 5]
    return Mix("random", tuple(queries), tuple(keys), groups * random.randint(1, 4), groups, width)


def is_right(torch: Any, name: str, kernel: Any, count: int) -> bool:  # noqa: ANN401 reason: untyped
    dtype, width, config = variants()[name]
    random = Random(name)  # noqa: S311 reason: a seed makes the mixes repeatable
    worst, bad = [0.0, 0.0], list[str]()
    for _ in range(count):
        mix = random_mix(random, width)
        found = errors(
            torch, kernel, mix, getattr(torch, dtype.removeprefix("torch.")), causal=config.startswith("causal")
        )
        worst = [max(pair) for pair in zip(worst, found, strict=True)]
        if not (found[0] <= CLOSE and found[1] <= CLOSE_LSE):
            bad.append(f"{mix}: {found}")
    said = f"WRONG {len(bad)}: {bad[:3]}" if bad else f"worst errors {worst[0]:.1e} and {worst[1]:.1e}"
    print(f"{name}: {count} mixes, {said}", flush=True)
    return not bad


def refuses_wrong_offsets(torch: Any, kernel: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether offsets that descend, or end beyond the rows, are refused before a launch."""
    mix = alike("wrong", (100, 50, 30))
    given = operands(torch, mix, torch.bfloat16)
    results = torch.empty_like(given.q), torch.empty((mix.H, 180), device="cuda")
    refused = 0
    for at, value in ((1, 160), (3, 181), (0, 1), (3, 179), (2, 90)):
        wrong = given.starts_q.clone()
        wrong[at] = value
        try:
            bound(torch, kernel, mix, Given(given.q, given.k, given.v, wrong, given.starts_k), results)
        except Exception as problem:  # noqa: BLE001 reason: its code is compared
            refused += "E402" in str(problem)
    print(f"wrong offsets: {refused} of 5 refused", flush=True)
    return refused == 5


def flash2(torch: Any, mix: Mix, given: Given, *, causal: bool) -> Callable[[], object]:  # noqa: ANN401 reason: untyped
    flash = torch.ops.aten._flash_attention_forward
    rest = (given.starts_q, given.starts_k, max(mix.queries), max(mix.keys), 0.0, causal, False)
    return lambda: flash(given.q, given.k, given.v, *rest)


def flash3(mix: Mix, given: Given, *, causal: bool) -> dict[str, Callable[[], Any]]:
    """FlashAttention-3's kernels; none if it is not built. Of grouped heads, those that pack heads in a tile, too."""
    module = import_module("peers.flash_attention_3_calls")
    library = module.load_if_built()
    if library is None or mix.D not in module.DIMS:
        return {}
    tensors = tuple(each.transpose(0, 1) for each in (given.q, given.k, given.v))
    rest = (tensors, (given.starts_q, given.starts_k), (max(mix.queries), max(mix.keys)), causal)
    found = {"fa3": module.packed(library, *rest, pack_heads=False)}
    if mix.H != mix.G and mix.D in module.PACKED_HEADS:
        found["fa3-heads"] = module.packed(library, *rest, pack_heads=True)
    return found


def right_peers(torch: Any, count: int) -> set[tuple[str, int, bool]]:  # noqa: ANN401 reason: untyped
    """The name, width and causal of FlashAttention-3's kernels that are right on `count` mixes, none of it empty."""
    worst: dict[tuple[str, int, bool], list[float]] = {}
    random = Random("peers")  # noqa: S311 reason: a seed makes the mixes repeatable
    for width, causal, number in product(FAMILIES["torch.bfloat16"], (False, True), range(count)):
        lengths = [random.choice((1, 64, random.randint(1, 200), random.randint(1, 700))) for _ in range(6)]
        mix = alike("peers", lengths, (8, 2 if number % 2 else 8), width)
        given = operands(torch, mix, torch.bfloat16)
        for name, call in flash3(mix, given, causal=causal).items():
            o, lse = call()
            torch.cuda.synchronize()
            found = apart(torch, mix, given, (o.transpose(0, 1), lse), causal=causal)
            key = name, width, causal
            worst[key] = built_variants.larger(worst.get(key, [0.0, 0.0]), found)
    for (name, width, causal), each in worst.items():
        said = f"{name} d{width} {'causal' if causal else 'full'}"
        print(f"{said}: {count} mixes, worst errors {each[0]:.1e} and {each[1]:.1e}", flush=True)
    return {key for key, each in worst.items() if each[0] <= CLOSE and each[1] <= CLOSE_LSE}


def timed(torch: Any, kernels: Loaded, mix: Mix, right: Collection[Any], rounds: int, *, causal: bool) -> Rows:  # noqa: ANN401 reason: untyped
    given = operands(torch, mix, torch.bfloat16)
    results = torch.empty_like(given.q), torch.empty((mix.H, given.q.shape[0]), device="cuda")
    fa3 = flash3(mix, given, causal=causal)
    calls: dict[str, Callable[[], object]] = {"flash2": flash2(torch, mix, given, causal=causal)}
    calls |= {name: call for name, call in fa3.items() if (name, mix.D, causal) in right}
    theirs = tuple(calls)
    kind = "causal" if causal else "full"
    for name, kernel in kernels.items():
        if name.startswith(f"d{mix.D}_{kind}") and not name.endswith("f16"):
            calls[name] = bound(torch, kernel, mix, given, results)
            calls[f"{name} guarded"] = bound(torch, kernel, mix, given, results, "stop")
    driver = next(iter(kernels.values())).driver
    operations = 4.0 * mix.pairs(causal=causal) * mix.H * mix.D
    return built_variants.timed_beside(torch, driver, calls, theirs, f"{mix.name} {kind}", operations, rounds)


def run(chosen: argparse.Namespace) -> int:
    refused: list[bool] = []

    def all_timed(torch: Any, good: Loaded) -> Rows:  # noqa: ANN401 reason: untyped
        refused.append(refuses_wrong_offsets(torch, next(iter(good.values()))))
        right = right_peers(torch, min(chosen.checked, PEERS_CHECKED))
        rows: list[Mapping[str, Any]] = []
        for causal, mix in product((True, False), mixes()[: chosen.most]):
            rows += timed(torch, good, mix, right, chosen.rounds, causal=causal)
        print(built_variants.table(rows), flush=True)
        return rows

    load = import_module("argus.runtime.gpu.launch").load
    return built_variants.run(chosen, FOLDER, load, is_right, all_timed, "varlen.json") or int(not all(refused))


def main() -> int:
    chosen = built_variants.options(__doc__, FOLDER, ROUNDS, CHECKED).parse_args()
    return build(chosen) if chosen.part == "build" else run(chosen)


if __name__ == "__main__":
    raise SystemExit(main())
