"""The picture of a counterexample: its tile, the window shown, and the marked elements."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus.cli.main import main
from argus.core.layout.pictures.panel import Cell, Panel
from argus.core.layout.pictures.picture import Picture
from argus.core.verdict import Refuted
from argus.report.svg import WINDOW, picture
from argus.verifier.kernel import verify
from property_tests.programs import CORPUS, templates

REFUTED = CORPUS / "refuted"
Marked = dict[tuple[str, str], Cell]


def drawn(name: str) -> Picture:
    (template,) = templates(REFUTED / f"{name}.py")
    kernel = template.trace()
    verdict = verify(kernel, solver="z3").verdict
    assert isinstance(verdict, Refuted)
    found = picture(kernel, verdict.counterexample)
    assert found is not None
    return found


def marked(panel: Panel, badge: str) -> Marked:
    """The cells with a badge, by the names of their row and column."""
    return {
        (panel.rows[row], panel.columns[column]): cell
        for row, line in enumerate(panel.cells)
        for column, cell in enumerate(line)
        if cell.badge == badge
    }


@pytest.mark.share(5, among="pictures")
def test_both_factors_of_a_wrong_product_are_marked_in_their_fragments() -> None:
    a, b = drawn("transposed_b").panels

    assert a.title.startswith("a, register, rows 0 to 15")
    assert [(at, cell.lines) for at, cell in marked(a, "!").items()] == [(("0", "0"), ("T0,64", "V0"))]
    assert [(at, cell.lines) for at, cell in marked(b, "!").items()] == [(("1", "0"), ("T1,129", "V0"))]


@pytest.mark.share(5, among="pictures")
def test_what_the_thread_holds_besides_is_outlined() -> None:
    a, _ = drawn("transposed_b").panels
    outlined = [cell for row in a.cells for cell in row if cell.border == "phase"]

    assert outlined
    assert all(cell.lines[0] == "T0,64" for cell in outlined)


def test_a_shared_element_is_marked_in_its_slot() -> None:
    (panel,) = drawn("no_full_wait").panels

    assert panel.title.startswith("a[0], shared")
    assert marked(panel, "!").keys() == {("0", "0")}
    assert len(panel.rows) == len(panel.columns) == WINDOW


@pytest.mark.share(5, among="pictures")
def test_the_window_is_where_the_element_is() -> None:
    (panel,) = drawn("swapped_output").panels

    assert (panel.rows[0], panel.rows[-1]) == ("49", "64")
    assert marked(panel, "!").keys() == {("64", "0")}


def test_elements_that_fail_alike_are_marked_too() -> None:
    (panel,) = drawn("halves_of_registers_swapped").panels
    cells = [cell for row in panel.cells for cell in row]

    assert marked(panel, "!").keys() == {("0", "0")}
    assert {("0", "1"), ("3", "0")} <= marked(panel, "=").keys()
    assert all(cell.border == "conflict" for cell in cells if cell.badge)


@pytest.mark.share(5, among="pictures")
def test_an_element_outside_the_tensor_is_drawn_outside_of_it() -> None:
    (panel,) = drawn("missing_tail_predicate").panels
    (cell,) = marked(panel, "!").values()

    assert panel.columns[-1] == "8"
    assert cell.lines == ("",)


def test_a_fault_without_an_element_has_no_picture() -> None:
    (template,) = templates(REFUTED / "lds_over_budget.py")
    kernel = template.trace()
    verdict = verify(kernel, solver="z3").verdict

    assert isinstance(verdict, Refuted)
    assert picture(kernel, verdict.counterexample) is None


@pytest.mark.share(5, among="pictures")
def test_the_command_line_writes_an_svg_with_a_legend(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tile.svg"

    assert main(["verify", str(REFUTED / "transposed_b.py"), "--no-cache", "--svg", str(path)]) == 1
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<svg ")
    assert ">!: the faulty element</text>" in text
    assert f"wrote {path}" in capsys.readouterr().out


def test_the_command_line_says_when_there_is_nothing_to_draw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tile.svg"

    assert main(["verify", str(REFUTED / "lds_over_budget.py"), "--no-cache", "--svg", str(path)]) == 1
    assert not path.exists()
    assert "no counterexample names an element" in capsys.readouterr().out


@pytest.mark.parametrize(("option", "name", "code"), [("--svg", "t.jpg", "E813"), ("--sarif", "no/t.sarif", "E302")])
def test_a_file_that_cannot_be_written_is_told(
    option: str, name: str, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["verify", str(REFUTED / "lds_over_budget.py"), "--no-cache", option, str(tmp_path / name)]

    assert main(given) == 3
    assert f"error[{code}]" in capsys.readouterr().err
