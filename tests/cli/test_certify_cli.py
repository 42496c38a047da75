"""`argus certify`: its output and exit codes; no input causes a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argus.cli.main import main
from argus.core.diagnostic import ArgusError
from argus.search.certificates import check_steps
from argus.search.certificates.certificate import open_certificate
from tests.search.certificates.deliveries import claim, claimed, delivery


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("deliveries")


@pytest.mark.share(4)
def test_each_check_is_one_line(tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = delivery("gfx942", tmp_path / "out", home)

    assert main(["certify", str(folder), "--seed", "7"]) == 0

    *lines, last = capsys.readouterr().out.splitlines()
    assert all(line.startswith(("ok          ", "not checked ")) for line in lines)
    assert any("seeds 7, 8" in line for line in lines)
    assert last == f"{len(lines) - 1} ok, 0 FAILED, 1 not checked"


@pytest.mark.share(4)
def test_a_wrong_claim_ends_with_1_also_as_json(tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = delivery("gfx942", tmp_path / "out", home)
    data = claimed(folder)
    data["proof"]["assumptions"].pop(0)
    claim(folder, data)

    assert main(["certify", str(folder / "certificate.json"), "--json"]) == 1

    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["exit_code"]) == ("argus.certify/1", 1)
    (wrong,) = [each for each in document["checks"] if each["state"] == "FAILED"]
    assert wrong == {"name": "assumptions", "state": "FAILED", "why": "not claimed: K >= 1"}


REFUSED: dict[str, tuple[str, bytes]] = {
    "no text": ("E930", b"\xff\xfe"),
    "no JSON": ("E931", b"{"),
    "no object": ("E931", b"[]"),
    "deep": ("E931", b"[" * 100_000),
    "a number of many digits": ("E931", b'{"schema": ' + b"9" * 10_000 + b"}"),
    "not a number": ("E931", b'{"schema": NaN}'),
    "twice": ("E931", b'{"schema": "argus.certificate/1", "schema": "argus.certificate/1"}'),
    "another schema": ("E931", b'{"schema": "argus.certificate/2"}'),
    "words for the terminal": ("E931", b'{"schema": "\\u001b[2J", "problem": "\\u001b[2J"}'),
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_invalid_certificate_is_refused(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, data = REFUSED[what]
    (tmp_path / "certificate.json").write_bytes(data)

    assert main(["certify", str(tmp_path)]) == 3

    told = capsys.readouterr().err
    assert code in told
    assert "Traceback" not in told
    assert "\x1b[2J" not in told


def test_a_place_without_a_certificate_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certify", str(tmp_path)]) == 3
    assert main(["certify", str(tmp_path / "nowhere")]) == 3
    assert capsys.readouterr().err.count("error[E930]") == 2
    with pytest.raises(ArgusError, match="E930"):
        open_certificate(Path("a\0b"))


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "..", "a\\b", ""])
def test_files_lie_in_the_folder(name: str, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = delivery("gfx942", tmp_path / "out", home)
    data = claimed(folder)
    data["files"]["source"]["name"] = name
    claim(folder, data)

    assert main(["certify", str(folder)]) == 3
    assert "E931" in capsys.readouterr().err


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"[" * 100_000, b'{"schema": 1, "rows": [], "exported": []}'])
def test_an_invalid_kernel_fails(data: bytes, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = delivery("gfx942", tmp_path / "out", home)
    (folder / "kernel.json").write_bytes(data)

    assert main(["certify", str(folder)]) == 1
    assert "FAILED      ir: kernel.json contains no kernel" in capsys.readouterr().out


# Where the limit strikes within a callback of the garbage collector, Python reports it there, and it strikes again.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_checking_has_a_time_limit(tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = delivery("gfx942", tmp_path / "out", home)

    assert main(["certify", str(folder), "--longest", "0.05"]) == 3
    assert "error[E933]" in capsys.readouterr().err


def test_a_kernel_that_takes_all_memory_is_refused(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = delivery("gfx942", tmp_path / "out", home)

    def takes_all(*_: object, **_more: object) -> None:
        raise MemoryError

    monkeypatch.setattr(check_steps, "verify", takes_all)
    assert main(["certify", str(folder)]) == 3
    assert "more memory than available" in capsys.readouterr().err


def test_an_unknown_solver_is_refused(tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = delivery("gfx942", tmp_path / "out", home)

    assert main(["certify", str(folder), "--solver", "oracle"]) == 3
    assert "E601" in capsys.readouterr().err
