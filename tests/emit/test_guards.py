"""Guards of data contracts on integers: their text, that it compiles, and what their conditions accept."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.diagnostic import ArgusError
from argus.core.index_text import show
from argus.core.ir import Kernel, Strided
from argus.core.target import Target
from argus.emit.build import build
from argus.emit.cuda.nvrtc import compile_cuda
from argus.emit.cuda.prelude import PRELUDE
from argus.emit.guards import guard_text, guards
from argus.emit.hip.prelude import PRELUDE as HIP_PRELUDE
from argus.emit.hip.toolchain import compile_hip
from argus.emit.names import assign_names
from argus.kernels.gemm import gemm
from argus.language import (
    Tensor,
    block_id,
    ceil_div,
    copy,
    f32,
    gfx942,
    i8,
    i32,
    kernel,
    promise,
    registers,
    sm_90a,
    spread,
)
from argus.runtime.expressions import first_violation
from argus.verifier.loader import load
from tests.conftest import Golden
from tests.emit import host

CORPUS = Path(__file__).parent.parent / "corpus"
FILES = ("traced/grouped_gemm.py", "proved/rows_of_sequences.py", "proved/grouped_experts.py")
Integers = npt.NDArray[np.int32] | npt.NDArray[np.int8]
LEAST, MOST = -(2**31), 2**31 - 1


def of(file: str) -> Kernel:
    return next(iter(load(str(CORPUS / file)))).trace()


@kernel(target=sm_90a, threads=128)
def table(X: Tensor["M N", f32], Y: Tensor["M N", f32], rank: Tensor["M N", i32]) -> None:
    """Copies a tile; each rank is within the rows, and no more than the one on its right."""
    promise(rank, lambda each: (each >= 0) & (each < X.shape[0]))
    held = registers(f32, spread((16, 32), threads=128, vector=4))
    copy(X.tile((16, 32), (0, ceil_div(X.shape[1], 32) - 1)), held, edge=0)
    copy(held, Y.tile((16, 32), (0, 0)), edge=0)


@pytest.mark.parametrize("target", [sm_90a, gfx942], ids=str)
def test_the_text(golden: Golden, target: Target) -> None:
    made = evolve(of("proved/rows_of_sequences.py"), target=target)
    golden(guard_text(made, assign_names(made)))


@pytest.mark.parametrize("file", FILES)
def test_the_compiler_takes_it(file: str) -> None:
    made = evolve(of(file), target=sm_90a)
    log = compile_cuda(PRELUDE + guard_text(made, assign_names(made)), "guard").log

    assert "0 bytes stack frame, 0 bytes spill stores" in log
    assert [guard.symbol in log for guard in guards(made, assign_names(made))] == [True]


@pytest.mark.share(4)
@pytest.mark.parametrize("file", FILES)
def test_the_compiler_for_gfx942_takes_it(file: str, tmp_path: Path) -> None:
    made = evolve(of(file), target=gfx942)
    names = assign_names(made)
    code = compile_hip(HIP_PRELUDE + guard_text(made, names), "guard", tmp_path, 60).code.read_bytes()

    assert [guard.symbol.encode() in code for guard in guards(made, names)] == [True]


def test_a_kernel_without_promises_has_none() -> None:
    made = gemm.trace("narrow")
    assert guard_text(made, assign_names(made)) == ""


def test_a_built_kernel_names_its_guards(tmp_path: Path) -> None:
    artifact = build(table.trace(), directory=tmp_path)

    (contract,) = artifact.launch.contracts
    assert contract.guard == "table__guard0"
    assert contract.guard.encode() in artifact.code.read_bytes()
    assert artifact.source_text.count('extern "C" __global__') == 2


def test_several_guards_have_one_entry_point_more(tmp_path: Path) -> None:
    artifact = build(of("proved/formula_scaled_by_expert.py"), directory=tmp_path)
    symbols = [*(each.guard for each in artifact.launch.contracts), artifact.launch.guards]
    assert [each.rpartition("__")[2] for each in symbols] == ["guard0", "guard1", "guard2", "guards"]
    assert all(each.encode() in artifact.code.read_bytes() for each in symbols)


def test_a_tensor_that_is_not_row_major_is_refused() -> None:
    made = table.trace()
    rank = made.parameters[2]
    assert isinstance(rank.layout, Strided)
    turned = evolve(rank, layout=Strided(tuple(reversed(rank.layout.strides))))
    with pytest.raises(ArgusError, match="not row-major"):
        guard_text(evolve(made, parameters=(*made.parameters[:2], turned)), assign_names(made))


# -- what the conditions say, run on the host ------------------------------------------------------------------


def kept(
    made: Kernel, held: Integers, sizes: dict[str, int], work: Path, number: int = 0, others: Sequence[Integers] = ()
) -> list[bool]:
    """Of each element of the tensor of guard `number`, whether the emitted condition holds. others: that it reads."""
    text, *_ = guard_text(made, assign_names(made)).split("// Data contract of")
    symbol = guards(made, assign_names(made))[number].symbol
    rank = held.ndim
    given = "".join(f", {sizes[size.name]}" for size in made.sizes)
    at = "".join(f", at[{axis}]" for axis in range(rank))
    read = "".join(f", others[{place}]" for place in range(len(others)))
    kind = _C_TYPES[held.dtype.name]
    call = f"{symbol}_keeps(held{read}{given}{at})"
    driver = f'extern "C" int run(const {kind}* held, const long* at, const int** others) {{ return {call}; }}'
    library = host.compiled(f"#define HELPER static\nusing i32 = int;\n{text}", driver, work)
    found: list[bool] = []
    beside = (ctypes.c_void_p * max(1, len(others)))(*(each.ctypes.data for each in others))
    for place in np.ndindex(held.shape):
        coordinates = (ctypes.c_long * rank)(*place)
        found.append(bool(library.run(held.ctypes.data_as(ctypes.c_void_p), coordinates, beside)))
    return found


_C_TYPES = {"int32": "int", "int8": "signed char"}
OF_TILES = [
    ([0, 100, 100, 150], [0, 64, 100, 150], [0, 0, 2]),
    ([0, 100, 100, 150], [0, 64, 100, 150], [0, 0, 1]),
    ([0, 100, 100, 150], [0, 64, 110, 150], [0, 0, 2]),
    ([0, 100, 100, 150], [0, 64, 100, 150], [0, 2, 2]),
    ([0, 100, 100, 150], [0, 64, 100, 150], [MOST, LEAST, -1]),
    ([0, 100, 100, 150], [0, 64, 100, 150], [3, 0, 2]),
    ([0, 100, 100, 150], [0, 0, 0, 0], [0, 1, 2]),
]


@pytest.mark.share(3)
@pytest.mark.skipif(not host.available(), reason="runs the text on this machine")
def test_checks_that_read_several_tensors_agree(tmp_path: Path) -> None:
    made = of("proved/formula_scaled_by_expert.py")
    *_, described_last = build(made, directory=tmp_path).launch.contracts
    assert [each.tensor for each in described_last.others] == ["starts", "firsts"]
    sizes = {"T": 150, "E": 3, "S": 4, "Q": 4, "P": 3}
    right: list[bool] = []
    for number, (starts, firsts, owner) in enumerate(OF_TILES):
        offsets, tiles, held = (np.array(each, np.int32) for each in (starts, firsts, owner))
        (tmp_path / str(number)).mkdir()
        found = kept(made, held, sizes, tmp_path / str(number), number=2, others=(offsets, tiles))
        others = {"starts": offsets.astype(np.int64), "firsts": tiles.astype(np.int64)}
        first = first_violation(described_last.condition, "owner", held.astype(np.int64), sizes, others)
        assert first == next(((place,) for place, fine in enumerate(found) if not fine), None)
        right.append(first is None)
    assert right == [True, *[False] * 6]


@pytest.mark.skipif(not host.available(), reason="runs the text on this machine")
def test_a_check_that_reads_a_tensor_without_elements_fails(tmp_path: Path) -> None:
    made = of("proved/formula_scaled_by_expert.py")
    sizes, held = {"T": 0, "E": 1, "S": 0, "Q": 2, "P": 1}, np.zeros(1, np.int32)
    others = np.zeros(0, np.int32), np.zeros(2, np.int32)
    assert kept(made, held, sizes, tmp_path, number=2, others=others) == [False]
    (*_, contract) = build(made, directory=tmp_path).launch.contracts
    wide = {name: each.astype(np.int64) for name, each in zip(("starts", "firsts"), others, strict=True)}
    assert first_violation(contract.condition, "owner", held.astype(np.int64), sizes, wide) == (0,)


ROWS = [
    ("proved/grouped_experts.py", [0, 2, -1, 3, -2, MOST, LEAST], {"MB": 7, "G": 3}),
    ("proved/rows_of_sequences.py", [0, 3, 3, 10], {"S": 4, "T": 10}),
    ("proved/rows_of_sequences.py", [1, 3, 2, 9], {"S": 4, "T": 10}),
    ("proved/rows_of_sequences.py", [0], {"S": 1, "T": 0}),
    ("proved/rows_of_sequences.py", [MOST, LEAST], {"S": 2, "T": 5}),
    ("proved/tiles_of_sequences.py", [0, 3, 7, 10], {"S": 4, "T": 10, "most": 4}),
    ("proved/tiles_of_sequences.py", [0, 3, 8, 10], {"S": 4, "T": 10, "most": 4}),
]


@pytest.mark.share(3)
@pytest.mark.skipif(not host.available(), reason="runs the text on this machine")
@pytest.mark.parametrize(("file", "integers", "sizes"), ROWS)
def test_device_and_host_checks_agree(file: str, integers: list[int], sizes: dict[str, int], tmp_path: Path) -> None:
    made = of(file)
    every = {size.name: 64 for size in made.sizes} | sizes
    held = np.array(integers, np.int32)
    found = kept(made, held, every, tmp_path)

    first = first_violation(
        described(made), guards(made, assign_names(made))[0].buffer.name, held.astype(np.int64), every
    )
    assert first == next(((place,) for place, fine in enumerate(found) if not fine), None)


@pytest.mark.skipif(not host.available(), reason="runs the text on this machine")
def test_elements_of_several_axes_are_found(tmp_path: Path) -> None:
    held = np.array([[0, 1, 2], [3, 4, 1]], np.int32)
    assert kept(table.trace(), held, {"M": 4, "N": 3}, tmp_path) == [True, True, True, True, False, True]


@kernel(target=gfx942, threads=64)
def weights(W: Tensor["M 128", i8], Y: Tensor["M 128", i8]) -> None:
    """Copies a tile of numbers of 8 bits, none of them the least."""
    promise(W, lambda each: each != -128)
    (m,) = block_id((W.shape[0],))
    held = registers(i8, spread((1, 128), threads=64, vector=2))
    copy(W.tile((1, 128), (m, 0)), held)
    copy(held, Y.tile((1, 128), (m, 0)))


@pytest.mark.skipif(not host.available(), reason="runs the text on this machine")
def test_elements_of_8_bits_are_read_as_such(tmp_path: Path) -> None:
    held = np.full((2, 128), -127, np.int8)
    held[0, 5] = held[1, 7] = -128
    found = kept(weights.trace(), held, {"M": 2}, tmp_path)

    assert [place for place, fine in enumerate(found) if not fine] == [5, 128 + 7]


def described(made: Kernel) -> str:
    return show(next(buffer.promise for buffer in made.parameters if buffer.promise is not algebra.TRUE))
