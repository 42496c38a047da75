"""Files of one folder by which processes of a machine share out work: who takes a piece, and what is known of it."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import frozen


@frozen
class Tickets:
    """folder: which exists, and in which names are files."""

    folder: Path

    def take(self, name: str) -> bool:
        """True for one caller of all processes."""
        try:
            os.close(os.open(self.folder / f"{name}.taken", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def give_back(self, name: str) -> None:
        """Let another process take it."""
        (self.folder / f"{name}.taken").unlink(missing_ok=True)

    def write(self, name: str, known: dict[str, Any]) -> None:
        """What is known of a piece of work; complete or not at all for those who read it."""
        made = self.folder / f"{name}.{os.getpid()}.new"
        made.write_text(json.dumps(known), encoding="utf-8")
        made.replace(self.folder / f"{name}.json")

    def read(self, name: str) -> dict[str, Any] | None:
        """What was written; None before that."""
        with suppress(FileNotFoundError):
            return json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
        return None
