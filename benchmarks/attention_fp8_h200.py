"""Times attention of 8-bit elements vs. that of bf16 on an H200: `benchmarks/attention_fp8_h200.py build`, then `run`.

build: traces, verifies and compiles every variant into build/attention_fp8_h200; needs no GPU. run: checks each variant
against float64 of the scaled elements on random shapes, with poisoned outputs between guard zones, and every f32 as
e4m3 against torch; then times it, both launches, vs. the kernel of bf16 and FlashAttention-3's of e4m3, if
`benchmarks/peers/flash_attention_3.py` has built it: interleaved, in rounds of rotating order, in both regimes. Writes
attention_fp8.json in `--out` and prints a table of rates and ratios.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import product
from math import inf, isnan
from pathlib import Path
from typing import Any

import built_variants
from attention_h200 import Shape, checked, exact, guarded, operands, untouched
from attention_h200 import bound as bound_bf16
from attrs import evolve
from built_variants import Rows

from argus.core.dsl.programs import ProgramTemplate
from argus.kernels.attention import FAMILIES as OF_16_BITS
from argus.kernels.attention_fp8 import CONFIGS, FAMILIES, AttentionFp8
from argus.language import Tensor, bf16, block_id, ceil_div, copy, e4m3, f32, kernel, load, sm_90a, spread

FOLDER = Path(__file__).resolve().parent.parent / "build" / "attention_fp8_h200"
ROUNDS, CHECKED, PEERS_CHECKED = 8, 120, 12
CLOSE, CLOSE_LSE = 2.0**-4, {64: 2.0**-9, 128: 2.0**-8, 256: 2.0**-8}
"""The largest differences from float64: of O over the largest value; of LSE, as sums have 14 bits of fraction, by the
elements of a head that are summed.
"""
BF16 = OF_16_BITS[bf16]
PART = 1 << 26
"""Numbers that are rounded by one launch."""
OTHERS: Mapping[str, Mapping[str, Any]] = {
    "d64_full_2": {"warpgroups": 2, "bn": 256},
    "d64_full_apart": {"together": False},
    "d64_causal_apart": {"together": False},
    "d128_full_128": {"bn": 128},
    "d128_full_224": {"bn": 224},
    "d256_causal_64": {"bn": 64},
}
"""Other schedules that are built and timed, by what differs from the configuration."""

Errors = tuple[float, float, float]


@kernel(target=sm_90a, threads=128)
def rounded(X: Tensor["N 64", f32], Y: Tensor["N 64", e4m3], Z: Tensor["N 64", e4m3]) -> None:
    by = spread((32, 64), threads=128, vector=16)
    (i,) = block_id((ceil_div(X.shape[0], 32),))
    x = load(X.tile((32, 64), (i, 0)), by, edge=0)
    copy(x.to(e4m3), Y.tile((32, 64), (i, 0)), edge=0)
    copy(x.to(e4m3, saturate=True), Z.tile((32, 64), (i, 0)), edge=0)


def shapes() -> list[Shape]:
    wide = [(2, 16, 16, 8192, 128), (8, 16, 16, 2048, 128), (1, 16, 16, 16384, 128), (2, 64, 8, 4096, 128)]
    others = [(2, 32, 32, 8192, 64), (2, 8, 8, 8192, 256)]
    return [Shape(b, h, g, s, s, d, causal) for causal in (False, True) for b, h, g, s, d in (*wide, *others)]


def variants() -> dict[str, tuple[ProgramTemplate, AttentionFp8]]:
    """The family and the configuration of each variant."""
    found = {
        f"d{width}_{name}": (FAMILIES[width], config)
        for width, configs in CONFIGS.items()
        for name, config in configs.items()
    }
    for name, changes in OTHERS.items():
        width, kind, *_ = name.split("_")
        config = CONFIGS[int(width[1:])][kind]
        found[name] = FAMILIES[int(width[1:])], evolve(config, attention=evolve(config.attention, **changes))
    return found


def build(names: Sequence[str], *, unproved: bool) -> int:
    from argus.core.verdict import Proved  # noqa: PLC0415 reason: the GPU's machine has no solver
    from argus.emit.build import build as compiled  # noqa: PLC0415 reason: as above
    from argus.emit.build_program import build_program  # noqa: PLC0415 reason: as above
    from argus.verifier.program import verify_program  # noqa: PLC0415 reason: as above

    FOLDER.mkdir(parents=True, exist_ok=True)
    for width, family in BF16.items():
        for name in ("full", "causal"):
            compiled(family.trace(name), "sm_90a", FOLDER / "bf16" / f"d{width}_{name}")
    compiled(rounded.trace(), "sm_90a", FOLDER / "rounded")
    failed = 0
    for name, (family, config) in variants().items():
        if names and name not in names:
            continue
        shutil.rmtree(FOLDER / "fp8" / name, ignore_errors=True)
        program = evolve(family, configs={name: config}).trace(name)
        start = time.process_time()
        verdict = None if unproved else verify_program(program).verdict
        took = time.process_time() - start
        if verdict is not None and not isinstance(verdict, Proved):
            print(f"{name}: skipped: {verdict}", flush=True)
            failed += 1
            continue
        made = build_program(program, FOLDER / "fp8" / name)
        said = "not verified" if verdict is None else f"verified in {took:.1f} s"
        print(f"{name}: {said}; {'; '.join(str(each.report) for each in made.kernels)}", flush=True)
    return int(failed > 0)


# -- on the GPU ----------------------------------------------------------------------------------------------


def takes(name: str, shape: Shape) -> bool:
    width, kind = name.split("_")[:2]
    return width == f"d{shape.D}" and kind == ("causal" if shape.causal else "full")


def scaled(
    torch: Any,  # noqa: ANN401 reason: untyped
    shape: Shape,
    *,
    by_rows: bool = False,
    by_group: bool = False,
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Queries, keys and values in e4m3, and their factors: those that make the largest element of a head 448.

    Values are row-major, as their launch reads them. by_group: heads of queries have the largest factor of their group.
    """
    tensors, factors = list[Any](), list[Any]()
    for each in operands(torch, shape, torch.float32, by_rows=by_rows):
        factor = each.abs().amax((2, 3)).clamp(min=2.0**-20) / 448
        if by_group:
            many = factor.shape[1] // shape.G
            factor = factor.unflatten(1, (shape.G, many)).amax(2).repeat_interleave(many, dim=1)
        tensors.append((each / factor[..., None, None]).to(torch.float8_e4m3fn))
        factors.append(factor.contiguous())
    tensors[2] = tensors[2].contiguous()
    return tuple(tensors), tuple(factors)


