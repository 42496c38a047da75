"""Emitted text on the CPU agrees with the interpreter, and faults put into it are found."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from attrs import evolve

from argus.cli import validate as command
from argus.cli.main import main
from argus.core.ir import Kernel
from argus.emit.cpu.shared_arrays import GUARD, SharedArray
from argus.emit.hip.text import hip_texts
from argus.runtime.cpu import validate as validating
from argus.runtime.cpu.programs import validate_program
from argus.runtime.cpu.validate import Validation, emitted, every_text, unit, validate
from argus.verifier.loader import load

PROVED = Path(__file__).parents[2] / "corpus" / "proved"
CDNA3, HOPPER, GROUPS = "blocks_apart", "cluster_shares_b", "residual_held_beside_the_operands"


def kernel(name: str) -> Kernel:
    return load(str(PROVED / f"{name}.py"))[0].trace()


def with_fault(
    name: str, old: str, new: str, *, seconds: float = 20, gibibytes: float = 8, stop: bool = False
) -> Validation:
    """The validation of a corpus kernel whose text has one place changed."""
    own = kernel(name)
    made = emitted(own)
    assert old in made.text, old
    at = made.text.rindex(old)
    text = made.text[:at] + new + made.text[at + len(old) :]
    return validate(own, seeds=2, made=evolve(made, text=text), seconds=seconds, gibibytes=gibibytes, stop=stop)


@pytest.mark.share(16, among="runtime: cpu: validate")
@pytest.mark.parametrize("name", [CDNA3, HOPPER])
def test_the_text_of_a_proved_kernel_agrees_with_the_interpreter(name: str) -> None:
    found = validate(kernel(name))

    assert found.right, [trial for trial in found.trials if not trial.right][:1]
    assert all(trial.exact and trial.elements for trial in found.trials)


FAULTS = [
    pytest.param(CDNA3, "wait<0x0F70>();", ";", id="no wait for global loads"),
    pytest.param(CDNA3, "wait<0xC07F>();", ";", id="no wait for LDS"),
    pytest.param(CDNA3, "meet();", ";", id="no barrier"),
    pytest.param(CDNA3, "thread_ >> 2", "thread_ >> 3", id="another lane's row"),
    pytest.param(HOPPER, "wgmma_wait<0>();", ";", id="no wait for wgmma"),
    pytest.param(HOPPER, "wgmma_fence();", ";", id="no fence of wgmma"),
    pytest.param(HOPPER, "4608", "4096", id="expects too few bytes"),
    pytest.param(HOPPER, "descriptor<32>", "descriptor<64>", id="another swizzle"),
    pytest.param(HOPPER, "tma_load_2d_to(3,", "tma_load_2d_to(1,", id="one block less"),
    pytest.param(HOPPER, "fence_barrier_init();", ";", id="no fence of the barriers' initialisation"),
]


def kinds(found: Validation) -> set[str]:
    return {finding.kind for trial in found.trials for finding in trial.findings}


@pytest.mark.share(16, among="runtime: cpu: validate")
@pytest.mark.parametrize(("name", "old", "new"), FAULTS)
def test_a_fault_of_the_text_is_found(name: str, old: str, new: str) -> None:
    assert not with_fault(name, old, new).right


@pytest.mark.share(16, among="runtime: cpu: validate")
@pytest.mark.parametrize("place", [256, 4096, -256, -4096])
def test_an_access_outside_of_all_of_lds_is_out_of_bounds(place: int) -> None:
    """Guard zones lie ahead of the arrays in LDS and behind them."""
    store = "store_b32(&box_[base0 + 48], &value_59_[3]);"
    beyond = f"store_b32(&box_[base0 + 48 + {place}], &value_59_[3]);"

    found = with_fault("attention_causal_turned_in_memory", store, store + beyond)

    assert kinds(found) == {"bounds"}
    assert not any(trial.ended for trial in found.trials)


def test_an_access_to_the_next_array_in_lds_is_out_of_bounds() -> None:
    """The element that is meant, by an address beyond the array before: on the GPU the arrays adjoin."""
    found = with_fault(CDNA3, "&lds_b_[base0 + 1024 *", "&lds_a_[4096 + base0 + 1024 *")

    assert kinds(found) == {"bounds"}
    finding = found.trials[0].findings[0]
    assert finding.what == "reads outside of an array in"
    assert re.search(r"byte (8192|10240) of shared memory", finding.where)


@pytest.mark.share(3)
def test_an_access_to_the_next_array_in_shared_memory_is_out_of_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """As above; without moving arrays apart it is the right element, and agrees."""
    right, beyond = "descriptor<32>(ring_b_ + 512 *", "descriptor<32>(ring_a_ + 8192 + 512 *"
    found = with_fault(HOPPER, right, beyond)

    assert kinds(found) == {"bounds"}
    finding = found.trials[0].findings[0]
    assert finding.what == "reads outside of an array in"

    monkeypatch.setattr(validating, "moved_apart", as_it_is)
    assert with_fault(HOPPER, right, beyond).right


def as_it_is(text: str, *_: object) -> tuple[str, tuple[SharedArray, ...]]:
    return text, ()


def test_arrays_keep_their_order_and_alignment_with_a_guard_behind_each() -> None:
    own = unit(emitted(kernel(HOPPER)))

    assert [each.planned for each in own.arrays] == [0, 8192, 9216, 9232]
    for number, (one, after) in enumerate(pairwise(own.arrays), 1):
        assert after.at - (one.at + one.size) >= GUARD
        assert after.at - after.planned == number * GUARD
    assert "ring_b_ = base + 9216;" in own.text


def test_a_text_with_other_places_than_planned_keeps_them() -> None:
    made = emitted(kernel(HOPPER))
    moved = evolve(made, text=made.text.replace("ring_b_ = base + 8192", "ring_b_ = base + 4096"))

    assert unit(moved).arrays == ()
    assert "ring_b_ = base + 4096;" in unit(moved).text


def test_two_warpgroups_at_one_named_barrier_are_found() -> None:
    """Each meets for itself: 128 threads of both could be one meeting."""
    found = with_fault(GROUPS, "meet(1 + wg_, 128);", "meet(1, 128);")

    assert {each.what for each in found.trials[0].findings} == {
        "meets at a named barrier without having seen its last meeting end"
    }


@pytest.mark.share(3)
def test_a_run_without_end_is_killed() -> None:
    found = with_fault(CDNA3, "meet();", "for (;;) meet();", seconds=1, stop=True)

    (trial,) = found.trials
    assert (trial.limit, trial.ended) == ("time", "it did not end within 1 s")


def test_a_run_that_takes_ever_more_memory_ends_at_its_limit() -> None:
    """Loads that nothing waits for stay in flight."""
    load = "load_b128(&b_[0], &lds_b_["
    found = with_fault(CDNA3, load, f"for (;;) {load}", gibibytes=0.1, stop=True)

    (trial,) = found.trials
    assert (trial.limit, trial.ended) == ("memory", "it needs more than 0.1 GiB of memory beside its tensors")


def test_the_command_says_that_memory_ended_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(PROVED / f"{CDNA3}.py")

    assert main(["validate", file, "--sizes", "M=64,N=128,K=96", "--seeds", "1", "--memory", "0.001"]) == 1
    out = capsys.readouterr().out
    assert "error[E415]: the emitted text of `gemm` fails: it needs more than 0.001 GiB" in out
    assert "give a higher `--memory`, or smaller `--sizes`" in out


def test_the_command_says_that_time_ended_a_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def endless(_own: Kernel, _sizes: object, *, seconds: float, **_named: object) -> Validation:
        return with_fault(CDNA3, "meet();", "for (;;) meet();", seconds=seconds, stop=True)

    monkeypatch.setattr(command, "validate_kernel", endless)

    assert main(["validate", str(PROVED / f"{CDNA3}.py"), "--seconds", "1"]) == 1
    out = capsys.readouterr().out
    assert "error[E415]: the emitted text of `gemm` fails: it did not end within 1 s" in out
    assert "give a higher `--seconds`, or smaller `--sizes`" in out


def test_each_text_that_a_build_chooses_from_is_executed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(PROVED / f"{CDNA3}.py")
    options = ["validate", file, "--sizes", "M=64,N=128,K=96", "--seeds", "1"]
    kept, anew = hip_texts(kernel(CDNA3))
    assert anew.count("= opaque(") > 0
    assert main(options) == 0
    out = capsys.readouterr().out
    assert "runs            2, at M=64" in out
    assert "texts           2, of which a build takes" in out

    def faulty(_: Kernel) -> tuple[str, ...]:
        return kept, anew.replace("again >> 2", "again >> 3")

    monkeypatch.setattr(validating, "hip_texts", faulty)

    assert main(options) == 1
    out = capsys.readouterr().out
    assert "text: 2 of 2 that a build chooses from" in out
    assert "1 of 2 runs fail" in out


@pytest.mark.share(8, among="texts of programs")
def test_each_text_of_a_program_s_launches_is_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    program = load(str(PROVED.parent / "programs" / "proved" / "turned_before.py"))[0].program
    assert program is not None
    found = validate_program(program, seeds=[0])
    assert found.right
    assert {trial.text for trial in found.trials} == {1, 2}

    def faulty(own: Kernel) -> tuple[str, ...]:
        kept, *anew = hip_texts(own)
        return kept, *(text.replace("store_b16(&C_[", "store_b16(&C_[1 + ") for text in anew)

    monkeypatch.setattr(validating, "hip_texts", faulty)

    assert {trial.text for trial in validate_program(program, seeds=[0]).trials if not trial.right} == {2}


def test_a_kernel_without_copies_in_loops_has_one_text() -> None:
    assert len(every_text(kernel(CDNA3))) == 2
    assert len(every_text(kernel("one_tile_of_k"))) == 1


def test_the_command_prints_agreement_and_data(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(PROVED / f"{CDNA3}.py")

    assert main(["validate", file, "--sizes", "M=64,N=128,K=96", "--seeds", "1"]) == 0
    assert "agrees" in capsys.readouterr().out
    assert main(["validate", file, "--sizes", "M=64,N=128,K=96", "--seeds", "1", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["kernels"]
    assert found["right"]
    assert found["trials"][0]["elements"] == 64 * 128


def test_a_text_that_fails_is_told_with_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(_own: Kernel, _sizes: object, **_named: object) -> Validation:
        return with_fault(CDNA3, "meet();", ";")

    monkeypatch.setattr(command, "validate_kernel", wrong)

    assert main(["validate", str(PROVED / f"{CDNA3}.py")]) == 1
    out = capsys.readouterr().out
    assert "error[E415]: the emitted text of `gemm` fails: " in out
    assert "of 6 runs fail" in out


@pytest.mark.share(8, among="texts of programs")
def test_a_program_is_validated_as_a_whole(capsys: pytest.CaptureFixture[str]) -> None:
    file = PROVED.parent / "programs" / "proved" / "turned_before.py"

    assert main(["validate", str(file), "--seeds", "1"]) == 0
    assert "product (gfx942): agrees" in capsys.readouterr().out
