"""Text of a pasted script, before its one command is read: forms that other shells and notebooks have."""

import re
from collections.abc import Mapping

ENVIRONMENT = r"""(?:[A-Za-z_]\w*=(?:"[^"\n]*"|'[^'\n]*'|[\w./:@%+,~-]*)\s+)*"""
"""Variables that are set for a command alone, before its program."""
DECLARATION = r"(?:(?:export|local|readonly|declare)\s+)?"
"""Word before an assignment."""
_REQUIRED = re.compile(r"\$\{([A-Za-z_]\w*|[1-9]):?\?[^{}]*\}")
"""`${NAME?}` and `${NAME:?message}`, which stand for NAME or end the script."""
_PREFIX = re.compile(
    r"^(\s*)(?:if\s+(?:!\s+)?|exec\s+|time\s+|sudo\s+|nohup\s+|uv\s+run\s+)(?=(?:gcloud|aws|xpk|python3?)\s)",
    re.MULTILINE,
)
"""Words that a script may have before a command and that do not change it."""
_CHAINED = re.compile(
    r"""^([ \t]*(?:\w+[ \t]*\(\)[ \t]*\{"""
    r"""|(?:[^#'"\n\\<`()]|'[^'\n]*'|"[^"\n\\`]*")*?(?:&&|;|\|\||[;\s](?:do|then)(?=\s))))[ \t]*"""
    r"""(?=(?:uv[ \t]+run[ \t]+)?(?:gcloud|aws|xpk|python3?)[ \t][^\n]{0,300}?(?<=[ \t])"""
    r"""(?:batch[ \t]+(?:jobs[ \t]+submit|submit-job|register-job-definition)|custom-jobs[ \t]+create"""
    r"""|jobs[ \t]+submit[ \t]+training|workload[ \t]+create)(?:\s|$))""",
    re.MULTILINE,
)
"""What precedes a command that submits a job, in its line: `cd FOLDER && aws batch submit-job`."""
_ASSIGNED_BEFORE = re.compile(
    r"""^([ \t]*(?:export[ \t]+)?[A-Za-z_]\w*\+?="""
    r"""(?:\((?:[^()'"\n]|'[^'\n]*'|"[^"\n]*")*\)|(?:[^\s;&|()'"`]|'[^'\n]*'|"(?:[^"\\\n]|\\.)*")*))"""
    r"""[ \t]*(?:;|&&)[ \t]*(?=[^\n]*\b(?:gcloud|aws|xpk|sbatch)\b)""",
    re.MULTILINE,
)
"""Assignment in the same line as a command that follows it."""
_PIPED = re.compile(
    r"""^([ \t]*(?:[$!%][ \t]*)?(?:(?:export[ \t]+)?\w+=["']?(?:\$\(|`)[ \t]*)?)"""
    r"""cat[ \t]+(?:-[ \t]+)?(<<-?[ \t]*[^\s|;&<>]+|(?!-)(?:"[^"\n]*"|'[^'\n]*'|[^\s|;&<>"'])+)"""
    rf"""[ \t]*\|[ \t]*(?:\\?\n[ \t]*)?({ENVIRONMENT}(?:gcloud|aws)(?:[ \t]+[a-z][a-z0-9-]*)*)(?=\s|$)""",
    re.MULTILINE,
)
"""`cat FILE | gcloud ...` or `aws ...`, and the same with a heredoc in place of FILE."""
LINES_MAX = 50
_OF_NOTEBOOK = re.compile(r"^\s*!")
_BRACES = re.compile(r"(?<![${])\{([A-Za-z_]\w*)\}(?!\})")
"""Reference that a notebook replaces with a variable of Python:
https://ipython.readthedocs.io/en/stable/interactive/reference.html#system-shell-access"""
HELD_MAX = 200
"""Maximum number of unknown parts of a command for which a variable that holds them is searched for."""
_HELD = re.compile(rf"""^(\s*{DECLARATION}([A-Za-z_]\w*)=["']\s*)(?=(?:gcloud|aws|xpk|python3?)\s)""", re.MULTILINE)
"""Beginning of a command that a variable holds, as `CMD="gcloud ..."`."""
CALL = r"\s*(?:(eval)\s+(?:--\s+)?[\"']?)?\$(?:\{(\w+)\}|(\w+))"
"""Call of the command that a variable holds: `eval $CMD`, which reads its quotes again, or `$CMD`."""
_XPK = re.compile(
    rf"^(\s*(?:[$!%]\s*)?(?:{DECLARATION}\w+=[\"'])?{ENVIRONMENT})"
    r"(?:python3?\s+(?:-m\s+)?)?(?:[\w.~/${}-]*/)?xpk(?:\.py)?(?=\s)",
    re.MULTILINE,
)
"""Call of xpk, or of its script: `python3 xpk.py`."""
_CREATE = re.compile(rf"^\s*(?:[$!%]\s*)?{ENVIRONMENT}xpk\s(?:.*\s)?workload\s+(create(?:-pathways)?)(?=\s|$)")
_UNQUOTED = re.compile(
    r'("(?:[^"\\]|\\.)*")|(\$\{[A-Za-z_]\w*\}|\$[A-Za-z_]\w*|\{\{\s*[A-Za-z_][\w.]*\s*\}\})(?=\s*[,}\]])'
)
_BLOCK = re.compile(r"(?::|^\s*-)\s+[|>][-+0-9]*\s*(?:#.*)?$")
_VALUE = re.compile(r"^(\s*(?:-\s+)*(?:[\w.-]+:\s+)?)(\{\{-?\s*[A-Za-z_][\w.]*\s*-?\}\}[^\s\"#]*)(?=\s*(?:#.*)?$)")
_CONTINUED = re.compile(r"\\[^\S\n]*\n")
_ASSIGNMENT = re.compile(r"^\s*(?:(?:export|readonly|local)\s+)?([A-Za-z_]\w*)=(.*)$", re.MULTILINE)


