"""Checks delivered files: compares digests, and re-emits and recompiles the kernel."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from attrs import frozen

from argus.core.cost.occupancy import Compiled
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel, Program
from argus.emit.artifact import Artifact
from argus.emit.build import build
from argus.emit.build_program import launch_folders, program_description
from argus.emit.resources import compiled_from_report
from argus.runtime.expressions import value_of
from argus.search.certificates import claims
from argus.search.certificates.certificate import ROLES, Certificate, File, Role
from argus.search.certificates.check_result import Check, check_equal, failed, passed, unchecked
from argus.search.certificates.file_claims import PROBLEM
from argus.search.evaluation.reward import most_of, resources
from argus.search.problems.traced import Traced, kernels_of

_NO_COMPILER = "E303"
Files = Mapping[Role, File]


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


def rebuild_all(traced: Traced) -> tuple[Rebuilt, ...]:
    """Each kernel of a program by `rebuild`, in launch order; one of a kernel by itself. Raises like it."""
    return tuple(map(rebuild, kernels_of(traced)))


def predictable(made: Sequence[Rebuilt]) -> list[Compiled]:
    """The compiler's reports; none where there is no compiler."""
    found = [each.compiled for each in made if each.compiled is not None]
    return found if len(found) == len(made) else []


_OF_LAUNCH: tuple[Role, ...] = ("source", "code", "description", "assembly")
_OF_PROGRAM: tuple[Role, ...] = ("description", "ir", "loader")


def check_files(claimed: Certificate, folder: Path, *, of_file: bool) -> Iterator[Check]:
    """Check that all required files are listed, and their digests. of_file: whether the user's file is required."""
    absent = {"assembly": claimed.problem.target != "gfx942", "problem": not of_file}
    needed: tuple[Role, ...] = tuple(role for role in ROLES if not absent.get(role))
    if claimed.launches:
        needed = _OF_PROGRAM
    yield from _check_roles(claimed.files, needed, "files")
    yield from _check_digests(claimed.files, folder)
    for number, files in enumerate(claimed.launches):
        own: tuple[Role, ...] = tuple(role for role in _OF_LAUNCH if not absent.get(role))
        yield from _check_roles(files, own, f"files of launch {number}")
        yield from _check_digests(files, folder)


def _check_roles(files: Files, needed: Sequence[Role], name: str) -> Iterator[Check]:
    if set(files) != set(needed):
        yield failed(name, f"expected files for {', '.join(needed)}, found {', '.join(files) or 'none'}")


def _check_digests(files: Files, folder: Path) -> Iterator[Check]:
    for role, named in files.items():
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
    claimed: Certificate, folder: Path, traced: Traced, sizes: Mapping[str, int], script: str, made: Sequence[Rebuilt]
) -> Iterator[Check]:
    """Check source, code and loader. script: the loader as generated here. made: by `rebuild_all`."""
    of_kernels = claimed.launches if isinstance(traced, Program) else (claimed.files,)
    if len(of_kernels) != len(made) or (claimed.launches and isinstance(traced, Kernel)):
        yield failed("launches", f"expected {len(made)} kernels, found files of {len(claimed.launches) or 1}")
        return
    for files, each in zip(of_kernels, made, strict=True):
        texts = [text.encode() for text in each.sources]
        yield _compare_file("source", files, folder, texts, "emitted again, byte for byte")
    name, target = claimed.compiler, traced.target.name
    yield check_equal("compiler", name, claims.COMPILERS[target], f"{name} compiles for {target}")
    folders = launch_folders(traced) if isinstance(traced, Program) else ("",)
    for files, each, place in zip(of_kernels, made, folders, strict=True):
        yield _check_names(files, each.names, place)
    lack = next((each.lack for each in made if each.lack), "")
    if lack:
        yield unchecked("code", f"not compiled again: {lack}")
        return
    if isinstance(traced, Program):
        yield from _check_program(claimed.files, folder, traced, made)
    for files, each in zip(of_kernels, made, strict=True):
        yield from _check_objects(claimed, files, folder, each)
    yield _check_resources(claimed, made)
    yield _compare_file("loader", claimed.files, folder, [script.encode()], "written again, byte for byte")
    checks = list(dict.fromkeys(check for each in made for check in each.checks))
    unmet = [each for each in checks if not value_of(each, sizes)]
    why = f"the problem's extents satisfy {len(checks)} launch conditions"
    yield failed("launch", f"{why}, but not {', '.join(unmet)}") if unmet else passed("launch", why)


def _check_program(files: Files, folder: Path, traced: Program, made: Sequence[Rebuilt]) -> Iterator[Check]:
    """Check the description of the launches, and that its name is the one that the loader uses."""
    text = program_description(traced, [each.names["description"] for each in made])
    yield _check_names(files, {"description": f"{traced.name}.json"}, "")
    yield _compare_file("description", files, folder, [text.encode()], "written again, byte for byte")


def _check_names(files: Files, made: Mapping[Role, str], folder: str) -> Check:
    """Check that files have the names that the loader uses; otherwise it would load files that were not checked."""
    own: dict[Role, str] = {role: f"{folder}/{name}" if folder else name for role, name in made.items()}
    expected: dict[Role, str] = {"ir": claims.IR, "loader": claims.LOADER, "problem": PROBLEM, **own}
    given = {role: file.name for role, file in files.items() if role in expected}
    wanted = {role: name for role, name in expected.items() if role in given}
    return check_equal("names", given, wanted, "files have the names that the loader uses")


def _check_objects(claimed: Certificate, files: Files, folder: Path, made: Rebuilt) -> Iterator[Check]:
    """Compare code objects; possible only with the same compiler version."""
    name = claimed.compiler
    here, there = claims.versions().get(name, ""), claimed.versions.get(name, "")
    for role, data in made.files.items():
        if here == there:
            yield _compare_file(role, files, folder, [data], f"compiled again by {name} {here}, byte for byte")
        else:
            yield unchecked(role, f"made by {name} {there or 'of unknown version'}, here {here}")


def _check_resources(claimed: Certificate, made: Sequence[Rebuilt]) -> Check:
    name = claimed.compiler
    if claims.versions().get(name, "") != claimed.versions.get(name, ""):
        return unchecked("resources", "the compiler here has another version")
    most = most_of([each.resources or {} for each in made])
    return check_equal("resources", claimed.resources, most, "as reported by the compiler")


def _compare_file(role: Role, files: Files, folder: Path, data: Sequence[bytes], how: str) -> Check:
    """Check that a file is one of `data`."""
    named = files.get(role)
    if named is None:
        return failed(role, "the certificate lists no such file")
    try:
        alike = (folder / named.name).read_bytes() in data
    except OSError as problem:
        return failed(role, f"{named.name} cannot be read: {problem.strerror or problem}")
    return passed(role, f"{named.name} is {how}") if alike else failed(role, f"{named.name} is not what is {how}")
