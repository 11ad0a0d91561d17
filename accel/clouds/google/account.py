"""Whose credentials Google's APIs are called with, where a call has to name it."""

import os
from importlib import import_module
from typing import Any

from ...diagnostics.errors import CloudRefused, NoCredentials, NotFound
from .rest import EMAIL, GIVEN, SCOPE, credentials, get, no_session_auth, session

ACCOUNT = "ACCEL_GOOGLE_ACCOUNT"
"""An address that is there already: of credentials that do not tell theirs."""

_HINT = f"say it in {ACCOUNT}; a token needs the scope {EMAIL}, and a federated identity a service account to act as"


def email() -> str:
    """The e-mail address of the person or service account: as it is given, as the credentials have it (the key of a
    service account, an account that is acted as), or as Google tells it of the token.

    Raises NoCredentials where it is not known."""
    if given := os.environ.get(ACCOUNT):
        return given
    found = None if os.environ.get(GIVEN) else credentials(SCOPE, EMAIL)
    # A person's `account` is empty in most files, and an instance's service account is "default" until it is asked for.
    for name in ("service_account_email", "account"):
        if "@" in str(known := getattr(found, name, None)):
            return str(known)
    try:
        told = get(_session(found), "openidconnect", "v1/userinfo").get("email")
    except (CloudRefused, NoCredentials, NotFound) as refused:
        raise NoCredentials(f"whose credentials these are is not known: {refused.message}", _HINT) from refused
    if not told:
        raise NoCredentials("whose credentials these are is not known: Google tells no e-mail address", _HINT)
    return str(told)


def _session(found: Any) -> Any:
    if found is None:
        return session()
    made = import_module("requests").Session()
    made.headers["Authorization"] = f"Bearer {found.token}"
    made.auth = no_session_auth
    return made
