"""References without a closed form: each check of them is needed, and no wrong twin holds its formula."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from argus.core.dsl.kernel import Template
from argus.core.proof.values.held import alike_branches, rescaling, unnamed
from property_tests.programs import CORPUS, templates
from tests.core.proof.test_held_recurrences import holds

Edit = tuple[str, str]
Patch = Callable[[pytest.MonkeyPatch], None]

LAZY, RARELY = "reference_of_a_threshold", "rescaled_rarely"
SECOND = "    for i in loop(N):\n        v = load(X.T[i].tile((64,), (m,)), BY, edge=0)\n        copy"

EDITS: dict[str, tuple[str, Edit]] = {
    "not rescaled": (LAZY, ("sums * exp(ref - now)", "sums")),
    "rescaled the other way": (LAZY, ("exp(ref - now)", "exp(now - ref)")),
    "a term with the reference before": (LAZY, ("exp(v - now)\n", "exp(v - ref)\n")),
    "divided by a sum with a reference": (LAZY, ("exp(v - ref) / sums", "exp(v) / sums")),
    "something before the first": (LAZY, ("sums[:] = 0.0", "sums[:] = 1.0")),
    "a reference that is -inf for a while": (
        LAZY,
        ("now = where(v", "v = where(i >= 2, v, -inf)\n        now = where(v"),
    ),
    "set from the third iteration": (
        LAZY,
        ("where(v > ref + THRESHOLD, v, ref)", "where(i >= 2, where(v > ref + THRESHOLD, v, ref), ref)"),
    ),
    "a reference that becomes -inf": (LAZY, ("v, ref)\n        sums", "v, -inf)\n        sums")),
    "the reference itself": (LAZY, ("exp(v - ref) / sums", "exp(v - ref)")),
    "another reference after the loop": (LAZY, (SECOND, f"    ref[:] = ref + 1.0\n{SECOND}")),
    "kept times 2": (RARELY, ("exp(ref - top), 1.0", "exp(ref - top), 2.0")),
    "a factor by another test": (RARELY, ("scale = where(ref - top < -THRESHOLD", "scale = where(ref - top < -9.0")),
    "kept where it is raised": (RARELY, ("-THRESHOLD, top, ref)", "-THRESHOLD, ref, top)")),
    "-inf for a while": (RARELY, ("top = maximum(", "v = where(i >= 2, v, -inf)\n        top = maximum(")),
}


def edited(name: str, edit: Edit, folder: Path) -> Template:
    text = (CORPUS / "proved" / f"formula_{name}.py").read_text(encoding="utf-8")
    assert text.count(edit[0]) == 1
    twin = folder / f"{name}.py"
    twin.write_text(text.replace(*edit), encoding="utf-8")
    (template,) = templates(twin)
    return template


@pytest.mark.share(12)
@pytest.mark.parametrize("what", EDITS)
def test_a_wrong_twin_does_not_hold_its_formula(what: str, tmp_path: Path) -> None:
    name, edit = EDITS[what]
    assert not holds(edited(name, edit, tmp_path))


def always(*_: object, **__: object) -> bool:
    return True


def all_become_numbers(patch: pytest.MonkeyPatch) -> None:
    for module in (unnamed, rescaling):
        patch.setattr(module, "becomes_number", always)


def all_branches_are_alike(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(alike_branches.Known, "same", always)


CHECKS: dict[str, Patch] = {
    "set from the third iteration": all_become_numbers,
    "kept times 2": all_branches_are_alike,
}


@pytest.mark.share(2)
@pytest.mark.parametrize("what", CHECKS)
def test_a_wrong_twin_slips_past_without_the_check(what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name, edit = EDITS[what]
    template = edited(name, edit, tmp_path)
    assert not holds(template)

    CHECKS[what](monkeypatch)

    assert holds(template)
