"""Account that calls Google's APIs, for calls that have to name it."""

import os
from importlib import import_module
from typing import Any

from ...diagnostics.errors import CloudRefused, NoCredentials, NotFound
from .rest import EMAIL, GIVEN, SCOPE, credentials, get, no_session_auth, session

ACCOUNT = "ACCEL_GOOGLE_ACCOUNT"
"""Environment variable for the address of credentials that do not reveal theirs."""

_HINT = f"set it in {ACCOUNT}; a token needs the scope {EMAIL}, and a federated identity a service account to act as"


def email() -> str:
    """Return the caller's address: from the environment, from the credentials (the key of a service account, an
    impersonated account), or from Google's userinfo for the token. Raise NoCredentials if it is unknown."""
    if given := os.environ.get(ACCOUNT):
        return given
    found = None if os.environ.get(GIVEN) else credentials(SCOPE, EMAIL)
    # A person's `account` is empty in most files, and an instance's service account is "default" until it is requested.
    for name in ("service_account_email", "account"):
        if "@" in str(known := getattr(found, name, None)):
            return str(known)
    try:
        told = get(_session(found), "openidconnect", "v1/userinfo").get("email")
    except (CloudRefused, NoCredentials, NotFound) as refused:
        raise NoCredentials(f"the owner of these credentials is unknown: {refused.message}", _HINT) from refused
    if not told:
        raise NoCredentials("the owner of these credentials is unknown: Google returns no email address", _HINT)
    return str(told)


def _session(found: Any) -> Any:
    if found is None:
        return session()
    made = import_module("requests").Session()
    made.headers["Authorization"] = f"Bearer {found.token}"
    made.auth = no_session_auth
    return made
