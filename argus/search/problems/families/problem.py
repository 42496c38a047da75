"""A problem of a family as the search sees it: by name and target, its space made on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from attrs import frozen

from argus.core.diagnostic import ArgusError
from argus.policy.bounds import CEILINGS, Bounds, Work, bounds
from argus.runtime.sandbox.user_reference import Exact, Oracle, call_reference
from argus.search.problems.families import attention, convolution, convolution_shape, experts, rows, torch_module
from argus.search.problems.families.space import FamilyDesign, FamilySpace, refuse
from argus.search.problems.input_rules import InputRules
from argus.search.problems.traced import Traced, admits

SPACES: Mapping[str, Callable[[str, str], tuple[str, FamilySpace]]] = {
    "attention": attention.space,
    "conv": convolution.space,
    "moe": experts.space,
    "rows": rows.space,
    "torch": torch_module.space,
}
"""By the first word of a problem's name, what makes its full name and its space of its name and target."""
FORMS = (attention.FORM, convolution_shape.FORM, experts.FORM, rows.FORM)


@frozen
class FamilyProblem:
    """A problem of a family, by its full name."""

    name: str
    target: str

    @property
    def space(self) -> FamilySpace:
        return _space(self.name, self.target)[1]

    @property
    def sizes(self) -> Mapping[str, int]:
        return self.space.sizes

    @property
    def notes(self) -> tuple[str, ...]:
        """Caveats of verdicts."""
        return self.space.notes

    @property
    def work(self) -> Work:
        return self.space.work

    @property
    def bounds(self) -> Bounds:
        return bounds(self.work, CEILINGS[self.target])

    @property
    def reference(self) -> Oracle:
        return self.space.reference

    def sizes_of(self, kernel: str) -> Mapping[str, int]:
        """The sizes of the kernel of a name: the problem's, and those that a design's kernels alone have."""
        own = self.space.designs.get(kernel)
        return self.sizes if own is None else {**self.sizes, **own.sizes}

    def inputs_of(self, kernel: str) -> InputRules:
        """Which inputs the kernel of a name is run on."""
        own = self.space.designs.get(kernel)
        return self.space.inputs if own is None or own.inputs is None else own.inputs

    def answer(self, given: Mapping[str, Exact]) -> object:
        """The reference's result for these inputs."""
        return call_reference(self.reference, given)

    @property
    def is_of_file(self) -> bool:
        """Whether a file of the user's defines it, by its digest."""
        return self.name.partition(":")[0] == "torch"

    @property
    def short(self) -> str:
        """The name for display: of a file without its folder and digest."""
        return torch_module.display(self.name) or self.name

    def kernel(self, name: str) -> Traced:
        """The traced kernel or program of a design. Raises ArgusError: E903, and E1xx or E2xx if it is ill-formed."""
        return self.design(name).trace()

    def admissible(self) -> Iterator[FamilyDesign]:
        """The designs that take the problem's sizes; of those of nests, each is traced to find out."""
        space = self.space
        for each in space.designs.values():
            if space.checked or each.name == space.usual or self._takes(each):
                yield each

    def _takes(self, design: FamilyDesign) -> bool:
        try:
            return admits(design.trace(), {**self.sizes, **design.sizes})
        except ArgusError:
            return False

    def design(self, name: str) -> FamilyDesign:
        """The design of a name. Raises ArgusError (E903)."""
        found = self.space.designs.get(name)
        if found is None:
            refuse(f"`{name}` is not a design of `{self.short}`", "`argus optimize` lists designs while it tries them")
        return found

    def __str__(self) -> str:
        return self.name


def family_problem(text: str, target: str) -> FamilyProblem:
    """The problem of a name. Raises ArgusError (E903)."""
    full, found = _space(text, target)
    if not found.designs:
        refuse(f"no design of the family takes `{text}`", "name other sizes")
    return FamilyProblem(full, target)


def is_family(text: str) -> bool:
    """Whether a name begins with that of a family."""
    return text.partition(":")[0] in SPACES


@cache
def _space(text: str, target: str) -> tuple[str, FamilySpace]:
    return SPACES[text.partition(":")[0]](text, target)
