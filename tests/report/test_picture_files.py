from __future__ import annotations

import struct
from functools import partial
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from resvg_py import svg_to_bytes

from argus.core.diagnostic import ArgusError
from argus.core.layout import Layout, LayoutError
from argus.report import layout_svg
from argus.report.layout_svg import grid, png, save


def test_a_png_has_the_size_of_the_svg_times_the_scale() -> None:
    picture = grid(Layout((4, 8)))
    root = ET.fromstring(picture.svg())  # noqa: S314 reason: our own document
    assert picture.extent() == (float(root.attrib["width"]), float(root.attrib["height"]))

    data = png(picture, scale=3.0)

    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == tuple(3 * length for length in picture.extent())


def test_the_suffix_decides_the_file_format(tmp_path: Path) -> None:
    picture = grid(Layout((4, 8)))
    for name, data in (("a.svg", picture.svg().encode()), ("a.TXT", picture.txt().encode()), ("a.png", png(picture))):
        save(picture, tmp_path / name)
        save(picture, tmp_path / name)

        assert (tmp_path / name).read_bytes() == data
    assert len(list(tmp_path.iterdir())) == 3


def test_a_png_has_a_bounded_number_of_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_svg, "MOST_PIXELS", 10_000)

    width, height = struct.unpack(">II", png(grid(Layout((4, 8))), scale=1e9)[16:24])

    assert 9_000 < width * height < 10_500


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan")])
def test_a_scale_is_above_0(scale: float) -> None:
    with pytest.raises(LayoutError, match="E813: a PNG at the scale"):
        png(grid(Layout(4)), scale)


@pytest.mark.parametrize("name", ["a.gif", "a", ".svg"])
def test_other_endings_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match=r"E813: cannot draw .* expected one of \.svg, \.png, \.txt"):
        save(grid(Layout(4)), tmp_path / name)


@pytest.mark.parametrize("name", ["none/a.svg", "folder.svg", "a" * 300 + ".svg", "nul\0.svg"])
def test_a_file_that_cannot_be_written_is_reported(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder.svg").mkdir()

    with pytest.raises(ArgusError, match="E302: cannot write"):
        save(grid(Layout(4)), tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.svg"]


def test_png_without_the_library_or_fonts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_svg, "svg_to_bytes", partial(svg_to_bytes, skip_system_fonts=True))
    with pytest.raises(LayoutError, match="E813: PNG needs a font"):
        png(grid(Layout(4)))
    monkeypatch.setattr(layout_svg, "svg_to_bytes", None)
    with pytest.raises(LayoutError, match="E813: PNG needs") as caught:
        png(grid(Layout(4)))
    assert caught.value.diagnostic.help.startswith("pip install resvg-py")
    assert grid(Layout(4)).svg()
