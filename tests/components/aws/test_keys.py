"""What the roles of jobs may do with customer keys of KMS, and who is told which key policy is needed."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from components.aws.batch_roles import BatchRoles, BatchRolesArgs, BatchRolesSpec
from components.aws.bucket_mounts import Access
from components.aws.job_log import JobLog, JobLogSpec
from components.aws.launch_template import LaunchTemplate, LaunchTemplateArgs, LaunchTemplateSpec
from tests.laws import components as make
from tests.support import memory
from tests.support.iam import Ask, allows

KEY = "arn:aws:kms:us-east-1:210020003000:key/1b2c"
CHINESE = "arn:aws-cn:kms:cn-north-1:210020003000:key/3d4e"
SECRET = "arn:aws:secretsmanager:us-east-1:210020003000:secret:wandb-AbCdEf"


def documents(mounted: Mapping[str, Access] | None = None, **values: Any) -> dict[str, Any]:
    """Each role's own policy, by the end of its name."""

    def program() -> None:
        spec = BatchRolesSpec.model_validate({"kms_key_arns": [KEY, CHINESE], **values})
        log = make.out("arn:log")
        BatchRoles(
            "one", BatchRolesArgs(spec=spec, log_group_arn=log, repository_arns=[], mounted_buckets=mounted or {})
        )

    policies = memory.run(program).of("iam/rolePolicy:RolePolicy")
    return {one.name.removeprefix("one-"): json.loads(one.inputs["policy"]) for one in policies}


def may(document: Any, action: str, service: str, key: str = KEY) -> bool:
    return document is not None and allows([document], Ask(action, key, {"kms:ViaService": service}))


S3, PARAMETERS, SECRETS = (f"{service}.us-east-1.amazonaws.com" for service in ("s3", "ssm", "secretsmanager"))


def test_jobs_use_keys_through_s3_alone() -> None:
    job = documents(read_buckets=["inputs"])["job"]
    assert may(job, "kms:Decrypt", S3) and not may(job, "kms:GenerateDataKey", S3)
    assert not may(job, "kms:Decrypt", SECRETS) and not allows([job], Ask("kms:Decrypt", KEY))
    assert not may(job, "kms:Decrypt", S3, KEY.replace("1b2c", "5f6a"))
    assert may(job, "kms:Decrypt", "s3.cn-north-1.amazonaws.com.cn", CHINESE)
    assert not may(job, "kms:Decrypt", S3, CHINESE)
    assert may(documents(write_buckets=["outputs"])["job"], "kms:GenerateDataKey", S3)


def test_instances_use_keys_for_the_buckets_that_they_mount() -> None:
    assert "instance" not in documents(read_buckets=["inputs"])
    assert may(documents({"data": "read-only"})["instance"], "kms:Decrypt", S3)
    assert not may(documents({"data": "read-only"})["instance"], "kms:GenerateDataKey", S3)
    assert may(documents({"data": "read-write"})["instance"], "kms:GenerateDataKey", S3)


def test_the_execution_role_uses_keys_for_secrets_and_parameters() -> None:
    execution = documents(secrets=[SECRET])["execution"]
    assert may(execution, "kms:Decrypt", SECRETS) and may(execution, "kms:Decrypt", PARAMETERS)
    assert not may(execution, "kms:Decrypt", S3) and not may(execution, "kms:GenerateDataKey", SECRETS)
    assert not may(documents()["execution"], "kms:Decrypt", SECRETS)


def test_an_alias_is_refused() -> None:
    with pytest.raises(ValueError, match=r"alias/mine.*not the ARN of a key"):
        BatchRolesSpec(kms_key_arns=["arn:aws:kms:us-east-1:210020003000:alias/mine"])


def test_which_key_policy_is_needed_is_said(caplog: pytest.LogCaptureFixture) -> None:
    memory.run(lambda: LaunchTemplate("one", LaunchTemplateArgs(spec=LaunchTemplateSpec(kms_key_arn=KEY))))
    assert "AWSServiceRoleForAutoScaling" in caplog.text and "[aws.kms.volumes]" in caplog.text
    caplog.clear()
    memory.run(lambda: JobLog("one", JobLogSpec(kms_key_arn=KEY)))
    assert "logs.us-east-1.amazonaws.com" in caplog.text and "[aws.kms.logs]" in caplog.text
    caplog.clear()
    memory.run(lambda: JobLog("one", JobLogSpec()))
    memory.run(lambda: LaunchTemplate("one", LaunchTemplateArgs(spec=LaunchTemplateSpec())))
    assert "aws.kms" not in caplog.text
