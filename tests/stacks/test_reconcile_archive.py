"""The scheduled function's archive: what it imports is in it, and nothing else is needed but `requests`."""

import subprocess
import sys
from pathlib import Path

from jobs.agent import metadata
from stacks.environment.gcp.reconcile_archive import archive

STAND_IN = """
import sys, types
framework = types.ModuleType("functions_framework")
framework.http = lambda function: function
sys.modules["functions_framework"] = framework
sys.path.insert(0, ".")
import main
from jobs import agent
print(agent.__file__, main.reconcile.__module__, len(agent.metadata()["accel-agent"]))
"""


def test_it_starts_with_the_standard_library_alone(tmp_path: Path) -> None:
    """`requests` is imported by a call."""
    for name, text in archive().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-I", "-S", "-c", STAND_IN]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    where, handler, agent = done.stdout.split()
    assert Path(where).is_relative_to(tmp_path) and handler == "jobs.backends.vm.function"
    assert int(agent) == len(metadata()["accel-agent"]), "a machine gets the agent that a client would give it"


def test_no_file_is_empty() -> None:
    """Pulumi's SDK cannot read an empty asset back."""
    assert all(archive().values())
