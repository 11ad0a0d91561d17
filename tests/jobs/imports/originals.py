"""Files of vendors' documentation, imported byte for byte as their repositories have them.

    python -m tests.jobs.imports.originals FOLDER

Their text is not ours to copy, so originals.yaml names each by repository, commit, path, lines of a page and digest.
FOLDER holds clones by their names (`git clone --no-checkout https://github.com/OWNER/NAME FOLDER/NAME`). A test does
the same where ACCEL_ORIGINALS names the folder.
"""

import hashlib
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from accel.diagnostics.errors import BadInput
from tests.jobs.imports.losses import silent_losses
from tests.jobs.imports.sample_files import Outcome, import_file, recognize

TABLE = Path(__file__).with_name("originals.yaml")


@dataclass(frozen=True)
class Original:
    """A file of a public repository, and what is expected of it. `lines`: the first and last of a block on a page;
    `options`: those of the command; `says`: words of a refusal."""

    kind: str
    repo: str
    commit: str
    path: str
    sha256: str
    outcome: Outcome
    lines: tuple[int, int] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    says: str = ""

    @property
    def name(self) -> str:
        """The name under which it is imported: a block of a page is pasted into a script."""
        return "pasted.sh" if self.lines else Path(self.path).name

    def read(self, folder: Path) -> bytes:
        """Return its bytes. Raises OSError where the clone is missing or has another text."""
        clone = folder / self.repo.partition("/")[2]
        shown = subprocess.run(["git", "-C", str(clone), "show", f"{self.commit}:{self.path}"], capture_output=True)
        if shown.returncode:
            raise OSError(f"{self.repo} {self.path}: {shown.stderr.decode().strip()}")
        data = shown.stdout
        if self.lines:
            first, last = self.lines
            data = textwrap.dedent("".join(data.decode().splitlines(keepends=True)[first - 1 : last])).encode()
        digest = hashlib.sha256(data).hexdigest()
        if digest != self.sha256:
            raise OSError(f"{self.repo} {self.path}: has the digest {digest}")
        return data


def originals() -> Iterator[Original]:
    """Yield the files of the table."""
    for each in yaml.safe_load(TABLE.read_text()):
        yield Original(**{**each, "lines": tuple(each["lines"]) if "lines" in each else None})


def problems(original: Original, data: bytes) -> list[str]:
    """Import a file. Return what is not as expected: its kind, its outcome, a refusal's words, and silent losses."""
    try:
        found = recognize(original.name, data).kind
        result = import_file(Path(original.name), data, **original.options)
    except BadInput as error:
        return _unlike(original, "refused", str(error))
    stops = "; ".join(entry.text for entry in result.report.stops)
    outcome: Outcome = "refused" if stops else "decisions" if result.report.of("decision") else "imported"
    wrong = [f"is read as {found}"] if found != original.kind else []
    return [
        *wrong,
        *_unlike(original, outcome, stops),
        *silent_losses(Path(original.name), data, result, original.options),
    ]


def _unlike(original: Original, outcome: Outcome, said: str) -> list[str]:
    if (outcome, original.says in said) == (original.outcome, True):
        return []
    return [f"is {outcome} and not {original.outcome}: {said}"]


def main(folder: Path) -> int:
    """Print a line for each file, and return 1 if one of them is not as expected."""
    failed = 0
    for original in originals():
        data = original.read(folder)
        wrong = problems(original, data)
        failed += bool(wrong)
        place = ":".join((f"{original.repo}/{original.path}", *(map(str, original.lines or ()))))
        print(f"{original.kind:12} {original.outcome:10} {len(data):6} bytes  {place}", *wrong, sep="\n  ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
