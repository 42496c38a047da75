"""Programs of several launches: their sizes, tensors and workspaces, and errors."""

# ruff: noqa: ARG005
# Reason: bodies share one signature, whatever they use of it.

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from argus.core.check import check, check_program
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.index_text import show
from argus.core.ir.pretty import program_text
from argus.language import (
    Int,
    ProgramTemplate,
    Template,
    Tensor,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    eq,
    f32,
    gfx942,
    kernel,
    load,
    loop,
    program,
    spread,
    vmem,
    workspace,
    zeros,
)
from argus.verifier.loader import load as load_file

on_gfx942 = kernel(target=gfx942, threads=256)
BY = spread((64, 32), threads=256, vector=4)


@on_gfx942
def fill(X: Tensor["Z M N", f32], *, value: float) -> None:
    z, m, n = block_id((X.shape[0], ceil_div(X.shape[1], 64), ceil_div(X.shape[2], 32)))
    copy(zeros(f32, BY) + value, X[z].tile((64, 32), (m, n)), edge=0)


@on_gfx942
def combine(X: Tensor["Z M N", f32], C: Tensor["M N", f32], *, first: Int) -> None:
    assume(first <= X.shape[0])
    m, n = block_id((ceil_div(X.shape[1], 64), ceil_div(X.shape[2], 32)))
    total = zeros(f32, BY)
    for z in loop(first, X.shape[0]):
        part = load(X[z].tile((64, 32), (m, n)), BY, edge=0)
        vmem.wait(0)
        total += part
    copy(total, C.tile((64, 32), (m, n)), edge=0)


@program
def two(A: Tensor["P Q", f32], *, parts: int = 3) -> None:
    part = workspace(f32, (parts, *A.shape))
    fill(part, value=1.0)
    fill(part, value=2.0)
    combine(part, A, first=A.shape[0] - A.shape[0])


def test_a_program_lists_its_launches() -> None:
    made = two.trace()
    assert check_program(made) == ()
    assert [launch.kernel.name for launch in made.launches] == ["fill", "fill_2", "combine"]
    assert [buffer.name for buffer in made.workspaces] == ["part"]
    for launch in made.launches:
        assert check(launch.kernel) == ()
    last = made.launches[-1]
    assert {name: buffer.name for name, buffer in last.arguments.items()} == {"X": "part", "C": "A"}
    assert {symbol.name: show(value) for symbol, value in last.sizes} == {"Z": "3", "M": "P", "N": "Q"}
    text = program_text(made)
    assert text.startswith("program two\n  tensor A: global f32 P x Q")
    assert "  workspace part: global f32 3 x P x Q" in text
    assert "  launch combine(X=part, C=A) with Z=3, M=P, N=Q\n" in text
    assert text.count("\nkernel ") == 3


