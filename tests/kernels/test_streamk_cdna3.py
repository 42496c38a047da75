"""Split-K and stream-K on MI300X: every layout proved, right in the interpreter and in machine code, no spills; chosen
where it is faster; no twin is proved.
"""

from __future__ import annotations

import inspect
from math import ceil
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16

from argus.core.diagnostic import ArgusError
from argus.core.ir import Program
from argus.core.query import Budget
from argus.core.verdict import Proved, Refuted, Unknown
from argus.emit.build import build
from argus.emit.hip.resource_report import ResourceReport
from argus.interp.programs import run_program
from argus.kernels import streamk_cdna3
from argus.kernels.cost_gfx942 import microseconds, microseconds_in_parts
from argus.kernels.gemm import CONFIGS
from argus.kernels.schedules import stream_cdna3, stream_k
from argus.kernels.schedules.cdna3 import Cdna3, Cdna3PingPong
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved
from argus.kernels.schedules.stream_cdna3 import CDNA3, Cdna3Stream
from argus.kernels.streamk_cdna3 import FAMILIES, configuration
from argus.language import ProgramTemplate
from argus.ops.choice_gfx942 import candidates, select_parts
from argus.runtime.machine.validate import validate_code
from argus.verifier.program import verify_program
from benchmarks.corpus_cases import shape_of
from tests.kernels.twins import Edit, twin

SHARES = [(1, 1), (4, 1), (3, 2), (11, 7), (3, 4), (2, 5)]
ROWS_OF_ANY_LENGTH = {
    "any": Cdna3Stream(chunks=4, wide=False),
    "pairs": Cdna3Stream(chunks=4, align=4, wide=False),
    "narrow": Cdna3Stream(chunks=4, align=2, wide=False),
    "narrow_runs": Cdna3Stream(chunks=3, run=2, align=2, wide=False),
}
KNOWN = {**CDNA3, **ROWS_OF_ANY_LENGTH}
UNBOUNDED = evolve(Budget(), runs=0)
BEYOND_CVC5 = tuple(each for each in FAMILIES if each.startswith("bmm") and "shared" not in each)
FIRST = ("gemm_tn", "runs_2_of_3")
ALL = [(family, config) for family in FAMILIES for config in KNOWN]


def made(family: str, config: str) -> Program:
    return FAMILIES[family].instance(KNOWN[config], config)


def streams(chunks: int, run: int, family: str = "gemm_nt") -> Program:
    return FAMILIES[family].instance(Cdna3Stream(chunks=chunks, run=run), "trial")


@pytest.mark.share(2660, among="K in parts on MI300X")
@pytest.mark.parametrize(("chunks", "run"), SHARES)
def test_any_split_of_a_tile_is_proved(chunks: int, run: int) -> None:
    report = verify_program(streams(chunks, run), solver="z3")
    assert isinstance(report.verdict, Proved), [each.diagnostics for each in report.launches]
    assert report.verdict.results == ("each element of `C` is bf16(sum over k of B * A)",)


@pytest.mark.parametrize(
    ("family", "config"),
    [
        pytest.param(
            *each, marks=pytest.mark.share(2660, among="K in parts on MI300X") if each == FIRST else pytest.mark.nightly
        )
        for each in ALL
    ],
)
def test_every_family_is_proved(family: str, config: str) -> None:
    verdict = verify_program(made(family, config), solver="z3", budget=UNBOUNDED).verdict
    assert isinstance(verdict, Proved), verdict
    kind = "f16" if "f16" in family else "bf16"
    assert verdict.results == (f"each element of `C` is {kind}(sum over k of B * A)",)


@pytest.mark.nightly
@pytest.mark.parametrize("family", FAMILIES)
def test_cvc5_proves_parts(family: str) -> None:
    """At the default budget it gives up on runs across tiles where each batch has matrices of its own."""
    verdict = verify_program(made(family, "parts_4"), solver="cvc5", budget=UNBOUNDED).verdict
    assert isinstance(verdict, Unknown if family in BEYOND_CVC5 else Proved), verdict


@pytest.mark.share(2660, among="K in parts on MI300X")
@pytest.mark.parametrize(("family", "config"), ALL)
def test_sums_stay_in_registers(family: str, config: str, tmp_path: Path) -> None:
    for launch in made(family, config).launches:
        report = build(launch.kernel, directory=tmp_path).report
        assert isinstance(report, ResourceReport)
        assert (report.spills, report.scratch_bytes) == (False, 0)


