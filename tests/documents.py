"""What `argus verify --json` prints, held against its JSON Schema as it is published, and without a key more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from jsonschema import Draft202012Validator

import argus
from argus.core.diagnostic import Diagnostic
from argus.core.verdict import Report
from argus.report.diagnostic_text import to_json
from argus.report.json_document import SCHEMA, report_json, schema


def closed(node: object) -> object:
    """A schema under which an object has no key that the schema does not name."""
    if isinstance(node, list):
        return [closed(each) for each in cast("list[object]", node)]
    if not isinstance(node, dict):
        return node
    inner = {key: closed(value) for key, value in cast("dict[str, object]", node).items()}
    return inner | {"additionalProperties": False} if "required" in inner else inner


# The stubs of jsonschema leave the type of what is validated open.
VALIDATOR: Any = Draft202012Validator(cast("dict[str, Any]", closed(schema())))


def document(reports: Sequence[Report], code: int, refused: Diagnostic | None = None) -> dict[str, object]:
    """The document of one command."""
    diagnostics = {} if refused is None else {"diagnostics": [to_json(refused)]}
    kernels = [report_json(report) for report in reports]
    return {"schema": SCHEMA, "version": argus.__version__, "kernels": kernels, **diagnostics, "exit_code": code}


def complaints(found: dict[str, object]) -> list[str]:
    """Where a document differs from its schema, and how."""
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(found)]
