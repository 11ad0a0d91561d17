"""docs/consumer.md as somebody follows it: from the wheel to a job of the team's own queue, and away again."""

import json
from collections.abc import Mapping
from pathlib import Path

import yaml

from sandbox.environment import project
from tests.support.clone import COMMIT, Clone, cloned, environment_of_its_own
from tests.support.engine import Sandbox
from tests.support.pages import blocks, script_of
from tests.support.project import Stack
from tests.support.soak import soak_only

PAGE = project() / "docs" / "consumer.md"


def variables(clone: Clone, sandbox: Sandbox) -> Mapping[str, str]:
    """Of a terminal of the team: the sandbox is its cloud, and its backend the platform's."""
    return {
        **clone.variables,
        **{name: value for name, value in sandbox.variables.items() if name not in ("PATH", "ACCEL_TARGETS", "HOME")},
        "PATH": f"{environment_of_its_own(clone.folder)}:{sandbox.variables['PATH']}:{clone.variables['PATH']}",
        "PIP_REQUIRE_VIRTUALENV": "1",
        "PULUMI_SKIP_CONFIRMATIONS": "true",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "false",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


@soak_only  # engine/test_consumer.py has a team that does the same without the wheel
def test_the_page_leads_from_the_wheel_to_a_job(deployed: Stack, sandbox: Sandbox, tmp_path: Path) -> None:
    found = cloned(tmp_path / "accel")
    team = Clone(found.folder, dict(variables(found, sandbox)))
    team.run(COMMIT)
    vision = tmp_path / "vision"
    vision.mkdir()
    environment_of_its_own(vision)  # which the page's `venv` leaves as it is, but for pip
    (job,) = [block.text for block in blocks(PAGE) if block.language == "yaml"]
    (vision / "job.yaml").write_text(yaml.safe_dump({**yaml.safe_load(job)}, sort_keys=False))

    words = {
        "organization/accel/dev": f"organization/accel/{deployed.stack}",
        "mkdir ../vision\n": "",  # it is there, with its environment
        "python3 -m venv .venv": "python3 -m venv --without-pip .venv",
    }
    script, _ = script_of([block for block in blocks(PAGE) if block.language == "sh"], {})
    for word, meant in words.items():
        assert word in script
        script = script.replace(word, meant)
    printed = team.run(script)
    assert "team" in printed and ": SUCCEEDED" in printed, printed
    assert json.loads((vision / ".accel" / "targets.json").read_text())["team"]["kind"] == "aws-batch"
    location = team.run(f"{vision}/.venv/bin/python -P -c 'import accel.contract; print(accel.contract.__file__)'")
    assert Path(location.strip()).is_relative_to(vision / ".venv")