def extents(family: str, config: Cdna3Stream, shape: tuple[int, int, int]) -> dict[str, int]:
    """M, N and K near a shape that the configuration's assumptions allow, and two products of a batch."""
    m, n, k = shape
    rows = config.align // 2
    along = {"M" if "_t" in family else "K", "N" if family.split("_")[1][1] == "n" else "K"}
    up = {name: -(-x // rows) * rows if name in along else x for name, x in zip("MNK", (m, n, k), strict=True)}
    return {"Z": 2, **up, "N": -(-up["N"] // 4) * 4 if config.wide else up["N"]}


@pytest.mark.share(2660, among="K in parts on MI300X")
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("config", ["runs_2_of_3", "parts_3", "narrow", "narrow_runs"])
def test_the_interpreter_computes_the_product(family: str, config: str) -> None:
    random = np.random.default_rng(0)
    for shape in ((70, 131, 200), (5, 3, 7), (130, 260, 704)):
        program, sizes = made(family, config), extents(family, KNOWN[config], shape)
        dims = {each.name: shape_of(each, program, sizes) for each in program.parameters}
        kind = np.float16 if "f16" in family else bfloat16
        given = {name: random.integers(-2, 3, extent).astype(kind) for name, extent in dims.items()}
        found = run_program(program, {each.name: sizes[each.name] for each in program.sizes}, given)

        assert found.violations == ()
        a, b = (given[each].astype(np.float32) for each in "AB")
        a = a.swapaxes(-1, -2) if "_t" in family else a
        b = b if family.split("_")[1][1] == "n" else b.swapaxes(-1, -2)
        assert np.array_equal(found.arrays["C"], (a @ b).astype(kind))


@pytest.mark.share(2660, among="K in parts on MI300X")
@pytest.mark.parametrize(("family", "config"), ALL)
def test_machine_code_of_several_tiles_agrees_with_the_interpreter(family: str, config: str) -> None:
    known = KNOWN[config]
    sizes, runs = extents(family, known, (131, 141, 75 if known.bm > 128 else 203)), known.runs
    tiles = ceil(sizes["M"] / runs.rows) * ceil(sizes["N"] / runs.columns)
    sizes |= {"P": ceil(tiles * known.chunks / known.run), "S": runs.max_tiles, "R": runs.rows, "W": runs.columns}
    for launch in made(family, config).launches:
        named = {each.name for each in launch.kernel.sizes}
        found = validate_code(launch.kernel, [{k: v for k, v in sizes.items() if k in named}], seeds=1)
        assert found.trials
        assert all(trial.right and trial.elements for trial in found.trials)


# -- wrong kernels ---------------------------------------------------------------------------------------------

PLAIN, BATCH = ("gemm_tn", "runs_2_of_3"), ("bmm_nn", "runs_2_of_3")
TWINS: dict[str, tuple[tuple[str, str], ModuleType, Edit]] = {
    "a part is added twice": (PLAIN, stream_k, ("total += one", "total += one + one")),
    "the first part is left out": (PLAIN, stream_k, ("loop(first, last + 1,", "loop(first + 1, last + 1,")),
    "the last part is left out": (PLAIN, stream_k, ("loop(first, last + 1,", "loop(first, last,")),
    "a part of the block after": (PLAIN, stream_k, ("loop(first, last + 1,", "loop(first, last + 2,")),
    "a part of another tile": (PLAIN, stream_k, ("part[(*z, p, t - runs.first(p))]", "part[(*z, p, 0)]")),
    "parts of the block after": (PLAIN, stream_k, ("part[(*z, p, t", "part[(*z, p + 1, t")),
    "parts of another product": (BATCH, stream_k, ("part[(*z, p, t", "part[(*(0 for _ in z), p, t")),
    "added before it is loaded": (PLAIN, stream_k, ("vmem.wait(0)\n        total", "vmem.wait(1)\n        total")),
    "parts overlap": (PLAIN, stream_k, ("minimum(high * depth", "minimum((high + 1) * depth")),
    "parts overlap by an iteration": (PLAIN, stream_k, ("minimum(high * depth", "minimum(high * depth + 1")),
    "parts leave an iteration out": (PLAIN, stream_k, ("maximum(low * depth, 0)", "maximum(low * depth + 1, 0)")),
    "runs begin at the tile after": (PLAIN, stream_k, ("return p * self.run //", "return (p * self.run + 1) //")),
    "the sum of another tile": (PLAIN, stream_k, ("columns * high + r,", "columns * high + r + 1,")),
    "rows of C are half vectors": (("gemm_nt", "runs_2_of_3"), stream_k, ("assume(N % 4 == 0)", "assume(N % 2 == 0)")),
    "all sums are of the first product": (BATCH, stream_k, ("matrix_of(C, z)", "matrix_of(C, [0 for _ in z])")),
    "no barrier between tiles": (PLAIN, stream_cdna3, ("        sync()", "        vmem.wait(0)")),
    "B of another product": (BATCH, stream_cdna3, ("matrix_of(B, z)", "matrix_of(B, [0 for _ in z])")),
    "one half of the columns twice": (PLAIN, stream_cdna3, ("len(sums)), (0, i))", "len(sums)), (0, 0))")),
    "a part in another place": (PLAIN, stream_cdna3, ("part[(*z, p, j)]", "part[(*z, p, runs.max_tiles - 1 - j)]")),
    "tiles of other rows": (
        PLAIN,
        stream_cdna3,
        ("(tile // columns, tile % columns)", "(tile // columns + 1, tile % columns)"),
    ),
    "the sum of the last chunk alone is stored": (
        PLAIN,
        stream_cdna3,
        (
            "multiply((tile // columns, tile % columns), low, high)",
            "multiply((tile // columns, tile % columns), 0, high)",
        ),
    ),
}


@pytest.mark.share(2660, among="K in parts on MI300X")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.nightly) if n == "no barrier between tiles" else n for n in TWINS]
)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    (family, config), module, edit = TWINS[name]
    verdict = verify_program(twin(FAMILIES[family], config, module, edit), solver="z3", budget=UNBOUNDED).verdict
    assert not isinstance(verdict, Proved), name


BEFORE = (
    """        partial_sums(A, B, part, cfg=cfg)
        add_parts(part, C, cfg=cfg.reduction, depth=a.shape[-1])
""",
    """        add_parts(part, C, cfg=cfg.reduction, depth=a.shape[-1])
        partial_sums(A, B, part, cfg=cfg)
""",
)
OWN = {
    "one product less is claimed": ("depth=a.shape[-1])", "depth=a.shape[-1] - 1)"),
    "A with A": ("stream_parts(*as_rows(A, B),", "stream_parts(*as_rows(A, A),"),
}


def edited(family: str, old: str, new: str) -> ProgramTemplate:
    """The program of a family where its module has one edit."""
    text = inspect.getsource(streamk_cdna3)
    assert text.count(old) == 1
    changed = ModuleType("edited")
    exec(compile(text.replace(old, new), streamk_cdna3.__file__, "exec", dont_inherit=True), changed.__dict__)  # noqa: S102 reason: our module
    return changed.FAMILIES[family]


@pytest.mark.share(2660, among="K in parts on MI300X")
@pytest.mark.parametrize("name", OWN)
def test_a_twin_of_the_program_is_not_proved(name: str) -> None:
    verdict = verify_program(edited("gemm_nn", *OWN[name]).trace("parts_3"), solver="z3", budget=UNBOUNDED).verdict
    assert not isinstance(verdict, Proved), name


def test_parts_that_are_added_before_they_are_written_are_refused() -> None:
    with pytest.raises(ArgusError) as refused:
        edited("gemm_nn", *BEFORE).trace("parts_3")
    assert refused.value.diagnostic.code == "E221"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("a part is added twice", "I34"),
        ("the first part is left out", "I34"),
        ("a part of the block after", "I37"),
        ("parts of another product", "I4"),
        ("added before it is loaded", "I31"),
        ("parts overlap by an iteration", "I34"),
        ("rows of C are half vectors", "I19"),
        ("B of another product", "I2"),
        ("no barrier between tiles", "I36"),
    ],
)
def test_a_twin_is_refuted_by_a_run(name: str, code: str) -> None:
    (family, config), module, edit = TWINS[name]
    verdict = verify_program(twin(FAMILIES[family], config, module, edit), solver="z3").verdict
    assert isinstance(verdict, Refuted)
    assert verdict.counterexample.code == code


