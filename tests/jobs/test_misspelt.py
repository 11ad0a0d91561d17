"""A region that is misspelt is named, where a call fails since there is none."""

import pytest
from botocore.exceptions import EndpointConnectionError

from accel.clouds.aws.errors import REACH, of_client
from accel.console.errors import code_of
from accel.diagnostics import region_typos
from accel.diagnostics.errors import CloudRefused, JobsError, NotFound


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (of_client("DescribeJobs", EndpointConnectionError(endpoint_url="https://batch.us-eest-1.amazonaws.com/")),
         "no region us-eest-1 is known; did you mean us-east-1"),
        (of_client("x", EndpointConnectionError(endpoint_url="https://batch.us-east-1.amazonaws.com/")), REACH),
        (NotFound("batch v1/projects/p/locations/us-centrall1/jobs/j: not found"),
         "no region us-centrall1 is known; did you mean us-central1"),
        (CloudRefused("compute projects/p/zones/europe-wst4-b/instances/i: denied"),
         "no region europe-wst4 is known; did you mean europe-west4"),
        (NotFound("batch v1/projects/p/locations/us-central1/jobs/j: not found"), None),
    ],
)  # fmt: skip
def test_in_what_a_command_says(error: JobsError, hint: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(error, debug=False) == error.exit_code
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 if hint is None else said[1].startswith(f"hint: {hint}")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("https://us-centrall1-aiplatform.googleapis.com/v1", "us-centrall1"),
        ("projects/p/regions/us-centrall1/subnetworks/s", "us-centrall1"),
        ("projects/p/zones/us-centrall1-a", "us-centrall1"),
        ("https://xx-nowhere-9.x.amazonaws.com", None),
        ("https://batch.xx-nowhere-9.amazonaws.com", "xx-nowhere-9"),
        ("projects/p/locations/global/x, projects/p/locations/us-east1/x", None),
    ],
)
def test_of_a_text(text: str, named: str | None) -> None:
    said = region_typos.region(text)
    assert said is None if named is None else said is not None and said.startswith(f"no region {named} is known")
