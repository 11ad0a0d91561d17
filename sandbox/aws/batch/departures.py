"""Differences between this Batch and moto 5.2.1 where AWS differs from moto: what, the source, and the test that shows
it. A source `model:Shape` is the documentation of that shape in botocore's own service model of Batch."""

from typing import NamedTuple

GUIDE = "https://docs.aws.amazon.com/batch/latest/userguide/"
STUCK = GUIDE + "job_stuck_in_runnable_misconfiguration.html"
MNP = GUIDE + "multi-node-parallel-jobs.html"
SHARES = GUIDE + "share-identifiers.html"


class Departure(NamedTuple):
    """One difference; `test` is a function of tests/sandbox/test_batch*.py."""

    id: str
    aws: str
    source: str
    test: str


# fmt: off
ROWS = (
    # Compute environments
    ("service-role-optional", "CreateComputeEnvironment without serviceRole uses the service-linked role",
     "model:CreateComputeEnvironmentRequest", "test_an_environment_settles_and_is_filled_as_on_aws"),
    ("environment-settles", "an environment is CREATING or UPDATING before it is VALID",
     "model:ComputeEnvironmentDetail", "test_an_environment_settles_and_is_filled_as_on_aws"),
    ("environment-invalid", "a profile, subnet or template that is not there makes the environment INVALID after it "
     "was accepted",
     GUIDE + "invalid_compute_environment.html", "test_an_environment_that_names_what_is_not_there_is_invalid"),
    ("instance-profile-name", "instanceRole is the name or the ARN of an instance profile; a role's ARN is refused",
     "https://github.com/hashicorp/terraform-provider-aws/pull/16230", "test_create_compute_environment_refuses"),
    ("image-types", "Amazon Linux 2 is blocked since June 30, 2026; ECS_AL2023_NVIDIA runs no p3, g3 and Graviton",
     "model:Ec2Configuration", "test_create_compute_environment_refuses"),
    ("environment-update", "UpdateComputeEnvironment changes what it is given; more than scaling needs another "
     "strategy than BEST_FIT and the service-linked role",
     GUIDE + "infrastructure-updates.html", "test_an_update_scales_or_replaces_as_the_role_and_strategy_allow"),
    ("no-manual-scale-down", "desiredvCpus below its present value is refused",
     GUIDE + "error-desired-vcpus-update.html", "test_desired_vcpus_are_not_lowered_by_hand"),
    ("environment-in-use", "an environment that a queue names, or that is not DISABLED, is not deleted",
     "https://github.com/hashicorp/terraform-provider-aws/issues/2044",
     "test_what_is_in_use_or_enabled_is_not_deleted"),
    ("environment-held", "an environment is not deleted for a while after the last queue stopped naming it",
     "https://github.com/pulumi/pulumi-aws/issues/6233",
     "test_an_environment_is_held_for_a_while_after_its_queue_let_go"),
    ("environment-disabled", "a DISABLED environment finishes what runs and takes no more",
     "model:ComputeEnvironmentDetail", "test_a_disabled_environment_goes_on_with_what_runs"),
    ("service-role-lost", "a service role that Batch can't assume makes the environment INVALID, also after its "
     "deletion, until it is there again",
     "https://github.com/hashicorp/terraform-provider-aws/pull/16417",
     "test_without_its_service_role_an_environment_can_not_be_deleted"),
    ("environment-invalid-later", "what an environment names can go later: it becomes INVALID",
     "https://github.com/hashicorp/terraform-provider-aws/issues/26930",
     "test_an_environment_that_loses_what_it_names_becomes_invalid_and_can_be_deleted"),
    # Queues
    ("queue-states", "a queue is UPDATING for a while, can't be deleted then, and goes only some time after its "
     "deletion",
     "https://github.com/astronomer/astronomer-providers/issues/413", "test_what_is_in_use_or_enabled_is_not_deleted"),
    ("queue-environments", "up to three VALID environments of one architecture",
     "model:CreateJobQueueRequest", "test_create_job_queue_refuses"),
    ("queue-time-limits", "jobStateTimeLimitActions are kept, and cancel a job that blocks the head of the queue",
     GUIDE + "job_stuck_in_runnable_time_limit_actions.html",
     "test_a_time_limit_cancels_the_head_of_the_queue_and_frees_the_rest"),
    ("snapshot", "GetJobQueueSnapshot lists the first RUNNABLE jobs",
     "model:FrontOfQueueDetail", "test_a_job_that_nothing_holds_waits_and_says_why"),
    ("scheduling-policies", "policies are changed and listed, and kept while a queue uses them",
     "model:DeleteSchedulingPolicyRequest", "test_a_policy_is_made_listed_changed_and_deleted"),
    ("scheduling-policy-limits", "decay, reservation, weights and overlapping shares are checked",
     "model:FairsharePolicy", "test_a_policy_outside_of_the_limits_is_refused"),
    ("share-required", "a job of a fair-share queue has a share and a priority",
     "https://github.com/nextflow-io/nextflow/pull/3505",
     "test_submit_asks_for_a_share_and_a_priority_where_there_is_a_policy"),
    ("share-order", "the share that used least goes first, within it the higher priority",
     SHARES, "test_the_share_that_used_least_goes_first_and_a_priority_counts_within_it"),
    ("share-weight", "a share's usage is multiplied by its weightFactor",
     SHARES, "test_a_weight_divides_what_a_share_has_used"),
    ("share-decay", "usage older than shareDecaySeconds, ten minutes at least, doesn't count",
     "model:FairsharePolicy", "test_what_was_used_long_ago_is_forgotten"),
    ("share-reservation", "computeReservation keeps vCPUs from the active shares",
     "model:FairsharePolicy", "test_a_reservation_leaves_room_for_a_share_to_come"),
    # Definitions and lists
    ("definition-properties", "every property of a definition is kept, nodeProperties too",
     "model:JobDefinition", "test_multi_node_definitions_are_kept_whole"),
    ("definition-references", "a definition is named with or without revision, also by ARN; the latest ACTIVE one is "
     "taken", "model:SubmitJobRequest", "test_revisions_count_on_and_every_property_is_kept"),
    ("pages", "lists have pages",
     "model:ListJobsRequest", "test_lists_have_pages"),
    ("list-filters", "ListJobs has filters, and answers RUNNING jobs where no status is asked",
     "model:ListJobsRequest", "test_list_jobs_filters"),
    ("input-model", "input that the service's model refuses is a ClientException",
     "model:ClientException", "test_submit_refuses"),
    ("node-ranges", "node ranges account for all nodes; at most five",
     "model:NodeRangeProperty", "test_register_refuses_nodes"),
    # Jobs
    ("jobs-run", "a job's command runs, its lines are in CloudWatch Logs, its exit code in the job",
     GUIDE + "job_states.html", "test_a_job_runs_here_and_its_lines_are_in_its_stream"),
    ("image-pull", "an image that can't be pulled fails the attempt with a CannotPullContainerError",
     "https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task_cannot_pull_image.html",
     "test_nothing_is_pretended_to_have_run"),
    ("log-group", "on EC2 a log group that is not there keeps the container from starting",
     "https://github.com/aws/aws-cdk/issues/5954", "test_a_log_group_must_exist_or_be_asked_for"),
    ("secrets", "secrets come from Secrets Manager and Parameter Store, and need an execution role",
     "https://github.com/hashicorp/terraform-provider-aws/issues/6503",
     "test_secrets_are_resolved_and_a_missing_one_stops_the_job"),
    ("overrides-length", "overrides of more than 8192 characters fail the job, though SubmitJob took them",
     "https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_RunTask.html",
     "test_long_overrides_fail_the_job_as_ecs_would"),
    ("retries", "retryStrategy counts, also at submit; a job that no condition matches is retried",
     GUIDE + "job_retries.html", "test_retries_follow_the_documented_globs"),
    ("timeouts", "a timeout is counted from startedAt, ends the job with SIGTERM and is not retried",
     GUIDE + "job_timeouts.html", "test_a_timeout_ends_the_job_and_is_not_retried"),
    ("reclaim", "a Spot reclaim ends the attempt with `Host EC2 (instance i-...) terminated.`",
     GUIDE + "job_retries.html", "test_a_reclaimed_instance_ends_its_jobs_and_they_are_retried_as_asked"),
    ("arrays", "an array's parent is PENDING while its children run, and has a statusSummary",
     GUIDE + "array_jobs.html", "test_an_array_has_children_and_a_summary"),
    ("dependencies", "SEQUENTIAL and N_TO_N dependencies hold single children; a failed one fails those that wait",
     GUIDE + "job_dependencies.html", "test_dependencies_hold_whole_jobs_pairs_and_sequences"),
    ("cancel", "CancelJob leaves alone what is STARTING or RUNNING, TerminateJob does not; a PENDING job waits for "
     "those that it depends on; neither is retried",
     "https://docs.aws.amazon.com/batch/latest/APIReference/API_CancelJob.html",
     "test_cancel_stops_what_waits_and_terminate_what_runs"),
    ("job-too-big", "a job that no instance type holds stays RUNNABLE with JOB_RESOURCE_REQUIREMENT",
     STUCK, "test_a_job_that_nothing_holds_waits_and_says_why"),
    ("vcpu-limit", "instances are launched up to maxvCpus; a limit below every fitting type is named in statusReason",
     STUCK, "test_vcpus_of_an_environment_are_a_limit"),
    ("stockout", "without capacity the head of the queue waits with INSUFFICIENT_INSTANCE_CAPACITY",
     GUIDE + "job_stuck_in_runnable_capacity.html", "test_a_stockout_blocks_until_it_ends"),
    ("gpus", "the ECS agent names the assigned GPUs in NVIDIA_VISIBLE_DEVICES",
     "https://github.com/aws/amazon-ecs-agent/blob/master/agent/api/task/task.go", "test_gpus_are_named_to_the_job"),
    ("nodes", "each node of a multi-node job is a container on an instance of its own, with its index in its "
     "environment", MNP, "test_each_node_is_a_process_on_an_instance_of_its_own"),
    ("main-node", "a multi-node job ends with its main node",
     MNP, "test_the_job_ends_with_its_main_node"),
    ("main-node-retried", "a failed main node repeats the whole job, a failed child node doesn't",
     MNP, "test_a_failed_main_node_repeats_the_whole_and_a_failed_child_does_not"),
    ("node-overrides", "overrides name the definition's ranges; numNodes needs an open one",
     "https://github.com/aws/aws-cdk/issues/29415", "test_nested_ranges_and_overrides_reach_their_nodes"),
    ("nodes-at-once", "nodes wait until there is room for all",
     MNP, "test_nodes_wait_for_room_for_all_and_say_what_can_never_be"),
    ("nodes-on-spot", "a multi-node job stays RUNNABLE on Spot instances",
     "https://github.com/aws/aws-parallelcluster/issues/2098", "test_nodes_do_not_run_on_spot"),
    ("service-role-permissions", "a service role without permissions blocks the queue with SERVICE_ROLE_PERMISSIONS",
     STUCK, "test_a_service_role_without_a_policy_blocks_the_queue"),
    ("ec2-quotas", "no more vCPUs run than EC2's quotas grant; Auto Scaling says so, the job is UNDETERMINED",
     "https://docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-instancelaunchfailure.html",
     "test_a_quota_is_held_and_auto_scaling_says_so"),
    ("stockout-activity", "an instance that EC2 can't launch is a failed scaling activity",
     "https://docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-instancelaunchfailure.html",
     "test_a_stockout_is_an_activity_too"),
    ("instances-seen", "instances are in EC2, in the ECS cluster and in Auto Scaling; a job whose instance never "
     "registers stays RUNNABLE",
     "https://github.com/aws-samples/aws-batch-genomics/issues/3",
     "test_an_instance_that_never_registers_leaves_its_job_runnable"),
)
# fmt: on
DEPARTURES = tuple(Departure(*row) for row in ROWS)