def bound(torch: Any, program: Any, shape: Shape, given: Sequence[Any], factors: Sequence[Any]) -> Callable[[], None]:  # noqa: ANN401 reason: untyped
    """Launches on q, k, v, o and lse, with a workspace of NaN."""
    scale = torch.full((1,), shape.D**-0.5 * 1.4426950408889634, device="cuda")
    names = ("Q", "K", "V", "O", "LSE", "scale_q", "scale_k", "scale_v", "scale")
    tensors = dict(zip(names, (*given, *factors, scale), strict=True))
    prepared = program.prepare(shape.sizes)
    spaces = {
        each.name: torch.full(each.shape, 0x7F, device="cuda", dtype=torch.uint8).view(torch.float8_e4m3fn)
        for each in prepared.workspaces
    }
    launch = prepared.bind({**tensors, **spaces}, torch.cuda.current_stream().cuda_stream)
    return built_variants.keeping(launch, tensors, spaces)


def errors(torch: Any, program: Any, shape: Shape, *, by_rows: bool) -> Errors:  # noqa: ANN401 reason: untyped
    """The largest errors of both outputs, and the root of the mean square of that of O over that of O.

    nan where an element was not written, inf where a guard zone was.
    """
    tensors, factors = scaled(torch, shape, by_rows=by_rows)
    o, around = guarded(torch, (shape.B, shape.H, shape.S, shape.D), torch.bfloat16)
    lse, beside = guarded(torch, (shape.B, shape.H, shape.S), torch.float32)
    bound(torch, program, shape, (*tensors, o, lse), factors)()
    torch.cuda.synchronize()
    if not (untouched(around) and untouched(beside)):
        return inf, inf, inf
    return apart(torch, shape, (tensors, factors), (o, lse))


