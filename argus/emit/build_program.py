"""`build_program`: build every kernel of a program, and describe the sequence of launches."""

from __future__ import annotations

import json
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


def build_program(program: Program | ProgramTemplate, directory: Path, config: str | None = None) -> BuiltProgram:
    """Emit and compile every launch of a program. Each launch checks the assumptions of all.

    directory: receives NAME.json and one folder per launch.
    Raises ArgusError like `build`.
    """
    traced = program if isinstance(program, Program) else program.trace(config or program.instances()[0])
    launches, kernels, written = list[dict[str, object]](), list[Artifact](), set[str]()
    for number, each in enumerate(launch_contexts(traced)):
        folder = f"{number}-{each.kernel.name}"
        made = build(each.kernel, directory=directory / folder)
        given = {parameter.name: tensor.name for parameter, tensor in each.arguments.items()}
        launches.append({"description": f"{folder}/{made.description.name}", "given": given})
        kernels.append(made)
        written |= {given[buffer.name] for buffer in written_tensors(each.kernel)}
    read = [each.name for each in traced.parameters if each.name not in written]
    workspaces = [
        {"name": each.name, "dtype": each.dtype.name, "shape": [show(extent) for extent in each.shape]}
        for each in traced.workspaces
    ]
    data = {"schema": SCHEMA, "program": traced.name, "workspaces": workspaces, "read": read, "launches": launches}
    files: dict[str, str | bytes] = {f"{traced.name}.json": json.dumps(data, indent=2) + "\n"}
    (description,) = write_files(files, directory, traced.name)
    return BuiltProgram(traced.name, description, tuple(kernels))
