"""The workflows of this repository and the example for GitLab: pinned, with few permissions, safe for forks."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+){1,2}$")
SAFE = ("github.event.pull_request.number", "github.repository", "github.token", "github.workflow", "matrix.stack")
"""Expressions whose values nobody outside can write."""
OWN = ("vars.", "fromJSON(vars.", "github.ref", "runner.", "hashFiles")


def read(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text())


def steps(workflow: dict[Any, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, job in workflow["jobs"].items():
        yield from ((name, step) for step in job.get("steps", ()))


def faults(path: Path) -> list[str]:
    """What is wrong with a workflow, a line each."""
    workflow, text = read(path), path.read_text()
    triggers = workflow[True]  # YAML's `on`
    found: list[str] = []
    found += [f"not pinned: {line.strip()}" for line in text.splitlines()
              if re.search(r"uses: (?!\./)", line) and not PINNED.search(line.strip().removeprefix("- "))]  # fmt: skip
    if "pull_request_target" in triggers or "workflow_run" in triggers:
        found.append("runs with secrets on behalf of a fork")
    if workflow.get("permissions") not in ({}, {"contents": "read"}):
        found.append("permissions of the whole workflow")
    jobs: dict[str, dict[str, Any]] = workflow["jobs"]
    for name, job in jobs.items():
        granted: dict[str, str] = job.get("permissions", workflow["permissions"])
        if "timeout-minutes" not in job and not job.get("uses", "").startswith("./"):  # which has its own
            found.append(f"{name}: no timeout")
        if "pull_request" in triggers and "write" in granted.values() and not spares_forks(job, jobs):
            found.append(f"{name}: may write, and runs for forks")
        if granted.get("pull-requests") == "write" or granted.get("contents") == "write":
            if any("checkout" in step.get("uses", "") for step in job["steps"]):
                found.append(f"{name}: may write, and checks out")
            if "id-token" in granted:
                found.append(f"{name}: may write, and signs in")
    for name, step in steps(workflow):
        if "${{" in step.get("run", ""):
            found.append(f"{name}: an expression in a script")
        if "actions/checkout@" in step.get("uses", "") and step.get("with", {}).get("persist-credentials") is not False:
            found.append(f"{name}: leaves the token in the checkout")
    found += [f"a secret: {each}" for each in re.findall(r"\$\{\{\s*secrets\.\w+", text)]
    return found


def spares_forks(job: dict[str, Any], jobs: dict[str, dict[str, Any]]) -> bool:
    """Whether it does not run for a fork's pull request: it says so, or a job that it needs does and is skipped."""
    condition, needed = job.get("if", ""), job.get("needs")
    if "head.repo.full_name == github.repository" in condition:
        return True
    # Either of these runs it after a job that was skipped.
    anyway = "always()" in condition or "cancelled()" in condition
    if needed is None or (anyway and f"needs.{needed}.result != 'skipped'" not in condition):
        return False
    return spares_forks(jobs[needed], jobs)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_safe(path: Path) -> None:
    assert faults(path) == []


def test_the_workflows_are_there() -> None:
    assert {"preview.yml", "up.yml"} <= {path.name for path in WORKFLOWS}


BAD = """
on:
  pull_request_target:
permissions: write-all
jobs:
  bad:
    permissions: {contents: write, id-token: write}
    steps:
      - uses: actions/checkout@v4
      - run: echo ${{ github.event.pull_request.title }} ${{ secrets.KEY }}
"""


def test_an_unsafe_one_is_found(tmp_path: Path) -> None:
    path = tmp_path / "bad.yml"
    path.write_text(BAD)
    assert {found.partition(":")[0] for found in faults(path)} == {
        "not pinned", "runs with secrets on behalf of a fork", "permissions of the whole workflow", "bad", "a secret",
    }  # fmt: skip
    assert len(faults(path)) == 9


