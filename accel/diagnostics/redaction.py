"""Removal of secrets from any text that is printed or kept: passwords, signatures, tokens and keys. Only `redact`
removes them; commands print through `redact_output`, except for output that belongs to the user, such as a job's log,
which is printed to `own(sys.stdout)`."""

import io
import re
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TextIO, cast

HIDDEN = "***"

SECRET_NAME = re.compile(
    r"token|secret|passw|passphrase|api_?key|access_?key|private|credential|on_demand_plan", re.IGNORECASE
)
"""Names whose value is not shown. A plan for later (on_demand_plan) is not a secret, but unreadable."""
MAY_BE_SECRET = re.compile(
    r"AKIA|ASIA|gh[pousr]_|github_pat_|hf_|sk-|xox[bap]-|eyJ|-----BEGIN|://[^/\s]*:[^/\s]*@"
    r"|pass(word|wd)?|secret|token|api[-_ ]?key|credential|[A-Za-z0-9+/=_-]{24,}",
    re.IGNORECASE,
)
"""Pattern of invalid values that are better not shown."""

# Characters of one word, so that JSON escapes stay intact. Repetitions are bounded, since a text of any length is read
# in one pass.
_WORD = r'(?:\\.|[^\s"\\<>])'
_BEFORE_PATH = r'(?:\\.|[^\s"\\<>/?#])'
_HOST = r'[^\s/@:"\\<>\[]'
_NO_PORT = r"(?!\d{1,5}(?:[^\w@]|$))"
_NAMED = r"(?:passw(?:or)?d|passphrase|secret|token(?!s)|api[_-]?key|access[_-]?key|private[_-]?key|credential)"
_PARAMETERS = (
    # https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
    r"x-amz-(?:signature|security-token|credential)|awsaccesskeyid"
    # https://cloud.google.com/storage/docs/authentication/signatures
    r"|x-goog-(?:signature|credential)|googleaccessid"
    # https://learn.microsoft.com/azure/storage/common/storage-sas-overview
    r"|sig|signature"
    # https://www.rfc-editor.org/rfc/rfc6750 and https://cloud.google.com/docs/authentication/api-keys-use
    r"|(?:[a-z]+[_-])?token|key|api[_-]?key|passw(?:or)?d|pwd|(?:client[_-])?secret"
)


@dataclass(frozen=True)
class _Rule:
    marks: tuple[str, ...]
    """Text without any of these is not searched."""
    pattern: str
    by: str = HIDDEN
    public: bool = False
    """True for public texts only; elsewhere the rule would remove what is not a secret."""

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern)


