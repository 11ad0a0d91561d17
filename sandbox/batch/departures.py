"""Where this Batch does not do as moto 5.2.1 does, because AWS does not: what, by which source, shown where.

A source `model:Shape` is the documentation of that shape in botocore's own service model of Batch.
"""

from typing import NamedTuple

GUIDE = "https://docs.aws.amazon.com/batch/latest/userguide/"
STUCK = GUIDE + "job_stuck_in_runnable_misconfiguration.html"


class Departure(NamedTuple):
    """One row; `test` is a function of tests/sandbox/test_batch*.py."""

    id: str
    aws: str
    source: str
    test: str


DEPARTURES = (
    # Compute environments
    Departure(
        "service-role-optional",
        "CreateComputeEnvironment without serviceRole uses the service-linked role",
        "model:CreateComputeEnvironmentRequest",
        "test_an_environment_settles_and_is_filled_as_on_aws",
    ),
    Departure(
        "environment-settles",
        "an environment is CREATING or UPDATING before it is VALID",
        "model:ComputeEnvironmentDetail",
        "test_an_environment_settles_and_is_filled_as_on_aws",
    ),
    Departure(
        "environment-invalid",
        "a profile, subnet or template that is not there makes the environment INVALID after it was accepted",
        GUIDE + "invalid_compute_environment.html",
        "test_an_environment_that_names_what_is_not_there_is_invalid",
    ),
    Departure(
        "instance-profile-name",
        "instanceRole is the name or the ARN of an instance profile; a role's ARN is refused",
        "https://github.com/hashicorp/terraform-provider-aws/pull/16230",
        "test_create_compute_environment_refuses",
    ),
    Departure(
        "image-types",
        "Amazon Linux 2 is blocked since June 30, 2026; ECS_AL2023_NVIDIA runs no p3, g3 and Graviton",
        "model:Ec2Configuration",
        "test_create_compute_environment_refuses",
    ),
    Departure(
        "environment-update",
        "UpdateComputeEnvironment changes what it is given; more than scaling needs another strategy than "
        "BEST_FIT and the service-linked role",
        GUIDE + "infrastructure-updates.html",
        "test_an_update_scales_or_replaces_as_the_role_and_strategy_allow",
    ),
    Departure(
        "no-manual-scale-down",
        "desiredvCpus below its present value is refused",
        GUIDE + "error-desired-vcpus-update.html",
        "test_desired_vcpus_are_not_lowered_by_hand",
    ),
    Departure(
        "environment-in-use",
        "an environment that a queue names, or that is not DISABLED, is not deleted",
        "https://github.com/hashicorp/terraform-provider-aws/issues/2044",
        "test_what_is_in_use_or_enabled_is_not_deleted",
    ),
    # Queues
    Departure(
        "queue-states",
        "a queue is UPDATING for a while, can't be deleted then, and goes only some time after its deletion",
        "https://github.com/astronomer/astronomer-providers/issues/413",
        "test_what_is_in_use_or_enabled_is_not_deleted",
    ),
    Departure(
        "queue-environments",
        "up to three VALID environments of one architecture",
        "model:CreateJobQueueRequest",
        "test_create_job_queue_refuses",
    ),
    Departure(
        "queue-time-limits",
        "jobStateTimeLimitActions are kept, and cancel a job that blocks the head of the queue",
        GUIDE + "job_stuck_in_runnable_time_limit_actions.html",
        "test_a_time_limit_cancels_the_head_of_the_queue_and_frees_the_rest",
    ),
    Departure(
        "snapshot",
        "GetJobQueueSnapshot lists the first RUNNABLE jobs",
        "model:FrontOfQueueDetail",
        "test_a_job_that_nothing_holds_waits_and_says_why",
    ),
    # Definitions and lists
    Departure(
        "definition-properties",
        "every property of a definition is kept, nodeProperties too",
        "model:JobDefinition",
        "test_multi_node_definitions_are_kept_whole",
    ),
    Departure(
        "definition-references",
        "a definition is named with or without revision, also by ARN; the latest ACTIVE one is taken",
        "model:SubmitJobRequest",
        "test_revisions_count_on_and_every_property_is_kept",
    ),
    Departure("pages", "lists have pages", "model:ListJobsRequest", "test_lists_have_pages"),
    Departure(
        "list-filters",
        "ListJobs has filters, and answers RUNNING jobs where no status is asked",
        "model:ListJobsRequest",
        "test_list_jobs_filters",
    ),
    Departure(
        "input-model",
        "input that the service's model refuses is a ClientException",
        "model:ClientException",
        "test_submit_refuses",
    ),
    # Jobs
    Departure(
        "jobs-run",
        "a job's command runs, its lines are in CloudWatch Logs, its exit code in the job",
        GUIDE + "job_states.html",
        "test_a_job_runs_here_and_its_lines_are_in_its_stream",
    ),
    Departure(
        "image-pull",
        "an image that can't be pulled fails the attempt with a CannotPullContainerError",
        "https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task_cannot_pull_image.html",
        "test_nothing_is_pretended_to_have_run",
    ),
    Departure(
        "log-group",
        "on EC2 a log group that is not there keeps the container from starting",
        "https://github.com/aws/aws-cdk/issues/5954",
        "test_a_log_group_must_exist_or_be_asked_for",
    ),
    Departure(
        "secrets",
        "secrets come from Secrets Manager and Parameter Store, and need an execution role",
        "https://github.com/hashicorp/terraform-provider-aws/issues/6503",
        "test_secrets_are_resolved_and_a_missing_one_stops_the_job",
    ),
    Departure(
        "overrides-length",
        "overrides of more than 8192 characters fail the job, though SubmitJob took them",
        "https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_RunTask.html",
        "test_long_overrides_fail_the_job_as_ecs_would",
    ),
    Departure(
        "retries",
        "retryStrategy counts, also at submit; a job that no condition matches is retried",
        GUIDE + "job_retries.html",
        "test_retries_follow_the_documented_globs",
    ),
    Departure(
        "timeouts",
        "a timeout is counted from startedAt, ends the job with SIGTERM and is not retried",
        GUIDE + "job_timeouts.html",
        "test_a_timeout_ends_the_job_and_is_not_retried",
    ),
    Departure(
        "reclaim",
        "a Spot reclaim ends the attempt with `Host EC2 (instance i-...) terminated.`",
        GUIDE + "job_retries.html",
        "test_a_reclaimed_instance_ends_its_jobs_and_they_are_retried_as_asked",
    ),
    Departure(
        "arrays",
        "an array's parent is PENDING while its children run, and has a statusSummary",
        GUIDE + "array_jobs.html",
        "test_an_array_has_children_and_a_summary",
    ),
    Departure(
        "dependencies",
        "SEQUENTIAL and N_TO_N dependencies hold single children; a failed one fails those that wait",
        GUIDE + "job_dependencies.html",
        "test_dependencies_hold_whole_jobs_pairs_and_sequences",
    ),
    Departure(
        "cancel",
        "CancelJob leaves alone what is STARTING or RUNNING, TerminateJob does not; a PENDING job waits "
        "for those that it depends on; neither is retried",
        "https://docs.aws.amazon.com/batch/latest/APIReference/API_CancelJob.html",
        "test_cancel_stops_what_waits_and_terminate_what_runs",
    ),
    Departure(
        "job-too-big",
        "a job that no instance type holds stays RUNNABLE with JOB_RESOURCE_REQUIREMENT",
        STUCK,
        "test_a_job_that_nothing_holds_waits_and_says_why",
    ),
    Departure(
        "vcpu-limit",
        "instances are launched up to maxvCpus; a limit below every fitting type is named in statusReason",
        STUCK,
        "test_vcpus_of_an_environment_are_a_limit",
    ),
    Departure(
        "stockout",
        "without capacity the head of the queue waits with INSUFFICIENT_INSTANCE_CAPACITY",
        GUIDE + "job_stuck_in_runnable_capacity.html",
        "test_a_stockout_blocks_until_it_ends",
    ),
    Departure(
        "gpus",
        "the ECS agent names the assigned GPUs in NVIDIA_VISIBLE_DEVICES",
        "https://github.com/aws/amazon-ecs-agent/blob/master/agent/api/task/task.go",
        "test_gpus_are_named_to_the_job",
    ),
)
