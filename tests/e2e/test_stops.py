"""A job that ends by itself with an exit code which says that its machine is at fault: it is lost, and did not fail."""

from pathlib import Path

import pytest
import yaml

from tests.support.soak import sampled

from . import test_reclaims
from .conftest import Shell
from .google import status

shell = test_reclaims.shell
GPU = {"accelerator": {"type": "l4"}, "spot": True}
FIELDS = {"spot": {}, "batch": GPU, "gke": {"cpus": 1, "memory_mib": 1024, "lost_retries": 1}}


QUICK = [
    ("spot", 143, "SUCCEEDED"),
    ("spot", 9, "FAILED"),
    ("batch", 143, "SUCCEEDED"),
    ("batch", 75, "SUCCEEDED"),
    ("batch", 9, "FAILED"),
    ("gke", 75, "SUCCEEDED"),
]


@pytest.mark.parametrize(
    "target, code, phase", sampled([*QUICK, ("gke", 143, "SUCCEEDED"), ("gke", 9, "FAILED")], QUICK)
)
def test_an_exit_code_that_blames_the_machine(target: str, code: int, phase: str, shell: Shell, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    job = {"name": f"ends-{code}", "image": "local/examples", **FIELDS[target]}
    job["command"] = ["sh", "-c", f"test -e {seen} && exit 0; touch {seen}; exit {code}"]
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    ref = shell.jobs("submit", str(tmp_path / "job.yaml"), "--to", target, "--no-quota", "-o", "id")
    shell.jobs("wait", ref, code=0 if phase == "SUCCEEDED" else 125)
    row = status(shell, ref)
    lost = int(phase == "SUCCEEDED")
    assert (row["phase"], row["attempts"], row["lost"]) == (phase, 1 + lost, lost)
