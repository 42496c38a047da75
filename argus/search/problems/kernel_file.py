"""Problems given by a user's file: kernels, and a NumPy reference function that specifies them.

The file is trusted and executed as by `argus verify`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

from attrs import evolve, field, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.index_text import show
from argus.core.ir import Assert, Kernel, Program, walk
from argus.core.ir.pretty import pretty
from argus.interp.search.search import assumed, holds
from argus.policy.bounds import CEILINGS, Bounds, Work, bounds
from argus.policy.planner import Step
from argus.runtime.sandbox.user_reference import REFERENCE, WORK, Exact, call_reference
from argus.search.problems.workload import WorkEstimate, declared_work, least_work, oversized_parameter, work_of
from argus.search.techniques import TRANSFORMATIONS
from argus.verifier.loader import Exported, load_with_names, locate_file
from argus.verifier.suggest import with_suggested

DEPTH = 2
"""Largest number of techniques applied to one kernel."""
_NAME = re.compile(r"file:([0-9a-f]{16}):([\w=,]*):(.+)")
_SIZE = re.compile(r"(\w+)=([1-9]\d{0,11})")


@frozen
class Variant:
    """A design: a kernel of the file and the techniques that rewrite it, in order.

    base: name of the kernel in the file. suggested: whether its claims are suggested by Argus.
    """

    name: str
    base: str
    steps: tuple[Step, ...]
    kernel: Kernel = field(eq=False, repr=False)
    suggested: bool = False


@frozen
class KernelFile:
    """A kernel or family of a file, at sizes. digest: hash of the file's text. kernel_name: empty for all kernels.

    `str` is its name in a journal; it includes the digest, so that a run cannot be resumed with another text.
    """

    path: str
    kernel_name: str
    digest: str
    extents: tuple[tuple[str, int], ...]
    target: str

    @property
    def sizes(self) -> Mapping[str, int]:
        return dict(self.extents)

    @property
    def counted(self) -> WorkEstimate:
        """The work of the problem: as declared by the file, else the least known work of its kernels."""
        declared = _load_file(self.path, self.kernel_name, self.digest).work
        made = [work_of(each.kernel, self.sizes) for each in self.variants.values() if not each.steps]
        return declared_work(declared, self.sizes) if declared is not None else least_work(made)

    @property
    def work(self) -> Work:
        return self.counted.work

    @property
    def bounds(self) -> Bounds:
        return bounds(self.work, CEILINGS[self.target])

    def bounds_of(self, kernel: Kernel) -> Bounds:
        """Bounds from this kernel's own known work; only these may be compared with its time."""
        return bounds(work_of(kernel, self.sizes).work, CEILINGS[self.target])

    @property
    def variants(self) -> Mapping[str, Variant]:
        """The designs by name: each kernel, then its rewrites."""
        return _variants(self)

    @property
    def reference(self) -> Callable[..., object]:
        """The user's reference function."""
        return _load_file(self.path, self.kernel_name, self.digest).reference

    def answer(self, given: Mapping[str, Exact]) -> object:
        """The reference's result for these inputs. Raises ArgusError (E903)."""
        return call_reference(self.reference, given)

    @property
    def notes(self) -> tuple[str, ...]:
        """Caveats of verdicts: kernels whose claims are suggested."""
        missing = [each.name for each in self.variants.values() if each.suggested and not each.steps]
        return (f"claims of {', '.join(missing)} are suggested by Argus: the file has none",) if missing else ()

    @property
    def exported(self) -> tuple[Exported, ...]:
        return _load_file(self.path, self.kernel_name, self.digest).exported

    def kernel(self, name: str) -> Kernel:
        """The kernel of a design. Raises ArgusError (E903)."""
        if name not in self.variants:
            _refuse(f"`{name}` is not a design of `{self.path}`", f"there are {', '.join(self.variants)}")
        return self.variants[name].kernel

    def __str__(self) -> str:
        sizes = ",".join(f"{name}={extent}" for name, extent in self.extents)
        return f"file:{self.digest}:{sizes}:{self.path}" + (f":{self.kernel_name}" if self.kernel_name else "")


