"""Renders diagnostics in colour for terminals; the only renderer that imports a terminal library."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from argus.core.diagnostic import Diagnostic
from argus.report.diagnostic_text import Sources, Style, render_plain, trimmed

_COLOURS: dict[Style, str] = {
    "error": "bold red",
    "warning": "bold yellow",
    "unknown": "bold magenta",
    "note": "bold green",
    "message": "bold",
    "frame": "bold blue",
    "source": "",
    "primary": "bold red",
    "secondary": "bold blue",
    "text": "",
}


def render_rich(diagnostic: Diagnostic, sources: Sources, *, root: str = "") -> Text:
    """The text of `render_plain`, in colour."""
    lines = [
        Text.assemble(*((text, _COLOURS[style]) for style, text in line)) for line in trimmed(diagnostic, sources, root)
    ]
    return Text("\n").join(lines)


def print_diagnostic(diagnostic: Diagnostic, sources: Sources, console: Console, *, root: str = "") -> None:
    """Print a diagnostic, in colour only on a terminal and without NO_COLOR."""
    if console.is_terminal and not console.no_color:
        console.print(render_rich(diagnostic, sources, root=root), soft_wrap=True, highlight=False)
        return
    console.file.write(render_plain(diagnostic, sources, root=root) + "\n")
