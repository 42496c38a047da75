"""Delivers the best design of a torch module: its code, a file that `argus verify` proves, and its kernels as text.

There is no certificate: what checks one does not run the user's file, which alone defines the graph.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir.pretty import pretty
from argus.core.serde import read
from argus.emit.hip.toolchain import write_files
from argus.search.certificates import claims
from argus.search.certificates.delivery import built_into, files_of_kernel, traced_best
from argus.search.certificates.output_dir import KERNELS, MADE
from argus.search.problems.families.problem import FamilyProblem
from argus.search.problems.traced import kernels_of
from argus.search.run import SearchResult

TEXT = "kernels.txt"
_FILE = '''{made} {shown} on {target}: design {design}.

`argus verify {file}` proves them again. As text they are in {text}, as CUDA in the files and folders beside.
"""

from __future__ import annotations

import json
from pathlib import Path

from argus.core.serde import read

({name},) = read(json.loads(Path(__file__).with_name("{ir}").read_text(encoding="utf-8")))
'''


def deliver_module(found: SearchResult, folder: Path) -> tuple[str, ...]:
    """Write the best design of a run: sources, code, descriptions, kernel.json, kernels.py and kernels.txt.

    Returns the names of the files. Raises ArgusError: E932 if no candidate has passed, E302 if the folder cannot be
    written, E303 and E304 as `build`.
    """
    best, asked = found.best, found.problem
    assert isinstance(asked, FamilyProblem)
    if best is None:
        message = f"run {found.run} has no design to deliver: no candidate has passed the gate"
        raise ArgusError(Diagnostic("E932", "error", message, help=f"continue with --resume {found.run}"))
    document = claims.kernel_document(traced_best(found, best))
    (traced,) = read(document)
    built = built_into(traced, folder)
    name = re.sub(r"\W", "_", traced.name)
    script = _FILE.format(
        made=MADE,
        shown=asked.short,
        target=asked.target,
        design=best.name,
        file=KERNELS,
        text=TEXT,
        name=name,
        ir=claims.IR,
    )
    sizes = ", ".join(f"{size}={extent}" for size, extent in asked.sizes_of(traced.name).items())
    parts = [f"{asked.short} on {asked.target}: {best.name}, at {sizes}", asked.space.told]
    text = "\n\n".join([*parts, *map(pretty, kernels_of(traced))]) + "\n"
    files: dict[str, str | bytes] = {claims.IR: json.dumps(document) + "\n", KERNELS: script, TEXT: text}
    written = [each.name for each in write_files(files, folder, traced.name)]
    return (*written, *(str(each.relative_to(folder)) for each in files_of_kernel(built)))
