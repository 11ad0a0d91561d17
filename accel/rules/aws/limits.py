"""Sizes and spellings that AWS rejects only in the middle of an update, when it is half done."""

import unicodedata
from collections.abc import Iterator, Mapping

from accel.diagnostics.findings import Finding, Rule

_TAGS = "https://docs.aws.amazon.com/IAM/latest/UserGuide/id_tags.html"

USER_DATA = Rule(
    "aws.limits.user-data",
    "reject",
    "User data has at most 16,384 bytes before base64, with what the stack adds",
    "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-add-user-data.html",
)
FUNCTION = Rule(
    "aws.limits.function-environment",
    "reject",
    "The variables of a Lambda function have at most 4 KB, as JSON",
    "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html",
)
TAG_SPELLING = Rule(
    "aws.tag.spelling",
    "reject",
    "Tags are letters, digits, spaces and _ . : / = + - @, for IAM; a key has 1 to 128, a value at most 256",
    _TAGS,
)
TAG_OWN = Rule("aws.tag.own", "reject", "Keys of tags do not begin with accel:, which is the stack's own", _TAGS)
TAG_RESERVED = Rule("aws.tag.reserved", "reject", "Keys of tags do not begin with aws:, which is AWS's own", _TAGS)
TAG_CASE = Rule("aws.tag.case", "reject", "Two tags of a role differ by more than upper and lower case", _TAGS)
TAG_COUNT = Rule("aws.tag.count", "reject", "A resource has at most 50 tags", _TAGS)

RULES = (USER_DATA, FUNCTION, TAG_SPELLING, TAG_OWN, TAG_RESERVED, TAG_CASE, TAG_COUNT)

USER_DATA_MOST = 16_384
FUNCTION_MOST = 4096
TAGS_MOST, KEY_MOST, VALUE_MOST = 50, 128, 256


def user_data(size: int, field: str = "instance.user_data") -> list[Finding]:
    """Check the size of the user data, in bytes. Batch adds a part of undocumented size."""
    if size <= USER_DATA_MOST:
        return []
    message = f"is {size:,} bytes with what the stack adds, of which EC2 takes {USER_DATA_MOST:,}"
    fix = "fetch what is long from a bucket, or build it into an image of your own"
    return [USER_DATA.finding(field, message, fix)]


def function_environment(size: int, field: str) -> list[Finding]:
    """Check the size of a function's variables, in bytes of JSON, with the ARNs of every queue or environment."""
    if size <= FUNCTION_MOST:
        return []
    message = f"tells its function {size:,} bytes of queues and environments, of which Lambda takes {FUNCTION_MOST:,}"
    return [FUNCTION.finding(field, message, "write shorter keys, or deploy some of them as a stack of their own")]


def tags(labels: Mapping[str, str], *, owner: str, own: int, field: str = "labels") -> list[Finding]:
    """Check labels as tags of all AWS resources, of which IAM has the strictest limits; each resource gets `own`
    more."""
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
