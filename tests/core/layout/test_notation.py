from __future__ import annotations

import time

import pytest

from argus.core.layout import ComposedLayout, Layout, LayoutError, LayoutLike, Swizzle
from argus.core.layout.notation import parse, parse_layout, parse_pair

NESTED = ComposedLayout(Swizzle(3, 4, 3), 5, Layout(((4, 8), 2), ((8, 1), 4)))
DENOTED: list[tuple[str, LayoutLike]] = [
    ("((4,8),2):((8,1),4)", Layout(((4, 8), 2), ((8, 1), 4))),
    ("(4,8)", Layout((4, 8), (1, 4))),
    ("4", Layout(4)),
    ("(4):(2)", Layout(4, 2)),
    ("(4,):(2,)", Layout((4,), (2,))),
    ("():()", Layout((), ())),
    (" ( 4 ,\t8 ) : ( -1 , 0 )\n", Layout((4, 8), (-1, 0))),
    ("(_4,_8):(_-1,-_2)", Layout((4, 8), (-1, -2))),
    ("Sw<3,4,3>", Swizzle(3, 4, 3)),
    ("S< 2 , 0 , -3 >", Swizzle(2, 0, -3)),
    ("SW_3_4_3", Swizzle(3, 4, 3)),
    ("Sw<3,4,3> o 5 o ((4,8),2):((8,1),4)", NESTED),
    ("[Sw<3,4,3> o 5 o ((4,8),2):((8,1),4)] o -1 o Sw<1,0,1>", ComposedLayout(NESTED, -1, Swizzle(1, 0, 1))),
    ("4:1 o _0 o [Sw<3,4,3> o 5 o ((4,8),2):((8,1),4)]", ComposedLayout(Layout(4), 0, NESTED)),
]
REFUSED = [
    ("", "column 1: expected a number or `(`, found the end"),
    ("4:", "column 3: expected a number or `(`, found the end"),
    ("(4,8:(1,4)", "column 5: expected `,` or `)`, found `:`"),
    ("(4,,8)", "column 4: expected a number or `(`, found `,`"),
    ("(4 8)", "column 4: expected `,` or `)`, found `8`"),
    ("4:1)", "column 4: expected the end of the text, found `)`"),
    ("x", "column 1: expected a number or `(`, found `x`"),
    ("(2,_)", "column 4: expected a number or `(`, found `_`"),
    ("Sw<3,4>", "column 1: expected a swizzle such as `Sw<3,4,3>`"),
    ("Sw<3,4,1000>", "its numbers below 1000"),
    ("4:1 o 4:1", "column 8: expected `o` between the offset and the inner layout, found `:`"),
    ("4 o é", "column 5: expected a number for the offset"),
    ("[4", "column 3: expected `]`, found the end"),
    ("9" * 41, "column 1: expected a number of at most 40 digits, found one of 41"),
    ("(" * 33 + "4" + ")" * 33, "column 33: expected at most 32 levels of brackets"),
]


@pytest.mark.parametrize(("text", "denoted"), DENOTED)
def test_a_text_denotes_what_prints_as_it(text: str, denoted: LayoutLike) -> None:
    assert parse(text) == denoted
    assert parse(str(denoted)) == denoted


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_other_texts_are_refused_with_the_column(text: str, said: str) -> None:
    with pytest.raises(LayoutError) as caught:
        parse(text)

    assert caught.value.code == "E802"
    assert said in str(caught.value)


def test_a_caret_marks_the_column() -> None:
    with pytest.raises(LayoutError) as caught:
        parse("(" + "4," * 40 + "8:1")

    _, text, caret = caught.value.diagnostic.message.split("\n")
    assert text[caret.index("^")] == ":"
    assert len(text) < 80


@pytest.mark.parametrize("text", ["(4,8):(1,4,2)", "0:1", "Sw<1,0,0>", "(2,0)"])
def test_what_is_written_well_and_is_no_layout_has_its_own_code(text: str) -> None:
    with pytest.raises(LayoutError) as caught:
        parse(text)

    assert caught.value.code in {"E801", "E808"}


@pytest.mark.parametrize(
    "text",
    ["(" * 100_000, "[" * 99_999, "9" * 1_000_000, "1," * 50_000, "(" + "2," * 2_000 + ")", " " * 99_000, "S" * 99_000],
)
def test_long_texts_are_refused_at_once(text: str) -> None:
    began = time.perf_counter()
    with pytest.raises(LayoutError, match="E802"):
        parse(text)

    assert time.perf_counter() - began < 2


def test_the_most_numbers_are_read() -> None:
    assert parse(f"({','.join(['2'] * 1024)})") == Layout((2,) * 1024)


def test_parse_pairs_and_layouts() -> None:
    assert parse_pair("(4,8):(32,1) ; 2:16") == (Layout((4, 8), (32, 1)), Layout(2, 16))
    assert parse_layout("(4,8)") == Layout((4, 8))
    for text, column in (("4:1", 4), ("4;5;6", 4), ("4;", 3)):
        with pytest.raises(LayoutError, match=f"E802: column {column}: "):
            parse_pair(text)
    with pytest.raises(LayoutError, match="column 1: expected a number"):
        parse_layout("Sw<1,0,1>")
