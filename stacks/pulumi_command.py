"""The pulumi command, which holds the credentials of a state."""

import shutil
import subprocess
from pathlib import Path

from jobs.errors import JobsError


def ran(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`pulumi` with these arguments, in this folder or another, to its end. Raises JobsError where there is none."""
    pulumi = shutil.which("pulumi")
    if not pulumi:
        raise JobsError("pulumi is not on PATH", 'on the sandbox: eval "$(python -m sandbox env)"')
    place = ["--cwd", str(folder)] if folder else []
    command = [pulumi, *arguments, *place, "--non-interactive", "--color", "never"]
    return subprocess.run(command, capture_output=True, text=True, check=False)
