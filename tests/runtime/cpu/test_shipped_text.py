"""The emitted text of the shipped configurations agrees with the interpreter: all in the tier `all`, else a few."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core.ir import Kernel
from argus.runtime.cpu.programs import validate_program
from argus.runtime.cpu.validate import Trial, emitted, validate
from benchmarks.shipped import Shipped, Text, card_sizes, is_of_another_type, shipped, texts, tile_of

SHIPPED = {each.stem: each for each in shipped()}
KNOWN = frozenset(each.family for each in SHIPPED.values())
SCHEDULES = 3


def trials(each: Shipped, *, repeated: bool) -> list[Trial]:
    """One run at each of the sizes, each under the next schedule: the latest moments, the earliest, drawn ones.

    repeated: of each text at one of the sizes alone.
    """
    found: list[Trial] = []
    for text in texts(each):
        for sizes in text.sizes[1:2] if repeated and len(text.sizes) > 1 else text.sizes:
            seeds = [len(found) % SCHEDULES]
            if isinstance(text.made, Kernel):
                found += validate(text.made, [sizes], seeds=seeds).trials
            else:
                found += validate_program(text.made, [sizes], seeds=seeds).trials
    return found


@pytest.mark.share(5000)
@pytest.mark.parametrize("stem", SHIPPED)
def test_the_text_agrees_with_the_interpreter(stem: str) -> None:
    """Of a family that differs from another in its type alone, at fewer sizes."""
    repeated = is_of_another_type(SHIPPED[stem].family, KNOWN)
    found = trials(SHIPPED[stem], repeated=repeated)

    assert len(found) >= (1 if repeated else SCHEDULES)
    assert all(each.elements for each in found)
    assert all(each.right for each in found), [each for each in found if not each.right][:1]


def changed(text: Text, old: str, new: str) -> bool:
    """Whether a text agrees with the interpreter after one change, made wherever `old` is."""
    assert isinstance(text.made, Kernel)
    made = emitted(text.made)
    assert old in made.text, old
    return validate(
        text.made, text.sizes, seeds=[0], made=evolve(made, text=made.text.replace(old, new)), seconds=20
    ).right


@pytest.mark.share(3)
def test_a_fault_from_tile_to_tile_needs_the_text_for_two_blocks() -> None:
    """With as many blocks as tiles, which tile a block takes second makes no difference."""
    whole, few = texts(SHIPPED["gemm-columns_64"])

    assert changed(whole, "132 * tile", "131 * tile")
    assert not changed(few, "2 * tile", "1 * tile")


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("fence_async_proxy();", ";", id="no proxy fence"),
        pytest.param("8 * (ring_use_ & 7)", "8 * (ring_use_ & 3)", id="barriers of half the stages"),
    ],
)
def test_a_fault_of_a_shipped_text_is_found(old: str, new: str) -> None:
    assert not changed(texts(SHIPPED["gemm-columns_64"])[0], old, new)


def test_every_file_with_configurations_is_listed() -> None:
    modules = {each.module for each in SHIPPED.values()}

    assert modules == {
        *("batched", "cdna3_split", "epilogues", "fp8", "fp8_blocks", "fp8_blocks_cdna3", "fp8_cdna3"),
        *("fused", "gated", "gemm", "i8_cdna3", "layouts", "residual", "streamk", "streamk_cdna3"),
        "streamk_scaled_cdna3",
    }
    assert all(min(tile_of(each.value)) > 0 for each in SHIPPED.values())


@pytest.mark.parametrize(
    "stem", ["gemm-cooperative", "gemm_nn-split_8", "bmm_tn-columns_192", "gemm_fp8_blocks-ragged"]
)
def test_sizes_for_a_gpu_have_tails_and_more_tiles_than_processors(stem: str) -> None:
    least, _, most = card_sizes(SHIPPED[stem])

    assert max(least.values()) <= 16
    assert most["M"] * most["N"] * most.get("Z", 1) > 132 * 128 * 256
    assert most["K"] > tile_of(SHIPPED[stem].value)[-1]
    assert all(size % 64 for size in (most["M"], most["N"], most["K"]))
