"""Copies of shipped attention kernels with one edit."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType

import pytest

from argus.language import Template


def twin(template: Template, module: ModuleType, edit: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> Template:
    """The template with one edit of the text of a module that its own module imports the problem or schedule from."""
    text, (old, new) = inspect.getsource(module), edit
    assert text.count(old) == 1, old
    made = ModuleType(module.__name__)
    monkeypatch.setitem(import_module("sys").modules, module.__name__, made)
    edited = compile(text.replace(old, new), module.__file__ or "", "exec", dont_inherit=True)
    exec(edited, made.__dict__)  # noqa: S102 reason: our module
    family = import_module(template.function.__module__)
    named = {"Attention", "PackedAttention", "attention_hopper", "attention_cdna3"}
    for name in named & vars(family).keys() & vars(made).keys():
        if vars(made)[name].__module__ == made.__name__:
            monkeypatch.setattr(family, name, vars(made)[name])
    return template
