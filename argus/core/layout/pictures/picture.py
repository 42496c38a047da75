"""`Picture`: panels side by side with one legend, drawn as SVG or as plain text."""

from __future__ import annotations

from attrs import frozen

from argus.core.layout.pictures.geometry import plan_of
from argus.core.layout.pictures.panel import Key, Panel
from argus.core.layout.pictures.svg import extent_of, svg_text
from argus.core.layout.pictures.txt import plain_text


@frozen
class Picture:
    """Panels from left to right. arrow: the label of the arrow between panels. Jupyter shows a picture as SVG.

    caption: what the picture shows, above the panels; its first sentence is bold.
    """

    panels: tuple[Panel, ...]
    legend: tuple[Key, ...] = ()
    arrow: str = ""
    caption: tuple[str, ...] = ()

    def svg(self) -> str:
        """An SVG document on a white ground; lengths are in CSS pixels, scaled down to fit the window."""
        return svg_text(self.panels, self.legend, self.arrow, self.caption)

    def extent(self) -> tuple[float, float]:
        """Width and height of the SVG document, before it is scaled to a window."""
        return extent_of(plan_of(self.panels, self.legend, self.arrow), self.caption)

    def txt(self) -> str:
        """A grid of characters with a final newline, as CuTe's `print_layout` draws it."""
        above = "".join(f"{line}\n" for line in self.caption)
        return (above and f"{above}\n") + plain_text(self.panels, self.legend, self.arrow)

    def _repr_svg_(self) -> str:
        return self.svg()
