"""Machine code of gfx942 kernels agrees with the interpreter, and faults in it are found, with their lines."""

from __future__ import annotations

import json
import struct
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from argus.cli.main import main
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.interp.gfx942.code_object import read_code_object
from argus.interp.gfx942.step import step_at
from argus.runtime.cpu.validate import emitted, small_inputs
from argus.runtime.machine.launch import MachineCode, compiled, run_code
from argus.runtime.machine.validate import validate_code
from argus.verifier.api import interpret
from argus.verifier.loader import load

PROVED = Path(__file__).parents[2] / "corpus" / "proved"
SIZES = {"M": 64, "K": 96, "N": 64}
NOP = 0xBF800000


@cache
def product() -> tuple[Kernel, MachineCode]:
    """A matrix product with two buffers in LDS."""
    kernel = load(str(PROVED / "blocks_apart.py"))[0].trace()
    text = emitted(kernel)
    return kernel, compiled(kernel, text.text, text.info)


def addresses(made: MachineCode, name: str) -> list[int]:
    """Where an instruction of that name is."""
    found: list[int] = []
    at = made.code.kernel(made.info.symbol).descriptor.entry
    while True:
        step = step_at(made.code, at)
        if step.instruction.row.name == name:
            found.append(at)
        if step.instruction.row.name == "s_endpgm":
            return found
        at = step.after


def with_word(made: MachineCode, at: int, word: int) -> MachineCode:
    """The code with one word of it changed."""
    place = at - made.code.address
    text = made.code.text[:place] + struct.pack("<I", word) + made.code.text[place + 4 :]
    return evolve(made, code=evolve(made.code, text=text))


def test_machine_code_agrees_with_the_interpreter_bit_for_bit() -> None:
    kernel, made = product()
    arrays = small_inputs(kernel, SIZES, 0)
    found, done = run_code(made, kernel, SIZES, arrays, 0)
    expected = interpret(kernel, *arrays.values(), tags=False, given_sizes=SIZES)

    assert not done.findings
    assert done.instructions > 1000
    assert all((found[name] == expected[name]).all() for name in found)
    assert found["C"].any()


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ["s_barrier", "s_waitcnt"])
def test_an_instruction_that_is_left_out_is_found_with_the_line_of_the_program(name: str) -> None:
    kernel, made = product()
    arrays = small_inputs(kernel, SIZES, 0)
    for at in addresses(made, name)[:6:2]:
        done = run_code(with_word(made, at, NOP), kernel, SIZES, arrays, 0)[1]
        found = [made.finding(each) for each in done.findings]

        assert found, hex(at)
        assert {each.kind for each in found} <= {"LDS race", "used before its wait", "uninitialised LDS"}
        assert all(each.line > 0 for each in found)
        assert any("blocks_apart.py:" in each.what for each in found)


def test_an_unknown_instruction_is_named_and_not_guessed() -> None:
    kernel, made = product()
    at = addresses(made, "s_barrier")[0]

    with pytest.raises(ArgusError, match="opcode 30 of the encoding SOPP") as caught:
        run_code(with_word(made, at, 0xBF9E0000), kernel, SIZES, small_inputs(kernel, SIZES, 0), 0)

    assert caught.value.diagnostic.code == "E502"


@pytest.mark.share(32)
@pytest.mark.parametrize("seed", range(64))
def test_code_with_changed_bits_runs_or_is_refused(seed: int) -> None:
    kernel, made = product()
    random = np.random.default_rng(seed)
    place = 4 * int(random.integers(len(made.code.text) // 16))
    (word,) = struct.unpack_from("<I", made.code.text, place)
    changed = with_word(made, made.code.address + place, word ^ 1 << int(random.integers(32)))
    arrays = small_inputs(kernel, {"M": 64, "K": 32, "N": 64}, 0)

    try:
        ended = str(run_code(changed, kernel, {"M": 64, "K": 32, "N": 64}, arrays, 0, limit=1000)[1].instructions)
    except ArgusError as refused:
        ended = refused.diagnostic.code

    assert ended in {"E420", "E502"} or int(ended) > 0


@pytest.mark.share(3)
def test_the_command_executes_machine_code(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(PROVED / "many_small_tensors_in_lds.py")
    status = main(["validate", file, "--level", "machine", "--sizes", "M=5", "--seeds", "1", "--json"])
    (found,) = json.loads(capsys.readouterr().out)["kernels"]

    assert status == 0
    assert found["target"] == "gfx942"
    assert all(trial["elements"] for trial in found["trials"])


def test_outputs_that_no_launch_writes_are_those_of_the_interpreter() -> None:
    kernel = load(str(PROVED / "grouped_experts.py"))[0].trace()
    found = validate_code(kernel, [{"M": 64, "K": 8, "G": 1, "N": 1, "MB": 1}], seeds=1, made=emitted(kernel))

    assert found.right, found.trials


def test_machine_code_of_another_target_is_refused() -> None:
    kernel = load(str(PROVED / "cluster_shares_b.py"))[0].trace()

    with pytest.raises(ArgusError) as caught:
        validate_code(kernel)

    assert caught.value.diagnostic.code == "E421"


def test_damaged_code_objects_are_refused() -> None:
    with pytest.raises(ArgusError, match="not an ELF file"):
        read_code_object(b"MZ" * 64)
