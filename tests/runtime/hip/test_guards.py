"""Guards of data contracts on an AMD GPU: emitted, built and executed as machine code on the stand-in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from argus.core.diagnostic import ArgusError
from argus.emit.build import build
from argus.emit.guards import MOST_BLOCKS, THREADS
from argus.runtime.gpu.guards import Promises
from argus.runtime.gpu.launch import LoadedKernel, load
from argus.verifier.loader import load as load_file
from tests.runtime.hip.rocm_torch import RocmTorch, Tensor

SEQUENCES = Path(__file__).parents[2] / "corpus" / "proved" / "rows_of_sequences.py"
ROWS, COLUMNS = 40, 8
MANY = THREADS * MOST_BLOCKS + 5
"""More offsets than a guard has threads."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel of sequences, whose offsets begin at 0, ascend, and end at the number of rows."""
    made = next(iter(load_file(str(SEQUENCES)))).trace()
    return build(made, directory=tmp_path_factory.mktemp("built")).description


@pytest.fixture
def kernel(built: Path, rocm: RocmTorch) -> LoadedKernel:
    return load(built, rocm.stub.driver)


def bound(
    rocm: RocmTorch, kernel: LoadedKernel, starts: list[int], promises: Promises
) -> tuple[Tensor, Callable[[], None]]:
    """The offsets on the device, and a launch."""
    held = rocm.tensor(np.array(starts), "torch.int32")
    x, y = (rocm.normal(ROWS, COLUMNS, seed=seed, dtype="torch.float32") for seed in (0, 1))
    sizes = {"S": len(starts), "T": ROWS, "N": COLUMNS}
    return held, kernel.bind({"X": x, "starts": held, "Y": y}, sizes, 0, promises)


@pytest.mark.share(3)
@pytest.mark.parametrize("promises", ["stop", "tell", "fetch"])
def test_integers_that_keep_the_contract_pass(rocm: RocmTorch, kernel: LoadedKernel, promises: Promises) -> None:
    _, launch = bound(rocm, kernel, [0, 7, 7, ROWS], promises)
    launch()
    kernel.synchronise()
    guards = [] if promises == "fetch" else ["ragged__guard0"]
    assert [name for name, _ in rocm.stub.launches] == [*guards, kernel.launch["symbol"]]
    assert not rocm.stub.findings


@pytest.mark.parametrize(
    ("starts", "element"), [([0, 9, 8, ROWS], "starts[1] = 9"), ([0, 3, ROWS + 1], "starts[2] = 41")]
)
def test_a_violation_is_told_and_stops_the_device(
    rocm: RocmTorch, kernel: LoadedKernel, starts: list[int], element: str
) -> None:
    _, launch = bound(rocm, kernel, starts, "stop")
    with pytest.raises(ArgusError) as told:
        launch()
    assert told.value.diagnostic.code == "E402"
    assert element in told.value.diagnostic.message
    assert [name for name, _ in rocm.stub.launches] == ["ragged__guard0"]
    with pytest.raises(ArgusError) as stopped:
        kernel.synchronise()
    assert stopped.value.diagnostic.code == "E409"


@pytest.mark.nightly
def test_every_element_is_checked_by_some_thread(rocm: RocmTorch, kernel: LoadedKernel) -> None:
    """The last of more elements than the guard has threads is wrong."""
    rocm.stub.idle.add(kernel.launch["symbol"])
    held, launch = bound(rocm, kernel, [0] * MANY + [ROWS], "tell")
    launch()
    kernel.synchronise()
    held.array[-1] = ROWS - 1
    launch()
    with pytest.raises(ArgusError) as told:
        kernel.synchronise()
    assert f"starts[{MANY}] = {ROWS - 1}" in told.value.diagnostic.message


def test_without_a_trap_the_kernel_runs_and_the_next_call_tells(rocm: RocmTorch, kernel: LoadedKernel) -> None:
    _, launch = bound(rocm, kernel, [0, 3, ROWS - 1], "tell")
    launch()
    assert len(rocm.stub.launches) == 2
    with pytest.raises(ArgusError, match=r"starts\[2\] = 39") as told:
        launch()
    assert told.value.diagnostic.code == "E402"
