"""What a status code of a driver library means to a user."""

from __future__ import annotations

from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic


@frozen
class StatusMeaning:
    """The diagnostic for a status: its error code, message and help."""

    code: str
    message: str
    help: str

    def error(self, status: str, function: str) -> ArgusError:
        """The error for a status that a function of the library returned."""
        return ArgusError(
            Diagnostic(self.code, "error", f"{self.message}: {function} returned {status}", help=self.help)
        )