@pytest.mark.parametrize(
    ("condition", "safe"),
    [
        ("", True),
        ("${{ !cancelled() && needs.report.result != 'skipped' }}", True),
        ("always()", False),
        ("${{ !cancelled() }}", False),
    ],
)
def test_what_follows_a_job_that_forks_do_not_have(condition: str, safe: bool) -> None:
    guarded = {"if": "github.event.pull_request.head.repo.full_name == github.repository"}
    assert spares_forks({"needs": "report", "if": condition}, {"report": guarded}) is safe
    assert not spares_forks({"needs": "report", "if": condition}, {"report": {}})


GH = """#!/bin/sh
case "$*" in *--paginate*) [ -z "$MARK" ] || cat "$ROOT/known" ;; *) echo "$*" >> "$ROOT/calls" ;; esac
"""


@pytest.mark.parametrize(
    ("known", "calls"),
    [
        ("", "api --silent --method POST repos/o/r/issues/7/comments -F body=@reports/report-dev/report.md"),
        ("41\n42\n", "api --silent --method PATCH repos/o/r/issues/comments/42 -F body=@reports/report-dev/report.md"),
    ],
)
def test_the_comment_is_written_over_the_one_before(known: str, calls: str, tmp_path: Path) -> None:
    """The script of the workflow, with a `gh` that lists and keeps what it is told."""
    job = read(ROOT / ".github" / "workflows" / "preview.yml")["jobs"]["comment"]
    (script,) = [step["run"] for step in job["steps"] if "run" in step]
    reports = tmp_path / "reports" / "report-dev"
    reports.mkdir(parents=True)
    (reports / "report.md").write_text("### dev\n<!-- accel-report:accel/dev -->\n")
    (tmp_path / "reports" / "report-empty").mkdir()
    (tmp_path / "known").write_text(known)
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "ROOT": str(tmp_path), "REPOSITORY": "o/r", "NUMBER": "7"}
    subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=env, check=True)
    assert (tmp_path / "calls").read_text().splitlines() == [calls]


def test_only_harmless_values_reach_expressions_of_a_name_or_path() -> None:
    """Whatever else is interpolated is a variable of the repository, which its owners write. Conditions are not."""
    for path in WORKFLOWS:
        text = re.sub(r"(?m)^[ -]*if: .*$", "", path.read_text())
        for found in re.findall(r"\$\{\{\s*(.+?)\s*\}\}", text):
            assert found in SAFE or found.startswith(OWN), f"{path.name}: {found}"


def test_a_deployment_looks_first_for_what_one_before_left() -> None:
    workflow = read(ROOT / ".github" / "workflows" / "up.yml")
    runs = [step.get("run", "") for name, step in steps(workflow) if name == "up"]
    recover, up = (next(n for n, run in enumerate(runs) if word in run) for word in ("stacks recover", "pulumi up"))
    assert recover < up
    assert workflow["jobs"]["up"]["environment"]
    assert "--check" in runs[recover]


def test_a_deployment_waits_for_the_tests() -> None:
    """Those that a pull request has, on what was merged; a failed one skips whatever needs it."""
    jobs = read(ROOT / ".github" / "workflows" / "up.yml")["jobs"]
    tests = [name for name, job in jobs.items() if job.get("uses") == "./.github/workflows/test.yml"]
    before, name = [], "up"
    while name := jobs[name].get("needs"):
        assert "always()" not in jobs[name].get("if", "")
        before.append(name)
    assert tests and set(tests) <= set(before) and "always()" not in jobs["up"].get("if", "")
    test = read(ROOT / ".github" / "workflows" / "test.yml")
    assert "workflow_call" in test[True]
    assert "github.workflow" in test["concurrency"]["group"], "or a run of its own cancels the one that up waits for"


def test_the_example_for_gitlab() -> None:
    found = read(ROOT / "examples" / "gitlab-ci.yml")
    assert "@sha256:" in found["default"]["image"]
    assert found["report"]["rules"][0]["if"].startswith('$CI_PIPELINE_SOURCE == "merge_request_event"')
    scripts = "\n".join(found["up"]["script"])
    assert scripts.index("stacks recover") < scripts.index("pulumi up")
