"""Times attention of packed sequences on an H200: `benchmarks/attention_varlen_h200.py build`, then `... run`.

build: traces, verifies and compiles every configuration into build/attention_varlen_h200; needs no GPU. run: checks
each against float64 on random mixes of lengths, empty sequences among them, with poisoned outputs between guard zones,
then times it in turn with torch's FlashAttention-2. Prints TFLOP/s, writes varlen.json in `--out`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import accumulate
from math import inf, log
from pathlib import Path
from random import Random
from typing import Any

from attrs import frozen

from argus.kernels.packed_attention import CONFIGS
from argus.ops.attention_varlen import FAMILIES

FOLDER = Path(__file__).resolve().parent.parent / "build" / "attention_varlen_h200"
ROUNDS, CHECKED = 7, 120
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
    both = [
        alike(f"{name} d{d}", each, (2048 // d, 2048 // d), d)
        for d in (128, 64)
        for name, each in (("to 8192", long), ("to 1024", short))
    ]
    return [*both, alike("one long", one), alike("to 8192, 64/8", long[:6], (64, 8)), alike("8 of 2048", [2048] * 8)]


def variants() -> dict[str, tuple[str, int, str]]:
    """The element type, the head dimension and the configuration of each."""
    return {
        f"d{width}_{config}{'_f16' if dtype == 'torch.float16' else ''}": (dtype, width, config)
        for dtype, widths in FAMILIES.items()
        for width in widths
        for config in CONFIGS[width]
    }


def build(names: Sequence[str], *, unproved: bool) -> int:
    from argus.core.verdict import Proved  # noqa: PLC0415 reason: the GPU's machine has no solver
    from argus.emit.build import build as compiled  # noqa: PLC0415 reason: as above
    from argus.verifier.kernel import verify  # noqa: PLC0415 reason: as above

    failed = 0
    for name, (dtype, width, config) in variants().items():
        if names and name not in names:
            continue
        shutil.rmtree(FOLDER / name, ignore_errors=True)
        kernel = FAMILIES[dtype][width].trace(config)
        start = time.process_time()
        verdict = None if unproved else verify(kernel, solver="z3").verdict
        took = time.process_time() - start
        if verdict is not None and not isinstance(verdict, Proved):
            print(f"{name}: skipped: {str(verdict)[:300]}", flush=True)
            failed += 1
            continue
        made = compiled(kernel, "sm_90a", FOLDER / name)
        print(
            f"{name}: {'not verified' if verdict is None else f'verified in {took:.1f} s'}; {made.report}", flush=True
        )
    return int(failed > 0)


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
    return lambda _alive=tensors: (launch(), _alive)[0]


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
    wanted, sums = exact(torch, mix, given, causal=causal)
    off = torch.where(lse == sums, 0.0, lse.double() - sums)  # both may be -inf
    return (o.double() - wanted).abs().max().item(), off.abs().max().item()


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
        found = errors(torch, kernel, mix, getattr(torch, dtype.removeprefix("torch.")), causal=config == "causal")
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


def peer(torch: Any, mix: Mix, given: Given, *, causal: bool) -> Callable[[], object]:  # noqa: ANN401 reason: untyped
    flash = torch.ops.aten._flash_attention_forward
    rest = (given.starts_q, given.starts_k, max(mix.queries), max(mix.keys), 0.0, causal, False)
    return lambda: flash(given.q, given.k, given.v, *rest)


def timed(torch: Any, kernels: Mapping[str, Any], mix: Mix, rounds: int, *, causal: bool) -> list[dict[str, Any]]:  # noqa: ANN401 reason: untyped
    given = operands(torch, mix, torch.bfloat16)
    results = torch.empty_like(given.q), torch.empty((mix.H, given.q.shape[0]), device="cuda")
    calls: dict[str, Callable[[], object]] = {"flash2": peer(torch, mix, given, causal=causal)}
    own = f"d{mix.D}_{'causal' if causal else 'full'}"
    for name, kernel in kernels.items():
        if name.startswith(own) and not name.endswith("f16"):
            calls[name] = bound(torch, kernel, mix, given, results)
            calls[f"{name} guarded"] = bound(torch, kernel, mix, given, results, "stop")
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        names = list(calls)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(8):
                calls[name]()
            end.record()
            end.synchronize()
            if number:
                times[name].append(begin.elapsed_time(end) / 8)
    flops = 4.0 * mix.pairs(causal=causal) * mix.H * mix.D
    speeds = {name: flops / statistics.median(each) / 1e9 for name, each in times.items()}
    print(
        f"{mix.name} {'causal' if causal else 'full'}: TFLOP/s " + ", ".join(f"{n} {x:.0f}" for n, x in speeds.items()),
        flush=True,
    )
    return [{"mix": mix.name, "causal": causal, "name": name, "tflops": speed} for name, speed in speeds.items()]


def run(chosen: argparse.Namespace) -> int:
    torch: Any = import_module("torch")
    load = import_module("argus.runtime.cuda.launch").load
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    names = [path.name for path in sorted(FOLDER.iterdir()) if not chosen.names or path.name in chosen.names]
    kernels = {name: load(next((FOLDER / name).glob("*.json"))) for name in names}
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__}), flush=True)
    good = {name: each for name, each in kernels.items() if is_right(torch, name, each, chosen.checked)}
    right = len(good) == len(kernels) and refuses_wrong_offsets(torch, next(iter(good.values())))
    rows = [
        row
        for mix in mixes()
        for causal in (True, False)
        for row in timed(torch, good, mix, chosen.rounds, causal=causal)
    ]
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "varlen.json").write_text(json.dumps(rows), "utf-8")
    return int(not right)


def main() -> int:
    description, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("part", choices=("build", "run"))
    parser.add_argument("--names", type=lambda text: text.split(","), default=[], help="only these variants")
    parser.add_argument("--unproved", action="store_true", help="build without verifying, for experiments")
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--checked", type=int, default=CHECKED, help="random mixes to check each variant on")
    chosen = parser.parse_args()
    return build(chosen.names, unproved=chosen.unproved) if chosen.part == "build" else run(chosen)


if __name__ == "__main__":
    raise SystemExit(main())
