"""Public names that moved: an old name works for one version, with a DeprecationWarning that names the new one.

A function warns where it is called, every other object where it is imported or read. So `from argus.language import *`
brings old functions without a warning; it needs them in `__all__`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import wraps
from importlib import import_module
from types import FunctionType

from attrs import frozen


@frozen
class Alias:
    """A public name that moved. old, new: with their modules. since: the first version with the new name.

    removed: the version that no longer has the old one, the minor version after `since`.
    """

    old: str
    new: str
    since: str
    removed: str

    @property
    def message(self) -> str:
        return (
            f"`{self.old}` is called `{self.new}` since Argus {self.since}, and is removed in {self.removed}: "
            f"use `{self.new.rpartition('.')[2]}`"
        )


ALIASES = (Alias("argus.language.begin_late", "argus.language.no_pdl", since="0.1.0", removed="0.2.0"),)
"""All names that moved and still work. CONTRIBUTING.md says how to add one, and a test when one must go."""


def moved(module: str, name: str, aliases: Iterable[Alias] = ALIASES) -> object:
    """What a deprecated name of a module stands for, to be returned by the module's `__getattr__`.

    A function comes wrapped, and warns at each call; for anything else the warning is given now, at the line that reads
    the name. Raises AttributeError for a name that never moved.
    """
    alias = next((each for each in aliases if each.old == f"{module}.{name}"), None)
    if alias is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    home, _, new = alias.new.rpartition(".")
    found: object = getattr(import_module(home), new)
    if isinstance(found, FunctionType):
        return _warning(found, alias)
    warnings.warn(alias.message, DeprecationWarning, stacklevel=3)
    return found


def _warning(function: Callable[..., object], alias: Alias) -> Callable[..., object]:
    @wraps(function)
    def warned(*given: object, **named: object) -> object:
        warnings.warn(alias.message, DeprecationWarning, stacklevel=2)
        return function(*given, **named)

    return warned
