"""Every type that watches. The second version changes what can change."""

import json

import pulumi
import pulumi_aws as aws

VERSION = 1


def pick(first, second):
    return first if VERSION == 1 else second


log = aws.cloudwatch.LogGroup("watched", name_prefix="/aws/events/watched-")
topic = aws.sns.Topic("told", display_name=pick("one", "two"), tags={"stage": pick("a", "b")})
aws.sns.TopicSubscription("person", topic=topic.arn, protocol="email", endpoint="ml@company.com")
aws.sns.TopicSubscription(
    "queue",
    topic=topic.arn,
    protocol="sqs",
    endpoint=pick("arn:aws:sqs:us-east-1:111122223333:one", "arn:aws:sqs:us-east-1:111122223333:two"),
    raw_message_delivery=True,
)
rule = aws.cloudwatch.EventRule(
    "failed",
    description=pick("one", "two"),
    event_pattern=json.dumps({"source": ["aws.batch"], "detail": {"status": pick(["FAILED"], ["FAILED", "RUNNING"])}}),
    tags={"stage": pick("a", "b")},
)
aws.cloudwatch.EventTarget("logged", rule=rule.name, target_id="log", arn=log.arn)
aws.cloudwatch.EventTarget(
    "said",
    rule=rule.name,
    target_id="topic",
    arn=topic.arn,
    role_arn="arn:aws:iam::111122223333:role/publish",
    input_transformer=aws.cloudwatch.EventTargetInputTransformerArgs(
        input_paths={"id": "$.detail.jobId", "status": "$.detail.status"},
        input_template=pick('"<id> is <status>"', '"<id> has become <status>"'),
    ),
)
alarm = aws.cloudwatch.MetricAlarm(
    "many",
    namespace="accel/test",
    metric_name="JobEvents",
    dimensions={"Queue": "arn:q", "Status": "FAILED"},
    statistic="Sum",
    period=300,
    evaluation_periods=1,
    comparison_operator="GreaterThanOrEqualToThreshold",
    threshold=pick(10, 2.5),
    treat_missing_data="notBreaching",
    alarm_actions=[topic.arn],
    tags={"stage": pick("a", "b")},
)
aws.budgets.Budget(
    "month",
    budget_type="COST",
    time_unit="MONTHLY",
    limit_amount=pick("100", "250"),
    limit_unit="USD",
    notifications=[
        aws.budgets.BudgetNotificationArgs(
            comparison_operator="GREATER_THAN",
            notification_type=pick("ACTUAL", "FORECASTED"),
            threshold=80,
            threshold_type="PERCENTAGE",
            subscriber_email_addresses=["ml@company.com"],
        )
    ],
)
aws.sns.TopicPolicy(
    "told",
    arn=topic.arn,
    policy=pulumi.Output.json_dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Sid": pick("One", "Two"),
                    "Effect": "Allow",
                    "Principal": {"Service": "cloudwatch.amazonaws.com"},
                    "Action": "sns:Publish",
                    "Resource": topic.arn,
                    "Condition": {"ArnLike": {"aws:SourceArn": [alarm.arn]}},
                }
            ],
        }
    ),
)
aws.cloudwatch.LogMetricFilter(
    "jobs",
    log_group_name=log.name,
    pattern=pick('{ $.detail-type = "Batch Job State Change" }', '{ $.detail-type = "Batch Job Queue Blocked" }'),
    metric_transformation=aws.cloudwatch.LogMetricFilterMetricTransformationArgs(
        name="JobEvents",
        namespace="accel/test",
        value="1",
        unit="Count",
        dimensions={"Queue": "$.detail.jobQueue"},
    ),
)
aws.cloudwatch.LogResourcePolicy(
    "events",
    policy_name="accel-test-events",
    policy_document=pulumi.Output.json_dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": ["events.amazonaws.com"]},
                    "Action": pick(["logs:CreateLogStream"], ["logs:CreateLogStream", "logs:PutLogEvents"]),
                    "Resource": pulumi.Output.concat(log.arn, ":*"),
                }
            ],
        }
    ),
)
aws.cloudwatch.LogResourcePolicy(
    "of-one",
    resource_arn=log.arn,
    policy_document=pulumi.Output.json_dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": ["events.amazonaws.com"]},
                    "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
                    "Resource": pick(pulumi.Output.concat(log.arn, ":*"), pulumi.Output.concat(log.arn, ":*:*")),
                }
            ],
        }
    ),
)
trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "lambda.amazonaws.com"}}
role = aws.iam.Role("runs", assume_role_policy=json.dumps({"Version": "2012-10-17", "Statement": [trust]}))
function = aws.lambda_.Function(
    "looks",
    runtime="python3.13",
    handler="index.handler",
    role=role.arn,
    code=pulumi.AssetArchive({"index.py": pulumi.StringAsset(pick("one = 1\n", "two = 2\n"))}),
    environment=aws.lambda_.FunctionEnvironmentArgs(variables={"QUEUES": pick("[]", "[1]")}),
    timeout=pick(30, 60),
    # None of the ten executions of the sandbox's account can be reserved.
    reserved_concurrent_executions=pick(0, -1),
)
every = aws.cloudwatch.EventRule("every", schedule_expression=pick("rate(5 minutes)", "rate(10 minutes)"))
aws.lambda_.Permission(
    "every",
    action="lambda:InvokeFunction",
    function=function.name,
    principal="events.amazonaws.com",
    source_arn=every.arn,
)
aws.cloudwatch.Dashboard(
    "board",
    dashboard_name="accel-test",
    dashboard_body=json.dumps({"widgets": [{"type": "text", "properties": {"markdown": pick("one", "two")}}]}),
)
pulumi.export("topic", topic.arn)
