"""Annotated files: bare kernels regain their claims, which then refute wrong edits; nothing else changes."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from argus.cli.main import main
from argus.core.verdict import Refuted
from argus.verifier.annotate import annotate
from argus.verifier.annotate.text import Insertion, insert_lines, source_of
from argus.verifier.kernel import verify
from argus.verifier.loader import load
from property_tests.programs import CORPUS

ROOT = Path(__file__).parents[3]
EXAMPLES = [ROOT / "examples" / "01_prove.py"]
KERNELS = [
    CORPUS / "proved" / f"{name}.py"
    for name in ("direct_from_global", "batched", "slabs_by_ordinary_copies", "two_consumers", "real_hecbench_253")
]


def bare(text: str, *, tags: bool = True) -> str:
    """A file without its claims, and without its tags."""
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if name.startswith("assert_") or (
                tags and name == "tag"
            ):
                lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or 0) - node.lineno + 1)
            case _:
                pass
    return "".join(lines)


def written(folder: Path, text: str, name: str = "bare.py") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def unclaimed() -> str:
    return bare((CORPUS / "proved" / "direct_from_global.py").read_text(encoding="utf-8"))


@pytest.mark.share(40, among="verifier: annotate: annotate")
@pytest.mark.parametrize("path", [*EXAMPLES, *KERNELS], ids=lambda path: path.stem)
def test_a_kernel_without_claims_gets_claims_of_every_output(path: Path, tmp_path: Path) -> None:
    text = bare(path.read_text(encoding="utf-8"))
    made = annotate(str(written(tmp_path, text)), solver="z3")

    assert made.proved
    assert not any(report.uncovered for report in made.reports)
    kept = made.after.decode().splitlines(keepends=True)
    for each in reversed(made.added):
        assert kept.pop(each.line - 1).strip() == each.code
    assert "".join(kept) == text


@pytest.mark.nightly
def test_a_second_time_adds_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, unclaimed())

    assert main(["annotate", str(path), "--solver", "z3", "--write"]) == 0
    first = path.read_bytes()
    assert b"assert_covers(acc.tag.k, 0, K)" in first
    assert main(["annotate", str(path), "--solver", "z3", "--write"]) == 0
    assert path.read_bytes() == first


@pytest.mark.share(4, among="added claims")
def test_an_edit_is_refuted_only_with_the_added_claims(tmp_path: Path) -> None:
    text = unclaimed()
    right, wrong = "B.tile((64, 32), (n, k))", "B.tile((64, 32), (m, k))"
    guarded = annotate(str(written(tmp_path, text)), solver="z3").after.decode()
    assert text.count(right) == guarded.count(right) == 1
    (bare_one,) = load(str(tmp_path / "bare.py"))
    (bare_other,) = load(str(written(tmp_path, text.replace(right, wrong), "other.py")))
    (after,) = load(str(written(tmp_path, guarded.replace(right, wrong), "after.py")))

    assert verify(bare_one.trace(), solver="z3").verdict == verify(bare_other.trace(), solver="z3").verdict
    assert isinstance(verify(after.trace(), solver="z3").verdict, Refuted)


@pytest.mark.share(4, among="added claims")
def test_existing_claims_are_unchanged(tmp_path: Path) -> None:
    text = (CORPUS / "proved" / "direct_from_global.py").read_text(encoding="utf-8")
    made = annotate(str(written(tmp_path, text)), solver="z3")

    assert made.proved
    assert made.after == text.encode()
    assert made.added == ()


@pytest.mark.share(40, among="verifier: annotate: annotate")
@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_line_endings_tabs_and_byte_order_marks_are_unchanged(newline: str, tmp_path: Path) -> None:
    text = "\ufeff" + unclaimed().replace("    ", "\t").replace("\n", newline)
    path = written(tmp_path, text)
    made = annotate(str(path), solver="z3")

    assert made.proved
    lines = re.split("\r\n|\r|\n", made.after.decode())
    assert made.after.decode().count(newline) == len(lines) - 1
    assert "\tassert_written_once(C, lambda m, n: dict(m=m, n=n))" in lines
    for each in reversed(made.added):
        assert lines.pop(each.line - 1).strip() == each.code
    assert newline.join(lines) == text


FAMILY = """
import argus.language as al
from argus.language import *
from types import SimpleNamespace

def plain(function):
    return function

@kernel(target=gfx942, threads=64, configs={"narrow": SimpleNamespace(bk=8), "deep": SimpleNamespace(bk=16)})
@plain
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg):
    assume(A.shape[1] >= 1, A.shape[1] % 4 == 0)
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(1, 1), tile=(32, 32), k=cfg.bk)
    m, n = block_id((ceil_div(A.shape[0], 32), ceil_div(B.shape[0], 32)))
    a = registers(bf16, mm.A)
    b = registers(bf16, mm.B)
    acc = registers(f32, mm.C)
    for k in loop(ceil_div(A.shape[1], cfg.bk)):
        copy(A.tile((32, cfg.bk), (m, k)), a, via=global_load, edge=0)
        copy(B.tile((32, cfg.bk), (n, k)), b, via=global_load, edge=0)
        vmem.wait(0)
        mma(mm, acc, a, b, init=al.eq(k, 0))
    copy(acc.to(bf16), C.tile((32, 32), (m, n)), edge=0)
