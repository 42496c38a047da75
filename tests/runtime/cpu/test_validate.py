"""Emitted text on the CPU agrees with the interpreter, and faults put into it are found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve

from argus.cli import validate as command
from argus.cli.main import main
from argus.core.ir import Kernel
from argus.runtime.cpu.validate import Validation, emitted, validate
from argus.verifier.loader import load

PROVED = Path(__file__).parents[2] / "corpus" / "proved"
CDNA3, HOPPER = "blocks_apart", "cluster_shares_b"


def kernel(name: str) -> Kernel:
    return load(str(PROVED / f"{name}.py"))[0].trace()


def with_fault(name: str, old: str, new: str) -> Validation:
    """The validation of a corpus kernel whose text has one place changed."""
    own = kernel(name)
    made = emitted(own)
    assert old in made.text, old
    at = made.text.rindex(old)
    text = made.text[:at] + new + made.text[at + len(old) :]
    return validate(own, seeds=2, made=evolve(made, text=text), seconds=20)


@pytest.mark.parametrize("name", [CDNA3, HOPPER])
def test_the_text_of_a_proved_kernel_agrees_with_the_interpreter(name: str) -> None:
    found = validate(kernel(name))

    assert found.right, [trial for trial in found.trials if not trial.right][:1]
    assert all(trial.exact and trial.elements for trial in found.trials)


FAULTS = [
    pytest.param(CDNA3, "__builtin_amdgcn_s_waitcnt(0x0F70);", ";", id="no wait for global loads"),
    pytest.param(CDNA3, "__builtin_amdgcn_s_waitcnt(0xC07F);", ";", id="no wait for LDS"),
    pytest.param(CDNA3, "meet();", ";", id="no barrier"),
    pytest.param(CDNA3, "thread_ >> 2", "thread_ >> 3", id="another lane's row"),
    pytest.param(HOPPER, "wgmma_wait<0>();", ";", id="no wait for wgmma"),
    pytest.param(HOPPER, "wgmma_fence();", ";", id="no fence of wgmma"),
    pytest.param(HOPPER, "4608", "4096", id="expects too few bytes"),
    pytest.param(HOPPER, "descriptor<32>", "descriptor<64>", id="another swizzle"),
    pytest.param(HOPPER, "tma_load_2d_to(3,", "tma_load_2d_to(1,", id="one block less"),
    pytest.param(HOPPER, "fence_barrier_init();", ";", id="no fence of the barriers' initialisation"),
]


@pytest.mark.parametrize(("name", "old", "new"), FAULTS)
def test_a_fault_of_the_text_is_found(name: str, old: str, new: str) -> None:
    assert not with_fault(name, old, new).right


@pytest.mark.parametrize("place", [256, 4096, -256, -4096])
def test_an_access_outside_of_all_of_lds_is_out_of_bounds(place: int) -> None:
    """Guard zones lie ahead of the arrays in LDS and behind them."""
    store = "store_b32(&box_[base0 + 48], &value_59_[3]);"
    beyond = f"store_b32(&box_[base0 + 48 + {place}], &value_59_[3]);"

    found = with_fault("attention_causal_turned_in_memory", store, store + beyond)

    assert {finding.kind for trial in found.trials for finding in trial.findings} == {"bounds"}
    assert not any(trial.ended for trial in found.trials)


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


def test_a_program_is_validated_as_a_whole(capsys: pytest.CaptureFixture[str]) -> None:
    file = PROVED.parent / "programs" / "proved" / "turned_before.py"

    assert main(["validate", str(file), "--seeds", "1"]) == 0
    assert "product (gfx942): agrees" in capsys.readouterr().out
