"""Kernels of rows: proved, their text computes what the interpreter does, and twins of one edit are not proved."""

from __future__ import annotations

import inspect
import sys
from functools import partial
from importlib import import_module
from itertools import product
from types import ModuleType

import pytest
from attrs import evolve

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.kernels.rows import group_norm, norms, scans, softmax, sums
from argus.kernels.rows.configs import CONFIGS, LADDERS, WHOLE, Reads, choose
from argus.kernels.schedules import rows as schedule
from argus.kernels.schedules.rows import WARP, Rows
from argus.language import Template
from argus.runtime.cpu.validate import validate
from argus.verifier.kernel import verify

FAMILIES = {
    name: each
    for module in (group_norm, norms, scans, softmax, sums)
    for name, each in vars(module).items()
    if isinstance(each, Template) and name == each.name
}
FEW = (
    "rows_threads128_rows16_steps1",
    "rows_threads128_rows4_vector1_steps16",
    "rows_threads128",
    "rows_threads512_noheld",
)
"""Rows by half a warp, by a warp without vectors, by a block, and of any length."""
SHARED = Rows(threads=128, steps=2, staged=True, blocks=2, resident=4)
"""A row by two blocks, in shared memory."""
LONGER = {
    "by blocks of a cluster": SHARED,
    "by blocks of a cluster, whole": evolve(SHARED, whole=True),
    "by blocks of a cluster, in registers": evolve(SHARED, staged=False),
    "in shared memory": evolve(SHARED, blocks=1),
    "in shared memory, weights ahead": evolve(SHARED, blocks=1, ahead=1),
    "whole": Rows(threads=128, whole=True, resident=8),
    "several whole rows": Rows(threads=128, rows=4, whole=True),
    "whole chunks": Rows(threads=128, held=False, whole=True),
}
NO_RUNS = evolve(Budget(), runs=0)


BFLOATS = [each for each in FAMILIES if each.endswith("bf16")]


def is_proved(name: str, config: str, solver: str) -> bool:
    verdict = verify(FAMILIES[name], config=config, solver=solver, budget=NO_RUNS).verdict
    return isinstance(verdict, Proved) and {"I4", "I39"} <= dict(verdict.coverage).keys()


@pytest.mark.share(160, among="rows")
@pytest.mark.parametrize("config", FEW)
@pytest.mark.parametrize("name", BFLOATS)
def test_a_configuration_of_each_kind_is_proved(name: str, config: str) -> None:
    assert is_proved(name, config, "z3")


@pytest.mark.nightly
@pytest.mark.parametrize("config", FEW)
@pytest.mark.parametrize("name", BFLOATS)
def test_cvc5_proves_them_too(name: str, config: str) -> None:
    assert is_proved(name, config, "cvc5")


def serves(config: Rows, name: str) -> bool:
    """Whether a family is for rows of this kind: what stores one number a row does so by one block."""
    if name.startswith("cumsum"):
        return config.blocks == 1 and not config.staged
    return config.blocks == 1 or not name.startswith(("row_sum", "row_mean", "cross_entropy"))


def is_known(name: str, kind: str) -> bool:
    """Whether it is proved: not maxima and sums that are rescaled from one whole chunk to the next."""
    return kind != "whole chunks" or not name.startswith(("softmax", "log_softmax", "cross_entropy"))


@pytest.mark.share(160, among="rows")
@pytest.mark.parametrize(
    ("name", "kind"), [(n, k) for n in BFLOATS for k, c in LONGER.items() if serves(c, n) and is_known(n, k)]
)
def test_rows_that_blocks_share_or_that_are_whole_are_proved(name: str, kind: str) -> None:
    verdict = verify(FAMILIES[name].instance(LONGER[kind], "longer"), solver="z3", budget=NO_RUNS).verdict
    assert isinstance(verdict, Proved), verdict