"""


@pytest.mark.share(4, among="added claims")
def test_every_configuration_of_a_family_is_proved_with_sizes_that_have_no_name(tmp_path: Path) -> None:
    made = annotate(str(written(tmp_path, FAMILY)), solver="z3")

    assert [report.kernel for report in made.reports] == ["gemm_narrow", "gemm_deep"]
    assert made.proved
    assert "assert_covers(acc.tag.k, 0, A.shape[1])" in [each.code for each in made.added]
    assert not any(each.code.startswith("from ") for each in made.added)
    assert not any("// 8" in each.code or "// 16" in each.code for each in made.added)


@pytest.mark.share(40, among="verifier: annotate: annotate")
@pytest.mark.parametrize(
    ("wrong", "code", "said"),
    [
        (CORPUS / "refuted" / "loads_not_waited_for.py", 1, "nothing is written"),
        (ROOT / "examples" / "02_refute.py", 2, "there is nothing to add"),
    ],
)
def test_a_kernel_that_is_wrong_anyway_is_left_alone(
    wrong: Path, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = bare(wrong.read_text(encoding="utf-8"))
    path = written(tmp_path, text)

    assert main(["annotate", str(path), "--solver", "z3", "--write"]) == code
    assert path.read_bytes() == text.encode()
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err


@pytest.mark.share(4, among="added claims")
def test_the_document_says_what_was_added(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = written(tmp_path, unclaimed()), tmp_path / "with_claims.py"

    assert main(["annotate", f"{path}:gemm", "--solver", "z3", "--json", "--out", str(out)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["text"].encode() == out.read_bytes()
    assert path.read_text(encoding="utf-8") == unclaimed()
    lines = document["text"].splitlines()
    assert [lines[each["line"] - 1].strip() for each in document["added"]] == [e["code"] for e in document["added"]]


def test_two_ways_to_write_exclude_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, unclaimed())

    assert main(["annotate", str(path), "--write", "--out", str(tmp_path / "other.py")]) == 3
    assert "E701" in capsys.readouterr().err


# -- the text alone ----------------------------------------------------------------------------------------------


def put_in(text: str, *wanted: Insertion) -> str:
    return insert_lines(source_of(text.encode()), wanted)[0].decode()


def test_names_that_a_file_rebinds_are_imported_under_an_alias() -> None:
    text = "from argus.language import kernel\ndef tag(x): ...\n@kernel\ndef f(A):\n    pass\n"

    made = put_in(text, Insertion("tag(A, lambda m: dict(m=m))", "start", 3))

    assert made.splitlines()[1] == "from argus.language import tag as argus_tag"
    assert made.splitlines()[-2] == "    argus_tag(A, lambda m: dict(m=m))"
    assert put_in(made, Insertion("tag(A, lambda m: dict(m=m))", "start", 4)) == made


def test_a_statement_without_its_own_line_gets_claims_before_the_enclosing_one() -> None:
    text = "def f():\n    '''One.'''\n    a = 1; b = 2\n    if a: b = 3\n    elif b:\n        a = (\n            4)\n"
    text += "    return"

    assert "    eq(1)\n    a = 1; b" in put_in(text, Insertion("eq(1)", "before", 3))
    assert "    eq(1)\n    if a: b" in put_in(text, Insertion("eq(1)", "before", 5))
    assert "        eq(1)\n        a = (" in put_in(text, Insertion("eq(1)", "before", 7))
    assert "'''\n    eq(1)\n    a" in put_in(text, Insertion("eq(1)", "start", 1))
    assert put_in(text, Insertion("eq(1)", "end", 1)).endswith("    eq(1)\n    return")


def test_a_last_line_without_an_end_gets_one() -> None:
    made = put_in("from argus.language import *\ndef f():\n    a = 1", Insertion("eq(1, 1)", "end", 2))

    assert made == "from argus.language import *\ndef f():\n    a = 1\n    eq(1, 1)\n"


def test_a_declared_encoding_stays() -> None:
    text = "# coding: latin-1\nfrom argus.language import *\ndef f():\n    a = 'é'\n"
    data, added = insert_lines(source_of(text.encode("latin-1")), [Insertion("eq(1, 1)", "end", 3)])

    assert data == text.encode("latin-1") + b"    eq(1, 1)\n"
    assert [(each.line, each.code) for each in added] == [(5, "eq(1, 1)")]


@pytest.mark.parametrize("text", ["def (", "x = '\\N{none}'", "# -*- coding: none-such -*-\n"])
def test_a_syntax_error_is_the_users_error(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, text)

    assert main(["annotate", str(path), "--write"]) == 3
    assert "error[E002]" in capsys.readouterr().err
    assert path.read_bytes() == text.encode()


@pytest.mark.nightly
def test_overwriting_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = written(tmp_path, unclaimed()), tmp_path / "out.py"
    said: list[str] = []
    for held in (None, "precious = 1\n"):
        if held is not None:
            out.write_text(held, encoding="utf-8")
        assert main(["annotate", str(path), "--solver", "z3", "--out", str(out)]) == 0
        said.append(capsys.readouterr().err.splitlines()[-1])

    assert said == [f"# wrote {out}", f"# wrote {out}, replacing other contents"]
    assert main(["annotate", str(path), "--solver", "z3", "--out", str(out)]) == 0
    assert capsys.readouterr().err.splitlines()[-1] == f"# wrote {out}"
