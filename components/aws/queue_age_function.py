"""AWS Lambda function in a single file. Publishes the age of the oldest RUNNABLE job of each queue.

Batch reports since when a job exists, not since when it is RUNNABLE: if a job first waited for others, that time is
included. Source: https://docs.aws.amazon.com/batch/latest/APIReference/API_JobSummary.html
"""

import json
import os
import time
from importlib import import_module
from typing import Any

METRIC = "OldestRunnableJob"
MOST_JOBS = 50_000
"""Number of jobs to read of one queue: 500 pages, which is what the function's timeout allows."""


def handler(event: Any, context: Any) -> dict[str, float]:
    """Publish and return the age in seconds by queue, 0 if no job is RUNNABLE. The variables QUEUES (a JSON list of
    ARNs) and NAMESPACE say which queues to read, and where to publish."""
    sdk: Any = import_module("boto3")  # here, since a program that deploys this needs none
    batch, cloudwatch = sdk.client("batch"), sdk.client("cloudwatch")
    queues: list[str] = json.loads(os.environ["QUEUES"])
    ages = {queue: _oldest_s(batch, queue) for queue in queues}
    rows: list[Any] = [
        {
            "MetricName": METRIC,
            "Dimensions": [{"Name": "Queue", "Value": queue}],
            "Value": age,
            "Unit": "Seconds",
        }
        for queue, age in ages.items()
    ]
    for start in range(0, len(rows), 1000):  # of one call
        cloudwatch.put_metric_data(Namespace=os.environ["NAMESPACE"], MetricData=rows[start : start + 1000])
    return ages


def _oldest_s(batch: Any, queue: str) -> float:
    pages = batch.get_paginator("list_jobs").paginate(
        jobQueue=queue, jobStatus="RUNNABLE", PaginationConfig={"MaxItems": MOST_JOBS}
    )
    created = [job["createdAt"] for page in pages for job in page["jobSummaryList"]]
    return round(max(0.0, time.time() - min(created) / 1000), 1) if created else 0.0
