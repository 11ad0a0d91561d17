"""The pulumi command, which holds the credentials of a state."""

import re
import shutil
import subprocess
from pathlib import Path

from accel.diagnostics.errors import JobsError, NotFound

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""Text in a preview for a string that only the update determines. Source:
https://github.com/pulumi/pulumi/blob/00d498e306299cb053d93a5c1bbc2566e92b70bc/sdk/go/common/resource/plugin/rpc.go"""


def ran(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Raise JobsError if pulumi is not installed, and NotFound if it does not know the stack; return other failures."""
    pulumi = shutil.which("pulumi")
    if not pulumi:
        raise JobsError("pulumi is not on PATH", 'on the sandbox: eval "$(python -m sandbox env)"')
    place = ["--cwd", str(folder)] if folder else []
    command = [pulumi, *arguments, *place, "--non-interactive", "--color", "never"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and (missing := _MISSING.search(f"{done.stderr}\n{done.stdout}")):
        raise NotFound(
            f"pulumi {' '.join(arguments[:1])}: {missing[0]}",
            "`pulumi stack ls` lists them; deploy it first: pulumi up",
        )
    return done


_MISSING = re.compile(r"no stack (?:named \S+ found|selected)")
"""Error text on stderr, or among the diagnostics of a JSON answer."""
