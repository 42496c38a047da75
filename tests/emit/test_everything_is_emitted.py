"""Every kernel of the corpus that is proved or traced has a text, and its compiler takes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus.core.ir import Kernel
from argus.emit.build import build
from argus.emit.cuda.text import cuda_text
from argus.emit.hip.text import hip_text
from argus.verifier.loader import Exported, load
from property_tests.programs import CORPUS

FILES = [path for kind in ("proved", "traced", "programs/proved") for path in sorted((CORPUS / kind).glob("*.py"))]
EXPORTED = [
    (f"{path.parent.relative_to(CORPUS)}/{path.stem}:{each.name}", each) for path in FILES for each in load(str(path))
]
every_kernel = pytest.mark.parametrize("exported", [pytest.param(each, id=name) for name, each in EXPORTED])


def test_both_targets_are_there() -> None:
    targets = [each.trace().target.name for _, each in EXPORTED[::8]]
    assert set(targets) == {"gfx942", "sm_90a"}
    assert len(EXPORTED) >= len(FILES) > 100


@pytest.mark.share(400, among="emit: everything is emitted")
@every_kernel
def test_it_is_emitted(exported: Exported) -> None:
    kernel = exported.trace()
    assert f"{kernel.name} for {kernel.target}" in text_of(kernel)


def text_of(kernel: Kernel) -> str:
    return cuda_text(kernel).text if kernel.target.name == "sm_90a" else hip_text(kernel)


@pytest.mark.share(400, among="emit: everything is emitted")
@every_kernel
def test_it_compiles(exported: Exported, tmp_path: Path) -> None:
    made = build(exported.trace(), directory=tmp_path, lines=False)
    assert made.code.read_bytes()[:4] == b"\x7fELF"
