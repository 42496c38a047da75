"""A delivery of the second text that a build chooses from is certified by what the build chooses here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import argus.search.certificates.check_code as codes
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.emit import build as building
from argus.emit.hip.text import hip_texts
from argus.search.certificates.certificate import open_certificate
from argus.search.certificates.check_code import check_build, rebuild_all
from argus.search.certificates.check_result import Check
from argus.search.certificates.check_steps import load_kernel
from argus.search.certificates.delivery import deliver
from tests.search.certificates.deliveries import best, found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As if the first text had spilled registers."""
    place = tmp_path_factory.mktemp("anew") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "compiled_texts", anew)
        deliver(found("gfx942", best("gfx942")), place)
    return place


def anew(kernel: Kernel) -> tuple[str, ...]:
    return hip_texts(kernel)[1:]


def source(folder: Path) -> Check:
    """The check of the delivered source."""
    claimed, place = open_certificate(folder)
    kernel = load_kernel(claimed, place, programs=False)
    assert isinstance(kernel, Kernel)
    shown = check_build(claimed, place, kernel, {"M": 512, "N": 512, "K": 512}, "", rebuild_all(kernel))
    return next(each for each in shown if each.name == "source")


@pytest.mark.share(48, among="certificates")
def test_the_source_is_what_the_build_chooses(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "= opaque(" in next(folder.glob("*.hip")).read_text(encoding="utf-8")
    assert source(folder).state == "FAILED"

    monkeypatch.setattr(building, "compiled_texts", anew)

    assert source(folder).state == "ok"


def test_without_a_compiler_it_is_one_that_a_build_chooses_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: Any) -> object:  # noqa: ANN401 reason: any options
        raise ArgusError(Diagnostic("E303", "error", "no compiler"))

    monkeypatch.setattr(codes, "build", missing)
    assert source(folder).state == "ok"

    file = next(folder.glob("*.hip"))
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("again >> 2", "again >> 3"), encoding="utf-8")

    assert source(folder).state == "FAILED"
