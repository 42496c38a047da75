"""Copies of shipped kernels with one edit of the text of a module that their own module takes functions from."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType
from typing import overload

import pytest
from attrs import asdict

from argus.core.ir import Kernel, Program
from argus.core.ir.pretty import pretty, program_text
from argus.language import ProgramTemplate, Template

Edit = tuple[str, str]
"""Text of a module that occurs once, and what replaces it."""


@contextmanager
def edited(of: Template | ProgramTemplate, module: ModuleType, edit: Edit) -> Generator[None]:
    """Traces of the kernel or program have one edit of a module, within the context."""
    with pytest.MonkeyPatch.context() as patch:
        _edit(of, module, edit, patch)
        yield


@overload
def twin(of: Template, config: str, module: ModuleType, edit: Edit) -> Kernel: ...
@overload
def twin(of: ProgramTemplate, config: str, module: ModuleType, edit: Edit) -> Program: ...
def twin(of: Template | ProgramTemplate, config: str, module: ModuleType, edit: Edit) -> Kernel | Program:
    """The kernel or program of a configuration, with one edit of a module that changes what it is."""
    with edited(of, module, edit):
        made = of.trace(config)
    assert _text(made) != _text(of.trace(config)), edit
    return made


def _text(of: Kernel | Program) -> str:
    return pretty(of) if isinstance(of, Kernel) else program_text(of)


def _edit(of: Template | ProgramTemplate, module: ModuleType, edit: Edit, patch: pytest.MonkeyPatch) -> None:
    """Put what the edited module defines in place of the same in every module that has taken it from there.

    Modules of claims alone keep what they have: what is claimed is not edited.
    """
    text, (old, new) = inspect.getsource(module), edit
    assert text.count(old) == 1, old
    made = ModuleType(module.__name__)
    patch.setitem(sys.modules, module.__name__, made)
    compiled = compile(text.replace(old, new), module.__file__ or "", "exec", dont_inherit=True)
    exec(compiled, made.__dict__)  # noqa: S102 reason: our module
    parts = [part for each in of.configs.values() for part in (each, *asdict(each, recurse=False).values())]
    kept = {type(each).__name__ for each in parts}  # configurations are instances of the classes as they were
    own = {name for name, each in vars(made).items() if getattr(each, "__module__", "") == made.__name__} - kept
    taking = (name for name in sys.modules if name.startswith("argus.kernels") and not name.endswith("_claims"))
    users = [sys.modules[name] for name in taking if sys.modules[name] is not made]
    for user in users:
        for name in own & vars(user).keys():
            if vars(user)[name] is vars(module)[name]:
                patch.setattr(user, name, vars(made)[name])
