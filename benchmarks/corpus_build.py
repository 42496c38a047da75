"""The build of `corpus_h200.py`: compiled kernels and programs with their cases; needs a compiler and no GPU."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from corpus_cases import DRAWS, TARGET, Subject, expected_of, inputs_of, shape_of, sizes_of, subjects

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.emit.build import build as build_kernel
from argus.emit.build_program import build_program
from benchmarks.shipped import card_sizes, shipped

Words = npt.NDArray[Any]
Cases = Callable[[], Iterator[dict[str, Any]]]


def build(what: str, place: Path, only: Sequence[str] = ()) -> int:
    """Compile what `corpus` or `shipped` names into a folder, with index.json; 1 if anything was not built.

    only: the beginnings of the names of those to build; all by default.
    """
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    index = list(_corpus(place, tuple(only)) if what == "corpus" else _shipped(place, tuple(only)))
    (place / "index.json").write_text(json.dumps(index), encoding="utf-8")
    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file()) / 2**20
    refused = [entry for entry in index if entry["refused"]]
    for entry in refused:
        print(f"{entry['stem']}: {entry['refused']}")
    print(f"{len(index)} kernels and programs, {len(refused)} not built, {size:.1f} MiB")
    return int(bool(refused))


def _corpus(place: Path, only: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for subject in subjects():
        if only and not subject.stem.startswith(only):
            continue
        yield _built(place, subject, partial(_stored, subject, place / subject.stem), lines=True)


def _shipped(place: Path, only: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for each in shipped():
        if only and not each.stem.startswith(only):
            continue
        subject = Subject(each.stem, each.trace())
        if all(kernel.target.name == TARGET for kernel in subject.kernels):
            cases = partial(_computed, subject, card_sizes(each))
            yield _built(place, subject, cases, lines=False) | {"family": each.family}


def _built(place: Path, subject: Subject, cases: Cases, *, lines: bool) -> dict[str, Any]:
    own, made = place / subject.stem, subject.made
    entry: dict[str, Any] = {"stem": subject.stem, "program": not isinstance(made, Kernel), "refused": "", "cases": []}
    entry["tensors"] = [(buffer.name, buffer.dtype.name) for buffer in made.parameters]
    try:
        built = build_kernel(made, directory=own, lines=lines) if isinstance(made, Kernel) else build_program(made, own)
        entry["description"] = built.description.relative_to(place).as_posix()
        entry["cases"] = list(cases())
    except ArgusError as problem:
        entry["refused"] = str(problem).splitlines()[0]
    for source in own.rglob("*.cu"):
        source.unlink()
    return entry


def _stored(subject: Subject, place: Path) -> Iterator[dict[str, Any]]:
    """Store inputs and expected outputs of every size and draw."""
    for number, sizes in enumerate(sizes_of(subject)):
        for draw in DRAWS:
            arrays = inputs_of(subject, sizes, draw)
            expected = expected_of(subject, arrays, draw)
            file = place / f"{number}-{draw}.npz"
            stored: dict[str, Words] = {f"in {name}": _words(arrays[name]) for name in subject.read}
            stored |= {f"out {name}": each.values for name, each in expected.items()}
            stored |= {f"bound {name}": each.bound for name, each in expected.items()}
            np.savez_compressed(file, allow_pickle=False, **stored)
            (reference,) = {each.reference for each in expected.values()}
            shapes = {name: list(array.shape) for name, array in arrays.items()}
            where = file.relative_to(place.parent).as_posix()
            yield {"file": where, "sizes": sizes, "draw": draw, "shapes": shapes, "reference": reference}


def _computed(subject: Subject, every: Sequence[dict[str, int]]) -> Iterator[dict[str, Any]]:
    """The cases of a shipped kernel, whose inputs and expected outputs are computed on the GPU."""
    for sizes in every:
        shapes = {each.name: list(shape_of(each, subject.made, sizes)) for each in subject.made.parameters}
        for draw in DRAWS:
            yield {"sizes": sizes, "draw": draw, "shapes": shapes, "reference": "formula in float64"}


def _words(values: Words) -> Words:
    return np.ascontiguousarray(values).view(np.dtype(f"i{values.dtype.itemsize}"))
