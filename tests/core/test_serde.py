"""Serialisation: every kernel of the corpus round-trips, and data that is not a kernel is rejected with a reason."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.algebra import const
from argus.core.atom import Atom
from argus.core.atoms.registry import atom_named
from argus.core.diagnostic import ArgusError
from argus.core.index import Cond, Index
from argus.core.ir import (
    Advance,
    Assume,
    Claim,
    Copy,
    Elem,
    Fence,
    For,
    Kernel,
    Policy,
    Program,
    Stmt,
    Sync,
    Test,
    walk,
)
from argus.core.ir.pretty import pretty, program_text
from argus.core.ir.surgery import with_stmts
from argus.core.layout import TV
from argus.core.serde import Bounds, MalformedError, read, write
from argus.core.serde.kinds import BY_CLASS, BY_NAME
from argus.verifier.loader import load
from property_tests.documents import rows_of

CORPUS = Path(__file__).parents[1] / "corpus"
EVERY = sorted(path for kind in ("proved", "refuted", "unknown", "traced") for path in (CORPUS / kind).glob("*.py"))
EDITED = [path for path in EVERY if "import edited" in path.read_text(encoding="utf-8")]
"""Kernels that were changed after they had been traced: some say what the language does not let one say."""
FILES = [path for path in EVERY if path not in EDITED]
PLAIN = CORPUS / "proved" / "band_of_k.py"
RING = CORPUS / "refuted" / "fewer_trips_than_drained.py"


def things(path: Path) -> Iterator[Kernel | Program]:
    """The kernels of a file, and its programs."""
    for each in load(str(path)):
        yield each.trace()
        if each.program is not None:
            yield each.program


def text_of(thing: Kernel | Program) -> str:
    return pretty(thing, spans=True) if isinstance(thing, Kernel) else program_text(thing, spans=True)


@pytest.mark.share(96)
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_kernel_of_the_corpus_round_trips(path: Path) -> None:
    given = list(things(path))
    document = write(given)
    made = read(json.loads(json.dumps(document, allow_nan=False)))
    assert [text_of(each) for each in made] == [text_of(each) for each in given]
    assert write(made) == document


@pytest.mark.parametrize("path", EDITED, ids=lambda path: path.stem)
def test_a_kernel_that_was_edited_comes_back_as_it_was_or_is_refused(path: Path) -> None:
    given = list(things(path))
    try:
        made = read(write(given))
    except (MalformedError, ArgusError):
        return
    assert [text_of(each) for each in made] == [text_of(each) for each in given]


def test_every_member_of_the_unions_has_a_kind() -> None:
    members = {member for union in (Index, Cond, Elem, Test, Claim, Stmt) for member in get_args(union)}
    assert members <= BY_CLASS.keys()
    assert {Kernel, Program} <= BY_CLASS.keys()


# -- what is refused -------------------------------------------------------------------------------------------------


def document(path: Path = PLAIN) -> dict[str, Any]:
    (kernel,) = list(things(path))
    return json.loads(json.dumps(write([kernel])))


def why(data: object, bounds: Bounds | None = None) -> str:
    """The reason for which data are no kernel."""
    with pytest.raises(MalformedError) as caught:
        read(data, bounds or Bounds())
    return str(caught.value)


def with_field(kind: str, at: int, value: object, path: Path = PLAIN, which: int = 0) -> str:
    """The reason after one field of a row of a kind is another. at: from 1 on, as in the row."""
    data = document(path)
    rows_of(data, kind)[which][at] = value
    return why(data)


@pytest.mark.parametrize("data", [None, [], {}, "x", 1, {"schema": 1, "rows": [], "exported": []}])
def test_data_that_is_no_document_is_rejected(data: object) -> None:
    assert "expected" in why(data)


def test_what_is_exported_is_a_kernel() -> None:
    data = document()
    for wrong in ([0], [-1], [10**9], ["x"], [None], [True]):
        assert "an exported row is neither a kernel nor a program" in why(data | {"exported": wrong})


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (None, "is not a list"),
        ([], "is not a list"),
        (["Call", "os.system"], "of an unknown kind"),
        ([["Const"], 1], "of an unknown kind"),
        (["Const"], "has 1 fields, found 0"),
        (["Const", 1, 2], "has 1 fields, found 2"),
        (["Const", "1"], "expected an integer"),
        (["Const", True], "expected an integer"),
        (["Const", 1.0], "expected an integer"),
        (["Const", 1 << 300], "at most 256 bits"),
        (["Sym", 5], "earlier row of Symbol"),
        (["Not", 0], "earlier row of Cmp or And or Or or Not"),
        (["Bin", "**", 0, 0], "expected one of *, //"),
        (["Symbol", "x", "class", 0, 1], "expected one of size, block"),
        (["Symbol", "a\nb", "size", 0, 1], "expected a printable text"),
        (["Symbol", "x" * 500, "size", 0, 1], "at most 400 characters"),
        (["Atom", "rm_rf"], "no Atom has these fields"),
        (["DType", "f64"], "no DType has these fields"),
        (["Layout", [[[[1]]]], 5], "no Layout has these fields"),
        (["Layout", [0], [1]], "no Layout has these fields"),
        (["Swizzle", 3, 0, 1], "no Swizzle has these fields"),
        (["Lit", "1e3"], "expected an integer"),
    ],
)
def test_an_invalid_row_is_rejected(row: object, reason: str) -> None:
    assert reason in why({"schema": "argus.kernels/3", "rows": [row], "exported": []})


def test_sizes_are_bounded() -> None:
    assert "more than 10 rows" in why(document(), Bounds(rows=10))
    deep: object = 1
    for _ in range(40):
        deep = [deep]
    assert "levels" in why({"schema": "argus.kernels/3", "rows": [["Layout", deep, deep]], "exported": []})
    wide = ["And", [0] * 30_000]
    assert "at most 20000 values" in why({"schema": "argus.kernels/3", "rows": [wide], "exported": []})


def test_an_instruction_that_argus_does_not_know_is_not_written() -> None:
    known = next(kind for cls, kind in BY_CLASS.items() if cls is Atom)
    with pytest.raises(KeyError):
        known.make("mine")


def place(kind: str, field: str) -> int:
    """Where in a row of a kind a field is."""
    return 1 + [name for name, _ in BY_NAME[kind].fields].index(field)


# -- facts that a kernel states of itself ------------------------------------------------------------------------------


def symbols(kind: str, path: Path = PLAIN) -> list[int]:
    """Which of the rows of symbols are of a kind."""
    return [n for n, row in enumerate(rows_of(document(path), "Symbol")) if row[2] == kind]


@pytest.mark.parametrize("kind", ["block", "thread", "loop"])
def test_bounds_of_symbols_follow_from_where_they_are_bound(kind: str) -> None:
    (which, *_) = symbols(kind)
    assert re.search(r"declares `\w+` in \[.*, 0\], found", with_field("Symbol", 4, 0, which=which))


def test_sizes_may_be_as_large_as_any_tensor_s() -> None:
    (first, *_) = symbols("size")
    assert "declares `M` in [0, 7], found" in with_field("Symbol", 4, 7, which=first)
    assert "declares `M` in [1, 1073741824], found" in with_field("Symbol", 3, 1, which=first)


def test_a_symbol_is_of_the_kind_of_its_place() -> None:
    (thread, *_) = symbols("thread")
    assert "bound as a thread" in with_field("Symbol", 2, "size", which=thread)
    (block, *_) = symbols("block")
    assert "has two symbols" in with_field("Symbol", 1, "thread", which=block)
    assert "no identifier" in with_field("Symbol", 1, "a b", which=block)


def test_tensors_are_dense_as_every_proof_takes_them_to_be() -> None:
    _, of_the_row = rows_of(document(), "Strided")[-1][1]
    assert "not a dense tensor" in with_field("Strided", 1, [of_the_row, of_the_row], which=-1)
    assert "not a dense tensor" in with_field("Buffer", place("Buffer", "align"), 64)


def test_a_promise_reads_no_parameter_after_its_own() -> None:
    """Integers that keep all promises are drawn, and checked, in the order of the parameters."""
    (kernel,) = things(CORPUS / "proved" / "formula_scaled_by_expert.py")
    assert isinstance(kernel, Kernel)
    assert [text_of(each) for each in read(write([kernel]))] == [text_of(kernel)]
    others = [each for each in kernel.parameters if each.name != "owner"]
    (owner,) = (each for each in kernel.parameters if each.name == "owner")
    first = evolve(kernel, parameters=(owner, *others))
    assert "integers of its own and of parameters before it" in why(write([first]))


@pytest.mark.parametrize("name", ["../../etc/passwd", "a b", "", "x;y"])
def test_parameters_have_names_of_parameters(name: str) -> None:
    assert "name" in with_field("Buffer", 1, name)


def test_buffers_are_allocated_once_with_distinct_names() -> None:
    data = document()
    rows_of(data, "Buffer")[1][1] = rows_of(data, "Buffer")[0][1]
    assert "two buffers of the same name" in why(data)
    data = document()
    first, second, *_ = rows_of(data, "Alloc")
    second[place("Alloc", "buffer")] = first[place("Alloc", "buffer")]
    assert "does not allocate" in why(data)


def test_a_statement_occurs_once() -> None:
    data = document()
    (kernel,) = rows_of(data, "Kernel")
    field = place("Kernel", "prologue")
    kernel[field] = [*kernel[field], kernel[field][-1]]
    assert "a statement twice" in why(data)


def forged(kind: type[Stmt], path: Path = RING, **fields: object) -> str:
    """The reason for which a kernel is none after a statement of a kind has other fields."""
    (kernel,) = list(things(path))
    assert isinstance(kernel, Kernel)
    old = next(stmt for stmt in walk(kernel.body) if isinstance(stmt, kind))
    return why(write([with_stmts(kernel, old, [evolve(old, **fields)])]))


def test_a_counter_does_not_go_back() -> None:
    assert "may decrement a counter" in forged(Advance, by=const(-1))


def test_names_and_options_are_those_of_the_language() -> None:
    assert "name of a Policy: expected one of registers" in forged(Policy, name="asm volatile")
    assert "gives unknown advice" in forged(Policy, name="priority", args=())
    assert "a copy with an unsupported instruction" in forged(Copy, cache='"); system("')
    assert "fence of another scope" in forged(Fence, scope="sys")
    assert "a name that the language does not produce" in forged(Sync, barrier="*/ evil /*")


def test_what_is_ill_formed_is_refused_as_tracing_refuses_it() -> None:
    (kernel,) = list(things(PLAIN))
    assert isinstance(kernel, Kernel)
    old = next(stmt for stmt in walk(kernel.body) if isinstance(stmt, For))
    unequal = evolve(old, stop=algebra.sym(kernel.thread), symbol=evolve(old.symbol, high=None))
    with pytest.raises((ArgusError, MalformedError)) as caught:
        read(write([with_stmts(kernel, old, [unequal])]))
    assert "differs between threads" in str(caught.value) or "bound" in str(caught.value)


def test_what_is_assumed_can_be_checked_by_a_launcher() -> None:
    (kernel,) = list(things(PLAIN))
    assert isinstance(kernel, Kernel)
    assumed = algebra.eq(algebra.sym(kernel.blocks[0]), 0)
    assert "that no launcher can check" in forged(Assume, path=PLAIN, cond=assumed)


def test_copies_move_what_their_instruction_moves() -> None:
    (kernel,) = list(things(PLAIN))
    assert isinstance(kernel, Kernel)
    first = next(stmt for stmt in walk(kernel.body) if isinstance(stmt, Copy))
    longer = TV(first.by.threads, first.by.values, (*first.by.tile, 1))
    assert "copies between tiles of different shapes" in forged(Copy, path=PLAIN, by=longer)
    assert "outside a tensor" in forged(Copy, path=PLAIN, edge=1.0)
    assert "no instruction implements" in forged(Copy, path=PLAIN, atom=atom_named("tma_load_2d"))
