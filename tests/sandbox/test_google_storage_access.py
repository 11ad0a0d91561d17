"""What the service account of a machine may do in Cloud Storage, as the sandbox's Google judges it."""

from dataclasses import replace

import pytest

from components.gcp.job_bucket import READS, WRITES, job_write_condition
from sandbox.google import PROJECT, account_token
from sandbox.google.errors import ApiError
from sandbox.google.storage_access import holds
from tests.support.google_fake import Fake, fake

__all__ = ["fake"]

BUCKET, ROOT = "jobs-bucket", "storage.googleapis.com/storage/v1/b"
EMAIL = f"jobs-0a1b2c3@{PROJECT}.iam.gserviceaccount.com"
OWN = [
    "accel-jobs/train-0123456789ab/attempts/1/result-0.json",
    "accel-jobs/train-0123456789ab/attempts/1/host-0.json",
    "accel-jobs/train-0123456789ab/model/weights.bin",
    "checkpoints/run/record.json",
    "accelerated/weights.bin",
]
STACKS = [
    "accel-targets/gpus.json",
    "accel-queues/trainer.json",
    "accel-queues/trainer-0123456789ab/record.json",
    "accel-jobs/train-0123456789ab/record.json",
    "accel-jobs/train-0123456789ab/deadline.json",
    "accel-jobs/train-0123456789ab/on-demand.json",
    "accel-jobs/code/0123456789abcdef.tar.gz",
    "accel-reconcile/function-0123456789abcdef.zip",
    "accel-anything-to-come/x",
]


@pytest.fixture(scope="module")
def job(fake: Fake) -> Fake:
    """The server as it answers to the account of jobs, which has been granted what the components grant it."""
    fake.call("POST", ROOT, {"name": BUCKET}, project=PROJECT)
    fake.call("POST", f"iam.googleapis.com/v1/projects/{PROJECT}/serviceAccounts", {"accountId": EMAIL.split("@")[0]})
    members = [f"serviceAccount:{EMAIL}"]
    bindings = [{"role": role, "members": members} for role in READS]
    condition = {"title": "jobs", "expression": job_write_condition(BUCKET)}
    bindings.append({"role": WRITES, "members": members, "condition": condition})  # type: ignore[dict-item]
    fake.call("PUT", f"{ROOT}/{BUCKET}/iam", {"version": 3, "bindings": bindings})
    return replace(fake, token=account_token(fake.token, EMAIL))


def write(by: Fake, name: str) -> int:
    upload = f"storage.googleapis.com/upload/storage/v1/b/{BUCKET}/o"
    return by.ask("POST", upload, {"by": by.token}, uploadType="media", name=name).status_code


def at(name: str) -> str:
    return f"{ROOT}/{BUCKET}/o/{name.replace('/', '%2F')}"


@pytest.mark.parametrize("name", OWN)
def test_a_job_writes_reads_and_deletes_what_is_its_own(name: str, job: Fake) -> None:
    assert [write(job, name), write(job, name), job.ask("GET", at(name)).status_code] == [200, 200, 200]
    assert job.ask("PATCH", at(name), {"metadata": {"by": "job"}}).ok
    assert job.ask("DELETE", at(name)).ok


@pytest.mark.parametrize("name", STACKS)
def test_a_job_reads_what_is_the_stacks_and_changes_nothing_of_it(name: str, job: Fake, fake: Fake) -> None:
    assert write(fake, name) == 200
    before = fake.call("GET", at(name))
    assert write(job, "own/copy") == 200
    copy = f"{ROOT}/{BUCKET}/o/own%2Fcopy/rewriteTo/b/{BUCKET}/o/{name.replace('/', '%2F')}"
    compose = {"sourceObjects": [{"name": "own/copy"}]}
    answers = [
        job.ask("POST", copy, {}),
        job.ask("POST", f"{at(name)}/compose", compose),
        job.ask("PATCH", at(name), {"metadata": {"by": "job"}}),
        job.ask("DELETE", at(name)),
    ]
    assert [write(job, name), *(each.status_code for each in answers)] == [403] * 5
    told = answers[-1].json()["error"]["message"]
    assert told.startswith(f"{EMAIL} does not have storage.objects.delete access to the Google Cloud Storage object.")
    assert (job.call("GET", at(name)), fake.call("GET", at(name))) == (before, before)


def test_a_job_lists_its_bucket_and_changes_neither_it_nor_who_may_what(job: Fake) -> None:
    assert job.ask("GET", f"{ROOT}/{BUCKET}/o", prefix="accel-jobs/").ok
    policy = {"bindings": [{"role": "roles/storage.admin", "members": [f"serviceAccount:{EMAIL}"]}]}
    for http, path, body in (
        ("PUT", f"{ROOT}/{BUCKET}/iam", policy),
        ("PATCH", f"{ROOT}/{BUCKET}", {"iamConfiguration": {"uniformBucketLevelAccess": {"enabled": False}}}),
        ("DELETE", f"{ROOT}/{BUCKET}", None),
    ):
        assert job.ask(http, path, body).status_code == 403, path


def test_another_account_may_nothing_and_a_token_of_none_is_refused(job: Fake, fake: Fake) -> None:
    other = f"other-0a1b2c3@{PROJECT}.iam.gserviceaccount.com"
    fake.call("POST", f"iam.googleapis.com/v1/projects/{PROJECT}/serviceAccounts", {"accountId": other.split("@")[0]})
    as_other = replace(fake, token=account_token(fake.token, other))
    assert [write(as_other, OWN[0]), as_other.ask("GET", f"{ROOT}/{BUCKET}/o").status_code] == [403, 403]
    nobody = replace(fake, token=account_token(fake.token, "nobody@elsewhere.iam.gserviceaccount.com"))
    assert write(nobody, OWN[0]) == 401


def test_a_condition_that_the_sandbox_does_not_know_is_refused() -> None:
    assert holds('resource.service == "storage.googleapis.com"', "storage.googleapis.com/Bucket", "b")
    assert not holds('resource.name != "a!b" && resource.name == "c"', "storage.googleapis.com/Bucket", "c!")
    with pytest.raises(ApiError):
        holds("request.time < timestamp()", "storage.googleapis.com/Bucket", "b")
