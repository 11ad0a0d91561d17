"""A law for every bucket of a component: parts of uploads that were never completed are not kept, and not paid for."""

from collections.abc import Iterator

import pytest

from tests.support import memory

from .components import MAKERS
from .test_components import Maker


def with_buckets() -> Iterator[tuple[str, Maker]]:
    for name, maker in MAKERS.items():
        seen = memory.run(lambda maker=maker: maker("one"))
        if seen.of("s3/bucket:Bucket") or seen.of("storage/bucket:Bucket"):
            yield name, maker


BUCKETS = dict(with_buckets())


def test_the_law_sees_buckets_of_both_clouds() -> None:
    assert {"code-bucket"} < set(BUCKETS)


@pytest.mark.parametrize("make", BUCKETS.values(), ids=BUCKETS)
def test_a_bucket_drops_parts_of_uploads(make: Maker) -> None:
    seen = memory.run(lambda: make("one"))
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