_RULES = (
    # A key, possibly truncated. https://www.rfc-editor.org/rfc/rfc7468
    _Rule(
        ("PRIVATE KEY",),
        r"(-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----)"
        r"(?:(?:(?!-----BEGIN)[^\"])*?-----END[ A-Z0-9_-]{0,100}-----|(?:[A-Za-z0-9+/=\s]|\\[nr])+)",
        rf"\1{HIDDEN}",
    ),
    # User information in a URL, https://www.rfc-editor.org/rfc/rfc3986#section-3.2.1: first with any password, even one
    # with a slash or an @. A name with a dot before a number is a host with its port.
    _Rule(
        (":/",),
        rf"(:/{{1,3}})(?:{_HOST}{{0,256}}:{_NO_PORT}|(?!localhost:)(?![\w-]*\.){_HOST}{{1,64}}:){_WORD}{{0,256}}"
        r"@(?!sha256:)",
        rf"\1{HIDDEN}@",
    ),
    _Rule((":/",), rf"(:/{{1,3}}){_BEFORE_PATH}*@", rf"\1{HIDDEN}@"),
    # Truncated.
    _Rule(("://",), rf"(?<!docker)(?<!oci)(://{_HOST}{{0,256}}):{_NO_PORT}{_WORD}+", rf"\1:{HIDDEN}"),
    # In an image name, which has no scheme; its digest is not a secret.
    _Rule(
        ("@",),
        r'(?<![\w.@+-])[\w.+~%-]{1,64}:[^\s/@"\\<>]{1,256}@(?!sha256:)(?=[\w.-]{1,256}(?::\d+)?/)',
        f"{HIDDEN}@",
    ),
    _Rule(("=",), rf"(?i)((?:[?&]|&amp;|\\u0026)(?:{_PARAMETERS})=)[^\s&\"'\\<>#]+", rf"\1{HIDDEN}"),
    # https://www.rfc-editor.org/rfc/rfc6750 and https://www.rfc-editor.org/rfc/rfc7617
    _Rule(
        ("earer ", "EARER "),
        r"(?i)\b(bearer\s+)(?:(?=[A-Z._~+/=-]*\d)[\w.~+/=-]{6,}|[\w.~+/=-]{20,})",
        rf"\1{HIDDEN}",
    ),
    _Rule(("earer ", "asic "), r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}", rf"\1 {HIDDEN}", public=True),
    _Rule(("uthorization",), r"(?i)(authorization\W{1,4}(?:basic|token)\s+)[\w.~+/=-]+", rf"\1{HIDDEN}"),
    _Rule(("ignature=",), r"(?i)\b(signature=)[0-9a-z%+/=]{16,}", rf"\1{HIDDEN}"),
    # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
    _Rule(
        ("AKIA", "ASIA"),
        rf"\b((?:AKIA|ASIA)[A-Z0-9]{{16}})(?:[:/]{_WORD}+|(\W{{1,8}}(?:\w{{1,40}}\W{{1,6}})?)[A-Za-z0-9/+]{{40}}\b)",
        rf"\1\2{HIDDEN}",
    ),
    _Rule(("AKIA", "ASIA"), r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", public=True),
    # By prefix. https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml
    _Rule(
        ("gh", "hf_", "xox", "ya29.", "AIza", "sk-ant-", "glpat-", "pul-"),
        r"\b(?:gh[pousr]_\w{16,}|github_pat_\w{16,}|hf_[A-Za-z0-9]{16,}|xox[abprs]-[\w-]{10,}|ya29\.[\w-]{10,}"
        r"|AIza[\w-]{30,}|sk-ant-[\w-]{10,}|glpat-[\w-]{20,}|pul-[a-f0-9]{40})",
    ),
    _Rule(
        ("gh", "hf_", "xox", "ya29.", "AIza", "sk-", "pul-"),
        r"\b(?:gh[pousr]_|github_pat_|ya29\.|AIza|hf_|xox[abprs]-|sk-|pul-)[\w.-]{8,}",
        public=True,
    ),
    _Rule(("eyJ",), r"\beyJ[\w-]{5,2000}\.[\w-]{5,8000}(?:\.[\w-]*)?"),
    # As in shells and on command lines; a placeholder is not a secret.
    _Rule(
        ("=",),
        rf"(?i)({_NAMED}[\w.-]{{0,64}}=)(?![<$*{{])(?:\"(?![\s,:\]}}])[^\"\n]+\"|'[^'\"\n]*'|(?:\\.|[^\s\"'&,;\\<>])+)",
        rf"\1{HIDDEN}",
    ),
    _Rule(("--",), rf"(?i)((?<![\w-])--(?:[\w-]{{1,64}}-)?{_NAMED}\s+)(?!-|\*)[^\s\"'\\]+", rf"\1{HIDDEN}"),
    _Rule(
        (":", "="), rf"(?i)({_NAMED}[\w.-]{{0,64}}[\"']?\s{{0,8}}[:=]\s{{0,8}})[\"']?[^\s\"',;]+", rf"\1{HIDDEN}", True
    ),
)


def redact(text: str, *, public: bool = False, by: str = HIDDEN) -> str:
    """Replace secrets by `by`; what is already redacted stays as it is. `public`: anybody may read the text, so
    possible secrets are removed too."""
    for rule in _RULES:
        if (public or not rule.public) and any(mark in text for mark in rule.marks):
            text = rule.compiled.sub(rule.by.replace(HIDDEN, by), text)
    return text


def hide_secrets(value: Any, name: str = "") -> Any:
    """Hide the values of secret variables and fields in JSON, and the arguments of such command options."""
    if isinstance(value, list):
        words = cast(list[Any], value)
        before = ["", *words]
        return [HIDDEN if _option(at) else hide_secrets(item, name) for at, item in zip(before, words, strict=False)]
    if isinstance(value, Mapping):
        inside = cast(Mapping[str, Any], value)
        if set(inside) == {"name", "value"} and SECRET_NAME.search(str(inside["name"])):
            return {**inside, "value": HIDDEN}
        return {key: HIDDEN if _secret(name, key, item) else hide_secrets(item, key) for key, item in inside.items()}
    return redact(value) if isinstance(value, str) else value


def _secret(of: str, key: str, value: Any) -> bool:
    if of in ("env", "variables"):
        return SECRET_NAME.search(key) is not None
    return isinstance(value, str) and key.lower() in ("password", "passwd", "token", "secret")


_OPTION = re.compile(rf"--?(?:[\w-]+-)?{_NAMED}", re.IGNORECASE)


def _option(word: Any) -> bool:
    return isinstance(word, str) and _OPTION.fullmatch(word) is not None


class RedactingStream(io.TextIOBase):
    """A stream whose text is redacted. It has no `buffer`, which click would write to directly."""

    def __init__(self, to: TextIO) -> None:
        self.to = to

    def write(self, text: str, /) -> int:
        self.to.write(redact(text))
        return len(text)

    def flush(self) -> None:
        self.to.flush()

    def isatty(self) -> bool:
        return self.to.isatty()

    def fileno(self) -> int:
        return self.to.fileno()

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.to.encoding

    @property
    def errors(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.to.errors


@contextmanager
def redact_output() -> Generator[None]:
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, RedactingStream(own(stream))) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def own(stream: TextIO) -> TextIO:
    """Return the underlying stream, for output that belongs to the user."""
    return stream.to if isinstance(stream, RedactingStream) else stream
