"""The pulumi command, as recover uses it on one stack, and what its file backend keeps beside the state."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from accel.clouds.google.rest import mapping
from accel.diagnostics.errors import CloudRefused

from ..pulumi_command import ran

Json = dict[str, Any]
REMEMBERED = 20
"""Of the last runs: refreshes are among them."""
ATTRIBUTES = ".attrs"
"""Ending of the file that the file backend keeps beside each of its own."""
_FOLDERS = ("locks/organization", "backups", "history")
"""Of the file backend, beside that of the states."""


@dataclass(frozen=True)
class Engine:
    """`pulumi` in this folder, on one stack of its project."""

    stack: str

    def export(self) -> Json:
        """The state. Raises NotFound where there is no such stack, CloudRefused where it cannot be read."""
        return json.loads(self.run("stack", "export"))

    def replace(self, state: Json) -> None:
        """Writes the state whole. Pulumi drops every pending operation while it does so."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "state.json")
            file.touch(mode=0o600)
            file.write_text(json.dumps(state))
            self.run("stack", "import", "--file", str(file))

    def planned(self) -> Json:
        """What an `up` would do after a refresh. Raises CloudRefused where the program cannot be run."""
        return json.loads(self.run("preview", "--refresh", "--json"))

    def history(self) -> list[Json]:
        """The last runs that came to their end, the latest first."""
        return json.loads(self.run("stack", "history", "--json", "--page-size", str(REMEMBERED)))

    def refresh(self, urns: Sequence[str] = ()) -> None:
        """Reads these resources in the cloud, or all: the state then has them as they are, or not any more."""
        targets = [part for urn in urns for part in ("--target", urn)]
        self.run("refresh", "--yes", "--skip-preview", *targets)

    def cancel(self) -> None:
        """Takes away every lock of the stack."""
        self.run("cancel", "--yes", self.stack, named=False)

    def up(self) -> None:
        self.run("up", "--yes", "--skip-preview")

    def destroy(self) -> None:
        self.run("destroy", "--yes", "--skip-preview", "--run-program")  # which registers the hooks that it needs

    def unchanged(self) -> None:
        """Raises CloudRefused unless a preview is empty."""
        self.run("preview", "--expect-no-changes")

    def backend(self) -> str:
        """URL of where states are kept."""
        return json.loads(self.run("whoami", "--json", named=False))["url"]

    def run(self, *arguments: str, named: bool = True) -> str:
        """What it writes to stdout. Raises NotFound or CloudRefused with its own first error."""
        done = ran(*arguments, *(["--stack", self.stack] if named else []))
        if done.returncode:
            # Errors of the engine come on stdout, among what it shows; those of the command on stderr.
            said = (done.stderr + "\n" + done.stdout).strip().splitlines()
            why = next((line.strip() for line in said if "error: " in line), f"ended with {done.returncode}")
            message = f"pulumi {' '.join(arguments[:2])}: {why.removeprefix('error: ')}"
            raise CloudRefused(message)
        return done.stdout


@dataclass(frozen=True)
class Files:
    """Of a backend in a folder: the stack's state and its locks. Source:
    https://github.com/pulumi/pulumi/blob/master/pkg/backend/diy (lock.go, state.go, store.go)"""

    root: Path
    project: str
    stack: str

    @classmethod
    def of(cls, backend: str, project: str, stack: str) -> "Files | None":
        """None for a backend that is no folder."""
        if not backend.startswith("file://"):
            return None
        path = unquote(urlsplit(backend).path) if backend.startswith("file:///") else backend[len("file://") :]
        return cls(Path(path.partition("?")[0]).expanduser() / ".pulumi", project, stack)

    def locks(self) -> list[Path]:
        folder = self.root / "locks" / "organization" / self.project / self.stack
        return sorted(folder.glob("*.json"))

    def mark(self) -> Path:
        """There while recover is at work: where it is killed itself, what it was for is known to the next."""
        return self.root / "recover" / self.project / f"{self.stack}.json"

    def state(self) -> Path:
        """Where the state is, or would be; it may be compressed."""
        folder = self.root / "stacks" / self.project
        kinds = [folder / f"{self.stack}.json{ending}" for ending in ("", ".gz", ".zst")]
        return next((path for path in kinds if path.exists()), kinds[0])

    def corrupt(self) -> Path | None:
        """The state's file where it is no JSON: cut off, or empty."""
        path = self.state()
        if path.suffix != ".json" or not path.exists() or _sound(path):
            return None
        return path

    def torn(self) -> Path | None:
        """The state's file of attributes where it is no JSON, without which the state can be read, but not with it.

        It is written before the state takes its name, and not in one step. Source:
        https://github.com/google/go-cloud/blob/master/blob/fileblob/attrs.go
        """
        path = self.state()
        path = path.with_name(f"{path.name}{ATTRIBUTES}")
        return path if path.exists() and _json(path) is None else None

    def unfinished(self) -> list[Path]:
        """Files that a killed engine was about to give their names."""
        own = f"{self.project}/{self.stack}"
        kinds = (f"stacks/{own}.json.*.tmp", *(f"{kind}/{own}/*.tmp" for kind in _FOLDERS))
        return sorted(path for kind in kinds for path in self.root.glob(kind))

    def backups(self) -> list[Path]:
        """Earlier states that can be read, the latest first: that of the write before, and those of whole runs."""
        path = self.state()
        kept = (self.root / "backups" / self.project / self.stack).glob(f"{self.stack}.*.json")
        found = [path.with_name(f"{path.name}.bak"), *kept]
        return sorted(filter(_sound, found), key=lambda each: -each.stat().st_mtime)


def _sound(path: Path) -> bool:
    return "checkpoint" in (_json(path) or {})


def _json(path: Path) -> Json | None:
    """The object in a file; None where it is gone, or holds none."""
    try:
        return mapping(json.loads(path.read_bytes()))
    except (FileNotFoundError, ValueError):
        return None
