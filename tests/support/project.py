"""This project's own program on the engine: a folder with its Pulumi.yaml and one environment."""

import copy
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from accel.diagnostics.faults import parse_path
from sandbox.environment import project

from .engine import Engine, Result, Sandbox

KEY = "accel:environment"


def environment(stack: str = "sandbox", cloud: str = "aws") -> dict[str, Any]:
    """The environment of one of the project's stacks, as its file has it, with the section of one cloud."""
    values = yaml.safe_load((project() / f"Pulumi.{stack}.yaml").read_text())["config"][KEY]
    return {key: value for key, value in values.items() if key == cloud or key not in ("aws", "gcp")}


def google_sections(*names: str) -> dict[str, Any]:
    """The sandbox's environment with these sections of Google Cloud alone."""
    values = environment(cloud="gcp")
    return {**values, "gcp": {name: values["gcp"][name] for name in ("project", "region", *names)}}


def put(path: str, value: Any, into: dict[str, Any]) -> dict[str, Any]:
    """A copy with one value changed; a path that is not there yet is made."""
    changed = copy.deepcopy(into)
    here: Any = changed
    *way, last = parse_path(path)
    for step in way:
        here = here.setdefault(step, {}) if isinstance(here, dict) else here[step]
    here[last] = value
    return changed


class Stack(Engine):
    """The project's program with an environment that a test can change."""

    def __init__(self, folder: Path, sandbox: Sandbox, values: dict[str, Any], stack: str = "test") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(project() / "__main__.py", folder)
        # Without the virtual environment of Pulumi.yaml: the tests' own Python runs the program.
        (folder / "Pulumi.yaml").write_text("name: accel\nruntime: python\n")
        self.config_file = folder / f"Pulumi.{stack}.yaml"
        self.write_environment(values)
        super().__init__(folder, sandbox, folder, stack=stack)

    def destroy(self, *options: str, check: bool = True) -> Result:
        return super().destroy("--run-program", *options, check=check)

    def up_targets(self) -> Mapping[str, Any]:
        """Deploys, and writes its targets into `targets.json`. Gives the outputs."""
        outputs = self.up().outputs
        (self.folder / "targets.json").write_text(json.dumps(outputs["targets"]))
        return outputs

    def outputs(self) -> dict[str, Any]:
        """The outputs of the stack as it is now."""
        return json.loads(self.run("stack", "output", "--json", "--stack", self.stack).stdout)

    def write_environment(self, values: dict[str, Any]) -> None:
        """Replaces the environment; what the engine keeps in the same file stays."""
        kept = yaml.safe_load(self.config_file.read_text()) if self.config_file.exists() else {}
        self.config_file.write_text(yaml.safe_dump({**kept, "config": {KEY: values}}, sort_keys=False))
