"""The configurations of row kernels on MI300X by element type, and the choice among them: plain, and not measured."""

from __future__ import annotations

from math import inf

from argus.kernels.config_names import name_of
from argus.kernels.schedules.rows import RowsCdna3
from argus.language import bf16, f16, f32

_WAVE, _BLOCK = 64, 256
_FEW, _SOME, _MOST = 8, 16, 32
"""Elements of a row that a thread holds: of short rows, of those of a wave, and at most."""
_WIDEST = {str(each): 128 // each.bits for each in (bf16, f16, f32)}
"""The elements of 16 bytes, by type."""


def _ladder(vector: int) -> list[tuple[float, RowsCdna3]]:
    """The configurations of a vector width with the longest row of each, in ascending order of these."""

    def held(threads: int, lanes: int, elements: int) -> RowsCdna3:
        return RowsCdna3(threads, threads // lanes, vector, max(1, elements // vector))

    waves = ((_WAVE // 4, _FEW), (_WAVE, _FEW), (_WAVE, _SOME))
    all_held = [*(held(_BLOCK, lanes, elements) for lanes, elements in waves), held(_BLOCK, _BLOCK, _MOST)]
    of_any_length = RowsCdna3(2 * _BLOCK, 1, vector, _MOST // vector, held=False)
    return [*((each.longest, each) for each in all_held), (inf, of_any_length)]


LADDERS = {kind: {vector: _ladder(vector) for vector in (widest, 1)} for kind, widest in _WIDEST.items()}
"""The configurations by type and elements of an access, 16 bytes or one element, with the longest row of each."""
CONFIGS = {
    kind: {name_of(each): each for ladder in own.values() for _, each in ladder} for kind, own in LADDERS.items()
}
"""The configurations by type and name."""


def choose(kind: str, length: int, whole: int | None = None, reads: str = "twice", rows: int | None = None) -> str:
    """The configuration for rows of a length, as `argus.kernels.rows.configs.choose`, whatever `reads` and `rows`."""
    del reads, rows
    wide = _WIDEST[kind]
    vector = wide if (length if whole is None else whole) % wide == 0 else 1
    return name_of(next(each for longest, each in LADDERS[kind][vector] if length <= longest))
