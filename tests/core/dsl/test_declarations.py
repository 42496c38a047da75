"""Declarations of kernels: errors E107 and E213, configurations, sizes and names."""

# ruff: noqa: ANN001, ARG001, ARG002, ARG005, UP037
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportArgumentType=false
# pyright: reportInvalidTypeForm=false, reportUnknownLambdaType=false, reportCallIssue=false, reportUnknownArgumentType=false
# Reason: faulty declarations are what is tested.

from __future__ import annotations

from types import SimpleNamespace

import pytest

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.index import Const
from argus.core.index_text import show
from argus.language import Int, Template, Tensor, bf16, block_id, f32, gfx942, kernel, loop, sm_90a, sync, vmem
from tests.core.dsl.tracing import fault_in, marked, template

on_gfx942 = kernel(target=gfx942, threads=256)


@on_gfx942  # here
def without_annotation(A) -> None:
    sync()


@on_gfx942  # here
def not_a_tensor(A: int) -> None:
    sync()


@on_gfx942  # here
def unknown_annotation(A: Tensor["M K", brain16]) -> None:  # pyright: ignore[reportUndefinedVariable]  # the fault
    sync()


@on_gfx942  # here
def unknown_type(A: Tensor["M K", "bf16"]) -> None:
    sync()


@on_gfx942  # here
def without_type(A: Tensor["M K"]) -> None:
    sync()


@on_gfx942  # here
def without_axes(A: Tensor["", bf16]) -> None:
    sync()


@on_gfx942  # here
def bad_axis(A: Tensor["M-1 K", bf16]) -> None:
    sync()


@on_gfx942  # here
def empty_axis(A: Tensor["M 0", bf16]) -> None:
    sync()


@on_gfx942  # here
def size_named_as_tensor(A: Tensor["A K", bf16]) -> None:
    sync()


@on_gfx942  # here
def size_named_thread(A: Tensor["M thread", bf16]) -> None:
    sync()


@on_gfx942  # here
def many(*tensors: Tensor["M K", bf16]) -> None:
    sync()


@on_gfx942  # here
def keyword_without_value(A: Tensor["M K", bf16], *, depth: int) -> None:
    sync()


@kernel  # here
def without_target(A: Tensor["M K", bf16]) -> None:
    sync()


@kernel(configs={"big": SimpleNamespace(target=gfx942, threads="256")})  # here
def threads_are_text(A: Tensor["M K", bf16], *, cfg: object) -> None:
    sync()


@kernel(target=gfx942, threads=0)  # here
def no_threads(A: Tensor["M K", bf16]) -> None:
    sync()


@kernel(target=gfx942, threads=100)  # here
def part_of_a_wave(A: Tensor["M K", bf16]) -> None:
    sync()


@kernel(target=gfx942, threads=2048)  # here
def too_many_threads(A: Tensor["M K", bf16]) -> None:
    sync()


FAULTY = [
    (without_annotation, "E107", "parameter `A` of `without_annotation` is not a tensor"),
    (not_a_tensor, "E107", "parameter `A` of `not_a_tensor` is not a tensor"),
    (unknown_annotation, "E107", "cannot be read: name 'brain16' is not defined"),
    (unknown_type, "E107", "'bf16' is not an element type"),
    (without_type, "E107", "found 'M K'"),
    (without_axes, "E107", "'' is neither the name of a size nor a positive number"),
    (bad_axis, "E107", "'M-1' is neither the name of a size nor a positive number"),
    (empty_axis, "E107", "'0' is neither the name of a size nor a positive number"),
    (size_named_as_tensor, "E107", "`A` names a size and something else"),
    (size_named_thread, "E107", "`thread` names a size and something else"),
    (many, "E107", "parameter `tensors` of `many` is not a tensor"),
    (keyword_without_value, "E107", "keyword parameter `depth`"),
    (without_target, "E107", "does not say for which target"),
    (threads_are_text, "E107", "how many threads"),
    (no_threads, "E213", "has 0 threads"),
    (part_of_a_wave, "E213", "has 100 threads"),
    (too_many_threads, "E213", "has 2048 threads"),
]


@pytest.mark.parametrize(("faulty", "code", "words"), FAULTY, ids=[faulty.name for faulty, _, _ in FAULTY])
def test_fault(faulty: Template, code: str, words: str) -> None:
    found = fault_in(faulty)
    assert found.code == code
    assert words in found.message
    assert found.primary.span.frame is not None
    assert (found.primary.span.frame.file, found.primary.span.frame.line) == marked(faulty.function)


