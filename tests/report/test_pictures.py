from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree as ET

import pytest

from argus.core.layout import ComposedLayout, Layout, LayoutError, Swizzle
from argus.core.layout.pictures.colours import HUES, ramp, shade
from argus.core.layout.pictures.panel import Cell
from argus.core.memory.lane_accesses import Access
from argus.core.target import Target, gfx942, sm_90a
from argus.report.layout_svg import Picture, banks, conflicts, grid, side_by_side, swizzled, tv
from tests.conftest import Golden

ROWS = Layout((8, 8), (64, 8))
FIRST_COLUMN = range(8)


def cells(picture: Picture, panel: int = 0) -> list[Cell]:
    """By rows."""
    return [cell for row in picture.panels[panel].cells for cell in row]


def texts(picture: Picture, panel: int = 0) -> list[list[str]]:
    return [[" ".join(cell.lines) for cell in row] for row in picture.panels[panel].cells]


def root_of(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314 reason: our own document


def elements(svg: str, tag: str) -> list[ET.Element]:
    return list(root_of(svg).iter(f"{{http://www.w3.org/2000/svg}}{tag}"))


# -- drawing -------------------------------------------------------------------------------------------------


def test_a_small_grid_as_svg(golden: Golden) -> None:
    golden(Layout(((2, 2), 2), ((1, 4), 2)).svg())


def test_a_small_grid_as_text(golden: Golden) -> None:
    golden(grid(Layout(((2, 2), (2, 2)), ((1, 40), (2, 8)))).txt())


def test_marks_are_told_in_text_too(golden: Golden) -> None:
    swizzle = Swizzle(3, 3, 3)
    after = ComposedLayout(swizzle, 0, ROWS)
    golden(side_by_side([banks(each, 16, FIRST_COLUMN) for each in (ROWS, after)], str(swizzle)).txt())


def test_every_cell_heading_and_title_is_drawn_once() -> None:
    layout = Layout((5, 7), (7, 1))

    drawn = Counter(each.text for each in elements(layout.svg(), "text"))

    headings = [*map(str, range(5)), *map(str, range(7))]
    assert drawn == Counter([*map(str, range(35)), *headings, "(5,7):(7,1)", "image: 0 to 34"])


def test_texts_stay_inside_their_cells_and_the_page() -> None:
    svg = grid(Layout((3, 4), (10**30, -(10**9)))).svg()

    root = root_of(svg)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    fonts = [float(each.attrib["font-size"]) for each in root.iter() if "font-size" in each.attrib]
    assert min(fonts) < 8
    for rect in elements(svg, "rect"):
        x, y, wide, high = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + wide <= width
        assert 0 <= y <= y + high <= height


def test_a_long_title_is_broken_and_shortened() -> None:
    layout = Layout((1,) * 300 + (2,), tuple(range(301)))

    titles = [each.text or "" for each in elements(layout.svg(), "text") if each.attrib.get("font-weight") == "bold"]

    assert len(titles) > 3
    assert all(len(line) <= 42 for line in titles)
    assert "…" in "".join(titles)


@pytest.mark.parametrize(
    ("layout", "rows", "columns"),
    [
        (Layout(6, 2), 1, 6),
        (Layout((6,), (2,)), 1, 6),
        (Layout((), ()), 1, 1),
        (Layout((3, 2, 2), (1, 3, 6)), 3, 4),
        (Layout(((2, 2), (3, 1)), ((1, 2), (4, 0))), 4, 3),
        (ComposedLayout(Swizzle(1, 0, 1), 0, Swizzle(1, 0, 1)), 1, 4),
    ],
)
def test_mode_0_is_the_rows_and_the_rest_the_columns(layout: Layout | ComposedLayout, rows: int, columns: int) -> None:
    shown = texts(grid(layout))

    assert (len(shown), len(shown[0])) == (rows, columns)
    assert shown == [[str(layout(row + rows * column)) for column in range(columns)] for row in range(rows)]


def test_tiles_of_nested_modes_have_heavier_lines() -> None:
    (panel,) = grid(Layout(((2, 1, 2, 2), (2, 2), 2))).panels

    assert panel.row_lines == (2, 0, 1, 0, 2, 0, 1, 0)
    assert panel.column_lines == (2, 0, 1, 0, 2, 0, 1, 0)
    weights = {each.attrib["stroke-width"] for each in elements(Picture((panel,)).svg(), "path")}
    assert weights == {"1.5", "2.25"}


def test_layouts_show_themselves_in_jupyter_unless_they_are_too_large() -> None:
    for layout in (Layout((4, 8)), ComposedLayout(Swizzle(1, 0, 2), 0, Layout((4, 8)))):
        assert layout._repr_svg_() == layout.svg() == grid(layout).svg() == grid(layout)._repr_svg_()  # pyright: ignore[reportPrivateUsage] reason: what Jupyter calls
        assert layout._repr_html_().endswith(f"elements</p>{layout.svg()}")  # pyright: ignore[reportPrivateUsage] reason: what Jupyter calls
    assert Layout((65, 64))._repr_svg_() is None  # pyright: ignore[reportPrivateUsage] reason: what Jupyter calls
    assert Layout((65, 64))._repr_html_() == "<p><code>(65,64):(1,65)</code>, 4160 elements</p>"  # pyright: ignore[reportPrivateUsage] reason: what Jupyter calls


# -- colours -------------------------------------------------------------------------------------------------


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_black_text_is_readable_on_every_fill() -> None:
    fills = [shade(hue, tint) for hue in range(9) for tint in range(5)] + [ramp(part, 20) for part in range(21)]

    assert min((luminance(fill) + 0.05) / 0.05 for fill in fills) > 7  # WCAG AAA
    assert len({shade(hue, tint) for hue in range(8) for tint in range(4)}) == 32


def test_the_ramp_only_darkens() -> None:
    shades = [luminance(ramp(part, 100)) for part in range(101)]

    assert shades == sorted(shades, reverse=True)
    assert ramp(0, 0) == ramp(0, 5)


# -- threads and values --------------------------------------------------------------------------------------


def test_each_element_names_its_thread_and_value() -> None:
    threads, values = Layout((4, 8), (32, 1)), Layout((2, 2), (16, 8))

    picture = tv(threads, values, (16, 8))

    shown = texts(picture)
    for thread in range(32):
        for value in range(4):
            row, column = (threads(thread) + values(value)) % 16, (threads(thread) + values(value)) // 16
            assert shown[row][column] == f"T{thread} V{value}"
    assert len({cell.fill for cell in cells(picture)}) == 32


def test_replicated_elements_name_two_holders_and_unheld_ones_none() -> None:
    assert texts(tv(Layout((2, 2), (1, 0)), Layout(1), (3,))) == [["T0,2 V0", "T1,3 V0", " "]]
    assert texts(tv(Layout((2, 3), (1, 0)), Layout(1), (2,))) == [["T0,2.. V0", "T1,3.. V0"]]
    assert texts(tv(Layout(3), Layout(3), (5,))) == [["T0 V0", "T0V1 T1V0", "T0V2 T1V1..", "T1V2 T2V1", "T2 V2"]]
    assert cells(tv(Layout(1), Layout(1), (2,)))[1].fill == "#ffffff"


@pytest.mark.parametrize("stride", [4, -1])
def test_an_element_outside_the_tile_is_named(stride: int) -> None:
    with pytest.raises(LayoutError, match=f"E803: value 0 of thread 1 is element {stride}, outside the tile of 4"):
        tv(Layout(2, stride), Layout(1), (2, 2))


# -- banks ---------------------------------------------------------------------------------------------------


def test_banks_are_those_of_the_bytes() -> None:
    assert texts(banks(Layout((2, 64), (64, 1)), 16))[1] == [str(element // 2) for element in range(64)]
    assert texts(banks(Layout(34), 32)) == [[str(element % 32) for element in range(34)]]
    assert texts(banks(Layout(3), 64, count=4)) == [["0-1", "2-3", "0-1"]]
    assert texts(banks(Layout(16), 4)) == [["0"] * 8 + ["1"] * 8]


def test_a_phase_is_outlined_and_its_conflicts_are_counted() -> None:
    plain = cells(banks(ROWS, 16, FIRST_COLUMN))
    mended = cells(banks(ComposedLayout(Swizzle(3, 3, 3), 0, ROWS), 16, FIRST_COLUMN))

    assert Counter((cell.border, cell.badge) for cell in plain) == {("conflict", "×8"): 8, ("", ""): 56}
    assert Counter((cell.border, cell.badge) for cell in mended) == {("phase", ""): 8, ("", ""): 56}


def test_lanes_that_want_one_word_share_it() -> None:
    assert {cell.border for cell in cells(banks(Layout(2), 16, (0, 1)))} == {"phase"}
    assert {cell.border for cell in cells(banks(Layout(3, 0), 32, (0, 1, 2)))} == {"phase"}


def test_the_conflict_to_mark_may_be_given() -> None:
    picture = banks(ROWS, 16, FIRST_COLUMN, conflict=(2, 3, 9))

    assert [cell.border for cell in cells(picture)[::8]] == ["phase"] * 2 + ["conflict"] * 2 + ["phase"] * 4
    assert not any(cell.border for cell in cells(picture)[1::8])


@pytest.mark.parametrize(("target", "expected"), [(gfx942, {0, 1, 2, 3, 20, 21, 22, 23}), (sm_90a, set(range(8)))])
def test_the_worst_phase_of_an_access_is_that_of_the_target(target: Target, expected: set[int]) -> None:
    access = Access(Layout(target.unit, 64), vector=8)

    picture = conflicts(Layout((target.unit, 8), (64, 1)), access, target=target, element_bits=16)

    rows = picture.panels[0].cells
    assert {row for row, line in enumerate(rows) if line[0].border} == expected
    assert {(cell.border, cell.badge) for row in expected for cell in rows[row]} == {("conflict", "×8")}


def test_a_layout_that_is_not_the_whole_buffer_is_refused() -> None:
    with pytest.raises(
        LayoutError, match="E803: the worst phase accesses element 16, which is not in the image of 16:1"
    ):
        conflicts(Layout(16), Access(Layout(32)), target=sm_90a, element_bits=32)


def test_an_access_without_conflicts_has_none_marked() -> None:
    picture = conflicts(Layout((32, 1)), Access(Layout(32)), target=sm_90a, element_bits=32)

    assert {cell.border for cell in cells(picture)} == {"phase"}


@pytest.mark.parametrize("sizes", [(0, 32, 4), (8, 0, 4), (8, 32, 0)])
def test_banks_of_no_size_are_refused(sizes: tuple[int, int, int]) -> None:
    bits, count, width = sizes
    with pytest.raises(LayoutError, match="E813: elements of"):
        banks(Layout(4), bits, count=count, width=width)


def test_an_index_outside_the_layout_is_refused() -> None:
    with pytest.raises(LayoutError, match="E803: index 4 of the phase"):
        banks(Layout(4), 32, (0, 4))


# -- swizzles ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("swizzle", [Swizzle(2, 1, 3), Swizzle(2, 0, -3), Swizzle(0, 0, 0)])
def test_before_and_after_a_swizzle(swizzle: Swizzle) -> None:
    layout = Layout((8, 8), (8, 1))

    picture = swizzled(layout, swizzle)

    assert texts(picture, 0) == [[str(8 * row + column) for column in range(8)] for row in range(8)]
    assert texts(picture, 1) == [[str(swizzle(8 * row + column)) for column in range(8)] for row in range(8)]
    before, after = ({cell.lines[0]: cell.fill for cell in cells(picture, panel)} for panel in (0, 1))
    assert before == after
    assert len(set(before.values())) == 1 << swizzle.bits
    heads = [each for each in elements(picture.svg(), "path") if each.attrib["d"].endswith("z")]
    assert len(heads) == 1


def test_a_swizzle_alone_is_shown_in_units_of_its_base() -> None:
    picture = grid(Swizzle(3, 4, 3))

    assert texts(picture, 1) == [[str(8 * row + (column ^ row)) for column in range(8)] for row in range(8)]
    assert [key.text for key in picture.legend] == ["Sw<3,4,3>, in units of 16"]
    assert {cell.fill for cell in cells(picture)} == set(HUES)


def test_wide_panels_go_one_below_another() -> None:
    picture = swizzled(Layout((2, 64), (64, 1)), Swizzle(1, 0, 6))

    root = root_of(picture.svg())
    assert float(root.attrib["width"]) < 2 * 64 * 34


# -- refusals ------------------------------------------------------------------------------------------------


def test_at_most_4096_cells_are_drawn() -> None:
    assert len(cells(grid(Layout((64, 64))))) == 4096
    for draw in (
        lambda: grid(Layout((64, 65))),
        lambda: banks(Layout(4097), 16),
        lambda: tv(Layout(4), Layout(4), (4, 4160 // 4)) and tv(Layout(4), Layout(4), (64, 65)),
        lambda: swizzled(Layout((64, 65)), Swizzle(1, 0, 1)),
        Layout((64, 65)).svg,
    ):
        with pytest.raises(LayoutError, match=r"E813: a picture of 4160 cells|4097 cells") as caught:
            draw()
        assert "tile" in caught.value.diagnostic.help


def test_numbers_beyond_reason_are_told_in_brief() -> None:
    with pytest.raises(LayoutError, match=r"a picture of about 2\^1899 cells"):
        grid(Swizzle(900, 0, 999))
    with pytest.raises(LayoutError, match=r"a picture of about 2\^20000 cells"):
        grid(Layout((2,) * 20_000))
    with pytest.raises(LayoutError, match="1048576 pairs of a thread and a value"):
        tv(Layout(1024, 0), Layout(1024, 0), (4, 4))
