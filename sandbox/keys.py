"""The one random key of a sandbox, of DIR/key, and what is made of it: without that file nobody is served."""

import hmac
import os
import secrets
from pathlib import Path

USER = "sandbox"
"""Who the person is that has the sandbox, and the jobs and functions in it."""
DEPLOYER = "deployer"
"""Who Pulumi's providers are."""
WANTED = {"message": "the sandbox's control API wants its key: Authorization: Bearer, and what DIR/key holds"}
_ID, _SECRET = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"


def key(home: Path) -> str:
    """The key, which whoever is first makes: Google's bearer token, and that of the control API of both clouds."""
    path = home / "key"
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True)
        made = home / f"key.{os.getpid()}.{secrets.token_hex(4)}"
        made.touch(mode=0o600)
        made.write_text(secrets.token_urlsafe(24))
        try:
            os.link(made, path)  # unlike a rename it does not replace what another process has just made
        except FileExistsError:
            pass
        finally:
            made.unlink()
    return path.read_text().strip()


def bearer(home: Path) -> dict[str, str]:
    """The header that the control API wants."""
    return {"Authorization": f"Bearer {key(home)}"}


def aws(secret: str, name: str = USER) -> dict[str, str]:
    """The access key of a caller of the sandbox's AWS, as variables; `name` is how its permissions are kept."""
    return {_ID: f"{name}-{_made(secret, f'id of {name}')[:12]}", _SECRET: _made(secret, f"secret of {name}")}


def boto(secret: str, name: str = USER) -> dict[str, str]:
    """The same as the arguments of a boto3 client."""
    return {variable.lower(): value for variable, value in aws(secret, name).items()}


def _made(secret: str, what: str) -> str:
    return hmac.new(secret.encode(), what.encode(), "sha256").hexdigest()
