from __future__ import annotations

import io
import json
from pathlib import Path

from rich.console import Console

from argus.cli.ansi import print_diagnostic, render_rich
from argus.core.diagnostic import Diagnostic, Label
from argus.core.span import NOWHERE, Frame, Span
from argus.report.diagnostic_text import render_plain, to_json
from argus.report.sources import current_directory, read_source

TRANSPOSE = """\
def transpose(source, target):
    tile = shared(f32, (64, 64))
    store(tile, (row, col), value)

    partial = load(tile, (col, row))
"""
HELPER = "def swizzled(row):\n\treturn row ^ 7\n"
FILES = {"/src/examples/transpose.py": TRANSPOSE, "/lib/helper.py": HELPER}


def frame(line: int, column: int, end: int, *, file: str = "/src/examples/transpose.py", function: str = "f") -> Frame:
    return Frame(file, line, column, end, function)


WRITE = frame(3, 4, 9, function="transpose")
READ = frame(5, 14, 18, function="transpose")
CALLER = frame(40, 0, 9, file="/src/examples/run.py", function="main")

RACE = Diagnostic(
    code="I5",
    severity="error",
    message="two threads may touch `tile[32, 0]` in the same phase",
    primary=Label(Span((WRITE,)), "written by thread 37 (warp 1, lane 5)"),
    secondary=(Label(Span((READ,)), "read by thread 5 (warp 0, lane 5)"),),
    facts=(("launch", "block=(64,), grid=(1,)"), ("replayed", "yes, both accesses in phase 2")),
    notes=("nothing orders the two accesses",),
    help="a `sync()` between line 3 and line 5 separates the phases",
)
RACE_TEXT = """\
error[I5]: two threads may touch `tile[32, 0]` in the same phase
 --> examples/transpose.py:3:5
3 |     store(tile, (row, col), value)
  |     ^^^^^ written by thread 37 (warp 1, lane 5)
5 |     partial = load(tile, (col, row))
  |               ---- read by thread 5 (warp 0, lane 5)
  = launch: block=(64,), grid=(1,)
  = replayed: yes, both accesses in phase 2
  = note: nothing orders the two accesses
  = help: a `sync()` between line 3 and line 5 separates the phases
  = more: docs/invariants/I05.md"""


def plain(diagnostic: Diagnostic) -> str:
    return render_plain(diagnostic, FILES.get, root="/src")


def test_a_race_shows_both_places_in_line_order() -> None:
    assert plain(RACE) == RACE_TEXT


def test_labels_above_the_primary_come_first_but_the_header_is_the_primary() -> None:
    swapped = Diagnostic("I5", "error", "stale", RACE.secondary[0], (RACE.primary,))

    assert plain(swapped).splitlines()[1:5] == [
        " --> examples/transpose.py:5:15",
        "3 |     store(tile, (row, col), value)",
        "  |     ----- written by thread 37 (warp 1, lane 5)",
        "5 |     partial = load(tile, (col, row))",
    ]


def test_two_labels_on_one_line_share_its_text() -> None:
    both = Diagnostic(
        "I33", "error", "twice", Label(Span((WRITE,)), "here"), (Label(Span((frame(3, 10, 14),)), "this buffer"),)
    )

    assert plain(both).splitlines()[2:5] == [
        "3 |     store(tile, (row, col), value)",
        "  |     ^^^^^ here",
        "  |           ---- this buffer",
    ]


def test_another_file_gets_its_own_excerpt_and_tabs_keep_the_underline_in_place() -> None:
    other = Label(Span((frame(2, 8, 15, file="/lib/helper.py"), CALLER)), "computed here")
    expected = """\
unknown[I22]: no bound is known
 --> examples/transpose.py:3:5
3 |     store(tile, (row, col), value)
  |     ^^^^^ stored here
 ::: /lib/helper.py:2:9
2 | \treturn row ^ 7
  | \t       ------- computed here
  = line 2 called from examples/run.py:40 in main
  = kernel: transpose
  = more: docs/invariants/I22.md"""

    unknown = Diagnostic(
        "I22", "unknown", "no bound is known", Label(Span((WRITE,)), "stored here"), (other,), kernel="transpose"
    )

    assert plain(unknown) == expected


def test_calls_are_listed_outwards() -> None:
    called = Diagnostic("E301", "error", "no", Label(Span((WRITE, frame(9, 0, 1, function="stage"), CALLER)), "here"))

    assert plain(called).splitlines()[4:6] == [
        "  = called from examples/transpose.py:9 in stage",
        "  = called from examples/run.py:40 in main",
    ]