def is_journal_name(text: str) -> bool:
    """Whether a text is the journal name (`str`) of a `KernelFile`."""
    return _NAME.fullmatch(text) is not None


def short_name(text: str) -> str | None:
    """The name of a file's problem for display, without digest and folder; None for another one."""
    found = _NAME.fullmatch(text)
    if found is None:
        return None
    return f"{Path(found[3]).name} at {found[2]}" if found[2] else Path(found[3]).name


def problem_from_journal(text: str, target: str) -> KernelFile:
    """The problem of a journal name. Raises ArgusError (E903) if its file has changed."""
    match = _NAME.fullmatch(text)
    assert match is not None
    found = file_problem(match[3], match[2], target)
    if found.digest != match[1]:
        _refuse(
            f"`{found.path}` has changed since the run began: its text has the digest {found.digest}, not {match[1]}",
            "start a new run, or restore the file",
        )
    return found


def file_problem(what: str, sizes: str, target: str) -> KernelFile:
    """The problem of FILE or FILE:KERNEL at sizes such as "M=4096,N=4096,K=4096"; none if all sizes are constants.

    target: selects kernels if the file has some for several targets.

    Raises:
        ArgusError: E00x if the file does not load, E1xx or E2xx for an ill-formed kernel, E903 without a reference, for
            wrong sizes, and for a program of several launches.
    """
    path = locate_file(what)
    kernel_name = "" if Path(what).exists() else what.rpartition(":")[2]
    digest = digest_of(path.read_bytes())
    exported = _load_file(str(path), kernel_name, digest).exported
    kernels = [each.trace() for each in exported]
    if any(each.program is not None for each in exported):
        _refuse(f"`{what}` is a program of several launches", "name a kernel")
    targets = dict.fromkeys(each.target.name for each in kernels)
    chosen = next(iter(targets)) if len(targets) == 1 else target
    if chosen not in targets:
        _refuse(f"`{what}` has no kernel for {target}", f"name one of {', '.join(targets)} with --target")
    meant = [each for each in kernels if each.target.name == chosen]
    _check_same_parameters(what, meant)
    found = KernelFile(str(path), kernel_name, digest, extents_of(sizes, meant[0]), chosen)
    if (large := oversized_parameter(meant[0], found.sizes)) is not None:
        _refuse(f"`{large.name}` exceeds any GPU's memory at {sizes}", "give smaller sizes")
    if not any(admissible_kernels(exported, chosen, found.sizes)):
        _refuse(
            f"no kernel of `{what}` can be launched at {sizes}: `{meant[0].name}` assumes {show(assumed(meant[0]))}",
            "give sizes that satisfy its assumptions",
        )
    return found


def digest_of(text: bytes) -> str:
    """A short hash of a file's text, for names."""
    return sha256(text).hexdigest()[:16]


def _check_same_parameters(what: str, kernels: list[Kernel]) -> None:
    """Raises ArgusError (E903) unless all kernels have the same parameters."""
    first = signature(kernels[0])
    other = next((each for each in kernels if signature(each) != first), None)
    if other is not None:
        _refuse(
            f"`{kernels[0].name}` and `{other.name}` of `{what}` take different parameters",
            f"select a kernel or family: {what}:{kernels[0].name}",
        )


def signature(kernel: Kernel | Program) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Names, element types and shapes of a kernel's parameters."""
    return tuple((each.name, each.dtype.name, tuple(map(show, each.shape))) for each in kernel.parameters)


