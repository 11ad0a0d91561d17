"""A law for every bucket of a component: parts of uploads that were never completed are not kept, and not paid for."""

import pytest

from .components import MAKERS, alone
from .test_components import Maker

BUCKETS = {
    name: MAKERS[name]
    for name in ("vm-jobs", "batch-jobs", "vertex-jobs", "gke-code", "google-budget-stop", "code-bucket")
}


def test_the_law_sees_every_bucket_of_both_clouds() -> None:
    kinds = ("s3/bucket:Bucket", "storage/bucket:Bucket")
    made = {name for name, make in MAKERS.items() if any(alone(make)[1].of(kind) for kind in kinds)}
    assert made == set(BUCKETS)


@pytest.mark.parametrize("make", BUCKETS.values(), ids=BUCKETS)
def test_a_bucket_drops_parts_of_uploads(make: Maker) -> None:
    _, seen = alone(make)
    configured = {
        one.inputs["bucket"]: one.inputs["rules"]
        for one in seen.of("s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration")
    }
    for bucket in seen.of("s3/bucket:Bucket"):
        rules = configured[f"{bucket.name}-id"]
        assert [rule["abortIncompleteMultipartUpload"]["daysAfterInitiation"] for rule in rules] == [7]
    for bucket in seen.of("storage/bucket:Bucket"):
        rules = bucket.inputs.get("lifecycleRules", [])
        found = [rule for rule in rules if rule["action"]["type"] == "AbortIncompleteMultipartUpload"]
        # Cloud Storage takes no other conditions of such a rule but prefixes and suffixes.
        assert [rule["condition"] for rule in found] == [{"age": 7}], bucket.urn
