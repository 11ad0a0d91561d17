"""Cases of the policies of who may do what."""

import json

from policy.resource import UNSEEN

from .shapes import GCE, POLICY, TPU, Case, allows, each, node, one, trusts

ROLE = "arn:aws:iam::111122223333:role/job"
MANAGED = "arn:aws:iam::aws:policy"
PASSED = {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}


CASES: dict[str, Case] = {
    "no-wildcard-iam": each(
        [
            allows(["batch:SubmitJob"], "arn:aws:batch:us-east-1:1:job-queue/gpu"),
            allows(["batch:DescribeJobs", "ecr:GetAuthorizationToken"], "*"),
            allows("cloudwatch:PutMetricData", "*", Condition={"StringEquals": {"cloudwatch:namespace": "accel"}}),
            one("aws:iam/rolePolicyAttachment:RolePolicyAttachment", policyArn=f"{MANAGED}/ReadOnlyAccess"),
            one(POLICY, policy=json.dumps({"Statement": {"Effect": "Deny", "Action": "*", "Resource": "*"}})),
            one("aws:iam/role:Role", assumeRolePolicy="{}"),
        ],
        [
            (allows("*", "*"), "policy.Statement[0].Action has *"),
            (allows(["s3:*"], "arn:aws:s3:::data"), "s3:*"),
            (allows("s3:?*", "arn:aws:s3:::data"), "s3:?*"),
            (allows("s3:GetObject", "*"), '"*" for s3:GetObject'),
            (allows(["batch:DescribeJobs", "batch:SubmitJob"], "arn:aws:*"), '"*" for batch:SubmitJob'),
            (allows("cloudwatch:PutMetricData", "*"), '"*" for cloudwatch:PutMetricData'),
            (
                allows("cloudwatch:PutMetricData", "*", Condition={"StringNotLike": {"cloudwatch:namespace": "a"}}),
                '"*" for cloudwatch:PutMetricData',
            ),
            (
                one("aws:iam/rolePolicyAttachment:RolePolicyAttachment", policyArn=f"{MANAGED}/AdministratorAccess"),
                "policyArn has",
            ),
            (one("aws:iam/role:Role", managedPolicyArns=[f"{MANAGED}/IAMFullAccess"]), "managedPolicyArns has"),
            (allows(["batch:DescribeJobs", "batch:TerminateJob"], "*"), '"*" for batch:TerminateJob'),
            (
                one(POLICY, policy=json.dumps({"Statement": [{"Effect": "Allow", "NotAction": "iam:*"}]})),
                "NotAction allows all but",
            ),
            (
                one("aws:iam/role:Role", inlinePolicies=[{"policy": allows("*", "*").properties["policy"]}]),
                "inlinePolicies[0].policy.Statement[0].Action has *",
            ),
            (one(POLICY, policy="{"), "policy is not JSON"),
        ],
        [(one(POLICY, policy=UNSEEN), "policy")],
    ),
    "pass-role-by-arn": each(
        [
            allows("iam:PassRole", [ROLE], Condition=PASSED),
            allows("iam:GetRole", "*"),
            allows("iam:PassRole", "arn:aws-cn:iam::111122223333:role/path/job", Condition=PASSED),
        ],
        [
            (allows("iam:PassRole", "*", Condition=PASSED), "lets * be passed"),
            (allows("iam:Pass*", ["arn:aws:iam::111122223333:role/*"], Condition=PASSED), "role/* be passed"),
            (allows("*", [ROLE]), "names no service"),
            (
                allows("iam:PassRole", [ROLE], Condition={"StringNotEquals": {**PASSED["StringEquals"]}}),
                "names no service",
            ),
            (
                allows("iam:PassRole", [ROLE], Condition={"StringLike": {"iam:PassedToService": "*"}}),
                "names no service",
            ),
        ],
        [(one("aws:iam/rolePolicy:RolePolicy", policy=UNSEEN), "policy")],
    ),
    "no-open-trust": each(
        [
            trusts({"Service": "ec2.amazonaws.com"}),
            trusts({"AWS": ["arn:aws:iam::111122223333:root"]}),
            trusts("*", Condition={"StringEquals": {"aws:PrincipalOrgID": "o-1"}}),
            one("aws:iam/role:Role", assumeRolePolicy="{}"),
        ],
        [
            (trusts("*"), "assumeRolePolicy.Statement[0].Principal is *"),
            (trusts({"AWS": ["arn:aws:iam::111122223333:root", "*"]}), "every account may take the role"),
        ],
        [(one("aws:iam/role:Role", assumeRolePolicy=UNSEEN), "assumeRolePolicy")],
    ),
    "no-basic-roles": each(
        [
            one("gcp:projects/iAMMember:IAMMember", role="roles/logging.logWriter"),
            one("gcp:projects/iAMMember:IAMMember", role="projects/p/roles/editor"),
        ],
        [
            (one("gcp:projects/iAMMember:IAMMember", role="roles/editor"), "role is roles/editor"),
            (one("gcp:folder/iAMBinding:IAMBinding", role="roles/owner"), "role is roles/owner"),
        ],
        [(one("gcp:projects/iAMMember:IAMMember", role=UNSEEN), "role")],
    ),
    "no-default-service-account": each(
        [node(serviceAccount="nodes@p.iam.gserviceaccount.com"), one(TPU, serviceAccount={"email": "tpu@p.iam"})],
        [
            (node(machineType="e2-standard-4"), "nodeConfig.serviceAccount is not set"),
            (one(GCE, serviceAccount={"email": "12345-compute@developer.gserviceaccount.com"}), "default account"),
            (one(TPU), "serviceAccount.email is not set"),
        ],
        [(node(serviceAccount=UNSEEN), "nodeConfig.serviceAccount")],
    ),
}