@pytest.mark.parametrize("name", BFLOATS)
def test_configurations_are_of_kinds_that_the_family_serves(name: str) -> None:
    configs = [config for config in CONFIGS["bf16"].values() if config.staged or (config.whole and not config.held)]
    found = [config for config in configs if config in FAMILIES[name].configs.values()]
    assert all(serves(config, name) for config in found)
    assert all(config.held or is_known(name, "whole chunks") for config in found)
    assert bool(found) is not name.startswith(("row_sum", "row_mean", "cross_entropy"))


@pytest.mark.nightly
@pytest.mark.parametrize("name", FAMILIES)
def test_every_configuration_is_proved(name: str) -> None:
    assert [each for each in FAMILIES[name].configs if not is_proved(name, each, "z3")] == []


SMALL = {
    "several rows": Rows(threads=64, rows=8, vector=4, steps=2),
    "one row": Rows(threads=64, rows=1, vector=4, steps=1),
    "any length": Rows(threads=64, rows=1, vector=1, steps=1, held=False),
    "two blocks a row": Rows(threads=64, vector=4, steps=2, staged=True, blocks=2),
    "whole rows": Rows(threads=64, vector=4, steps=1, whole=True, resident=4),
}
SIZES = ({"R": 1, "N": 4}, {"R": 9, "N": 44}, {"R": 2, "N": 64}, {"R": 3, "N": 0})
TYPES = ("bf16", "f16", "f32")