def apart(torch: Any, shape: Shape, given: tuple[Sequence[Any], Sequence[Any]], found: tuple[Any, Any]) -> Errors:  # noqa: ANN401 reason: untyped
    """As `errors`. given: the elements and their factors. found: O and LSE."""
    (tensors, factors), (o, lse) = given, found
    wide = (each.double() * factor[..., None, None] for each, factor in zip(tensors, factors, strict=True))
    wanted, sums = exact(torch, shape, *wide)
    off = torch.where(lse == sums, 0.0, lse.double() - sums)  # both may be -inf
    wrong = o.double() - wanted
    most, size = max(1.0, wanted.abs().max().item()), wanted.square().mean().sqrt().item()
    return wrong.abs().max().item() / most, off.abs().max().item(), wrong.square().mean().sqrt().item() / (size or 1.0)


def is_right(torch: Any, name: str, program: Any, count: int) -> bool:  # noqa: ANN401 reason: untyped
    width, kind = name.split("_")[:2]
    worst, bad = [0.0] * 3, list[str]()
    for number, shape in enumerate(
        checked(int(width[1:]), count, causal=kind == "causal", masked_rows="masked_rows" in name)
    ):
        found = errors(torch, program, shape, by_rows=number % 3 == 0)
        worst = [max(pair) for pair in zip(worst, found, strict=True)]
        if any(map(isnan, found)) or found[0] > CLOSE or found[1] > CLOSE_LSE[shape.D]:
            bad.append(f"{shape}: {found}")
    said = f"WRONG {bad[:4]}" if bad else "worst errors " + ", ".join(f"{each:.1e}" for each in worst)
    print(f"{name}: {count} shapes, {said}", flush=True)
    return not bad


