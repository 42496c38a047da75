"""Index expressions that load integers: the results of kernels that use them, and where they emit the loads."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from argus.core.ir import Kernel
from argus.emit.build import build
from argus.emit.cuda.text import cuda_text
from argus.emit.hip.listing import listing
from argus.emit.hip.text import hip_text
from argus.emit.hip.toolchain import compile_hip
from argus.emit.names import assign_names
from argus.interp.interpret import interpret
from argus.kernels.decode import FAMILIES
from argus.kernels.grouped import grouped_nt
from argus.kernels.schedules.decode import Decode
from argus.language import (
    Tensor,
    assume,
    block_id,
    copy,
    eq,
    gfx942,
    global_load,
    i32,
    kernel,
    load,
    promise,
    scalar,
    spread,
    vmem,
)
from argus.verifier import loader
from tests.emit import host

CORPUS = Path(__file__).parent.parent / "corpus"
needs_host = pytest.mark.skipif(not host.available(), reason="runs emitted text on 64-bit Linux")


def of(file: str) -> Kernel:
    return next(iter(loader.load(str(CORPUS / file)))).trace()


def normal(*shape: int) -> host.Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(ml_dtypes.bfloat16)


@needs_host
@pytest.mark.parametrize("file", ["proved/grouped_experts.py", "proved/grouped_experts_staged.py"])
def test_rows_are_multiplied_by_their_experts_weights(file: str, tmp_path: Path) -> None:
    made = of(file)
    a, w = normal(192, 40), normal(3, 72, 40)
    expert = np.array([2, -1, 0], np.int32)
    c = np.full((192, 72), 7, ml_dtypes.bfloat16)
    sizes = {"M": 192, "K": 40, "G": 3, "N": 72, "MB": 3}
    given = {"A": a, "W": w, "expert": expert, "C": c}
    arrays = [given[buffer.name] for buffer in made.parameters]

    symbol = assign_names(made).kernel
    host.run(
        hip_text(made),
        symbol,
        made.threads,
        (3, 2),
        arrays,
        [sizes[each.name] for each in made.sizes],
        tmp_path,
    )

    exact = a.astype(np.float64).reshape(3, 64, 40)
    for block, owner in enumerate(expert):
        found = c[64 * block : 64 * (block + 1)].astype(np.float64)
        wanted = np.full((64, 72), 7.0) if owner < 0 else exact[block] @ w[owner].astype(np.float64).T
        np.testing.assert_allclose(found, wanted, rtol=2**-8, atol=2**-8)


@needs_host
def test_sequences_of_any_lengths_are_copied_as_the_interpreter_says(tmp_path: Path) -> None:
    made = of("proved/rows_of_sequences.py")
    x = np.arange(9 * 20, dtype=np.float32).reshape(9, 20)
    starts = np.array([0, 0, 4, 5, 9], np.int32)
    y = np.full((9, 20), -1, np.float32)
    given = {"X": x, "starts": starts, "Y": y}
    arrays = [given[buffer.name] for buffer in made.parameters]
    sizes = {"T": 9, "N": 20, "S": 5}

    symbol = assign_names(made).kernel
    host.run(
        hip_text(made),
        symbol,
        256,
        (4, 1),
        arrays,
        [sizes[each.name] for each in made.sizes],
        tmp_path,
    )

    assert np.array_equal(y, x)
    assert np.array_equal(interpret(made, *arrays)["Y"], x)


def test_on_hopper_they_are_read_after_the_launch_ahead_and_where_they_exist() -> None:
    body = cuda_text(of("traced/grouped_gemm.py")).text.partition('extern "C"')[2].partition("// Data contract of")[0]
    signature, _, rest = body.partition("{")
    before, _, after = rest.partition("await_launch_before();")

    assert "const i32* expert_" in signature
    assert "expert_[" not in before
    assert "expert_[" in after
    assert not any("const int quotient" in line and "expert_[" in line for line in after.splitlines())


def test_the_report_is_that_of_the_kernel_and_not_of_its_guard(tmp_path: Path) -> None:
    artifact = build(of("traced/grouped_gemm.py"), directory=tmp_path)

    assert artifact.report.registers >= 100
    assert not artifact.report.spills
    assert [contract.guard for contract in artifact.launch.contracts] == ["grouped_gemm_fp8__guard0"]
    assert [each.name for each in artifact.launch.arguments if each.kind == "pointer"] == ["SA", "SW", "expert"]


def test_on_hopper_an_integer_is_read_once_and_before_the_wait_for_what_it_selects() -> None:
    text = cuda_text(
        FAMILIES["torch.bfloat16"][128].instance(Decode(page=16, causal=False), "pages").launches[0].kernel
    ).text
    role = text.partition("// load")[2]
    reads, waits = (role.find(each) for each in ("const int integer1 = table_[", "await_parity("))

    assert role.count("table_[") == 4  # a page each
    assert role.count("tma_load") == 16  # its keys and values, in two boxes each
    assert 0 < reads < waits


@pytest.mark.share(6)
def test_on_mi300x_integers_are_loaded_ahead_of_a_loop_with_waits(tmp_path: Path) -> None:
    made = grouped_nt.trace("interleaved_128")
    text = hip_text(made)

    assert not loads_in_the_loop(made, text, tmp_path)
    assert loads_in_the_loop(made, text.replace("const UNWRITTEN i32*", "const i32*"), tmp_path)


def loads_in_the_loop(made: Kernel, text: str, folder: Path) -> list[str]:
    """Scalar loads of the shortest loop with products: from the target of a branch backwards to the branch."""
    code = listing(compile_hip(text, "made", folder, 120, lines=True).assembly_text, assign_names(made).kernel)
    loops = [code[at : number + 1] for number, each in enumerate(code) for at in each.next if at < number]
    shortest = min((e for e in loops if any(own.opcode.startswith("v_mfma") for own in e)), key=len)
    return [each.text for each in shortest if each.opcode.startswith("s_load")]


def test_integers_that_a_copy_reads_too_are_loaded_as_others_are() -> None:
    text = hip_text(copied.trace())

    assert "const i32* __restrict__ at_" in text
    assert "UNWRITTEN" not in text
    assert "load_b32(" in text


@kernel(target=gfx942, threads=64)
def copied(at: Tensor["L 64", i32], X: Tensor["M 64", i32], Y: Tensor["B 64", i32], Z: Tensor["B 64", i32]) -> None:
    promise(at, lambda row: (row >= 0) & (row < X.shape[0]))
    assume(eq(at.shape[0], Y.shape[0]))
    (b,), by = block_id((Y.shape[0],)), spread((64,), threads=64, vector=1)
    rows = load(at[b].tile((64,), (0,)), by, via=global_load)
    row = load(X[scalar(at[b, 0])].tile((64,), (0,)), by, via=global_load)
    vmem.wait(0)
    copy(rows, Z[b].tile((64,), (0,)))
    copy(row, Y[b].tile((64,), (0,)))
