"""Serialises the model's responses, so that a resumed run replays them from the journal instead of asking again."""

from __future__ import annotations

from typing import Any, cast

from cattrs import ClassValidationError, Converter
from cattrs.strategies import configure_tagged_union

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.policy.llm.reply import Knob, Reply, Target, Trouble

Response = Reply | Trouble


def _converter() -> Converter:
    found = Converter(forbid_extra_keys=True)
    found.register_structure_hook(Knob, _knob)
    configure_tagged_union(Target, found, tag_name="kind", tag_generator=lambda each: each.__name__.lower())
    configure_tagged_union(Response, found, tag_name="kind", tag_generator=lambda each: each.__name__.lower())
    return found


def _knob(value: object, _: object) -> Knob:
    """A knob's value as recorded: a number, a truth value and a text stay what they are."""
    if not isinstance(value, Knob):
        raise TypeError(f"expected a whole number, a truth value or text, found {type(value).__name__}")
    return value


_CONVERTER = _converter()


def to_data(asked: Response) -> dict[str, object]:
    """A response as JSON data."""
    return cast("dict[str, object]", _CONVERTER.unstructure(asked, unstructure_as=Response))


def from_data(data: object) -> Response:
    """The inverse of `to_data`.

    Raises ArgusError (E928) for any other data.
    """
    try:
        return cast("Response", _CONVERTER.structure(cast(Any, data), cast(Any, Response)))
    except (ClassValidationError, KeyError, TypeError, ValueError, AttributeError) as problem:
        message = f"the record of an answer cannot be read: {type(problem).__name__}"
        repair = "the journal was written by another version, or is damaged: start a new run"
        raise ArgusError(Diagnostic("E928", "error", message, help=repair)) from problem
