"""Google Cloud of the sandbox: REST APIs kept in memory, driven by Google's own discovery documents."""

import hashlib
import hmac

PROJECT = "accel-sandbox"
PROJECT_NUMBER = "210020003000"
USER = "somebody@example.com"
"""Owner of the token."""
UNIQUE_ID = "100000000000000000001"
EMAIL = "https://www.googleapis.com/auth/userinfo.email"


def scope_token(token: str, scopes: str) -> str:
    """Mark a token without the scope EMAIL, whose owner GKE knows by their number alone. Source:
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/role-based-access-control#forbidden_error_for_service_accounts_on_vm_instances"""
    return token if EMAIL in scopes else f"{token}-nameless"


def account_token(token: str, email: str) -> str:
    """Return a service account's token, from which the user's token cannot be derived."""
    return hmac.new(token.encode(), email.encode(), hashlib.sha256).hexdigest()
