"""States that earlier versions of the project deployed, as tests/golden/states keeps them.

`python -m tests.support.states COMMIT` makes another: it checks the commit out in a folder of its own, deploys the
commit's own environment with the commit's own program on the commit's own sandbox, and keeps what Pulumi exports.
tests/engine/test_upgrade.py is then run once with ACCEL_UPDATE_GOLDEN=1.
"""

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import jmespath
import yaml

from sandbox.environment import project

from .project import KEY, put
from .wheel import run

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "states"
STACK = "sandbox"
PROTECTED = {
    "aws.claims.protect": True,
    "aws.repositories.training.protect": True,
    "gcp.cluster.deletion_protection": True,
    "gcp.workloads.namespaces.jobs.protect": True,
}
"""What a commit's Pulumi.sandbox.yaml is deployed with besides: nobody upgrades what may be lost anyway."""
NOWHERE = {"endpoint": "127.0.0.1:9", "masterAuth.clusterCaCertificate": base64.b64encode(b"nobody's").decode()}
"""Of the cluster, whose control plane is gone: an address that refuses at once, and no certificate."""
UNKEPT = ("created", "modified", "sourcePosition", "stackTrace")
"""When and from where a resource was made: paths of the machine, which no plan looks at."""

DEPLOY = f"""
set -eu -o pipefail
eval "$(python -m sandbox env)"
pulumi stack select --create {STACK} >&2
pulumi up --stack {STACK} --config-file "$1" --yes --skip-preview --non-interactive --color never >&2
pulumi stack export --stack {STACK} --show-secrets
"""


@dataclass(frozen=True)
class State:
    """What one version deployed. `environment`: what its file said; `export`: as `pulumi stack export` prints it;
    `contract`: what it published of its outputs, None where it did not yet."""

    commit: str
    environment: dict[str, Any]
    export: dict[str, Any]
    contract: dict[str, Any] | None

    @property
    def resources(self) -> list[dict[str, Any]]:
        return _resources(self.export)


def commits() -> list[str]:
    """Of the states that are kept."""
    return sorted(path.name for path in FOLDER.iterdir())


def read(commit: str) -> State:
    folder = FOLDER / commit
    contract = folder / "contract.json"
    kept = json.loads((folder / "state.json").read_text())
    for release in kept["environment"].get("gcp", {}).get("workloads", {}).get("releases", []):
        # What UPGRADING.md tells everybody to write, in the stacks that were deployed before it was asked for.
        release.setdefault("installed_by", "the sandbox")
    return State(commit, **kept, contract=json.loads(contract.read_text()) if contract.exists() else None)


def write(state: State) -> Path:
    """One resource a line, so that two states can be compared."""
    folder = FOLDER / state.commit
    folder.mkdir(parents=True, exist_ok=True)
    deployment = {key: value for key, value in state.export["deployment"].items() if key != "resources"}
    head = json.dumps({"environment": state.environment, "export": {**state.export, "deployment": deployment}})
    lines = ",\n".join(json.dumps(each, sort_keys=True) for each in state.resources)
    (folder / "state.json").write_text(f'{head.removesuffix("}}}")}, "resources": [\n{lines}\n]}}}}}}\n')
    if state.contract:
        (folder / "contract.json").write_text(json.dumps(state.contract, indent=2, sort_keys=True) + "\n")
    return folder


def make(commit: str) -> State:
    """Deploys a commit's environment."""
    with checkout_of(commit) as (checkout, home):
        contract = checkout / "docs" / "contract.schema.json"
        return State(
            short_name(commit),
            *_deployed(checkout, home),
            json.loads(contract.read_text()) if contract.exists() else None,
        )


def _deployed(checkout: Path, home: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    variables = {"SANDBOX_HOME": str(home), "PYTHONPATH": str(checkout)}
    variables["PATH"] = os.pathsep.join([str(checkout / ".venv" / "bin"), os.environ.get("PATH", os.defpath)])
    sandbox = ("python", "-m", "sandbox")
    try:
        run(*sandbox, "start", cwd=checkout, **variables)
        file = Path(run(*sandbox, "config", cwd=checkout, **variables).strip())
        document = yaml.safe_load(file.read_text())
        values = reduce(lambda made, field: put(*field, made), PROTECTED.items(), document["config"][KEY])
        file.write_text(yaml.safe_dump({**document, "config": {KEY: values}}, sort_keys=False))
        told = run("bash", "-c", DEPLOY, "deploy", str(file), cwd=checkout, **variables)
    finally:
        run(*sandbox, "stop", "--wipe", cwd=checkout, **variables)
    return values, trimmed(told)


def trimmed(told: str) -> dict[str, Any]:
    """What was exported, without what belongs to this machine."""
    assert '"ciphertext"' not in told, "who reads a kept state shall see that no secret is in it"
    (cluster,) = [each for each in _resources(json.loads(told)) if each["type"] == "gcp:container/cluster:Cluster"]
    for path, instead in NOWHERE.items():
        told = told.replace(jmespath.search(path, cluster["outputs"]), instead)
    export = json.loads(told)
    for each in _resources(export):
        for name in UNKEPT:
            each.pop(name, None)
    found = [path for path in (tempfile.gettempdir(), str(project()), sys.prefix) if f"{path}/" in json.dumps(export)]
    assert not found, f"paths of this machine: {found}"
    return export


def _resources(export: Mapping[str, Any]) -> list[dict[str, Any]]:
    return export["deployment"]["resources"]


@contextmanager
def checkout_of(commit: str) -> Generator[tuple[Path, Path]]:
    """A folder with the commit's files, and one for a sandbox beside it. Its pinned requirements have to be those of
    this environment."""
    with tempfile.TemporaryDirectory(prefix="commit-") as folder:
        checkout, home = Path(folder, "checkout"), Path(folder, "home")
        _git("worktree", "add", "--quiet", "--detach", str(checkout), commit)
        try:
            if (checkout / "requirements.txt").read_bytes() != (project() / "requirements.txt").read_bytes():
                sys.exit(f"error: requirements.txt of {commit} is another one: its program needs other packages")
            (checkout / ".venv").symlink_to(sys.prefix)  # Pulumi.yaml names it
            yield checkout, home
        finally:
            _git("worktree", "remove", "--force", str(checkout))


def short_name(commit: str) -> str:
    return _git("rev-parse", "--short", commit).strip()


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=project(), capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.support.states", description=__doc__)
    parser.add_argument("commit")
    print(write(make(parser.parse_args().commit)))
