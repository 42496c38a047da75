"""Answers as plain data and back, so that a run that is resumed reads them and asks no second time."""

from __future__ import annotations

from typing import Any, cast

from cattrs import ClassValidationError, Converter
from cattrs.strategies import configure_tagged_union

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.policy.llm.reply import Reply, Target, Trouble

Asked = Reply | Trouble


def _converter() -> Converter:
    found = Converter(forbid_extra_keys=True)
    configure_tagged_union(Target, found, tag_name="kind", tag_generator=lambda each: each.__name__.lower())
    configure_tagged_union(Asked, found, tag_name="kind", tag_generator=lambda each: each.__name__.lower())
    return found


_CONVERTER = _converter()


def to_data(asked: Asked) -> dict[str, object]:
    """Of an answer or of why there is none: objects, lists, texts and numbers, as JSON has them."""
    return cast("dict[str, object]", _CONVERTER.unstructure(asked, unstructure_as=Asked))


def from_data(data: object) -> Asked:
    """What `to_data` made data of.

    Raises ArgusError (E928) if it was not.
    """
    try:
        return cast("Asked", _CONVERTER.structure(cast(Any, data), cast(Any, Asked)))
    except (ClassValidationError, KeyError, TypeError, ValueError, AttributeError) as problem:
        message = f"the record of an answer cannot be read: {type(problem).__name__}"
        repair = "the journal was written by another version, or is damaged: start a new run"
        raise ArgusError(Diagnostic("E928", "error", message, help=repair)) from problem
