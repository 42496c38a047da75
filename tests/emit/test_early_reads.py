"""What a launch reads ahead of its wait for the launch before, and kernels that check their own contracts."""

# ruff: noqa: UP037
# Reason: a name in quotes is the name of a size.

from __future__ import annotations

from collections.abc import Callable

import pytest

from argus.core.diagnostic import ArgusError
from argus.core.dsl.programs import ProgramTemplate
from argus.core.ir import Kernel, Policy
from argus.core.proof.outputs.launch_context import launch_contexts
from argus.core.target import Target
from argus.emit.cuda.nvrtc import compile_cuda
from argus.emit.cuda.text import cuda_text
from argus.language import (
    Tensor,
    block_id,
    ceil_div,
    copy,
    early_reads,
    f32,
    gfx942,
    i32,
    kernel,
    load,
    own_checks,
    program,
    promise,
    scalar,
    sm_90a,
    spread,
    workspace,
)

WAIT = "await_launch_before();"
BY = spread((128,), threads=128, vector=1)


@kernel(target=sm_90a, threads=128)
def doubled(X: Tensor["M", f32], Y: Tensor["M", f32]) -> None:
    (n,) = block_id((ceil_div(X.shape[0], 128),))
    held = load(X.tile((128,), (n,)), BY, edge=0)
    copy(held + held, Y.tile((128,), (n,)), edge=0)


@kernel(target=sm_90a, threads=128)
def added(A: Tensor["M", f32], B: Tensor["M", f32], C: Tensor["M", f32]) -> None:
    """C = A + B, of which A is read first."""
    early_reads()
    (n,) = block_id((ceil_div(A.shape[0], 128),))
    first = load(A.tile((128,), (n,)), BY, edge=0)
    second = load(B.tile((128,), (n,)), BY, edge=0)
    copy(first + second, C.tile((128,), (n,)), edge=0)


@program
def reads_what_nothing_writes(X: Tensor["M", f32], W: Tensor["M", f32], Y: Tensor["M", f32]) -> None:
    H = workspace(f32, X.shape)
    doubled(X, H)
    added(W, H, Y)


@program
def reads_what_the_launch_before_writes(X: Tensor["M", f32], W: Tensor["M", f32], Y: Tensor["M", f32]) -> None:
    H = workspace(f32, X.shape)
    doubled(X, H)
    added(H, W, Y)


@program
def reads_what_an_earlier_launch_writes(X: Tensor["M", f32], W: Tensor["M", f32], Y: Tensor["M", f32]) -> None:
    H, G = workspace(f32, X.shape), workspace(f32, X.shape)
    doubled(X, H)
    doubled(W, G)
    added(H, G, Y)


@program
def begins(X: Tensor["M", f32], W: Tensor["M", f32], Y: Tensor["M", f32]) -> None:
    added(W, X, Y)


def reads(kernel: Kernel) -> tuple[list[str], list[str]]:
    """The tensors that the text loads ahead of its wait, and behind it."""
    before, _, after = cuda_text(kernel).text.partition('extern "C"')[2].partition(WAIT)
    found = [[name for name in ("A", "B") if f"&{name}_[" in part] for part in (before, after)]
    return found[0], found[1]


@pytest.mark.parametrize(
    ("template", "early"),
    [
        (reads_what_nothing_writes, ["A"]),
        (reads_what_the_launch_before_writes, []),
        (reads_what_an_earlier_launch_writes, []),
        (begins, []),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_only_what_no_launch_before_writes_is_read_early(template: ProgramTemplate, early: list[str]) -> None:
    before, after = reads(launch_contexts(template.trace())[-1].kernel)

    assert before == early
    assert sorted(before + after) == ["A", "B"]


def test_a_kernel_alone_waits_first() -> None:
    assert reads(added.trace()) == ([], ["A", "B"])


@kernel(target=sm_90a, threads=128)
def gathered(W: Tensor["E M", f32], ids: Tensor["T", i32], H: Tensor["M", f32], Y: Tensor["T M", f32]) -> None:
    own_checks()
    early_reads()
    promise(ids, lambda e: (e >= 0) & (e < W.shape[0]))
    n, t = block_id((ceil_div(H.shape[0], 128), ids.shape[0]))
    own = load(W[scalar(ids[t])].tile((128,), (n,)), BY, edge=0)
    copy(own + load(H.tile((128,), (n,)), BY, edge=0), Y[t].tile((128,), (n,)), edge=0)


@kernel(target=sm_90a, threads=128)
def counted(X: Tensor["M", f32], H: Tensor["M", f32], ids: Tensor["T", i32]) -> None:
    """Writes the integers that the next launch reads."""
    (n,) = block_id((ceil_div(X.shape[0], 128),))
    copy(load(X.tile((128,), (n,)), BY, edge=0), H.tile((128,), (n,)), edge=0)
    copy(load(X.tile((128,), (0,)), BY, edge=0).to(i32), ids.tile((128,), (n,)), edge=0)


@program
def gathers(X: Tensor["M", f32], W: Tensor["E M", f32], ids: Tensor["T", i32], Y: Tensor["T M", f32]) -> None:
    H = workspace(f32, X.shape)
    doubled(X, H)
    gathered(W, ids, H, Y)


@program
def gathers_by_new_integers(X: Tensor["M", f32], W: Tensor["E M", f32], Y: Tensor["M M", f32]) -> None:
    H, ids = workspace(f32, X.shape), workspace(i32, X.shape)
    counted(X, H, ids)
    gathered(W, ids, H, Y)


@pytest.mark.parametrize(
    ("template", "names"),
    [(gathers, ("W", "ids")), (gathers_by_new_integers, ("W",))],
    ids=lambda each: getattr(each, "name", ""),
)
def test_integers_are_read_early_if_they_are_checked_ahead_of_the_program(
    template: ProgramTemplate, names: tuple[str, ...]
) -> None:
    made = launch_contexts(template.trace())[-1].kernel
    numbers = [stmt.args for stmt in made.prologue if isinstance(stmt, Policy) and stmt.name == "early_reads"]

    assert [tuple(made.parameters[at].name for at in args) for args in numbers] == [names]
    before, _, after = cuda_text(made).text.partition('extern "C"')[2].partition(WAIT)
    early = "&W_[" in before  # by its integers, so only where those may be read, too
    assert early == ("ids" in names)
    assert early or "&W_[" in after


def test_blocks_check_all_contracts_before_they_let_the_next_launch_begin() -> None:
    made = cuda_text(gathered.trace())
    checked = made.text.partition("gathered__checked(")[2].partition('extern "C"')[0]
    wait, check, barrier, begin, read = (
        checked.index(each)
        for each in (WAIT, "gathered__guard0_own(ids_", "__syncthreads();", "let_next_begin();", "&W_[")
    )

    assert wait < check < barrier < begin < read
    assert "0 bytes spill stores" in compile_cuda(made.text, "gathered__checked").log


@pytest.mark.parametrize("policy", [early_reads, own_checks])
def test_neither_is_for_a_target_without_overlapping_launches(policy: Callable[[], None]) -> None:
    @kernel(target=gfx942, threads=256)
    def asks(X: Tensor["M", f32]) -> None:  # noqa: ARG001 reason: a kernel has a tensor
        policy()

    target: Target = gfx942
    with pytest.raises(ArgusError, match=str(target)) as refused:
        asks.trace()
    assert refused.value.diagnostic.code == "E106"
