"""Submission keys: two submits with one key are the same submit, and backends refuse a key for another job by the hash
of the request. The key is that of (job name, `--key TEXT`). Without --key each submit draws its own text and so makes a
job of its own, as users expect of a second plain `jobs submit`."""

import hashlib
import json
import re
import secrets
from typing import Any

NAMED_DIGITS = 12
"""Hex digits of the key in a job's name on its platform: 48 bits, so two keys of one job name do not meet."""
_NO_DNS = re.compile(r"[^a-z0-9-]+")


def submission_key(job_name: str, caller: str) -> str:
    """Return 64 hex digits."""
    return hashlib.sha256(f"{job_name}\0{caller}".encode()).hexdigest()


def number_key(caller: str, number: int) -> str:
    """Return the caller's text for the number-th job of one name in a command; the first keeps it unchanged."""
    return caller if number == 1 else f"{caller}#{number}"


def of_smoke(caller: str) -> str:
    """Return the caller's text for a smoke run. No command line can hold it, so no other job has its key."""
    return f"{caller}\0smoke"


def random_key() -> str:
    return secrets.token_hex(8)


def platform_name(job_name: str, key: str) -> str:
    """Return a name unique for the key, and the same each time, so that a lookup finds the job."""
    return f"{job_name}-{key[:NAMED_DIGITS]}"


def resource_name(name: str, most: int) -> str:
    """Convert a platform name to a label of RFC 1035 with at most `most` characters. Keep the digits of the key."""
    head, _, digits = name.rpartition("-")
    plain = _NO_DNS.sub("-", head.lower())
    if not plain[:1].isalpha():
        plain = f"j-{plain}"
    return f"{plain[: most - NAMED_DIGITS - 1].strip('-')}-{digits}"


def content_hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
