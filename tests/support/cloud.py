"""What is in the sandbox's cloud, over every API that the project touches."""

from typing import Any

from sandbox.aws.__main__ import ACCOUNT_ID

from .engine import Sandbox

OWN = [{"Key": "Path", "Option": "Recursive", "Values": ["/accel"]}]
"""The project's parameters: moto lists AWS's thousands of public ones too, once somebody has asked for one of them."""


def listing(sandbox: Sandbox, region: str) -> dict[str, list[str]]:
    """Names or ids by kind, of one region; IAM has none, so its kinds are those of the whole account.

    Definitions are listed while they are active: AWS keeps inactive revisions for 180 days.
    """
    batch, ec2, iam = (sandbox.client(service, region) for service in ("batch", "ec2", "iam"))

    def ids(answer: dict[str, Any], key: str, name: str) -> list[str]:
        return sorted(one[name] for one in answer[key])

    events, sns, watch, logs = (sandbox.client(name, region) for name in ("events", "sns", "cloudwatch", "logs"))
    own_vpcs = [one["VpcId"] for one in ec2.describe_vpcs()["Vpcs"]]
    return {
        "environments": ids(batch.describe_compute_environments(), "computeEnvironments", "computeEnvironmentName"),
        "queues": ids(batch.describe_job_queues(), "jobQueues", "jobQueueName"),
        "definitions": ids(batch.describe_job_definitions(status="ACTIVE"), "jobDefinitions", "jobDefinitionArn"),
        "vpcs": sorted(own_vpcs),
        "subnets": ids(ec2.describe_subnets(), "Subnets", "SubnetId"),
        "groups": ids(ec2.describe_security_groups(), "SecurityGroups", "GroupId"),
        "tables": ids(ec2.describe_route_tables(), "RouteTables", "RouteTableId"),
        "gateways": ids(ec2.describe_internet_gateways(), "InternetGateways", "InternetGatewayId"),
        "nat": sorted(
            one["NatGatewayId"] for one in ec2.describe_nat_gateways()["NatGateways"] if one["State"] != "deleted"
        ),
        "addresses": ids(ec2.describe_addresses(), "Addresses", "AllocationId"),
        "endpoints": sorted(
            one["VpcEndpointId"] for one in ec2.describe_vpc_endpoints()["VpcEndpoints"] if one["State"] != "deleted"
        ),
        "templates": ids(ec2.describe_launch_templates(), "LaunchTemplates", "LaunchTemplateId"),
        "placement groups": ids(ec2.describe_placement_groups(), "PlacementGroups", "GroupName"),
        "flow logs": ids(ec2.describe_flow_logs(), "FlowLogs", "FlowLogId"),
        "roles": sorted(one["RoleName"] for one in iam.list_roles()["Roles"] if "aws-service-role" not in one["Path"]),
        "policies": ids(iam.list_policies(Scope="Local"), "Policies", "PolicyName"),
        "profiles": ids(iam.list_instance_profiles(), "InstanceProfiles", "InstanceProfileName"),
        "log groups": ids(logs.describe_log_groups(), "logGroups", "logGroupName"),
        "log policies": ids(logs.describe_resource_policies(), "resourcePolicies", "policyName"),
        "metric filters": ids(logs.describe_metric_filters(), "metricFilters", "filterName"),
        "budgets": ids(sandbox.client("budgets").describe_budgets(AccountId=ACCOUNT_ID), "Budgets", "BudgetName"),
        "rules": ids(events.list_rules(), "Rules", "Name"),
        "topics": ids(sns.list_topics(), "Topics", "TopicArn"),
        "subscriptions": ids(sns.list_subscriptions(), "Subscriptions", "SubscriptionArn"),
        "alarms": ids(watch.describe_alarms(), "MetricAlarms", "AlarmName"),
        "dashboards": ids(watch.list_dashboards(), "DashboardEntries", "DashboardName"),
        "functions": ids(sandbox.client("lambda", region).list_functions(), "Functions", "FunctionName"),
        "repositories": ids(sandbox.client("ecr", region).describe_repositories(), "repositories", "repositoryName"),
        "dynamodb": sorted(sandbox.client("dynamodb", region).list_tables()["TableNames"]),
        "parameters": ids(
            sandbox.client("ssm", region).describe_parameters(ParameterFilters=OWN), "Parameters", "Name"
        ),
    }
