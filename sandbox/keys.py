"""The one random key of a sandbox, in DIR/key, and the credentials derived from it. Nobody is served without it."""

import hmac
import os
import secrets
from pathlib import Path

USER = "sandbox"
"""Person who owns the sandbox, and the jobs and functions in it."""
DEPLOYER = "deployer"
"""Caller that Pulumi's providers are."""
WANTED = {"message": "the sandbox's control API wants its key: Authorization: Bearer, and what DIR/key holds"}
_ID, _SECRET = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"


def key(home: Path) -> str:
    """Return the key, created at the first call: Google's bearer token, and that of the control API of both clouds."""
    path = home / "key"
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True)
        made = home / f"key.{os.getpid()}.{secrets.token_hex(4)}"
        made.touch(mode=0o600)
        made.write_text(secrets.token_urlsafe(24))
        try:
            os.link(made, path)  # unlike a rename it does not replace the key of another process
        except FileExistsError:
            pass
        finally:
            made.unlink()
    return path.read_text().strip()


def bearer(home: Path) -> dict[str, str]:
    return {"Authorization": f"Bearer {key(home)}"}


def aws(secret: str, name: str = USER) -> dict[str, str]:
    """Return the access key of a caller of the sandbox's AWS, as variables. Permissions are kept by `name`."""
    return {_ID: f"{name}-{_made(secret, f'id of {name}')[:12]}", _SECRET: _made(secret, f"secret of {name}")}


def boto(secret: str, name: str = USER) -> dict[str, str]:
    return {variable.lower(): value for variable, value in aws(secret, name).items()}


def _made(secret: str, what: str) -> str:
    return hmac.new(secret.encode(), what.encode(), "sha256").hexdigest()
