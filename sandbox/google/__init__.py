"""The sandbox's Google: REST APIs kept in memory, driven by Google's own discovery documents."""

import os
import secrets
from pathlib import Path

PROJECT = "accel-sandbox"
PROJECT_NUMBER = "210020003000"
USER = "somebody@example.com"
"""Whose token it is."""


def token(home: Path) -> str:
    """The one bearer token of a sandbox: of DIR/google-token, which whoever is first makes."""
    path = home / "google-token"
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True)
        made = home / f"google-token.{os.getpid()}.{secrets.token_hex(4)}"
        made.touch(mode=0o600)
        made.write_text(secrets.token_urlsafe(24))
        try:
            os.link(made, path)  # unlike a rename it does not replace what another process has just made
        except FileExistsError:
            pass
        finally:
            made.unlink()
    return path.read_text().strip()
