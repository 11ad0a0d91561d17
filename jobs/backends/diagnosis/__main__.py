"""The program that prints docs/explain.md."""

import sys

from .cause import PLATFORMS, Cause
from .causes import SECTIONS

_HEAD = """\
# Why a job waits or failed

```sh
accel-jobs explain REF            # one reason, what shows it, the next step
accel-jobs explain REF -o json    # {"ref", "cause", "reason", "evidence", "next_step", "not_read"}
```

It reads only, and names a cause only where what it read shows it; otherwise it says `unknown` and what it looked at.
Facts are read as they are needed, cheapest first. What may not be read is listed as such, with the permission's name,
and says nothing. The exit code is 0 whatever the cause; 3 without credentials, 4 or 9 where the job itself cannot be
read.

`cause` is one of those below, the same on every platform. The words of the cloud, of Kubernetes and of docker are
among the evidence.

## What is read

- **AWS Batch**: the job, its queue and environments, the front of the queue, then launches (Auto Scaling), instances
  (EC2) and whether they joined (ECS), and only for an instance that did not join its role (IAM) and network (EC2). Of
  a failed job the end of its log. Of an array one task is explained: the first that failed, or waits. A queue that is
  DISABLED takes no new jobs and goes on with those that it has: no job waits because of it.
- **GKE**: the job, its pods and its Workload in Kueue, then the pod's events (which Kubernetes keeps for an hour) and
  the nodes, and of a failed job the end of its log. Of several tasks or nodes one is explained: the last that failed,
  or the first that waits.
- **Google Batch**: the job with its events, the tasks that tell how it goes, and then the end of what Batch's agent
  and the decisive task wrote to Cloud Logging. A task's last state counts, not an event of an attempt before: a job
  whose VM was preempted and that succeeded in the next attempt has succeeded, whatever exit code (50001) its events
  keep. Of several tasks or nodes one is explained: the first that failed for a reason of its own.
- **Vertex AI**: the custom job with its error, what Vertex itself said of it, for a job that is queued the limits of
  Vertex's own quotas and what the region's other jobs have of them, and of a job that failed the end of the log of
  the replica that the error names. Vertex AI counts custom training in quotas of its own, `custom_model_training_*`
  of aiplatform.googleapis.com by region; those of Spot and flex-start have `preemptible` in their names. Quotas of
  Compute Engine do not hold its machines.
- **TPU VMs and GPU VMs**: the job's record in the bucket, its machines (the queued resource and its nodes, the
  instance or the group), what each host left in the bucket, then health, symptoms, maintenance, operations of the
  zone (which Google keeps for some weeks), the serial port of a machine that never spoke, and of a failed job the end
  of its log. Of several hosts the first that failed by itself counts. No service of Google's moves such a job on: an
  attempt that is lost is followed by the next when a client looks, with `wait`, `submit --wait`, `logs -f` or `tend`.
  `explain` changes nothing, and says where that is what is missing.
- **local**: what the job's runner left in its folder, and the end of its output.

This page is written by `python -m jobs.backends.diagnosis > docs/explain.md`.
"""


def page() -> str:
    return _HEAD + "".join(_section(title, causes) for title, causes in SECTIONS.items())


def _section(title: str, causes: tuple[Cause, ...]) -> str:
    rows = "".join(f"| `{cause.id}` | {cause.title} | {_sources(cause)} |\n" for cause in causes)
    return f"\n## {title}\n\n| cause | what it means | where, and a page about it |\n| --- | --- | --- |\n{rows}"


def _sources(cause: Cause) -> str:
    links = {name: cause.sources[platform] for platform, name in PLATFORMS.items() if platform in cause.sources}
    return ", ".join(f"[{name}]({url})" if url else name for name, url in links.items())


if __name__ == "__main__":
    sys.stdout.write(page())
