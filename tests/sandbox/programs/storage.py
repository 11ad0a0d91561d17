"""Every type that holds data. The second version changes what can change."""

import json

import pulumi
import pulumi_aws as aws

VERSION = 1


def pick(first, second):
    return first if VERSION == 1 else second


keep = {
    "rulePriority": 1,
    "selection": {"tagStatus": "untagged", "countType": "imageCountMoreThan", "countNumber": pick(3, 5)},
    "action": {"type": "expire"},
}
repository = aws.ecr.Repository(
    "Images",
    force_delete=True,
    image_tag_mutability=pick("MUTABLE", "IMMUTABLE"),
    image_scanning_configuration=aws.ecr.RepositoryImageScanningConfigurationArgs(scan_on_push=True),
    encryption_configurations=[aws.ecr.RepositoryEncryptionConfigurationArgs(encryption_type="AES256")],
    tags={"stage": pick("a", "b")},
)
aws.ecr.LifecyclePolicy("keep", repository=repository.name, policy=json.dumps({"rules": [keep]}))

claims = aws.dynamodb.Table(
    "claims",
    billing_mode="PAY_PER_REQUEST",
    hash_key="key",
    attributes=[aws.dynamodb.TableAttributeArgs(name="key", type="S")],
    ttl=pick(None, aws.dynamodb.TableTtlArgs(attribute_name="expires", enabled=True)),
    point_in_time_recovery=aws.dynamodb.TablePointInTimeRecoveryArgs(enabled=True),
    tags={"stage": pick("a", "b")},
)
indexed = aws.dynamodb.Table(
    "indexed",
    read_capacity=pick(1, 2),
    write_capacity=1,
    hash_key=pick("a", "b"),
    range_key="c",
    attributes=[aws.dynamodb.TableAttributeArgs(name=name, type="S") for name in (pick("a", "b"), "c")],
)
aws.ssm.Parameter(
    "targets",
    type="String",
    value=repository.arn.apply(lambda arn: json.dumps({"image": arn, "v": VERSION})),
    tags={"stage": pick("a", "b")},
)
aws.ssm.Parameter("token", type="SecureString", value=pulumi.Output.secret("hidden-1"))
secret = aws.secretsmanager.Secret("secret", recovery_window_in_days=0, description=pick("one", "two"))
version = aws.secretsmanager.SecretVersion(
    "secret", secret_id=secret.id, secret_string=pulumi.Output.secret(pick("hidden-2", "hidden-3"))
)

bucket = aws.s3.Bucket("Data", force_destroy=True, tags={"stage": pick("a", "b")})
aws.s3.BucketVersioning(
    "data",
    bucket=bucket.id,
    versioning_configuration=aws.s3.BucketVersioningVersioningConfigurationArgs(status=pick("Enabled", "Suspended")),
)
aws.s3.BucketPublicAccessBlock("data", bucket=bucket.id, block_public_acls=True, block_public_policy=pick(False, True))
aws.s3.BucketServerSideEncryptionConfiguration(
    "data",
    bucket=bucket.id,
    rules=[
        aws.s3.BucketServerSideEncryptionConfigurationRuleArgs(
            apply_server_side_encryption_by_default=aws.s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs(
                sse_algorithm="AES256"
            ),
            bucket_key_enabled=pick(False, True),
        )
    ],
)
aws.s3.BucketLifecycleConfiguration(
    "data",
    bucket=bucket.id,
    rules=[
        aws.s3.BucketLifecycleConfigurationRuleArgs(
            id="old",
            status="Enabled",
            filter=aws.s3.BucketLifecycleConfigurationRuleFilterArgs(prefix="tmp/"),
            expiration=aws.s3.BucketLifecycleConfigurationRuleExpirationArgs(days=pick(30, 60)),
            abort_incomplete_multipart_upload=aws.s3.BucketLifecycleConfigurationRuleAbortIncompleteMultipartUploadArgs(
                days_after_initiation=pick(7, 3)
            ),
        )
    ],
)
allow = {
    "Effect": "Deny",
    "Principal": "*",
    "Action": "s3:PutObjectAcl",
    "Resource": "*",
    "Sid": pick("a", "b"),
}
aws.s3.BucketPolicy("data", bucket=bucket.id, policy=json.dumps({"Version": "2012-10-17", "Statement": [allow]}))
pulumi.export("bucket", bucket.bucket)
pulumi.export("table", claims.name)
pulumi.export("url", repository.repository_url)
pulumi.export(
    "parameter",
    aws.ssm.get_parameter_output(
        name="/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/recommended/image_id"
    ).value,
)
