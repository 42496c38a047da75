"""The output folder of a search: all files or none, and foreign files are kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argus.core.diagnostic import ArgusError
from argus.search.certificates import certificate
from argus.search.certificates.output_dir import GENERATOR, REPORT, check_writable, staged_output

OURS = json.dumps({"schema": certificate.SCHEMA})


def put(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")


def held(folder: Path) -> dict[str, str]:
    return {each.name: each.read_text(encoding="utf-8") for each in folder.iterdir()}


def broken_off(folder: Path) -> None:
    with staged_output(folder) as made:
        put(made, kernel_json="new")
        raise KeyboardInterrupt


def test_a_delivery_is_moved_in_whole(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    with staged_output(out) as made:
        put(made, kernel_json="{}", certificate_json=OURS)
        assert not (out / "kernel.json").exists()

    assert held(out) == {"kernel.json": "{}", "certificate.json": OURS}


def test_one_that_is_broken_off_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    put(tmp_path, certificate_json=OURS, kernel_json="old", notes_txt="mine")
    before = held(tmp_path)

    with pytest.raises(KeyboardInterrupt):
        broken_off(tmp_path)

    assert held(tmp_path) == before


def test_an_earlier_delivery_is_replaced_and_other_files_stay(tmp_path: Path) -> None:
    put(tmp_path, certificate_json=OURS, kernel_json="old", notes_txt="mine")
    check_writable(tmp_path)

    with staged_output(tmp_path) as made:
        put(made, kernel_json="new", certificate_json=OURS)

    assert held(tmp_path) == {"kernel.json": "new", "certificate.json": OURS, "notes.txt": "mine"}


@pytest.mark.parametrize("name", ["load.py", "kernel.json", "certificate.json", "report.html"])
def test_files_that_no_search_has_written_are_not_replaced(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine", encoding="utf-8")

    with pytest.raises(ArgusError) as raised:
        check_writable(tmp_path)
    assert f"`{name}`, which were not written by a search" in raised.value.diagnostic.message
    with pytest.raises(ArgusError) as again, staged_output(tmp_path) as made:
        (made / name).write_text("ours", encoding="utf-8")

    assert (raised.value.diagnostic.code, again.value.diagnostic.code) == ("E302", "E302")
    assert held(tmp_path) == {name: "mine"}


def test_a_report_alone_is_replaced(tmp_path: Path) -> None:
    (tmp_path / REPORT).write_text(f"<html>{GENERATOR}", encoding="utf-8")
    check_writable(tmp_path)

    with staged_output(tmp_path) as made:
        (made / REPORT).write_text("later", encoding="utf-8")

    assert held(tmp_path) == {REPORT: "later"}
