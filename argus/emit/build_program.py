"""`build_program`: build every kernel of a program, and describe the sequence of launches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from argus.core.check.reads import written_tensors
from argus.core.dsl.programs import ProgramTemplate
from argus.core.index_text import show
from argus.core.ir import Program
from argus.core.proof.outputs.launch_context import launch_contexts
from argus.emit.artifact import Artifact
from argus.emit.build import build
from argus.emit.hip.toolchain import write_files

SCHEMA = "argus.program/1"


@frozen
class BuiltProgram:
    """description: NAME.json, which names the kernels' descriptions by relative path. kernels: in launch order."""

    name: str
    description: Path
    kernels: tuple[Artifact, ...]


def build_program(
    program: Program | ProgramTemplate, directory: Path, config: str | None = None, *, lines: bool = True
) -> BuiltProgram:
    """Emit and compile every launch of a program. Each launch checks the assumptions of all.

    directory: receives NAME.json and one folder per launch. lines: as for `argus.emit.build.build`.
    Raises ArgusError like `build`.
    """
    traced = program if isinstance(program, Program) else program.trace(config or program.instances()[0])
    kernels = [
        build(each.kernel, directory=directory / folder, lines=lines)
        for each, folder in zip(launch_contexts(traced), launch_folders(traced), strict=True)
    ]
    text = program_description(traced, [each.description.name for each in kernels])
    files: dict[str, str | bytes] = {f"{traced.name}.json": text}
    (description,) = write_files(files, directory, traced.name)
    return BuiltProgram(traced.name, description, tuple(kernels))


def launch_folders(program: Program) -> tuple[str, ...]:
    """The folder of each launch, beside the program's description."""
    return tuple(f"{number}-{each.kernel.name}" for number, each in enumerate(program.launches))


def program_description(traced: Program, names: Sequence[str]) -> str:
    """The text of NAME.json. names: of the launches' descriptions, each in its folder."""
    launches, written = list[dict[str, object]](), set[str]()
    for each, folder, name in zip(launch_contexts(traced), launch_folders(traced), names, strict=True):
        given = {parameter.name: tensor.name for parameter, tensor in each.arguments.items()}
        launches.append({"description": f"{folder}/{name}", "given": given})
        written |= {given[buffer.name] for buffer in written_tensors(each.kernel)}
    read = [each.name for each in traced.parameters if each.name not in written]
    workspaces = [
        {"name": each.name, "dtype": each.dtype.name, "shape": [show(extent) for extent in each.shape]}
        for each in traced.workspaces
    ]
    data = {"schema": SCHEMA, "program": traced.name, "workspaces": workspaces, "read": read, "launches": launches}
    return json.dumps(data, indent=2) + "\n"
