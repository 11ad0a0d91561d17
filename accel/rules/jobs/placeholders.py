"""Sample values copied from a page and never filled in."""

import re
from collections.abc import Collection, Iterable, Mapping

from accel.diagnostics.findings import Finding
from accel.rules.table import rule

RESOURCE_ID = rule("aws.placeholder.resource-id")
ACCOUNT = rule("aws.placeholder.account")
VALUE = rule("placeholder.value")

SAMPLE_ACCOUNTS = ("123456789012", "111122223333", "444455556666")

_LOWER = (
    *("project", "project-id", "project-name", "gcp-project", "gcp-project-id"),
    *("bucket", "bucket-name", "image-name", "training-image", "registry"),
    *("account", "account-id", "aws-account", "region", "org", "organization", "company"),
)
"""Sample names of vendors' pages that nobody uses for real resources. People do use names such as my-cluster, my-queue
and my-image."""

_VALUE = re.compile(
    r"\b(?:MY|YOUR)[_-][A-Z][A-Z0-9_-]*\b"
    r"|(?<![\w.-])your[_-][a-z][a-z0-9_-]*"
    rf"|(?<![\w.-])my-(?:{'|'.join(_LOWER)})(?![\w-])"
    r"|\bPROJECT_ID\b|\bACCOUNT_ID\b|\bCHANGE_?ME\b|\bREPLACE_?ME\b|\bTODO\b"
    r"|<[A-Za-z][A-Za-z0-9_ -]*>|<(?:your|YOUR|Your)\b[^<>\n]{0,80}>|\bx{4,}\b|\bX{4,}\b"
)


def resource_id(field: str, value: str, prefix: str) -> list[Finding]:
    """Check for `prefix` (subnet, sg, vpc, ami, lt, ...) and 8 or 17 hexadecimal digits."""
    if re.fullmatch(rf"{re.escape(prefix)}-(?:[0-9a-f]{{8}}|[0-9a-f]{{17}})", value):
        return []
    return [
        RESOURCE_ID.finding(
            field,
            f'is "{value}", which is no {prefix} id',
            f"write {prefix}- and 8 or 17 hexadecimal digits, or let the stack create it",
        )
    ]


def resource_ids(field: str, values: Iterable[str], prefix: str) -> list[Finding]:
    return [found for i, value in enumerate(values) for found in resource_id(f"{field}[{i}]", value, prefix)]


def account(field: str, value: str, *, allowed: Collection[str] = ()) -> list[Finding]:
    """Check an account id, ARN or image name. `allowed`: sample accounts that are real here (a fake cloud's)."""
    for sample in SAMPLE_ACCOUNTS:
        if sample not in allowed and re.search(rf"(?<!\d){sample}(?!\d)", value):
            return [
                ACCOUNT.finding(
                    field,
                    f'is "{value}"; {sample} is the sample account of AWS\'s pages',
                    "write your own 12 digit account id (aws sts get-caller-identity)",
                )
            ]
    return []


def arns(by_field: Mapping[str, str | None], *, allowed: Collection[str] = ()) -> list[Finding]:
    """Ignore values that are not ARNs, which may be secrets."""
    return [
        found
        for field, arn in by_field.items()
        if arn and arn.startswith("arn:")
        for found in account(field, arn, allowed=allowed)
    ]


def addresses(field: str, words: Iterable[str]) -> list[Finding]:
    """Ignore words that name no bucket, which may be secrets."""
    return [found for word in words if "gs://" in word for found in value(field, word)]


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder and nothing else, so that it is no secret either."""
    return _VALUE.fullmatch(value) is not None


def value(field: str, value: str) -> list[Finding]:
    """Check for a placeholder such as MY_PROJECT."""
    found = _VALUE.search(value)
    if not found:
        return []
    return [VALUE.finding(field, f'is "{value}"; "{found[0]}" is a placeholder', "write the value that it stands for")]
