"""Switch off a check of the verifier by a patch, and assert that a kernel is refuted only by that check."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest
from attrs import evolve

from argus.core.algebra import TRUE
from argus.core.dsl.kernel import Template
from argus.core.index import Cond
from argus.core.ir import Assert, Equals, Kernel
from argus.core.proof.obligation import Obligation
from argus.core.verdict import Proved, Refuted
from argus.verifier.kernel import verify

REFUTED = Path(__file__).parents[1] / "corpus" / "refuted"
NOT_KNOWN = REFUTED.parent / "unknown"
PROVED = REFUTED.parent / "proved"
Patch = Callable[[pytest.MonkeyPatch], None]
Case = tuple[str | Callable[[], Kernel], str, Patch]
"""A wrong kernel (of the corpus by name, or made by a function), the code that refutes it, and what switches off its
check."""


def load(name: str, folder: Path = REFUTED) -> Template:
    """A kernel of the corpus, by default of the refuted ones."""
    spec = importlib.util.spec_from_file_location(f"twin_{name}", folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return next(value for value in vars(module).values() if isinstance(value, Template))


def no_obligations(*_: object, **__: object) -> Iterator[Obligation]:
    return iter(())


def always(*_: object, **__: object) -> bool:
    return True


def without_obligations(module: object, name: str) -> Patch:
    """Replace a generator of obligations by one that generates none."""
    return lambda patch: patch.setattr(module, name, no_obligations)


def without_goal(module: object, name: str) -> Patch:
    """Replace a function that returns an obligation by one that returns an obligation without a goal."""
    made = cast("Callable[..., Obligation]", getattr(module, name))

    def without(*given: object) -> Obligation:
        return evolve(made(*given), goal=TRUE, unknown="")

    return lambda patch: patch.setattr(module, name, without)


def never(*_: object, **__: object) -> bool:
    return False


def true_condition(*_: object) -> Cond:
    return TRUE


def empty_message(*_: object) -> str:
    return ""


def without_refusal(module: object, name: str) -> Patch:
    """Replace a check that raises an error by one that never raises."""
    return lambda patch: patch.setattr(module, name, no_refusal)


def no_refusal(*_: object) -> None:
    return None


def load_edited(name: str, *edits: tuple[str, str]) -> Template:
    """A kernel of the corpus of proved kernels, with each text replaced by another; each must occur exactly once."""
    path = PROVED / f"{name}.py"
    text = path.read_text(encoding="utf-8")
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    found: dict[str, object] = {"__name__": path.stem}
    exec(compile(text, str(path), "exec"), found)  # noqa: S102 reason: a corpus file
    return next(value for value in found.values() if isinstance(value, Template))


def without_formulas(kernel: Kernel) -> Kernel:
    """The kernel without the formulas that it claims at its end."""
    kept = [s for s in kernel.prologue if not isinstance(s, Assert) or not isinstance(s.claim, Equals)]
    assert len(kept) < len(kernel.prologue)
    return evolve(kernel, prologue=tuple(kept))


def assert_only_this_check_refutes(
    kernel: Template | Kernel, code: str, switch_off: Patch, patch: pytest.MonkeyPatch
) -> None:
    """Assert that a kernel is refuted with this code, and proved once the check is switched off."""
    verdict = verify(kernel, solver="z3").verdict
    assert isinstance(verdict, Refuted), verdict
    assert verdict.counterexample.code == code

    switch_off(patch)

    assert_proved(kernel)


def assert_proved(kernel: Template | Kernel) -> None:
    verdict = verify(kernel, solver="z3").verdict
    assert isinstance(verdict, Proved), verdict


def cases_test(cases: Sequence[Case]) -> Callable[..., None]:
    """A test of each wrong kernel: refuted with its code, and proved once its check is switched off."""
    named = [(wrong if isinstance(wrong, str) else wrong.__name__, code) for wrong, code, _ in cases]

    @pytest.mark.share(48)
    @pytest.mark.parametrize(("wrong", "code", "switch_off"), cases, ids=[f"{code}-{name}" for name, code in named])
    def test(wrong: str | Callable[[], Kernel], code: str, switch_off: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
        kernel = load(wrong) if isinstance(wrong, str) else wrong()
        assert_only_this_check_refutes(kernel, code, switch_off, monkeypatch)

    return test
