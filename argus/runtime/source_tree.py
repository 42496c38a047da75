"""Which sources of Argus are running: the commit of their checkout, if they are in one, and a digest of them."""

from __future__ import annotations

from pathlib import Path

from argus.runtime.kernel_cache import sources_digest

_DIGITS = 16
_HASH = 40
"""Digits of a commit."""


def source_tree(root: Path | None = None) -> dict[str, str]:
    """`sources`, a digest of the package's files, and `commit`, that which is checked out, if it is known.

    Files may differ from those of the commit: equal digests are equal files. root: of the checkout.
    """
    found = {"sources": sources_digest()[:_DIGITS]}
    commit = _commit(root or Path(__file__).parents[2])
    return found | ({"commit": commit} if commit else {})


def _commit(root: Path) -> str:
    """The commit that Git's files say is checked out; empty where there are none, or others than expected."""
    try:
        folder = root / ".git"
        if folder.is_file():  # of a second working tree
            folder = Path(folder.read_text(encoding="utf-8").removeprefix("gitdir:").strip())
        head = (folder / "HEAD").read_text(encoding="utf-8").strip()
        name = head.removeprefix("ref:").strip()
        return head if name == head else _of_branch(folder, name)
    except (OSError, ValueError):
        return ""


def _of_branch(folder: Path, name: str) -> str:
    shared = folder / "commondir"
    whole = folder / shared.read_text(encoding="utf-8").strip() if shared.is_file() else folder
    if (whole / name).is_file():
        return (whole / name).read_text(encoding="utf-8").strip()
    lines = (whole / "packed-refs").read_text(encoding="utf-8").splitlines()
    return next((line[:_HASH] for line in lines if line[_HASH:].strip() == name), "")
