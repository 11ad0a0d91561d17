"""Sizes and spellings that AWS rejects only in the middle of an update, when it is half done."""

import unicodedata
from collections.abc import Iterator, Mapping

from accel.diagnostics.findings import Finding
from accel.rules.table import rule

USER_DATA = rule("aws.limits.user-data")
FUNCTION = rule("aws.limits.function-environment")
TAG_SPELLING = rule("aws.tag.spelling")
TAG_OWN = rule("aws.tag.own")
TAG_RESERVED = rule("aws.tag.reserved")
TAG_CASE = rule("aws.tag.case")
TAG_COUNT = rule("aws.tag.count")

USER_DATA_MOST = 16_384
FUNCTION_MOST = 4096
TAGS_MOST, KEY_MOST, VALUE_MOST = 50, 128, 256


def user_data(size: int, field: str = "instance.user_data") -> list[Finding]:
    """Check the size in bytes, to which Batch adds a part that is not documented."""
    if size <= USER_DATA_MOST:
        return []
    message = f"is {size:,} bytes with what the stack adds, of which EC2 takes {USER_DATA_MOST:,}"
    fix = "fetch what is long from a bucket, or build it into an image of your own"
    return [USER_DATA.finding(field, message, fix)]


def function_environment(size: int, field: str) -> list[Finding]:
    """Check the size in bytes of JSON, with the ARNs of every queue or environment."""
    if size <= FUNCTION_MOST:
        return []
    message = f"tells its function {size:,} bytes of queues and environments, of which Lambda takes {FUNCTION_MOST:,}"
    return [FUNCTION.finding(field, message, "write shorter keys, or deploy some of them as a stack of their own")]


def tags(labels: Mapping[str, str], *, owner: str, own: int, field: str = "labels") -> list[Finding]:
    """Check labels as tags of all AWS resources, of which IAM has the strictest limits; each gets `own` more."""
    found = list(_spelling("owner", "", owner))
    first: dict[str, str] = {}
    for key, value in labels.items():
        found += _spelling(field, key, value)
        if not key:
            found.append(TAG_SPELLING.finding(field, f'has no key for "{value}"', "write one"))
        if key.lower().startswith("accel:"):
            found.append(TAG_OWN.finding(field, f'has the key "{key}", which begins with accel:', "rename it"))
        if key.lower().startswith("aws:"):
            found.append(TAG_RESERVED.finding(field, f'has the key "{key}", which begins with aws:', "rename it"))
        if first.setdefault(key.lower(), key) != key:
            message = f'"{key}" and "{first[key.lower()]}" are one key to IAM'
            found.append(TAG_CASE.finding(field, message, "rename one of them"))
    if len(labels) + own > TAGS_MOST:
        message = f"are {len(labels)}, with {own} of the stack's own more than {TAGS_MOST}"
        found.append(TAG_COUNT.finding(field, message, "leave some out"))
    return found


def _spelling(field: str, key: str, value: str) -> Iterator[Finding]:
    where = f'of "{key}" ' if key else ""
    for what, text, most in (("key", key, KEY_MOST), ("value", value, VALUE_MOST)):
        named = f'has the key "{text}", ' if what == "key" else f'{where}is "{text}", '
        if len(text) > most:
            yield TAG_SPELLING.finding(field, f"{named}which has {len(text)} characters of {most}", "shorten it")
        elif wrong := next((each for each in text if not _taken(each)), None):
            fix = "write letters, digits, spaces and _ . : / = + - @"
            yield TAG_SPELLING.finding(field, f"{named}and {wrong!r} is no character of a tag", fix)


def _taken(character: str) -> bool:
    # IAM's pattern: [\p{L}\p{Z}\p{N}_.:/=+\-@]. Source: https://docs.aws.amazon.com/IAM/latest/APIReference/API_Tag.html
    return character in "_.:/=+-@" or unicodedata.category(character)[0] in "LZN"
