"""Checks delivered files: compares digests, and re-emits and recompiles the kernel."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from attrs import frozen

from argus.core.cost.occupancy import Compiled
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.emit.artifact import Artifact
from argus.emit.build import build
from argus.emit.resources import compiled_from_report
from argus.runtime.expressions import value_of
from argus.search.certificates import claims
from argus.search.certificates.certificate import ROLES, Certificate, Role
from argus.search.certificates.check_result import Check, check_equal, failed, passed, unchecked
from argus.search.certificates.file_claims import PROBLEM
from argus.search.evaluation.reward import resources

_NO_COMPILER = "E303"


@frozen
class Rebuilt:
    """The kernel as emitted and compiled here.

    sources: what was compiled, or without a compiler all that it chooses from. files: contents by role. names: file
    names by role. stem: their common stem. Without a compiler these are empty, and `lack` says why.
    """

    sources: tuple[str, ...]
    files: dict[Role, bytes]
    names: dict[Role, str]
    stem: str = ""
    checks: tuple[str, ...] = ()
    resources: dict[str, float] | None = None
    compiled: Compiled | None = None
    lack: str = ""


def rebuild(kernel: Kernel) -> Rebuilt:
    """Emit and compile in a temporary folder. Raises ArgusError: E302, E304, E501."""
    sources = claims.emit_sources(kernel)
    with tempfile.TemporaryDirectory(prefix="argus-certify-", ignore_cleanup_errors=True) as place:
        try:
            artifact = build(kernel, directory=Path(place), lines=False)
        except ArgusError as problem:
            if problem.diagnostic.code != _NO_COMPILER:
                raise
            return Rebuilt(sources, {}, {}, lack=problem.diagnostic.message)
        checks = tuple(each.condition for each in artifact.launch.checks)
        stem = artifact.description.stem
        return Rebuilt(
            (artifact.source_text,),
            _files(artifact),
            _names(artifact),
            stem,
            checks,
            resources(artifact),
            compiled_from_report(artifact.report),
        )


def _files(artifact: Artifact) -> dict[Role, bytes]:
    found: dict[Role, bytes] = {"code": artifact.code.read_bytes(), "description": artifact.description.read_bytes()}
    return found if artifact.assembly is None else {**found, "assembly": artifact.assembly.read_bytes()}


def _names(artifact: Artifact) -> dict[Role, str]:
    made: dict[Role, Path | None] = {
        "source": artifact.source,
        "code": artifact.code,
        "description": artifact.description,
        "assembly": artifact.assembly,
    }
    return {role: path.name for role, path in made.items() if path is not None}


def check_files(claimed: Certificate, folder: Path, *, of_file: bool) -> Iterator[Check]:
    """Check that all required files are listed, and their digests. of_file: whether the user's file is required."""
    absent = {"assembly": claimed.problem.target != "gfx942", "problem": not of_file}
    needed = [role for role in ROLES if not absent.get(role)]
    lacking = [role for role in needed if role not in claimed.files]
    more = [role for role in claimed.files if role not in needed]
    if lacking or more:
        yield failed("files", f"expected files for {', '.join(needed)}, found {', '.join(claimed.files) or 'none'}")
    for role, named in claimed.files.items():
        try:
            found = _digest(folder / named.name)
        except OSError as problem:
            if role == "problem" and isinstance(problem, FileNotFoundError):
                yield unchecked("problem file", f"{named.name} is missing, so its contents are unknown")
                continue
            yield failed(f"{role} file", f"{named.name} cannot be read: {problem.strerror or problem}")
            continue
        yield check_equal(f"{role} file", (named.bytes, named.sha256), found, f"{named.name} has the digest claimed")


def _digest(path: Path) -> tuple[int, str]:
    found, size = sha256(), 0
    with path.open("rb") as stream:
        while part := stream.read(1 << 20):
            found.update(part)
            size += len(part)
    return size, found.hexdigest()


def check_build(
    claimed: Certificate, folder: Path, kernel: Kernel, sizes: Mapping[str, int], script: str, made: Rebuilt
) -> Iterator[Check]:
    """Check source, code and loader. script: the loader as generated here."""
    yield _compare_file(
        "source", claimed, folder, [text.encode() for text in made.sources], "emitted again, byte for byte"
    )
    name = claimed.compiler
    yield check_equal(
        "compiler", name, claims.COMPILERS[kernel.target.name], f"{name} compiles for {kernel.target.name}"
    )
    yield _check_names(claimed, made)
    if made.lack:
        yield unchecked("code", f"not compiled again: {made.lack}")
        return
    yield from _check_objects(claimed, folder, made)
    yield _compare_file("loader", claimed, folder, [script.encode()], "written again, byte for byte")
    unmet = [each for each in made.checks if not value_of(each, sizes)]
    why = f"the problem's extents satisfy {len(made.checks)} launch conditions"
    yield failed("launch", f"{why}, but not {', '.join(unmet)}") if unmet else passed("launch", why)


def _check_names(claimed: Certificate, made: Rebuilt) -> Check:
    """Check that files have the names that the loader uses; otherwise it would load files that were not checked."""
    expected: dict[Role, str] = {"ir": claims.IR, "loader": claims.LOADER, "problem": PROBLEM, **made.names}
    given = {role: file.name for role, file in claimed.files.items() if role in expected}
    wanted = {role: name for role, name in expected.items() if role in given}
    return check_equal("names", given, wanted, "files have the names that the loader uses")


def _check_objects(claimed: Certificate, folder: Path, made: Rebuilt) -> Iterator[Check]:
    """Compare code objects; possible only with the same compiler version."""
    name = claimed.compiler
    here, there = claims.versions().get(name, ""), claimed.versions.get(name, "")
    for role, data in made.files.items():
        if here == there:
            yield _compare_file(role, claimed, folder, [data], f"compiled again by {name} {here}, byte for byte")
        else:
            yield unchecked(role, f"made by {name} {there or 'of unknown version'}, here {here}")
    if here == there:
        yield check_equal("resources", claimed.resources, made.resources, "as reported by the compiler")
    else:
        yield unchecked("resources", "the compiler here has another version")


def _compare_file(role: Role, claimed: Certificate, folder: Path, data: Sequence[bytes], how: str) -> Check:
    """Check that a file is one of `data`."""
    named = claimed.files.get(role)
    if named is None:
        return failed(role, "the certificate lists no such file")
    try:
        alike = (folder / named.name).read_bytes() in data
    except OSError as problem:
        return failed(role, f"{named.name} cannot be read: {problem.strerror or problem}")
    return passed(role, f"{named.name} is {how}") if alike else failed(role, f"{named.name} is not what is {how}")
