"""Files in the shapes of the vendors' documentation: what is imported, what its user has to decide, what is refused and
why, and that nothing is lost."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.jobs.imports import counts
from tests.jobs.imports.losses import silent_losses
from tests.jobs.imports.sample_files import GOLDEN, HERE, Sample, import_file, samples, trial

SAMPLES = list(samples())
PAGE = Path(__file__).parents[3] / "docs" / "import.md"


def test_each_file_is_a_sample() -> None:
    own = {str(path.relative_to(HERE)) for path in HERE.rglob("*") if path.parent != HERE and path.is_file()}
    assert own | {f"golden/{path.name}" for path in GOLDEN.iterdir() if path.is_file()} == {s.name for s in SAMPLES}


def test_each_file_is_in_the_table_of_sources() -> None:
    page = (HERE / "README.md").read_text()
    assert [s.name for s in SAMPLES if not s.name.startswith("golden/") and f"`{s.name}`" not in page] == []


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_sample(sample: Sample) -> None:
    made, data = trial(sample), sample.path.read_bytes()
    assert made.outcome == sample.outcome, made.said
    assert sample.says in made.said and bool(sample.says) == (sample.outcome == "refused")
    beginnings = [each.removesuffix("*") for each in sample.decisions if each.endswith("*")]
    others = {each for each in made.decisions if not each.startswith(tuple(beginnings))}
    assert others == {each for each in sample.decisions if not each.endswith("*")}
    assert all(any(each.startswith(start) for each in made.decisions) for start in beginnings)
    if sample.options:
        assert import_file(sample.path, data).report.stops, "its options settle nothing"
    if made.result:
        assert silent_losses(sample.path, data, made.result, sample.options) == []


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_sample_as_a_command(sample: Sample, home: Path, invoke: Callable[..., Result]) -> None:
    done = invoke("import", str(sample.path))
    is_whole = sample.outcome != "refused" and not sample.options
    assert done.exit_code == (0 if is_whole else 2), done.stderr
    assert bool(done.stdout) == is_whole
    assert is_whole or any(line.startswith("error: ") for line in done.stderr.splitlines())


def test_losses_are_found() -> None:
    sample = next(each for each in SAMPLES if each.name == "kubernetes/gpu_job.yaml")
    data = sample.path.read_bytes()
    result = import_file(sample.path, data)
    entries = {entry.field: entry for entry in result.report.entries}
    kept = entries["spec.template.spec.tolerations[0].effect"]
    kept.kind, kept.why = "kept", []
    missing = "spec.template.spec.containers[0].resources.limits.cpu"
    del result.report.fields[missing]
    assert silent_losses(sample.path, data, result, {}) == [
        f"{missing}: is not in the report",
        f"{kept.field}: is kept, and the job is the same with another value",
    ]


def test_the_page_has_the_counts() -> None:
    assert counts.table() in PAGE.read_text()
