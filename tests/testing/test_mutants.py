"""Mutants of proved kernels: none may be proved but wrong. `benchmarks/mutants.py` tests all of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random

import pytest

from argus.core.check import check
from argus.core.ir import Kernel
from argus.core.query import Budget
from argus.testing.mutants import Judge, Thoroughness
from argus.testing.mutation import OPERATORS, Mutant, Operator
from property_tests.programs import CORPUS, KERNELS, templates
from tests.verifier.switched_off_checks import without_formulas

SMALL = ("no_prefetch", "one_tile_of_k", "zeroed_sum", "barriers_by_hand", "stores_of_boxes", "scaled_output")
"""Kernels of both targets that are cheap to verify; together every construct of the corpus."""
SEED = 5
SAMPLE = 64


def well_formed(operator: Operator, kernels: list[Kernel], drawn: Random) -> Mutant | None:
    """One mutant that is a kernel, of the first kernel that has one."""
    for kernel in kernels:
        made = list(operator(kernel))
        for mutant in drawn.sample(made, len(made)):
            if not check(mutant.kernel):
                return mutant
    return None


def sample() -> Iterator[tuple[str, Mutant]]:
    """One mutant of each operator that applies to the small kernels, which operator meets which drawn by a seed."""
    drawn = Random(SEED)  # noqa: S311 reason: an example, not a secret
    for operator in OPERATORS:
        names = drawn.sample(SMALL, len(SMALL))
        for name in names:
            mutant = well_formed(operator, [KERNELS[name]], drawn)
            if mutant is not None:
                yield name, mutant
                break


@cache
def found() -> tuple[tuple[str, Mutant], ...]:
    return tuple(sample())


def test_operators_have_names_of_their_own() -> None:
    assert len({operator.name for operator in OPERATORS}) == len(OPERATORS)


@pytest.mark.share(3)
def test_at_least_sixty_operators_apply() -> None:
    assert len({mutant.operator for _, mutant in found()}) >= 60


@pytest.mark.share(36)
@pytest.mark.parametrize("number", range(SAMPLE))
def test_no_mutant_survives(number: int) -> None:
    name, mutant = Random(SEED).sample(found(), SAMPLE)[number]  # noqa: S311 reason: as above
    judge = Judge(KERNELS[name], Budget.about(0.3), Thoroughness(sizes=4, random=1, runs=12))
    judged = judge(mutant)
    assert judged.fate not in ("survived", "unchecked", "ill-formed"), f"{mutant} of {name}: {judged.why}"


@pytest.mark.share(3)
def test_the_judge_tells_a_survivor() -> None:
    """A mutant that is wrong, taken for proved, is found out by the runs."""
    kernel = KERNELS["no_prefetch"]
    (drop,) = (operator for operator in OPERATORS if operator.name == "drop_wait")
    judge = Judge(kernel)
    for mutant in drop(kernel):
        assert judge(mutant).fate == "refuted"
        assert judge.judge_proved(mutant, same_results=True).fate == "survived"


def test_numbers_are_compared_with_the_claimed_formula() -> None:
    """A kernel that claims nothing, taken for a proved mutant, computes another mean than the original's formula."""
    (wrong,) = templates(CORPUS / "refuted" / "formula_mean_by_a_constant.py")
    kernel = without_formulas(wrong.trace())
    mutant = Mutant("other_divisor", kernel, "256 for N", kernel.span)
    judged = Judge(KERNELS["formula_row_mean"], thoroughness=Thoroughness(runs=4)).judge_proved(
        mutant, same_results=True
    )
    assert judged.fate == "survived"
    assert "numbers are not the formula of `Y`" in judged.why


@pytest.mark.nightly
def test_the_judge_tells_another_result() -> None:
    """Another factor leaves every tag what it was; the verdict tells it, and numbers differ."""
    kernel = KERNELS["scaled_output"]
    (number,) = (operator for operator in OPERATORS if operator.name == "other_number")
    mutants = [mutant for mutant in number(kernel) if "0.5" in mutant.what]
    assert mutants
    judge = Judge(kernel)
    assert {judge(mutant).fate for mutant in mutants} == {"retold"}
    assert {judge.judge_proved(mutant, same_results=True).fate for mutant in mutants} == {"survived"}


@pytest.mark.nightly
def test_a_judge_may_ask_for_proofs_alone() -> None:
    """What is not proved is not searched for counterexamples; what is proved is judged by its runs all the same."""
    kernel = KERNELS["no_prefetch"]
    (drop,) = (operator for operator in OPERATORS if operator.name == "drop_wait")
    judge = Judge(kernel, searches=False)
    for mutant in drop(kernel):
        judged = judge(mutant)
        assert judged.fate == "unproved"
        assert judged.code == Judge(kernel)(mutant).code
    scaled = KERNELS["scaled_output"]
    (number,) = (operator for operator in OPERATORS if operator.name == "other_number")
    retold = [mutant for mutant in number(scaled) if "0.5" in mutant.what]
    assert {Judge(scaled, searches=False)(mutant).fate for mutant in retold} == {"retold"}


@pytest.mark.nightly
def test_numbers_that_the_original_rounds_are_compared_with_its_own() -> None:
    """Operands narrowed before they are multiplied stray from the product in float64, in a right kernel too."""
    kernel = KERNELS["product_a_block_behind"]
    judge = Judge(kernel, searches=False)
    (other,) = (operator for operator in OPERATORS if operator.name == "other_instruction")
    narrower = [each for each in other(kernel) if each.what.startswith("by `global_load_b16`")]
    assert "equivalent" in {judge(mutant).fate for mutant in narrower}
    (negated,) = (operator for operator in OPERATORS if operator.name == "init_negated")
    drops = next(operator for operator in OPERATORS if operator.name == "drop_wait")
    wrong = [*negated(kernel), *drops(kernel)]
    assert {judge.judge_proved(mutant, same_results=True).fate for mutant in wrong} == {"survived"}


@pytest.mark.share(3)
def test_threads_that_hold_nothing_take_no_part() -> None:
    """Of a block with twice the threads the first half does all as before; half of the threads can't hold the tiles."""
    (threads,) = (operator for operator in OPERATORS if operator.name == "other_threads_count")
    for name in ("row_softmax", "rows_less_their_mean"):
        judge = Judge(KERNELS[name], Budget.about(2.0), Thoroughness(sizes=3, random=1, runs=20))
        judged = {mutant.kernel.threads: judge(mutant) for mutant in threads(KERNELS[name])}
        assert {number: (each.fate, each.code) for number, each in judged.items()} == {
            32: ("ill-formed", "E213"),
            128: ("equivalent", ""),
        }
