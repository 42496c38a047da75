"""The narrow schedule, for rows of any length: its launch conditions and its register usage."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus.emit.artifact import Artifact
from argus.emit.build import build
from argus.emit.cuda.ptxas import AssemblerReport
from argus.kernels.gemm import gemm


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    folder: Path = tmp_path_factory.mktemp("narrow")
    return build(gemm.trace("narrow"), directory=folder)


def test_nothing_is_asked_of_rows(artifact: Artifact) -> None:
    launch = artifact.launch

    assert launch.maps == ()
    assert [(each.name, each.kind, each.written) for each in launch.arguments[:3]] == [
        ("A", "pointer", False),
        ("B", "pointer", False),
        ("C", "pointer", True),
    ]
    assert {check.condition for check in launch.checks} == {
        "K >= 1",
        *(f"0 <= {size} <= 1073741824" for size in "MNK"),
    }


def test_it_fits_into_registers(artifact: Artifact) -> None:
    assert isinstance(artifact.report, AssemblerReport)
    assert not artifact.report.spills
    assert artifact.warnings == ()


def test_every_access_of_a_tensor_is_one_element_under_its_own_condition(artifact: Artifact) -> None:
    accesses = [line for line in artifact.source_text.splitlines() if any(f"&{name}_[" in line for name in "ABC")]

    assert len(accesses) == 32 + 64 + 64
    assert all("_b16(" in line and line.lstrip().startswith("if (") for line in accesses)
