"""What is answered in AWS's place: a web page is told as one, and not printed."""

from collections.abc import Callable, Iterator

import pulumi
import pytest

from accel.clouds.aws.clients import client
from accel.clouds.aws.errors import asking
from accel.diagnostics.errors import CloudSilent, JobsError
from components.aws.stop_hooks import reason
from jobs.backends.base import JobRef
from tests.jobs.backends.aws_batch_target import CREDENTIALS, backend_at, request_of
from tests.support.serving import OneAnswer

PAGE = b"<!doctype html>\n<html lang=en><title>Not Found | Proxy</title><h1>Not Found</h1><p>The URL ...</html>"


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int, bytes], OneAnswer]]:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    made: list[OneAnswer] = []

    def start(status: int, body: bytes) -> OneAnswer:
        made.append(OneAnswer(status, body))
        return made[-1]

    yield start
    for endpoint in made:
        endpoint.stop()


Answering = Callable[[int, bytes], OneAnswer]


@pytest.mark.parametrize("status", [200, 404, 403, 502])
def test_a_page_of_a_proxy_is_not_printed(status: int, answering: Answering) -> None:
    backend = backend_at(answering(status, PAGE).url)
    with pytest.raises(JobsError) as caught:
        backend.status(JobRef("aws-batch", "us-east-1", "x"))
    assert "<" not in caught.value.message
    assert "a web page (Not Found | Proxy), not an answer of AWS" in caught.value.message


@pytest.mark.parametrize("body", [PAGE, b"[]", b"null", b'{"Item": {"stopped": {"S"', b"OK"])
def test_a_submission_ends_at_an_answer_that_is_not_aws_s(body: bytes, answering: Answering) -> None:
    """botocore reads such a body as a table without the row: no stop, and no claim."""
    endpoint = answering(200, body)
    backend = backend_at(endpoint.url, budget_stops=True)
    with pytest.raises(CloudSilent, match="the answer is not AWS's"):
        backend.submit(request_of(backend, "page"))
    assert len(endpoint.calls) == 1


def test_a_submission_ends_when_its_claim_does_not_stay(answering: Answering) -> None:
    endpoint = answering(200, b"{}")
    backend = backend_at(endpoint.url)
    with pytest.raises(CloudSilent, match="its claim was written, and cannot be read"):
        backend.submit(request_of(backend, "gone"))
    assert len(endpoint.calls) < 12


@pytest.mark.parametrize("service, operation", [("ec2", "describe_instances"), ("iam", "list_users")])
@pytest.mark.parametrize(
    "body",
    [
        PAGE,
        b'<?xml version="1.0"?>\n<HTML><body>sign in</body></HTML>',
        b"\xef\xbb\xbf<!-- a proxy -->\n<!-- <b> -->\n<html><body>sign in</body></html>",
        b'<?xml version="1.0"?>\n<!DOCTYPE  html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "x.dtd">\n<html></html>',
    ],
)
def test_nor_does_a_page_pass_as_xml(service: str, operation: str, body: bytes, answering: Answering) -> None:
    """EC2's responses are XML, and so is a page: one without instances."""
    url = answering(200, body).url
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", url)
        asked = client(service, "us-east-1", connect_s=1, read_s=1, attempts=1)
    with pytest.raises(CloudSilent, match="a web page"), asking(operation):
        getattr(asked, operation)()


@pytest.mark.parametrize("body", [PAGE, b"[]"])
def test_a_deployment_takes_no_page_for_a_stack_that_is_not_stopped(
    body: bytes, answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", answering(200, body).url)
    with pytest.raises(pulumi.RunError, match=r"claim table claims, .*: the answer is not AWS's"):
        reason("us-east-1", "claims")