def readable(text: str) -> str:
    """Return the text with plain variables in place of those that must be set and those of a notebook's `! command`.
    Remove words that do not change a command, such as `exec`, write assignments before it on lines of their own, and
    `cat FILE | gcloud` or `aws` as a redirection."""
    lines: list[str] = []
    goes_on = False
    for line in _redirected(_PREFIX.sub(r"\1", _REQUIRED.sub(r"${\1}", with_own_lines(text)))).split("\n"):
        of_notebook = goes_on or _OF_NOTEBOOK.match(line) is not None
        goes_on = of_notebook and line.rstrip().endswith("\\")
        plain = _BRACES.sub(lambda found: f"${{{found[1]}}}", line) if of_notebook else line
        lines.append(plain)
    return "\n".join(lines)


def with_own_lines(text: str) -> str:
    """Return the text with a line of its own for each assignment that precedes a command in its line, and for what
    else precedes a command that submits a job."""
    for _ in range(LINES_MAX):
        text, count = _ASSIGNED_BEFORE.subn(r"\1\n", text)
        if not count:
            break
    return _CHAINED.sub(r"\1\n", text)


def _redirected(text: str) -> str:
    return _PIPED.sub(lambda found: f"{found[1]}{found[3]} {'' if found[2].startswith('<<') else '< '}{found[2]}", text)


def with_quotes(text: str) -> str:
    """Return JSON with quotes around variables that stand for numbers: `"count": ${COUNT}`."""
    if "$" not in text and "{{" not in text:
        return text
    return _UNQUOTED.sub(lambda found: found[1] or f'"{found[2]}"', text)


def with_quoted_values(text: str) -> str:
    """Quote values of YAML that begin with `{{ NAME }}`, which would be a mapping. Blocks of text stay unchanged."""
    if "{{" not in text:
        return text
    lines: list[str] = []
    block = -1
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        if block >= 0 and (indent > block or not line.strip()):
            lines.append(line)
            continue
        block = indent if _BLOCK.search(line) else -1
        lines.append(_VALUE.sub(lambda found: f'{found[1]}"{found[2]}"', line))
    return "\n".join(lines)


def by_holder(text: str, unknown: Mapping[str, str]) -> dict[str, str]:
    """Return unknown parts by holders()' name or else their text. A variable with several stands for the first."""
    found: dict[str, str] = {}
    for name, held in holders(text, unknown).items():
        found[held if held and held not in found else name] = unknown[name]
    return found


def holders(text: str, unknown: Mapping[str, str]) -> dict[str, str]:
    """Return the name that --var takes for each unknown part of a command: its own if it is a variable, or that of the
    one variable that the script assigns a computed part such as `$(date)` to. It is empty if there is none."""
    assigned = [(found[1], _plain(found[2])) for found in _ASSIGNMENT.finditer(_CONTINUED.sub(" ", text))]
    held: dict[str, str] = {}
    for number, (name, written) in enumerate(unknown.items()):
        held[name] = name
        if not re.fullmatch(r"\w+", name):
            by = {key for key, value in assigned if _plain(written) in value} if number < HELD_MAX else set[str]()
            held[name] = by.pop() if len(by) == 1 else ""
    return held


def _plain(text: str) -> str:
    """Return a text whose words are one space apart, however a command was written over several lines."""
    return " ".join(text.split())


def with_calls(text: str) -> str:
    """Return the text with commands that variables hold at the beginnings of lines, where the text calls them."""
    if not _HELD.search(text):
        return text
    called = {found[2] or found[3] for found in re.finditer(rf"^{CALL}", text, re.MULTILINE)}
    return _HELD.sub(lambda found: "" if found[2] in called else found[0], text)


def with_xpk(text: str) -> str:
    return _XPK.sub(r"\1xpk", text)


def xpk_command(line: str) -> str:
    found = _CREATE.match(with_xpk(line))
    return f"xpk workload {found[1]}" if found else ""
