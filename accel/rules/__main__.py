"""docs/rules.md, which `python -m accel.rules` prints."""

import sys

from accel.rules.table import rules

_HEAD = """\
# Rules

What is checked before any call to a cloud. `reject` stops; `translate` uses the newer value and warns; `warn`
goes on and says what is likely to go wrong. Strict checks make all three an error.

This page is written by `python -m accel.rules > docs/rules.md`, from `accel/rules/rules.csv`.

| rule | what happens | what it says | source |
| --- | --- | --- | --- |
"""


def page() -> str:
    rows = [f"| `{rule.id}` | {rule.severity} | {rule.summary} | <{rule.source}> |" for rule in rules().values()]
    return _HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
