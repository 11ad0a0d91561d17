"""A checkout as somebody gets it who has just cloned it, with packages that need no download."""

import os
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

from platformdirs import user_cache_dir

from sandbox.environment import project

TIMEOUT_S = 900
COMMIT = "git init -q . && git add -A && git -c user.name=a -c user.email=a@a commit -qm all"
"""Makes a copy a repository, whose state is committed."""


@dataclass(frozen=True)
class Clone:
    """A folder, and a terminal in it that knows nothing but where programs are."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict[str, str])

    def run(self, script: str, **variables: str) -> str:
        """What a script prints in bash, both streams in one; it has to end with 0."""
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env={**self.variables, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, f"{script}\nended with {done.returncode}:\n{done.stdout}"
        return done.stdout.replace("\r\n", "\n")


def copy_checkout(folder: Path) -> None:
    """Copy what git has of this checkout, and what is about to be committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=project(),
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (project() / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(project() / name, folder / name)


def cloned(folder: Path) -> Clone:
    """A copy of this checkout, in a folder that is not there yet."""
    copy_checkout(folder)
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        # Whoever comes back has Pulumi's engine in the cache; the first time it is downloaded, or built for minutes.
        "XDG_CACHE_HOME": str(Path(user_cache_dir()).resolve()),
        "XDG_STATE_HOME": str(home / "state"),
        "ACCEL_IMAGE_CHECK": "off",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    return Clone(folder, variables)


def environment_of_its_own(folder: Path) -> Path:
    """A virtual environment in which pip finds every package of this one, and installs others into its own."""
    subprocess.run(["python3.11", "-m", "venv", "--without-pip", str(folder / ".venv")], check=True)
    (site,) = (folder / ".venv" / "lib").glob("python*/site-packages")
    (site / "lent.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    pip = folder / ".venv" / "bin" / "pip"
    pip.write_text(f'#!/bin/sh\nexec "{pip.with_name("python")}" -m pip "$@"\n')
    pip.chmod(0o755)
    return pip.parent
