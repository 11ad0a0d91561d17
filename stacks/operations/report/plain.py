"""Free text from others, made fit for a comment that anybody may read: without secrets, and as text only. A report
shows no values but those of images, drivers and versions. The rest is messages and names: messages are cut to their
first line, and what looks like a secret in any of them is removed."""

import os
import re
from collections.abc import Mapping

from accel.diagnostics.redaction import SECRET_NAME, redact

HIDDEN = "[hidden]"
LONGEST = 400
READ = 4000
"""Maximum characters of a text to process."""
_MARKDOWN = re.compile(r"[\\`*_{}\[\]<>#|~@]|:(?=//)|(?<=\bwww)\.", re.IGNORECASE)
_AS_NUMBERS = "<>|@`:."
"""Characters that a backslash would not keep from being Markdown."""


def sanitize(text: str, environ: Mapping[str, str] | None = None) -> str:
    """Return the first READ characters, without apparent secrets and the values of the environment's own secrets."""
    text = text[:READ]
    for name, value in (os.environ if environ is None else environ).items():
        if len(value) >= 8 and SECRET_NAME.search(name):
            text = text.replace(value, HIDDEN)
    return redact(text, public=True, by=HIDDEN)


def message_line(message: str) -> str:
    """Return one line of a message; of an unhandled exception only the type, since its text may be anything."""
    if "Traceback (most recent call last)" in message or "unhandled exception" in message:
        last = next((line for line in reversed(message.strip().splitlines()) if line.strip()), "")
        kind = re.match(r"[\w.]+(?=:|$)", last.strip())
        return f"the program failed: {kind[0] if kind else 'an exception'}; its log has the rest"
    first = next((line.strip() for line in message.splitlines() if line.strip()), "")
    first = re.sub(r"^(error|warning):\s*", "", first)
    return sanitize("".join(each if each.isprintable() else " " for each in first))[:LONGEST]


def markdown(text: str) -> str:
    """Return Markdown that shows the text: no format, no link, no mention, no cell that ends early."""
    flat = "".join(each if each.isprintable() else " " for each in text)
    return _MARKDOWN.sub(lambda found: f"&#{ord(found[0])};" if found[0] in _AS_NUMBERS else f"\\{found[0]}", flat)
