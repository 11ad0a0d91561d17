"""Which IAM actions a call needs and on what, where it is not `<service>:<Operation>` on anything. Sources: the service
authorization reference (https://docs.aws.amazon.com/service-authorization/latest/reference/), as cfn-lint has it, and
https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-with-s3-policy-actions.html for S3."""

from collections.abc import Mapping

PREFIXES = {"monitoring": "cloudwatch"}
"""By the name that requests are signed with."""

FREE = {("sts", "GetCallerIdentity"), ("ec2", "DescribeTags")}
"""The first needs no permission. Source: https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
The second only our stand-in for the provider calls, for what moto does not list."""

ACTIONS: Mapping[tuple[str, str], str] = {
    ("lambda", "Invoke"): "lambda:InvokeFunction",
    ("budgets", "DescribeBudget"): "budgets:ViewBudget",
    ("budgets", "DescribeBudgets"): "budgets:ViewBudget",
    ("budgets", "DescribeNotificationsForBudget"): "budgets:ViewBudget",
    ("budgets", "DescribeSubscribersForNotification"): "budgets:ViewBudget",
    **{
        ("budgets", f"{verb}{thing}"): "budgets:ModifyBudget"
        for verb in ("Create", "Update", "Delete")
        for thing in ("Budget", "Notification", "Subscriber")
    },
    ("s3", "HeadBucket"): "s3:ListBucket",
    ("s3", "ListObjects"): "s3:ListBucket",
    ("s3", "ListObjectsV2"): "s3:ListBucket",
    ("s3", "ListObjectVersions"): "s3:ListBucketVersions",
    ("s3", "ListBuckets"): "s3:ListAllMyBuckets",
    ("s3", "HeadObject"): "s3:GetObject",
    ("s3", "DeleteObjects"): "s3:DeleteObject",
    ("s3", "CopyObject"): "s3:PutObject",
    ("s3", "CreateMultipartUpload"): "s3:PutObject",
    ("s3", "UploadPart"): "s3:PutObject",
    ("s3", "CompleteMultipartUpload"): "s3:PutObject",
    ("s3", "DeleteBucketTagging"): "s3:PutBucketTagging",
    ("s3", "GetBucketLifecycleConfiguration"): "s3:GetLifecycleConfiguration",
    ("s3", "PutBucketLifecycleConfiguration"): "s3:PutLifecycleConfiguration",
    ("s3", "DeleteBucketLifecycle"): "s3:PutLifecycleConfiguration",
    ("s3", "GetBucketEncryption"): "s3:GetEncryptionConfiguration",
    ("s3", "PutBucketEncryption"): "s3:PutEncryptionConfiguration",
    ("s3", "DeleteBucketEncryption"): "s3:PutEncryptionConfiguration",
    ("s3", "GetPublicAccessBlock"): "s3:GetBucketPublicAccessBlock",
    ("s3", "PutPublicAccessBlock"): "s3:PutBucketPublicAccessBlock",
    ("s3", "DeletePublicAccessBlock"): "s3:PutBucketPublicAccessBlock",
}

TAGGING = {
    ("ec2", ""): "ec2:CreateTags",
    ("ssm", ""): "ssm:AddTagsToResource",
    ("iam", "CreateRole"): "iam:TagRole",
    ("iam", "CreatePolicy"): "iam:TagPolicy",
    ("iam", "CreateInstanceProfile"): "iam:TagInstanceProfile",
}
"""What a request with tags needs besides, of an operation or of all; elsewhere it is `<service>:TagResource`."""
TAGS = r"(Resource)?Tags?(Specification)?(\.member)?(\.1\b.*)?|tags"

ANYWHERE = {
    *("batch:DescribeComputeEnvironments", "batch:DescribeJobDefinitions", "batch:DescribeJobQueues"),
    *("batch:DescribeJobs", "batch:DescribeSchedulingPolicies", "batch:ListJobs", "logs:DescribeLogGroups"),
    *("logs:DeleteResourcePolicy", "logs:DescribeResourcePolicies", "logs:PutResourcePolicy"),
    *("ssm:DescribeParameters", "s3:ListAllMyBuckets"),
}
"""Actions for which IAM knows no resource: a policy has to allow them on `*`."""