def fault_of_decorating(function: object) -> Diagnostic:
    with pytest.raises(ArgusError) as caught:
        on_gfx942(function)
    return caught.value.diagnostic


def generator(A: Tensor["M K", bf16]) -> object:
    yield A


async def coroutine(A: Tensor["M K", bf16]) -> None:
    sync()


class Callable:
    def __call__(self, A: Tensor["M K", bf16]) -> None:
        sync()


@pytest.mark.parametrize("function", [lambda A: None, Callable, Callable(), generator, coroutine, len, None])
def test_only_a_plain_def_is_a_kernel(function: object) -> None:
    assert fault_of_decorating(function).code == "E107"


def test_a_name_is_given_or_the_functions() -> None:
    def small(A: Tensor["M K", bf16]) -> None:
        sync()

    given = kernel(target=gfx942, threads=256, configs={"one": None}, name="small_bf16")(small)

    assert on_gfx942(small).name == "small"
    assert (given.name, given.trace("one").name) == ("small_bf16", "small_bf16_one")
    for name in ("", "small-bf16", 5):
        with pytest.raises(ArgusError) as caught:
            kernel(target=gfx942, threads=256, name=name)(small)
        assert caught.value.diagnostic.code == "E107"


def test_a_keyword_annotated_as_an_integer_is_a_size() -> None:
    seen: list[object] = []

    def ranged(A: Tensor["M K", bf16], *, first: Int, other: Int, times: Int = 3) -> None:
        seen.extend((first, other, times))
        for _ in loop(first, other):
            sync()

    made = on_gfx942(ranged).trace()
    assert [size.name for size in made.sizes] == ["M", "K", "first", "other"]
    assert {(size.kind, size.low, size.high) for size in made.sizes} == {("size", 0, 1 << 30)}
    first, other, times = seen
    assert isinstance(first, Int)
    assert isinstance(other, Int)
    assert (show(first.node), show(other.node), times) == ("first", "other", 3)


def test_a_configuration_is_chosen_by_name() -> None:
    seen: list[object] = []

    def family(A: Tensor["M K", bf16], *, cfg: SimpleNamespace) -> None:
        seen.append(cfg)

    small, large = (SimpleNamespace(target=gfx942, threads=threads) for threads in (64, 512))
    made = kernel(configs={"small": small, "large": large})(family)
    assert made.instances() == ("small", "large")
    assert (made.trace("large").name, made.trace("large").threads) == ("family_large", 512)
    assert (made.trace().name, made.trace().threads) == ("family", 64)
    assert seen == [large, large, small, small]
    with pytest.raises(ArgusError) as caught:
        made.trace("huge")
    assert "no configuration `huge`" in caught.value.diagnostic.message
    assert "small, large" in caught.value.diagnostic.help


def test_a_keyword_with_a_default_keeps_it() -> None:
    def defaulted(A: Tensor["M K", bf16], *, depth: int = 2) -> None:
        for _ in range(depth):
            sync()

    assert len(on_gfx942(defaulted).trace().body) == 2


def test_sizes_are_unified_by_name() -> None:
    def body(A: Tensor["M K", bf16], B: Tensor["N K 16", f32]) -> None:
        assert A.shape[1].node is B.shape[1].node

    made = on_gfx942(body).trace()
    assert [symbol.name for symbol in made.sizes] == ["M", "K", "N"]
    last = made.parameters[1].shape[2]
    assert isinstance(last, Const)
    assert last.value == 16
    assert [show(count) for count in made.grid] == ["1"]


def test_names_follow_the_source() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        row, column = block_id((A.shape[0], C.shape[1]))
        for _ in loop(row + column):
            sync()

    made = template(body).trace()
    assert [symbol.name for symbol in made.blocks] == ["block_0", "block_1"]


def test_a_target_without_a_queue() -> None:
    @kernel(target=sm_90a, threads=128)
    def other(A: Tensor["M K", bf16]) -> None:
        vmem.wait(0)

    found = fault_in(other)
    assert (found.code, found.message) == ("E210", "sm_90a has no queue `vmem`")
    assert "wgmma" in found.help


def test_a_kernel_may_be_traced_inside_another() -> None:
    def inner(A: Tensor, C: Tensor) -> None:
        sync()

    def outer(A: Tensor, C: Tensor) -> None:
        assert len(template(inner).trace().body) == 1
        sync()
        sync()

    assert len(template(outer).trace().body) == 2