def wrong_bits(torch: Any, rounds: Any) -> int:  # noqa: ANN401 reason: untyped
    """How many of all f32 are other e4m3 numbers than torch's, or saturated ones; a NaN may have either sign."""
    wrong = 0
    made, saturated = (torch.empty(PART, device="cuda", dtype=torch.float8_e4m3fn) for _ in range(2))
    for start in range(0, 1 << 32, PART):
        bits = torch.arange(start, start + PART, device="cuda", dtype=torch.int64) - (1 << 31)
        x = bits.to(torch.int32).view(torch.float32)
        tensors = {"X": x.view(-1, 64), "Y": made.view(-1, 64), "Z": saturated.view(-1, 64)}
        rounds.prepare({"N": PART // 64}).bind(tensors, torch.cuda.current_stream().cuda_stream)()
        for ours, numbers in ((made, x), (saturated, x.clamp(-448, 448))):
            found, wanted = ours.view(torch.uint8), numbers.to(torch.float8_e4m3fn).view(torch.uint8)
            both = (found & 0x7F == 0x7F) & (wanted & 0x7F == 0x7F)
            wrong += int(((found != wanted) & ~both).sum())
    return wrong


def flash3(torch: Any, count: int) -> dict[tuple[int, bool], Callable[..., Any]]:  # noqa: ANN401 reason: untyped
    """FlashAttention-3's kernels by width and causal; none if it is not built.

    Those that are right on as many random shapes.
    """
    module = import_module("peers.flash_attention_3_calls")
    library = module.load_if_built()
    if library is None:
        return {}
    found: dict[tuple[int, bool], Callable[..., Any]] = {}
    for width, causal in product(module.E4M3_DIMS, (False, True)):
        call, worst = partial(module.forward, library), [0.0] * 3
        for shape in checked(width, count, causal=causal, masked_rows=False):
            given = scaled(torch, shape, by_group=True)
            made = call(*given[0], causal, by_groups(shape, given[1]))()
            torch.cuda.synchronize()
            worst = built_variants.larger(worst, apart(torch, shape, given, made))
        said = f"fa3 d{width} {'causal' if causal else 'full'}"
        print(f"{said}: {count} shapes, worst errors {', '.join(f'{each:.1e}' for each in worst)}", flush=True)
        if worst[0] <= CLOSE and worst[1] <= CLOSE_LSE[width]:
            found[width, causal] = call
    return found


def by_groups(shape: Shape, factors: Sequence[Any]) -> tuple[Any, ...]:
    """Factors as FlashAttention-3 takes them: one for all heads of queries of a group."""
    return factors[0][:, :: shape.H // shape.G], *factors[1:]


def timed(
    torch: Any,  # noqa: ANN401 reason: untyped
    programs: Mapping[str, Any],
    kernels: Mapping[str, Any],
    fa3: Mapping[tuple[int, bool], Callable[..., Any]],
    shape: Shape,
    rounds: int,
) -> Rows:
    q, k, v = operands(torch, shape, torch.bfloat16)
    o, lse = torch.empty_like(q), torch.empty(q.shape[:3], device="cuda")
    peer = kernels[f"d{shape.D}_{'causal' if shape.causal else 'full'}"]
    calls: dict[str, Callable[[], object]] = {"bf16": bound_bf16(torch, peer, shape, (q, k, v, o, lse))}
    tensors, factors = scaled(torch, shape, by_group=True)
    if (shape.D, shape.causal) in fa3:
        calls["fa3"] = fa3[shape.D, shape.causal](*tensors, shape.causal, by_groups(shape, factors))
    theirs = tuple(calls)
    for name, program in programs.items():
        if takes(name, shape):
            calls[name] = bound(torch, program, shape, (*tensors, torch.empty_like(q), torch.empty_like(lse)), factors)
    return built_variants.timed_beside(torch, peer.driver, calls, theirs, str(shape), shape.operations, rounds)


def run(chosen: argparse.Namespace) -> int:
    torch: Any = import_module("torch")
    load_kernel = import_module("argus.runtime.gpu.launch").load
    load_program = import_module("argus.runtime.programs").load_program
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__}), flush=True)
    (path,) = (FOLDER / "rounded").glob("*.json")
    wrong = wrong_bits(torch, load_kernel(path)) if chosen.bits else 0
    print(f"all f32 as e4m3: {wrong} unlike torch's" if chosen.bits else "", flush=True)
    programs = {path.parent.name: load_program(path) for path in sorted((FOLDER / "fp8").glob("*/*.json"))}
    programs = {name: program for name, program in programs.items() if not chosen.names or name in chosen.names}
    kernels = {path.parent.name: load_kernel(path) for path in sorted((FOLDER / "bf16").glob("*/*.json"))}
    good = {name: program for name, program in programs.items() if is_right(torch, name, program, chosen.checked)}
    fa3 = flash3(torch, min(chosen.checked, PEERS_CHECKED))
    rows: list[Mapping[str, Any]] = []
    for shape in shapes():
        if any(takes(name, shape) for name in good):
            rows += timed(torch, good, kernels, fa3, shape, chosen.rounds)
    print(built_variants.table(rows) if rows else "", flush=True)
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "attention_fp8.json").write_text(json.dumps(rows), "utf-8")
    return int(len(good) < len(programs) or wrong > 0)


def main() -> int:
    description, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("part", choices=("build", "run"))
    parser.add_argument("--names", type=lambda text: text.split(","), default=[], help="only these variants")
    parser.add_argument("--unproved", action="store_true", help="build without verifying, for experiments")
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--checked", type=int, default=CHECKED, help="random shapes to check each variant on")
    parser.add_argument("--no-bits", dest="bits", action="store_false", help="do not round every f32")
    chosen = parser.parse_args()
    return build(chosen.names, unproved=chosen.unproved) if chosen.part == "build" else run(chosen)


if __name__ == "__main__":
    raise SystemExit(main())