def test_an_integer_of_the_program_is_a_size_of_the_kernel() -> None:
    @program
    def skipping(A: Tensor["P Q", f32], B: Tensor["R P Q", f32]) -> None:
        combine(B, A, first=A.shape[1] // 2)

    (launch,) = skipping.trace().launches
    assert [symbol.name for symbol in launch.kernel.sizes] == ["Z", "M", "N", "Q"]
    assert {symbol.name: show(value) for symbol, value in launch.sizes} == {"Z": "R", "M": "P", "N": "Q", "Q": "Q"}


def test_a_family_of_programs() -> None:
    @program(configs={"few": 2, "many": 8})
    def split(A: Tensor["P Q", f32], *, cfg: int) -> None:
        fill(workspace(f32, (cfg, *A.shape)), value=0.0)

    assert split.instances() == ("few", "many")
    assert [show(split.trace(name).workspaces[0].shape[0]) for name in ("few", "many")] == ["2", "8"]
    assert refusal(split, "none").code == "E107"


def refusal(made: ProgramTemplate, config: str | None = None) -> Diagnostic:
    with pytest.raises(ArgusError) as caught:
        made.trace(config)
    return caught.value.diagnostic


Body = Callable[[Tensor, Tensor], None]


def refused(body: Body) -> Diagnostic:
    @program
    def faulty(A: Tensor["P Q", f32], B: Tensor["R P Q", f32]) -> None:
        body(A, B)

    return refusal(faulty)


def test_tensors_that_do_not_fit() -> None:
    assert "takes 1 tensors (X), found 2" in refused(lambda a, b: fill(a, b, value=0.0)).message
    assert "has 3 axes, `A` has 2" in refused(lambda a, b: fill(a, value=0.0)).message
    assert "is a view of `B`" in refused(lambda a, b: fill(b[:], value=0.0) or fill(b[0], value=0.0)).message
    found = refused(lambda a, b: fill(workspace(bf16, b.shape), value=0.0))
    assert (found.code, "`X` takes f32, `workspace" in found.message) == ("E106", True)
    other = refused(lambda a, b: combine(b, workspace(f32, (3, 4)), first=as_int(b.shape[0])))
    assert (other.code, "extent M of `C` is P" in other.message) == ("E106", True)
    assert refused(lambda a, b: fill(3, value=0.0)).code == "E106"  # pyright: ignore[reportArgumentType]  # the fault


def as_int(value: Int) -> Int:
    return value


def test_a_size_of_a_keyword_is_the_kernels_own_only_if_it_is_the_same() -> None:
    @program
    def crossed(A: Tensor["N M", f32], B: Tensor["R N M", f32]) -> None:
        combine(B, A, first=A.shape[0])

    found = refusal(crossed)
    assert (found.code, "size N of a keyword differs" in found.message) == ("E106", True)


def test_a_name_is_given_or_the_functions() -> None:
    def filled(C: Tensor["Z M N", f32]) -> None:
        fill(C, value=1.0)

    given = program(configs={"one": None}, name="filled_f32")(filled)

    assert program(filled).name == "filled"
    assert (given.name, given.trace("one").name) == ("filled_f32", "filled_f32_one")
    assert given.instance(None, "two").name == "filled_f32_two"
    for name in ("", "filled-f32"):
        with pytest.raises(ArgusError) as caught:
            program(name=name)(filled)
        assert caught.value.diagnostic.code == "E107"


def test_programs_that_are_not_well_formed() -> None:
    assert refused(lambda a, b: None).code == "E107"
    unfilled = refused(lambda a, b: combine(workspace(f32, b.shape), a, first=as_int(b.shape[0])))
    assert (unfilled.code, "which no earlier launch writes" in unfilled.message) == ("E221", True)

    @on_gfx942
    def shift(X: Tensor["M N", f32], Y: Tensor["M N", f32]) -> None:
        copy(load(X.tile((64, 32), (0, 0)), BY, edge=0), Y.tile((64, 32), (0, 0)), edge=0)

    twice = refused(lambda a, b: shift(a, a))
    assert (twice.code, "is passed as `X` and `Y` of `shift`" in twice.message) == ("E221", True)

    @on_gfx942
    def square(X: Tensor["M N", f32]) -> None:
        assume(eq(X.shape[1], 1 + X.shape[0]))
        copy(zeros(f32, BY), X.tile((64, 32), (0, 0)), edge=0)

    unmet = refused(lambda a, b: square(workspace(f32, (4, 4))))
    assert (unmet.code, "is false for every size here" in unmet.message) == ("E221", True)


def test_kernels_are_launched_and_workspaces_made_in_programs_only() -> None:
    for call in (lambda: fill(value=0.0), lambda: workspace(f32, (4,))):
        with pytest.raises(ArgusError) as caught:
            call()
        assert caught.value.diagnostic.code == "E105"

    def nested(X: Tensor["M N", f32]) -> None:
        workspace(f32, X.shape)

    made: Template = on_gfx942(nested)
    found = refused(lambda a, b: made(a))
    assert found.code == "E105"


def test_a_program_that_raises() -> None:
    found = refused(lambda a, b: raising(0))
    assert (found.code, "ZeroDivisionError" in found.message) == ("E103", True)
    with pytest.raises(ArgusError) as caught:
        program(NAMELESS)
    assert caught.value.diagnostic.code == "E107"


NAMELESS: Callable[..., None] = lambda: None  # noqa: E731 reason: a function without a name


def raising(divisor: int) -> None:
    assert 1 // divisor


FILE = """
from argus.language import *
BY = spread((64, 32), threads=256, vector=4)

@kernel(target=gfx942, threads=256)
def fill(X: Tensor["M N", f32], *, value):
    copy(zeros(f32, BY) + value, X.tile((64, 32), (0, 0)), edge=0)

@kernel(target=gfx942, threads=256)
def alone(X: Tensor["M N", f32]):
    copy(zeros(f32, BY), X.tile((64, 32), (0, 0)), edge=0)

@program
def both(A: Tensor["P Q", f32]):
    fill(A, value=1.0)
    fill(A, value=2.0)
"""


def test_a_file_exports_the_kernels_of_its_programs(tmp_path: Path) -> None:
    path = tmp_path / "programs.py"
    path.write_text(FILE, encoding="utf-8")
    found = load_file(str(path))
    assert [each.name for each in found] == ["alone", "both_fill", "both_fill_2"]
    assert [each.trace().name for each in found] == ["alone", "both_fill", "both_fill_2"]
    assert [each.name for each in load_file(f"{path}:both_fill_2")] == ["both_fill_2"]
