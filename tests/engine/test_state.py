"""The state of a stack in a bucket, its secrets under keys of KMS: the real engine against the sandbox's S3 and KMS."""

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.engine import Engine, Sandbox

pytestmark = pytest.mark.engine
SECRETS = ("pLaNtEdInTheConfig", "pLaNtEdInAResource")

PROGRAM = """
import pulumi
import pulumi_aws as aws

config = pulumi.Config("own")
aws.ssm.Parameter("kept", type="String", value=config.require_secret("resource"))
pulumi.export("token", config.require_secret("config"))
"""


class Bucket:
    """The bucket of a state, and two keys."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.name = f"state-{os.urandom(4).hex()}"
        self.s3, self.kms = sandbox.client("s3"), sandbox.client("kms")
        self.s3.create_bucket(Bucket=self.name)
        self.keys: dict[str, str] = {alias: self._key(f"{self.name}-{alias}") for alias in ("first", "second")}

    def _key(self, alias: str) -> str:
        key = self.kms.create_key()["KeyMetadata"]["KeyId"]
        self.kms.create_alias(AliasName=f"alias/{alias}", TargetKeyId=key)
        return key

    def provider(self, alias: str) -> str:
        return f"awskms://alias/{self.name}-{alias}?region=us-east-1"

    def objects(self) -> dict[str, str]:
        found = self.s3.list_objects_v2(Bucket=self.name)["Contents"]
        return {
            each["Key"]: self.s3.get_object(Bucket=self.name, Key=each["Key"])["Body"].read().decode() for each in found
        }


class Kept(Engine):
    """A program whose state is in the bucket, and whose secrets are under the first key."""

    def __init__(self, folder: Path, sandbox: Sandbox, bucket: Bucket) -> None:
        self.bucket = bucket
        url = f"s3://{bucket.name}?region=us-east-1&s3ForcePathStyle=true"
        super().__init__(folder, sandbox, PROGRAM, environ={"PULUMI_BACKEND_URL": url, "PULUMI_CONFIG_PASSPHRASE": ""})

    def run(self, *arguments: str, check: bool = True) -> Any:
        if arguments[:3] == ("stack", "select", "--create"):
            arguments += ("--secrets-provider", self.bucket.provider("first"))
        return super().run(*arguments, check=check)

    def opened_by(self) -> set[str]:
        """The keys of KMS under which the data keys of the stack's file and of its state are."""
        config = yaml.safe_load((self.folder / f"Pulumi.{self.stack}.yaml").read_text())["encryptedkey"]
        state = json.loads(self.bucket.objects()[f".pulumi/stacks/{self.project}/{self.stack}.json"])
        kept = state["checkpoint"]["latest"]["secrets_providers"]["state"]["encryptedkey"]
        # The sandbox's ciphertexts begin with the id of their key.
        return {base64.b64decode(text)[:36].decode() for text in (config, kept)}


@pytest.fixture
def kept(tmp_path: Path, sandbox: Sandbox) -> Iterator[Kept]:
    own = Kept(tmp_path / "own", sandbox, Bucket(sandbox))
    yield own
    own.destroy(check=False)


def test_a_state_in_a_bucket_with_secrets_under_a_key_that_is_changed(kept: Kept) -> None:
    for name, value in zip(("config", "resource"), SECRETS, strict=True):
        kept.run("config", "set", "--secret", f"own:{name}", value, "--stack", kept.stack)
    told = [kept.preview().text, kept.run("preview", "--json", "--stack", kept.stack).stdout]
    told += [(kept.folder / "events.json").read_text(), kept.up().text, (kept.folder / "events.json").read_text()]
    told += [kept.run("stack", "export", "--stack", kept.stack).stdout, *kept.bucket.objects().values()]
    told += [(kept.folder / f"Pulumi.{kept.stack}.yaml").read_text()]
    assert [value for value in SECRETS if value in "".join(told)] == []
    assert f".pulumi/stacks/{kept.project}/{kept.stack}.json" in kept.bucket.objects()

    # Another key takes over: the data key of config and state is one that it alone opens.
    assert kept.opened_by() == {kept.bucket.keys["first"]}
    kept.run("stack", "change-secrets-provider", kept.bucket.provider("second"), "--stack", kept.stack)
    assert kept.opened_by() == {kept.bucket.keys["second"]}
    shown = json.loads(kept.run("stack", "output", "--json", "--show-secrets", "--stack", kept.stack).stdout)
    assert shown == {"token": SECRETS[0]}
    assert kept.preview().ops("same") == {}
    assert [value for value in SECRETS if value in "".join(kept.bucket.objects().values())] == []
