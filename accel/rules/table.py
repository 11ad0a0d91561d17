"""The table of rules: rules.csv has the severity of each, a sentence on what a cloud or this project restricts, and the
page that documents it. Checks name their rules by id."""

import csv
import os
from functools import cache

from accel.diagnostics.findings import Rule, Severity

TABLE = os.path.join(os.path.dirname(__file__), "rules.csv")  # noqa: PTH118, PTH120  pathlib takes 5 ms to import
_SEVERITIES: dict[str, Severity] = {"reject": "reject", "translate": "translate", "warn": "warn"}


@cache
def rules() -> dict[str, Rule]:
    """Return rules by id, in the order of the table."""
    with open(TABLE, encoding="utf-8", newline="") as file:  # noqa: PTH123
        _, *lines = csv.reader(file)
    return {id_: Rule(id_, _SEVERITIES[severity], summary, source) for id_, severity, summary, source in lines}


def rule(id_: str) -> Rule:
    return rules()[id_]