def extents_of(text: str, kernel: Kernel) -> tuple[tuple[str, int], ...]:
    """The sizes of a kernel from a text such as "M=4096,N=4096". Raises ArgusError (E903)."""
    wanted = [size.name for size in kernel.sizes]
    advice = f"give every size of `{kernel.name}`: --sizes {','.join(f'{name}=4096' for name in wanted)}"
    if not wanted:
        if text:
            _refuse(f"`{kernel.name}` has no sizes, found --sizes {text}", "leave --sizes out")
        return ()
    if not text:
        _refuse(f"sizes are missing: `{kernel.name}` has {', '.join(wanted)}", advice)
    found: dict[str, int] = {}
    for part in text.split(","):
        match = _SIZE.fullmatch(part.strip())
        if match is None:
            _refuse(f"`{part}` is not a size, expected a name and a number such as M=4096", advice)
        if match[1] in found or match[1] not in wanted:
            _refuse(f"`{match[1]}` is given twice or is not a size of `{kernel.name}`", advice)
        found[match[1]] = int(match[2])
    missing = [name for name in wanted if name not in found]
    if missing:
        _refuse(f"no value is given for {', '.join(missing)}", advice)
    return tuple((name, found[name]) for name in wanted)


@frozen
class Loaded:
    """Contents of a file. work: its function that declares the work; None if absent."""

    exported: tuple[Exported, ...]
    reference: Callable[..., object]
    work: Callable[..., object] | None


@cache
def _load_file(path: str, kernel: str, digest: str) -> Loaded:
    """Load a file. Raises ArgusError (E903) if its text does not have this digest."""
    if digest_of(Path(path).read_bytes()) != digest:
        _refuse(f"`{path}` has changed since the run began", "start a new run, or restore the file")
    exported, names = load_with_names(f"{path}:{kernel}" if kernel else path)
    found, work = names.get(REFERENCE), names.get(WORK)
    if not callable(found):
        _refuse(
            f"`{path}` has no function `{REFERENCE}` that specifies the kernel's result",
            f"define `def {REFERENCE}(...)` on NumPy arrays named as the kernel's inputs, returning its output",
        )
    return Loaded(exported, found, work if callable(work) else None)


# -- designs -----------------------------------------------------------------------------------------------------


@cache
def _variants(problem: KernelFile) -> Mapping[str, Variant]:
    return variants_of(problem.exported, problem.target, problem.sizes)


def admissible_kernels(
    exported: Iterable[Exported], target: str, sizes: Mapping[str, int]
) -> Iterator[tuple[str, Kernel]]:
    """(name, kernel) of the target whose assumptions the sizes satisfy."""
    for each in exported:
        kernel = each.trace()
        if kernel.target.name == target and holds(kernel, assumed(kernel), sizes):
            yield each.name, kernel


def variants_of(exported: Iterable[Exported], target: str, sizes: Mapping[str, int]) -> dict[str, Variant]:
    """The designs of a file's kernels, by name."""
    found: dict[str, Variant] = {}
    for name, traced in admissible_kernels(exported, target, sizes):
        suggested = not _claims(traced)
        kernel = with_suggested(traced)[0] if suggested else traced
        found |= {made.name: made for made in _expand(Variant(name, name, (), kernel, suggested))}
    return found


def _expand(base: Variant) -> Iterator[Variant]:
    """A kernel and its rewrites by up to `DEPTH` techniques, deduplicated by their text."""
    seen = {pretty(base.kernel)}
    level = [base]
    yield base
    for _ in range(DEPTH):
        following: list[Variant] = []
        for each in level:
            for made in _rewritten(each):
                text = pretty(made.kernel)
                if text not in seen:
                    seen.add(text)
                    following.append(made)
        yield from following
        level = following


def _rewritten(before: Variant) -> Iterator[Variant]:
    used = {step.technique for step in before.steps}
    for technique, transformation in TRANSFORMATIONS.items():
        if technique in used:
            continue
        for number, kernel in enumerate(transformation.rewrite(before.kernel), 1):
            change = f"way {number}" if number > 1 else ""
            name = f"{before.name}+{technique}" + (f"#{number}" if number > 1 else "")
            yield evolve(before, name=name, steps=(*before.steps, Step(technique, change)), kernel=kernel)


def _claims(kernel: Kernel) -> bool:
    return any(isinstance(stmt, Assert) for stmt in walk(kernel.body))


def _refuse(message: str, advice: str) -> NoReturn:
    raise ArgusError(Diagnostic("E903", "error", message, help=advice))
