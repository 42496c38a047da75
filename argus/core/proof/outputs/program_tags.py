"""The tags of a program's tensors: what each launch calls the elements that it loads, over their coordinates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from argus.core.check.reads import written_tensors
from argus.core.ir import Buffer, Copy, Kernel, Tag, walk
from argus.core.proof.outputs.launch_context import LaunchContext
from argus.core.proof.values.content import Names


def program_tags(launches: Iterable[LaunchContext]) -> Mapping[str, Names | str]:
    """The tags of each tensor, by its name, as all of the launches that load it say; or why they are not known.

    An element keeps its tags in what a launch computes from it, so those of earlier launches count in later ones.
    """
    found: dict[str, Names | str] = {}
    written: set[Buffer] = set()
    for launch in launches:
        kernel = launch.kernel
        for buffer in kernel.parameters:
            given = launch.arguments[buffer]
            tags, known = tags_of(kernel, buffer), found.get(given.name)
            if given not in written and _loads(kernel, buffer):
                unlike = known is not None and known != tags
                found[given.name] = f"`{given.name}` is tagged differently by two launches" if unlike else tags
        written |= {launch.arguments[buffer] for buffer in written_tensors(kernel)}
    return found


def tags_of(kernel: Kernel, buffer: Buffer) -> Names:
    """The tags that a kernel gives a tensor's elements; a name that several tags define is left out."""
    tags = [stmt.names for stmt in walk(kernel.body) if isinstance(stmt, Tag) and stmt.view.buffer is buffer]
    names = [name for name, _ in chain.from_iterable(tags)]
    return tuple((name, at) for name, at in chain.from_iterable(tags) if names.count(name) == 1)


def _loads(kernel: Kernel, buffer: Buffer) -> bool:
    return any(isinstance(stmt, Copy) and stmt.source.buffer is buffer for stmt in walk(kernel.body))
