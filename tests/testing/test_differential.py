"""Differential tests: draws are as documented, verdicts follow from tables, absent peers are reported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from argus.core.layout import IntTuple
from argus.layout import Layout, LayoutError
from argus.testing.differential import main, table, tally
from argus.testing.draws import KINDS, OPERATIONS, Draw, Kind, Operation, Tree, draws
from argus.testing.judge import judge
from argus.testing.laws.tabulated import flat
from argus.testing.peers import NAMES, Eager, Found, Refused, Traced, peer

UNIT: Tree = (1, 0)


def draw(a: Tree, b: Tree = UNIT, cotarget: int = 1) -> Draw:
    return Draw(a, b, cotarget)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_are_in_the_domain_and_repeat(kind: Kind) -> None:
    some = draws(kind, 200, seed=3)

    assert some == draws(kind, 200, seed=3)
    assert some != draws(kind, 200, seed=4)
    for each in some:
        a, b = Layout(*each.a), Layout(*each.b)
        assert b.cosize() <= a.size()
        numbers = [number for layout in (a, b) for mode in layout.flat_modes for number in mode if number]
        assert kind != "pow2" or all(number & (number - 1) == 0 for number in numbers)
        assert kind != "compact" or sorted(b.table().tolist()) == list(range(b.size()))


CARRY = draw(((6, 2), (1, 7)), ((3, 2), (2, 3)))
FLAT = draw((8, 1), ((2, 2), (4, 1)))


@pytest.mark.parametrize(
    ("operation", "given", "outcome", "verdict"),
    [
        ("composition", CARRY, Refused("AssertionError"), "rightly"),
        ("composition", CARRY, Found((3, 2), (2, 3)), "wrong"),
        ("composition", FLAT, Refused("AssertionError"), "needless"),
        ("composition", FLAT, Found((2, 2), (4, 1)), "correct"),
        ("composition", FLAT, Found((2, (2, 1)), (4, (1, 9))), "correct"),
        ("composition", FLAT, Found(((2, 2),), ((4, 1),)), "reshaped"),
        ("composition", FLAT, Found(2, 4), "resized"),
        ("composition", FLAT, Found((2, 0), (4, 1)), "empty"),
        ("complement", draw((4, 2), cotarget=24), Found((2, 3), (1, 8)), "correct"),
        ("complement", draw((4, 2), cotarget=24), Found((3, 2), (8, 1)), "wrong"),
        ("complement", draw((4, 2), cotarget=24), Found((2, 2), (1, 8)), "resized"),
        ("complement", draw(((2, 2), (2, 3)), cotarget=24), Found((2, 0, 4), (1, 4, 6)), "empty"),
        ("complement", draw(((2, 2), (2, 3)), cotarget=24), Refused("AssertionError"), "rightly"),
        ("left_inverse", draw((4, 2)), Found((2, 4), (7, 1)), "correct"),
        ("left_inverse", draw((4, 0)), Found(1, 0), "wrong"),
        ("left_inverse", draw((4, 0)), Refused("AssertionError"), "rightly"),
        ("left_inverse", draw((4, 2)), Refused("AssertionError"), "needless"),
        ("left_inverse", draw(((2, 2), (6, 11))), Refused("AssertionError"), "needless"),
        ("right_inverse", draw(((2, 4), (4, 1))), Found((4, 2), (2, 1)), "correct"),
        ("right_inverse", draw(((2, 4), (4, 1))), Found(4, 2), "resized"),
        ("right_inverse", draw(((2, 4), (4, 1))), Found(8, 1), "wrong"),
        ("right_inverse", draw((4, 2)), Refused("AssertionError"), "needless"),
        ("logical_divide", draw((8, 3), (2, 2)), Found((2, (2, 2)), (6, (3, 12))), "correct"),
        ("logical_divide", draw((8, 3), (2, 2)), Found((2, 2, 2), (6, 3, 12)), "reshaped"),
        ("logical_divide", draw((6, 1), ((2, 2), (2, 3))), Refused("AssertionError"), "rightly"),
        ("logical_product", draw((2, 1), (3, 1)), Found((2, 3), (1, 2)), "correct"),
        ("logical_product", draw((2, 1), (3, 1)), Found((2, 3), (1, 3)), "wrong"),
        ("logical_product", draw((2, 1), (3, 1)), Refused("AssertionError"), "needless"),
    ],
)
def test_verdicts(operation: Operation, given: Draw, outcome: Found | Refused, verdict: str) -> None:
    assert judge(operation, given, outcome) == verdict


@pytest.mark.share(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_argus_is_exact_and_refuses_only_what_does_not_exist(operation: Operation, kind: Kind) -> None:
    some = draws(kind, 300, seed=1)
    found = tally(peer("argus"), operation, kind, some)

    assert found.faults == 0, table([found])
    assert found.counts["correct"] > 0


# -- peers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_an_absent_peer_is_named_with_its_repair(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for module in ("pycute", "tensor_layouts", "cutlass", "cutlass.cute"):
        monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(LayoutError, match=f"`{name}` is not installed") as caught:
        peer(name)

    assert caught.value.code == "E814"


def test_an_unknown_peer_is_refused() -> None:
    with pytest.raises(LayoutError, match="no peer is named `cute`") as caught:
        peer("cute")

    assert caught.value.code == "E814"


class Truncating(ModuleType):
    """A stand-in for pycute whose composition drops the last mode and whose complement raises."""

    Layout = Layout

    def __getattr__(self, name: str) -> object:
        def composition(_: Layout, b: Layout) -> Layout:
            return b[:-1] if len(b) > 1 else b

        def refused(*_: object) -> Layout:
            raise AssertionError(name)

        return composition if name == "composition" else refused


def test_a_peer_that_truncates_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "pycute", Truncating("pycute"))
    arguments = "--peer pycute --pairs 200 --kind compact --operation composition --operation complement"

    assert main(arguments.split()) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:4] for line in lines if " compact " in line] == [
        ["composition", "compact", "argus", "200"],
        ["composition", "compact", "pycute", "200"],
        ["complement", "compact", "argus", "200"],
        ["complement", "compact", "pycute", "200"],
    ]
    assert any("size changed: " in line and "->" in line for line in lines)
    assert any("needlessly: " in line and line.endswith("AssertionError") for line in lines)


def test_the_program_says_which_peer_is_absent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tensor_layouts", None)

    assert main(["--peer", "tensor-layouts"]) == 2
    assert "E814: `tensor-layouts` is not installed" in capsys.readouterr().err


def test_a_traced_peer_runs_its_draws_while_a_function_is_traced() -> None:
    tracing: list[bool] = []
    depth: list[int] = []

    def trace(work: Callable[[], None]) -> Callable[[], object]:
        def run() -> None:
            tracing.append(True)
            work()
            tracing.pop()

        return run

    def build(shape: IntTuple, stride: IntTuple) -> Layout:
        depth.append(len(tracing))
        return Layout(shape, stride)

    def itself(layout: Layout) -> Layout:
        return layout

    library = Traced(Eager("traced", build, {"right_inverse": itself}), trace)

    outcomes = library.outcomes("right_inverse", draws("random", 1500))

    assert len(outcomes) == 1500
    assert set(depth) == {1}
    assert set(library.operations) == {"right_inverse"}
    assert all(isinstance(outcome, Found) and flat(outcome.shape, outcome.stride) for outcome in outcomes)
