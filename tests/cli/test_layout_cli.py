from __future__ import annotations

from pathlib import Path

import pytest

from argus.cli.main import main
from argus.core.layout import ComposedLayout, Layout, Swizzle
from argus.core.layout.notation import parse_layout
from argus.report.layout_svg import banks, grid, side_by_side, swizzled, tv

SHOW = ["layout", "show"]
TILE = "(8,8):(64,8)"
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_layout_is_printed_as_a_grid(capsys: Captured) -> None:
    assert main([*SHOW, "((2,2),2):((2,1),4)"]) == 0

    assert capsys.readouterr().out == (
        "((2,2),2):((2,1),4)\n\n"
        "     0   1\n"
        "   +---+---+\n"
        " 0 | 0 | 4 |\n"
        "   +---+---+\n"
        " 1 | 2 | 6 |\n"
        "   +===+===+\n"
        " 2 | 1 | 5 |\n"
        "   +---+---+\n"
        " 3 | 3 | 7 |\n"
        "   +---+---+\n"
    )


@pytest.mark.parametrize("text", ["(4,8)", "Sw<3,4,3>", "Sw<2,0,2> o 0 o (4,4):(4,1)"])
def test_every_kind_of_layout_is_drawn(text: str, capsys: Captured) -> None:
    assert main([*SHOW, text]) == 0
    assert capsys.readouterr().out.count("+\n") > 4


def test_the_options_choose_the_view(capsys: Captured) -> None:
    tile, swizzle = parse_layout(TILE), Swizzle(3, 3, 3)
    after = ComposedLayout(swizzle, 0, tile)
    both = side_by_side([banks(each, 16, range(8)) for each in (tile, after)], "Sw<3,3,3>")
    for options, picture in (
        ([TILE, "--swizzle", "3,3,3"], swizzled(tile, swizzle)),
        ([TILE, "--swizzle", "Sw<3,3,3>", "--banks", "--phase", "8"], both),
        ([TILE, "--banks", "--element-bits", "64"], banks(tile, 64)),
        (
            ["(4,8):(32,1) ; (2,2):(16,8)", "--tile", "16x8"],
            tv(Layout((4, 8), (32, 1)), Layout((2, 2), (16, 8)), (16, 8)),
        ),
    ):
        assert main([*SHOW, *options]) == 0
        assert capsys.readouterr().out == picture.txt()


@pytest.mark.parametrize("name", ["x.svg", "x.png", "x.txt"])
def test_the_suffix_decides_the_format(name: str, own_folder: Path, capsys: Captured) -> None:
    (own_folder / name).write_text("before", encoding="utf-8")

    assert main([*SHOW, "((4,8),2):((8,1),4)", "-o", name]) == 0

    assert capsys.readouterr().out == f"wrote {name}\n"
    begins = {"x.svg": b"<svg ", "x.png": b"\x89PNG", "x.txt": b"((4,8),2):((8,1),4)\n"}
    assert (own_folder / name).read_bytes().startswith(begins[name])


def test_the_file_holds_what_the_layout_draws(own_folder: Path) -> None:
    assert main([*SHOW, "(4,8):(8,1)", "--output", "x.svg"]) == 0

    assert (own_folder / "x.svg").read_text(encoding="utf-8") == grid(Layout((4, 8), (8, 1))).svg()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["layout"], "E701"),
        (["layout", "nosuch"], "E701"),
        (SHOW, "E701"),
        ([*SHOW, "4", "--phase", "2"], "E701"),
        ([*SHOW, "4", "--tile", "4"], "E701"),
        ([*SHOW, "4 ; 1"], "E701"),
        ([*SHOW, "4 ; 1", "--tile", "4x"], "E701"),
        ([*SHOW, "4 ; 1", "--tile", "4", "--banks"], "E701"),
        ([*SHOW, "4", "--banks", "--element-bits", "0"], "E701"),
        ([*SHOW, "4", "--swizzle", "4:1"], "E701"),
        ([*SHOW, "Sw<3,4,3>", "--banks"], "E701"),
        ([*SHOW, "4:2 ; 1", "--tile", "4"], "E803"),
        ([*SHOW, "4", "--banks", "--phase", "5"], "E803"),
        ([*SHOW, "4:(1,2)"], "E801"),
        ([*SHOW, "(4,8"], "E802"),
        ([*SHOW, ""], "E802"),
        ([*SHOW, "(" * 1_000_000], "E802"),
        ([*SHOW, "4", "--swizzle", "1,2"], "E802"),
        ([*SHOW, "4", "--swizzle", "1,0,0"], "E808"),
        ([*SHOW, "(64,65)"], "E813"),
        ([*SHOW, "4", "-o", "x.gif"], "E813"),
        ([*SHOW, "4", "-o", ""], "E813"),
        ([*SHOW, "4", "-o", "nosuch/x.svg"], "E302"),
    ],
)
def test_bad_input_has_its_code_and_no_traceback(arguments: list[str], code: str, capsys: Captured) -> None:
    assert main(arguments) == 3

    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error[{code}]: ")
    assert "Traceback" not in err