# -- choice ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "config"),
    [
        ((512, 512, 16384), "parts_16"),
        ((1024, 1024, 8192), "parts_4"),
        ((128, 4096, 8192), "parts_8"),
        ((1280, 2048, 16384), "parts_3"),
        ((2560, 2560, 16384), "runs_2_of_3"),
        ((1024, 1024, 1024), None),
        ((8192, 8192, 8192), None),
        ((512, 514, 16384), "cdna3stream_nowide"),
        ((512, 512, 16380), "cdna3stream_chunks16_align4"),
        ((511, 511, 16381), "cdna3stream_chunks16_align2_nowide"),
        ((4, 512, 512, 8192), "parts_4"),
        ((64, 512, 512, 8192), None),
    ],
    ids=str,
)
def test_k_is_divided_where_that_is_predicted_to_be_faster(sizes: tuple[int, ...], config: str | None) -> None:
    *batch, m, n, k = sizes
    family = "bmm_nt" if batch else "gemm_nt"
    name, *others = candidates(family, sizes, a_transposed=False, b_transposed=False, device="")
    assert name == config if others else config is None
    if config is not None:
        known, single = configuration(config), CONFIGS[others[0]]
        assert known is not None
        assert isinstance(single, Cdna3 | Cdna3Interleaved | Cdna3PingPong)
        assert microseconds_in_parts(known, m, n, k, *batch) < microseconds(single, m, n, k, *batch)


@pytest.mark.parametrize("layouts", ["nn", "tn", "tt"])
def test_every_layout_is_divided_alike(layouts: str) -> None:
    """Rows in memory are M of a transposed A and N of B that is not transposed: these decide how they are loaded."""
    turned = {"a_transposed": layouts[0] == "t", "b_transposed": layouts[1] == "n"}
    for suffix in ("", "_f16"):
        found = candidates(f"gemm_{layouts}{suffix}", (512, 512, 16384), **turned, device="")
        assert found == ("parts_16", "interleaved_128")
        assert candidates(f"bmm_{layouts}{suffix}", (4, 512, 512, 8192), **turned, device="")[0] == "parts_4"
    by_layout = {"nn": "cdna3stream_chunks16_align2", "tn": "parts_16", "tt": "cdna3stream_chunks16_align2"}
    assert select_parts(f"gemm_{layouts}", 512, 512, 16381, **turned) == by_layout[layouts]
