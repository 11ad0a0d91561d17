"""Counts of the sample files by kind, as docs/import.md shows them. Run it: `python -m tests.jobs.imports.counts`."""

from collections import Counter

from jobs.importers.kinds import KINDS
from tests.jobs.imports.losses import silent_losses
from tests.jobs.imports.sample_files import samples, trial

COLUMNS = ("files", "imported", "imported with decisions", "refused with the right reason", "silent losses")


def counts() -> dict[str, Counter[str]]:
    """Import every sample file. Return the figures by kind; a file that is not as expected is in no column but the
    first."""
    found = {kind: Counter[str]() for kind in KINDS}
    for sample in samples():
        of, made = found[sample.kind], trial(sample)
        of["files"] += 1
        if made.outcome == sample.outcome and sample.says in made.said:
            of[dict(zip(("imported", "decisions", "refused"), COLUMNS[1:], strict=False))[made.outcome]] += 1
        if made.result:
            data = sample.path.read_bytes()
            of["silent losses"] += len(silent_losses(sample.path, data, made.result, sample.options))
    return found


def table() -> str:
    """The figures as a table in Markdown."""
    found = counts()
    rows = [[f"`{kind}`", *(str(of[column]) for column in COLUMNS)] for kind, of in found.items()]
    total = sum(found.values(), Counter[str]())
    rows.append(["all", *(str(total[column]) for column in COLUMNS)])
    head = [["kind", *COLUMNS], ["---"] + ["---:"] * len(COLUMNS)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [*head, *rows]) + "\n"


if __name__ == "__main__":
    print(table(), end="")