RESOURCES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "batch": (
        ("computeEnvironmentName", "compute-environment/{}"),
        ("jobQueueName", "job-queue/{}"),
        ("jobDefinitionName", "job-definition/{}"),
        ("computeEnvironment", "compute-environment/{}"),
        ("jobQueue", "job-queue/{}"),
        ("jobDefinition", "job-definition/{}"),
        ("name", "scheduling-policy/{}"),
        ("resourceArn || arn", "{}"),
        ("jobId", "job/{}"),
    ),
    "budgets": (("BudgetName || Budget.BudgetName || NewBudget.BudgetName", ":budget/{}"), ("ResourceARN", "{}")),
    "cloudwatch": (
        ("AlarmName || AlarmNames", "alarm:{}"),
        ("DashboardName || DashboardNames", ":dashboard/{}"),
        ("ResourceARN", "{}"),
    ),
    "dynamodb": (("TableName", "table/{}"), ("ResourceArn", "{}")),
    "ecr": (("repositoryName || repositoryNames", "repository/{}"), ("resourceArn", "{}")),
    "events": (("Name || Rule", "rule/{}"), ("ResourceARN", "{}")),
    "iam": (
        ("InstanceProfileName", ":instance-profile/{}"),
        ("RoleName", ":role/{}"),
        ("PolicyArn", "{}"),
        ("PolicyName", ":policy/{}"),
    ),
    "lambda": (("FunctionName", "function:{}"), ("Resource", "{}")),
    "logs": (
        ("logGroupName && logStreamName && join(':log-stream:', [logGroupName, logStreamName])", "log-group:{}"),
        ("logGroupName", "log-group:{}"),
        ("resourceArn", "{}"),
    ),
    "s3": (("Bucket && Key && join('/', [Bucket, Key]) || Bucket", "arn:{partition}:s3:::{}"),),
    "sns": (("TopicArn || SubscriptionArn || ResourceArn", "{}"), ("Name", "{}")),
    "ssm": (("Name || Names || ResourceId || Path", "parameter{}"),),
}
"""The parameter that says on what a call acts, the first that a request has, and how the ARN ends after the account; it
has no region where that begins with a colon. A value that is an ARN is one."""

SUBMITTED = (("jobQueue", "job-queue/{}"), ("jobDefinition", "job-definition/{}"), ("'new'", "job/{}"))
"""On all of these SubmitJob acts, and the tags of a request on the last, which has no id yet."""

PASSES: Mapping[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ("batch", "CreateComputeEnvironment"): (
        ("serviceRole", "batch.amazonaws.com"),
        ("computeResources.instanceRole", "ec2.amazonaws.com"),
    ),
    ("batch", "UpdateComputeEnvironment"): (("computeResources.instanceRole", "ec2.amazonaws.com"),),
    ("batch", "RegisterJobDefinition"): (
        ("containerProperties.[jobRoleArn, executionRoleArn]", "ecs-tasks.amazonaws.com"),
    ),
    ("lambda", "CreateFunction"): (("Role", "lambda.amazonaws.com"),),
    ("lambda", "UpdateFunctionConfiguration"): (("Role", "lambda.amazonaws.com"),),
    ("events", "PutTargets"): (("Targets[].RoleArn", "events.amazonaws.com"),),
    ("ec2", "CreateFlowLogs"): (("DeliverLogsPermissionArn", "vpc-flow-logs.amazonaws.com"),),
    ("iam", "AddRoleToInstanceProfile"): (("RoleName", "ec2.amazonaws.com"),),
}
"""Roles that a call hands to a service, which needs iam:PassRole for them. Source:
https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_use_passrole.html"""
