"""Free text that others wrote, made fit for a comment that anybody may read: without secrets, and as text only.

A report shows no values but those of images, drivers and versions. What is left are messages and
names: messages are cut to their first line, and what looks like a secret in any of them is taken out.
"""

import os
import re
from collections.abc import Mapping

HIDDEN = "[hidden]"
LONGEST = 400
READ = 4000
"""Characters of a text that are read at all."""

_SHAPES = (
    # user:password@ of an address
    (re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"), HIDDEN),
    # AWS's keys: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), HIDDEN),
    # Tokens of GitHub, Google, Hugging Face, Slack, OpenAI and Pulumi, by their beginnings
    (re.compile(r"\b(?:gh[pousr]_|github_pat_|ya29\.|AIza|hf_|xox[abprs]-|sk-|pul-)[\w.-]{8,}"), HIDDEN),
    (re.compile(r"\beyJ[\w-]{5,}\.[\w-]+\.[\w-]*"), HIDDEN),
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*", re.DOTALL), HIDDEN),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), rf"\1 {HIDDEN}"),
    (
        re.compile(r"(?i)((?:password|passwd|passphrase|secret|token|api[_-]?key|credential)[\w.-]*[\"']?\s*[:=]\s*)"
                   r"[\"']?[^\s\"',;]+"),
        rf"\1{HIDDEN}",
    ),
)  # fmt: skip
_NAMED = re.compile(r"(?i)secret|token|password|passphrase|credential|api_?key|access_key|private")
_MARKDOWN = re.compile(r"[\\`*_{}\[\]<>#|~@]|:(?=//)|(?<=\bwww)\.", re.IGNORECASE)
_AS_NUMBERS = "<>|@`:."
"""What a backslash before it would not keep from being Markdown."""


def hidden(text: str, environ: Mapping[str, str] | None = None) -> str:
    """The text without what looks like a secret, and without the values of the environment's own secrets; the first
    READ characters."""
    text = text[:READ]
    for name, value in (os.environ if environ is None else environ).items():
        if len(value) >= 8 and _NAMED.search(name):
            text = text.replace(value, HIDDEN)
    for shape, instead in _SHAPES:
        text = shape.sub(instead, text)
    return text


def told(message: str) -> str:
    """One line of a message. Of an exception that nobody handled the type alone: its text may be anything."""
    if "Traceback (most recent call last)" in message or "unhandled exception" in message:
        last = next((line for line in reversed(message.strip().splitlines()) if line.strip()), "")
        kind = re.match(r"[\w.]+(?=:|$)", last.strip())
        return f"the program failed: {kind[0] if kind else 'an exception'}; its log has the rest"
    first = next((line.strip() for line in message.splitlines() if line.strip()), "")
    first = re.sub(r"^(error|warning):\s*", "", first)
    return hidden("".join(each if each.isprintable() else " " for each in first))[:LONGEST]


def markdown(text: str) -> str:
    """The text as Markdown that shows it: no format, no link, no mention, no cell that ends early."""
    flat = "".join(each if each.isprintable() else " " for each in text)
    return _MARKDOWN.sub(lambda found: f"&#{ord(found[0])};" if found[0] in _AS_NUMBERS else f"\\{found[0]}", flat)
