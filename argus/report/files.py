"""Write report files: a SARIF log, and a picture of a counterexample."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from argus.core.ir import Kernel
from argus.core.verdict import Refuted, Report
from argus.report.atomic_write import write_whole
from argus.report.layout_svg import save
from argus.report.sarif import Located, located_in, sarif_log
from argus.report.sources import current_directory
from argus.report.svg import picture


def write_sarif(found: Sequence[Report] | Sequence[Located], path: Path | str, *, version: str) -> str:
    """Write the SARIF log of some reports, or of diagnostics; returns a message. version: of Argus.

    Rules link to the pages of `docs/` if these are next to the package, as in a checkout.
    Raises ArgusError (E302) if the file cannot be written.
    """
    checkout = Path(__file__).parents[2]
    pages = f"{checkout.as_uri()}/" if (checkout / "docs" / "invariants").is_dir() else ""
    located = [each for one in found for each in (located_in(one) if isinstance(one, Report) else (one,))]
    log = sarif_log(located, version=version, root=current_directory(), pages=pages)
    write_whole(Path(path), (json.dumps(log, indent=2) + "\n").encode())
    return f"wrote {path}"


def write_picture(kernels: Sequence[Kernel], reports: Sequence[Report], path: Path | str) -> str:
    """Draw the first counterexample that names an element; returns a message.

    kernels: one for each report. path: ends in .svg, .png or .txt. Raises ArgusError as `layout_svg.save` does.
    """
    for kernel, report in zip(kernels, reports, strict=True):
        verdict = report.verdict
        drawn = picture(kernel, verdict.counterexample) if isinstance(verdict, Refuted) else None
        if drawn is not None:
            save(drawn, path)
            return f"wrote {path}"
    return f"did not write {path}: no counterexample names an element"