@pytest.mark.share(160, among="rows")
@pytest.mark.parametrize(
    ("cfg", "name"),
    [pytest.param(c, n, id=f"{kind}-{n}") for kind, c in SMALL.items() for n in FAMILIES if serves(c, n)],
)
def test_the_text_agrees_with_the_interpreter(name: str, cfg: Rows) -> None:
    lengths = [each | {"N": cfg.longest} for each in SIZES] if cfg.whole else SIZES
    sizes = [each for each in lengths if each["N"] or not name.startswith(("cross", "row_mean", "group"))]
    if name.startswith("group"):
        sizes = [each | {"G": min(2, each["R"]), "K": each["N"] // 4, "S": 4} for each in sizes]
    found = validate(FAMILIES[name].instance(cfg, "small"), sizes, seeds=1)

    assert all(each.right for each in found.trials), found
    assert any(each.elements for each in found.trials)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("reads", LADDERS)
def test_a_row_of_every_length_has_a_configuration(kind: str, reads: Reads) -> None:
    for length in [*range(1, 2100), 4096, 4097, 8192, 8194, 8196, 12288, 16384, 32768, 50000, 65536, 1 << 20]:
        chosen = CONFIGS[kind][choose(kind, length, reads=reads)]
        assert length % chosen.vector == 0
        assert not chosen.held or length <= chosen.longest
        assert chosen.vector == max(v for v in LADDERS[reads][kind] if length % v == 0)
        assert chosen.lanes <= WARP or chosen.rows == 1


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("reads", LADDERS)
def test_whole_rows_have_configurations_of_their_own(kind: str, reads: Reads) -> None:
    choice = partial(choose, kind, reads=reads)
    for each in WHOLE[kind][reads]:
        assert CONFIGS[kind][choice(each.longest, rows=3 * each.rows)] == each
        assert each.whole
        assert each.are_whole(3 * each.rows, each.longest)
        others = [choice(each.longest), choice(each.longest - 8, rows=each.rows)]
        others.append(choice(each.longest, each.longest // 2 + 1, rows=each.rows))
        if each.rows > 1:
            others.append(choice(each.longest, rows=each.rows + 1))
        assert not any(CONFIGS[kind][other].whole for other in others)
    lengths = () if kind != "f32" else (1024, 4096)
    assert not any(CONFIGS[kind][choice(length, rows=64)].whole for length in lengths)


@pytest.mark.parametrize("reads", LADDERS)
def test_rows_in_shared_memory_fill_more_than_half_of_it(reads: Reads) -> None:
    for kind, length in product(TYPES, range(8200, 70000, 88)):
        for chosen in (CONFIGS[kind][choose(kind, length, reads=reads, rows=rows)] for rows in (None, 4)):
            assert not chosen.staged or 2 * length > chosen.longest
    for kind in TYPES:
        assert CONFIGS[kind][choose(kind, 65528, reads=reads)].staged is (reads not in ("once", "summed", "in order"))


def test_no_longer_row_is_held_than_registers_allow() -> None:
    for ladder in (each for kind in LADDERS.values() for ladders in kind.values() for each in ladders.values()):
        of_threads = [(each, each.vector * each.steps) for _, each in ladder]
        assert all(most <= (64 if each.staged or each.lanes <= WARP else 32) for each, most in of_threads)
        assert [each.longest for _, each in ladder if each.held] == sorted(
            {each.longest for _, each in ladder if each.held}
        )
        assert [longest for longest, _ in ladder] == sorted({longest for longest, _ in ladder})


EDITS: dict[str, tuple[str, ModuleType, tuple[str, str]]] = {
    "squares of what follows the row": (
        "layer_norm_bf16",
        norms,
        ("where(block.within(v, chunk), v - mean, 0.0)", "v - mean"),
    ),
    "an element for the bias": (
        "layer_norm_bf16",
        norms,
        (
            "fma(x(chunk), scale, below), weight(chunk), bias(chunk)",
            "fma(x(chunk), scale, below), weight(chunk), x(chunk)",
        ),
    ),
    "the root of the sum": ("rms_norm_bf16", norms, ("(x) / block.count + least", "(x) + least")),
    "no epsilon": ("rms_norm_bf16", norms, ("(x) / block.count + least", "(x) / block.count + least * 0.0")),
    "the mean added": ("layer_norm_bf16", norms, ("below = -(mean * scale)", "below = mean * scale")),
    "mean and scale exchanged": (
        "layer_norm_f32",
        norms,
        ("fma((x(chunk) - mean) * scale, weight", "fma((x(chunk) - scale) * mean, weight"),
    ),
    "zeros beyond the row": ("softmax_bf16", softmax, ("scores = block.rows(X, -inf)", "scores = block.rows(X, 0.0)")),
    "no maximum": ("log_softmax_bf16", softmax, ("x(chunk) - top - below", "x(chunk) - below")),
    "the last chunk alone": ("row_sum_bf16", schedule, ("sums += part(chunk)", "sums[:] = part(chunk)")),
    "the sum for the mean": ("row_mean_bf16", sums, ("block.sum(block.rows(X)) / N", "block.sum(block.rows(X))")),
    "the next score": ("cross_entropy_bf16", sums, ("lambda r: (r, column(", "lambda r: (r, 1 + column(")),
    "chunks without a carry": (
        "cumsum_bf16",
        schedule,
        ("before[:] = before + sums.sum(1)", "before[:] = sums.sum(1)"),
    ),
    "sums up to what is before": (
        "cumsum_bf16",
        scans,
        ("lambda chunk, sums: block.store(sums", "lambda chunk, sums: block.store(sums - x(chunk)"),
    ),
    "the weight of the next group": ("group_norm_bf16", group_norm, ("return r % G", "return (r + 1) % G")),
    "weights by the row's sample": (
        "group_norm_bf16",
        group_norm,
        ("block.chosen(W, channel)", "block.chosen(W, lambda r, n: (r // G, channel(r, n)[1]))"),
    ),
    "biases of the wrong channels": (
        "group_norm_bf16",
        group_norm,
        ("block.chosen(B, channel)", "block.chosen(B, lambda r, n: (r % G, n % K))"),
    ),
    "channels of any number of elements": ("group_norm_bf16", group_norm, ("assume(N == K * S)", "assume(K >= 1)")),
    "sums of a block stored for rank 0": ("rms_norm_bf16", schedule, ("box.T[cluster.rank].of(to)", "box.T[0].of(to)")),
    "sums of a block for itself": (
        "rms_norm_bf16",
        schedule,
        ("return of_blocks.fold(1, op, within=thread)", "return of_block"),
    ),
    "blocks that do not meet": ("layer_norm_bf16", schedule, ("        cluster.sync()\n", "        sync()\n")),
    "blocks that have not started": (
        "layer_norm_bf16",
        schedule,
        ("            cluster.arrive()\n", "            self.started = True\n"),
    ),
    "the row of another cluster": (
        "rms_norm_bf16",
        schedule,
        ("self.at = number // cfg.blocks", "self.at = ceil_div(number, cfg.blocks)"),
    ),
    "the first part of a row for all blocks": (
        "softmax_bf16",
        schedule,
        ("cluster.rank * self.parts + chunk", "chunk"),
    ),
    "the first part of what is staged": (
        "softmax_bf16",
        schedule,
        (
            "load(box.tile(self.layout.tile, (0, part)), self.layout)",
            "load(box.tile(self.layout.tile, (0, 0)), self.layout)",
        ),
    ),
    "staged and not waited for": ("rms_norm_bf16", schedule, ("cp_async.wait(0)", "cp_async.wait(1)")),
    "whole rows of any length": (
        "rms_norm_bf16",
        schedule,
        ("length == cfg.longest if cfg.held", "length >= cfg.longest if cfg.held"),
    ),
    "deviations within the parts alone": (
        "layer_norm_bf16",
        norms,
        ("(sums + off * off * count)", "sums"),
    ),
    "a mean of a part counted once": ("layer_norm_bf16", norms, ("off * off * count", "off * off")),
    "sums of parts without a rescale": (
        "softmax_bf16",
        softmax,
        ("(parts * fast_exp(tops - top))", "parts"),
    ),
    "squares of the first part alone": ("rms_norm_bf16", schedule, ("range(1, self.parts)", "range(2, self.parts)")),
    "weights of the part before": ("rms_norm_bf16", schedule, ("= loaded(later)", "= loaded(part)")),
    "sums without a rescale": ("softmax_bf16", softmax, ("sums * fast_exp(high - guard)", "sums")),
}
OF_BLOCKS = {
    *("sums of a block stored for rank 0", "sums of a block for itself", "blocks that do not meet"),
    *("blocks that have not started", "the row of another cluster", "the first part of a row for all blocks"),
    *("the first part of what is staged", "staged and not waited for", "whole rows of any length"),
}
OF_WHOLE_PARTS = {
    *("whole rows of any length", "deviations within the parts alone", "a mean of a part counted once"),
    *("sums of parts without a rescale", "squares of the first part alone", "weights of the part before"),
}
OF_CHUNKS = {"the last chunk alone", "chunks without a carry", "sums without a rescale"}


@pytest.mark.share(160, among="rows")
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    family, module, edit = EDITS[name]
    template = twin(family, module, edit, monkeypatch)
    config = CONFIGS["bf16"]["rows_threads512_noheld" if name in OF_CHUNKS else "rows_threads128"]
    if family.endswith("f32"):
        config = CONFIGS["f32"]["rows_threads128_vector4_steps4"]
    if name in OF_BLOCKS | OF_WHOLE_PARTS:
        config = evolve(SHARED, whole=name in OF_WHOLE_PARTS, ahead=1)

    assert not isinstance(verify(template.instance(config, "twin"), solver="z3", budget=NO_RUNS).verdict, Proved)


def twin(family: str, module: ModuleType, edit: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> Template:
    """The family where one edit is made of a module's text."""
    text, (old, new) = inspect.getsource(module), edit
    assert text.count(old) == 1, old
    made = ModuleType(module.__name__)
    monkeypatch.setitem(sys.modules, module.__name__, made)
    edited = compile(text.replace(old, new), module.__file__ or "", "exec", dont_inherit=True)
    exec(edited, made.__dict__)  # noqa: S102 reason: our module
    if module is not schedule:
        return getattr(made, family)
    home = import_module(FAMILIES[family].function.__module__)
    monkeypatch.setattr(home, "Block", made.Block)
    return getattr(home, family)
