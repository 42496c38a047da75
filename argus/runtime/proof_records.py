"""Verdicts that this machine has found, kept beside a kernel's code and signed with a key that stays on the machine.

A record that another machine, or another program, has written has no valid signature here and is not believed.
"""

from __future__ import annotations

import hmac
import json
import os
import platform
import secrets
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import platformdirs
from attrs import asdict, frozen

from argus.core.query import Budget
from argus.emit.hip.toolchain import write_files

_KEY = "proofs.key"
_KEY_BYTES = 32
_MACHINE_ID = Path("/etc/machine-id")


@frozen
class CachedVerdict:
    """A verdict of `verify`, with its solver and assumptions.

    verdict: as in a report; "unclaimed" if an output has no assertion, "unverified" where no solver is installed.
    reason: why it is unknown; not recorded with a verdict.
    """

    verdict: str
    solver: str = ""
    assumptions: tuple[str, ...] = ()
    reason: str = ""


@frozen
class Attempt:
    """A proof that did not succeed. solver: name and version. budget: of the attempt. reason: why."""

    solver: str
    budget: Budget
    reason: str


def state_folder() -> Path:
    """`$ARGUS_STATE_DIR`, else the user's state folder: what is not to be copied to another machine."""
    chosen = os.environ.get("ARGUS_STATE_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_state_dir("argus"))


def read_record(place: Path) -> CachedVerdict | None:
    """The verdict in a kernel's folder; None if this machine has written none, or if it is damaged."""
    key = _key()
    if key is None:
        return None
    try:
        data = json.loads((place / _file(key)).read_text(encoding="utf-8"))
        found = CachedVerdict(str(data["verdict"]), str(data["solver"]), tuple(map(str, data["assumptions"])))
        signed = hmac.compare_digest(str(data["signature"]).encode(), _signature(key, place, found).encode())
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if signed else None


def write_record(place: Path, name: str, found: CachedVerdict) -> None:
    """Keep a verdict in a kernel's folder; nothing where the machine's key can neither be read nor written.

    Raises ArgusError (E302) if the folder cannot be written.
    """
    key = _key()
    if key is not None:
        data = {**_recorded(found), "signature": _signature(key, place, found)}
        write_files({_file(key): json.dumps(data, indent=2) + "\n"}, place, name)


def read_attempt(place: Path) -> Attempt | None:
    """The last attempt in a kernel's folder; None if this machine has made none, or if it is damaged."""
    key = _key()
    if key is None:
        return None
    try:
        data = json.loads((place / _file(key, "attempt")).read_text(encoding="utf-8"))
        limits = {name: type(limit)(data["budget"][name]) for name, limit in asdict(Budget()).items()}
        return Attempt(str(data["solver"]), Budget(**limits), str(data["reason"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_attempt(place: Path, name: str, found: Attempt) -> None:
    """Keep an attempt in a kernel's folder, like `write_record`; unsigned, as nothing is launched for it."""
    key = _key()
    if key is not None:
        write_files({_file(key, "attempt"): json.dumps(asdict(found), indent=2) + "\n"}, place, name)


def _signature(key: bytes, place: Path, found: CachedVerdict) -> str:
    """Of the verdict and the folder's name, which contains the digest of kernel, code and sources."""
    text = json.dumps([place.name, _recorded(found)], sort_keys=True)
    return hmac.new(key, text.encode(), sha256).hexdigest()


def _recorded(found: CachedVerdict) -> dict[str, object]:
    return {name: value for name, value in asdict(found).items() if name != "reason"}


def _file(key: bytes, what: str = "verdict") -> str:
    """One file per machine, so that machines that share a folder do not replace each other's."""
    return f"{what}-{sha256(key).hexdigest()[:8]}.json"


def _key() -> bytes | None:
    """The key of this user on this machine, made at its first use; None where it can be neither read nor written."""
    place = state_folder() / _KEY
    with suppress(OSError):
        _create(place)
        own = place.read_bytes()
        if len(own) == _KEY_BYTES:
            return hmac.digest(own, _machine().encode(), "sha256")
    return None


def _create(place: Path) -> None:
    """Write a key unless there is one; complete or not at all, if several processes do so at once."""
    if place.exists():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    made = place.with_name(f"{_KEY}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(secrets.token_bytes(_KEY_BYTES))
        with suppress(FileExistsError):
            os.link(made, place)
    finally:
        made.unlink(missing_ok=True)


def _machine() -> str:
    """What tells machines apart that share a home folder."""
    with suppress(OSError):
        return _MACHINE_ID.read_text(encoding="utf-8").strip() + platform.node()
    return platform.node()