def test_gutter_fits_the_longest_number() -> None:
    wide = Diagnostic(
        "E301", "error", "m", Label(Span((frame(3, 4, 9),)), "a"), (Label(Span((frame(120, 0, 1),)), "b"),)
    )

    assert plain(wide).splitlines()[1:5] == [
        "   --> examples/transpose.py:3:5",
        "  3 |     store(tile, (row, col), value)",
        "    |     ^^^^^ a",
        "    = line 120: b",
    ]


def test_without_a_place_there_is_no_excerpt() -> None:
    usage = Diagnostic(
        "E701", "error", "no such option `--sover`", Label(NOWHERE, "given twice"), help="did you mean\n`--solver`?"
    )

    assert plain(usage) == (
        "error[E701]: no such option `--sover`\n"
        "  = note: given twice\n"
        "  = help: did you mean\n"
        "          `--solver`?\n"
        "  = more: docs/errors/E701.md"
    )


def test_a_missing_file_keeps_the_place_and_the_words() -> None:
    gone = Diagnostic("I5", "error", "m", Label(Span((frame(7, 0, 3, file="/gone.py"),)), "written here"))

    assert plain(gone).splitlines()[1:3] == [" --> /gone.py:7:1", "  = line 7: written here"]


def test_a_statement_over_several_lines_is_underlined_to_the_end_of_its_first() -> None:
    long = Diagnostic("I5", "error", "m", Label(Span((frame(3, 4, 1),)), "here"))

    assert plain(long).splitlines()[3] == "  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ here"


def test_a_line_without_columns_is_underlined_from_its_first_word() -> None:
    line = Diagnostic("I5", "error", "m", Label(Span((frame(5, 0, 0),)), "raised here"))

    assert plain(line).splitlines()[3] == "  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ raised here"


def printed(*, terminal: bool, environment: dict[str, str]) -> str:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, color_system="standard", width=40, _environ=environment)
    print_diagnostic(RACE, FILES.get, console, root="/src")
    return stream.getvalue()


def test_colour_is_the_same_text_with_escapes() -> None:
    coloured = printed(terminal=True, environment={"TERM": "xterm-256color"})

    assert coloured.startswith("\x1b[1;31merror[I5]\x1b[0m\x1b[1m: two threads")
    assert "\x1b[1;31m^^^^^ written by thread 37 (warp 1, lane 5)\x1b[0m" in coloured
    assert "\x1b[1;34m---- read by" in coloured
    assert render_rich(RACE, FILES.get, root="/src").plain == RACE_TEXT


def test_no_colour_where_it_is_not_wanted() -> None:
    assert printed(terminal=True, environment={"TERM": "xterm", "NO_COLOR": "1"}) == RACE_TEXT + "\n"
    assert printed(terminal=False, environment={}) == RACE_TEXT + "\n"


def test_json_is_stable() -> None:
    report = to_json(RACE)

    assert json.loads(json.dumps(report)) == report
    assert report == {
        "schema": "argus.diagnostic/1",
        "code": "I5",
        "severity": "error",
        "message": "two threads may touch `tile[32, 0]` in the same phase",
        "kernel": "",
        "primary": {
            "text": "written by thread 37 (warp 1, lane 5)",
            "frames": [
                {
                    "file": "/src/examples/transpose.py",
                    "line": 3,
                    "column": 4,
                    "end_column": 9,
                    "function": "transpose",
                }
            ],
        },
        "secondary": [
            {
                "text": "read by thread 5 (warp 0, lane 5)",
                "frames": [
                    {
                        "file": "/src/examples/transpose.py",
                        "line": 5,
                        "column": 14,
                        "end_column": 18,
                        "function": "transpose",
                    }
                ],
            }
        ],
        "facts": [
            {"name": "launch", "value": "block=(64,), grid=(1,)"},
            {"name": "replayed", "value": "yes, both accesses in phase 2"},
        ],
        "notes": ["nothing orders the two accesses"],
        "help": "a `sync()` between line 3 and line 5 separates the phases",
        "page": "docs/invariants/I05.md",
    }


def test_sources_are_read_in_their_encoding_or_not_at_all(tmp_path: Path) -> None:
    latin = tmp_path / "latin.py"
    latin.write_bytes("# coding: latin-1\nname = 'ü'\n".encode("latin-1"))
    broken = tmp_path / "broken.py"
    broken.write_bytes(b"\xff\xfe\x00")

    assert read_source(str(latin)) == "# coding: latin-1\nname = 'ü'\n"
    assert read_source(str(broken)) is None
    assert read_source(str(tmp_path)) is None
    assert read_source(str(tmp_path / "absent.py")) is None
    assert current_directory() == str(Path.cwd())
