"""Buckets for code that jobs are sent with, as environments make them."""

import copy
import json
from typing import Any

import pytest

from accel.contract.targets import AwsBatchTarget, read_one
from stacks.environment.config import ConfigFaults, load_environment
from tests.support.iam import Ask, allows

from .test_config import put
from .test_environment import ran
from .test_gcp_config import put as put_gcp

WORKLOADS: dict[str, Any] = {
    "namespaces": {"jobs": {"namespace": "training", "service_account": "trainer", "account": "training"}},
    "targets": {"gke": {"namespace": "jobs"}},
    "code": {},
}


def test_aws_has_a_bucket_that_jobs_read_and_those_who_submit_write() -> None:
    seen = ran(put("owner", "ml"))
    target = read_one(seen.exports["targets"]["gpu"])
    assert isinstance(target, AwsBatchTarget) and target.code_bucket
    (bucket,) = seen.of("s3/bucket:Bucket")
    assert bucket.inputs["forceDestroy"] is True
    (closed,) = seen.of("s3/bucketPublicAccessBlock:BucketPublicAccessBlock")
    assert all(closed.inputs[name] for name in ("blockPublicAcls", "blockPublicPolicy", "restrictPublicBuckets"))
    (kept,) = seen.of("s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration")
    (rule,) = kept.inputs["rules"]
    assert (rule["filter"], rule["expiration"]) == ({"prefix": "accel-jobs/code/"}, {"days": 90})
    policies = {one.name: json.loads(one.inputs["policy"]) for one in seen.of("iam/rolePolicy:RolePolicy")}
    (statement,) = [one for one in policies["batch-job"]["Statement"] if one["Action"] == ["s3:GetObject"]]
    code = statement["Resource"].removesuffix("*") + "0f3c.tar.gz"
    assert "/accel-jobs/code/" in code
    assert allows([policies["batch-job"]], Ask("s3:GetObject", code))
    assert not allows([policies["batch-job"]], Ask("s3:PutObject", code))
    assert not allows([policies["batch-job"]], Ask("s3:GetObject", code.replace("/code/", "/other/")))


def test_aws_without_one() -> None:
    seen = ran(put("aws.code", None))
    assert not seen.of("s3/bucket:Bucket")
    target = read_one(seen.exports["targets"]["gpu"])
    assert isinstance(target, AwsBatchTarget) and target.code_bucket is None


def test_gke_needs_an_account_for_each_namespace_of_a_target() -> None:
    load_environment(put_gcp("gcp.workloads", WORKLOADS))
    without = copy.deepcopy(WORKLOADS)
    del without["namespaces"]["jobs"]["account"]
    with pytest.raises(ConfigFaults, match=r"workloads\.namespaces\.jobs\.account: is missing, and code is read as"):
        load_environment(put_gcp("gcp.workloads", without))
    load_environment(put_gcp("gcp.workloads", {**without, "code": None}))
