"""`argus optimize FILE:NAME --out`: a file that `argus verify` proves, the kernels as text, and their code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve

from argus.cli.main import main
from argus.core.ir import Copy, Kernel, Program
from argus.core.serde import read, write
from argus.verifier.loader import load
from tests.torch.test_searched import LINEAR, SOFTMAX


def delivered(folder: Path, text: str, out: str = "fast") -> Path:
    (folder / "model.py").write_text(text, encoding="utf-8")
    places = ["--journal", str(folder / "runs.db"), "--out", str(folder / out), "--workers", "0"]
    assert main(["optimize", f"{folder / 'model.py'}:Model", "--on", "model", "--trials", "1", *places]) == 0
    return folder / out


@pytest.mark.nightly
@pytest.mark.parametrize(("text", "kind", "launches"), [(SOFTMAX, Kernel, 1), (LINEAR, Program, 2)])
def test_what_was_found_is_proved_again_from_its_file(
    text: str, kind: type, launches: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = delivered(tmp_path, text)
    told = capsys.readouterr().out

    (found,) = read(json.loads((folder / "kernel.json").read_text(encoding="utf-8")))
    assert isinstance(found, kind)
    assert len(load(str(folder / "kernels.py"))) == launches
    assert main(["verify", str(folder / "kernels.py")]) == 0
    assert "proved" in capsys.readouterr().out
    assert len(list(folder.glob("**/*.cu"))) == len(list(folder.glob("**/*.cubin"))) == launches
    written = {str(each.relative_to(folder)) for each in folder.glob("**/*") if each.is_file()}
    assert all(f"wrote {folder / each}" in told for each in written)
    assert {"report.html", "kernels.txt", "kernel.json", "kernels.py"} <= written
    assert not {"certificate.json", "run.jsonl", "load.py"} & written


@pytest.mark.share(3)
def test_a_delivery_names_no_folder_and_is_replaced_by_another(tmp_path: Path) -> None:
    folder = delivered(tmp_path, SOFTMAX)

    text = (folder / "kernels.txt").read_text(encoding="utf-8")
    assert text.startswith("model.py:Model#1 on sm_90a: ")
    assert "exp(" in text
    for each in folder.glob("**/*"):
        if each.suffix in (".py", ".txt", ".json", ".cu", ".html"):
            assert str(tmp_path) not in each.read_text(encoding="utf-8"), each
    (folder / "certificate.json").write_text('{"schema": "argus.certificate/1"}', encoding="utf-8")
    assert delivered(tmp_path, SOFTMAX) == folder
    assert not (folder / "certificate.json").exists()


@pytest.mark.share(3)
def test_a_changed_kernel_of_a_delivery_is_refuted(tmp_path: Path) -> None:
    """The file proves what it contains: a kernel without its last copy does not store what it claims."""
    folder = delivered(tmp_path, SOFTMAX)
    assert main(["verify", str(folder / "kernels.py")]) == 0
    (kernel,) = read(json.loads((folder / "kernel.json").read_text(encoding="utf-8")))
    assert isinstance(kernel, Kernel)
    *before, copy, claim = kernel.prologue
    assert isinstance(copy, Copy)
    changed = write([evolve(kernel, prologue=(*before, claim))])
    (folder / "kernel.json").write_text(json.dumps(changed), encoding="utf-8")

    assert main(["verify", str(folder / "kernels.py")]) != 0
