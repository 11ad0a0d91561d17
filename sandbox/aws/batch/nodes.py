"""Multi-node parallel jobs: their definitions, overrides and nodes."""

import re

from . import containers
from .state import Batch, BatchError, Document, Job, require

TARGET = re.compile(r"(\d*):(\d*)")
# https://github.com/meta-pytorch/torchx/issues/700
MOST_GROUPS = 5


def _span(target: str, count: int) -> range:
    """Return the node indexes of `0:3`, `:3` or `2:` in a job of `count` nodes."""
    found = TARGET.fullmatch(target)
    if not found:
        raise BatchError(f"targetNodes {target!r} must be start:end, start: or :end")
    return range(int(found[1] or 0), min(int(found[2] or count - 1) + 1, count))


def check(properties: Document) -> None:
    count, main, groups = properties["numNodes"], properties["mainNode"], properties["nodeRangeProperties"]
    require(count >= 1, f"numNodes {count} must be at least 1")
    require(0 <= main < count, f"mainNode {main} must be fewer than numNodes {count}")
    require(1 <= len(groups) <= MOST_GROUPS, f"nodeRangeProperties takes 1 to {MOST_GROUPS} ranges, has {len(groups)}")
    targets = [group["targetNodes"] for group in groups]
    for group in groups:
        target, span = group["targetNodes"], _span(group["targetNodes"], count)
        end = target.partition(":")[2]
        require(span and int(end or 0) < count, f"targetNodes {target} is outside of the {count} nodes")
        require(targets.count(target) == 1, f"targetNodes {target} is given twice")
        require("container" in group, f"nodeRangeProperties {target}: the sandbox runs nodes with a container only")
        containers.complete(group["container"])
        require(len(group.get("instanceTypes", [])) <= 1, "nodeRangeProperties.instanceTypes takes one type")
    missing = set(range(count)) - {index for target in targets for index in _span(target, count)}
    require(not missing, f"nodeRangeProperties must account for all nodes, not for {sorted(missing)}")


def overridden(definition: Document, request: Document) -> Document:
    """Return a job's nodeProperties: the definition's with the job's nodeOverrides and parameters."""
    properties, overrides = definition["nodeProperties"], request.get("nodeOverrides", {})
    groups = [dict(group) for group in properties["nodeRangeProperties"]]
    targets = [group["targetNodes"] for group in groups]
    count = overrides.get("numNodes", properties["numNodes"])
    if "numNodes" in overrides:
        # https://github.com/aws/aws-cdk/issues/29415
        require(
            any(target.endswith(":") for target in targets),
            "NumNodes override can only be applied if the job definition has at least 1 target node without a "
            "range_end i.e (:) or (range_start:).",
        )
        require(
            properties["mainNode"] < count, f"mainNode {properties['mainNode']} must be fewer than numNodes {count}"
        )
        require(all(_span(target, count) for target in targets), f"{targets}: a range begins after {count} nodes")
    rows = overrides.get("nodePropertyOverrides", [])
    # https://github.com/aws/aws-parallelcluster/pull/964
    wrong = [row["targetNodes"] for row in rows if row["targetNodes"] not in targets]
    require(not wrong, f"NodeOverride targets should match job definition. Non matching targets - {', '.join(wrong)}")
    parameters = {**definition.get("parameters", {}), **request.get("parameters", {})}
    for group in groups:
        own = [row for row in rows if row["targetNodes"] == group["targetNodes"]]
        asked = own[-1].get("containerOverrides", {}) if own else {}
        group["container"] = containers.merge_overrides(containers.complete(group["container"]), asked, parameters)
        if own and "instanceTypes" in own[-1]:
            group["instanceTypes"] = own[-1]["instanceTypes"]
    return {"numNodes": count, "mainNode": properties["mainNode"], "nodeRangeProperties": groups}


def make(batch: Batch, job: Job) -> None:
    """Create the nodes of a multi-node job, `<id>#<index>`. The narrower of nested ranges counts."""
    properties = job.document["nodeProperties"]
    count, main = properties["numNodes"], properties["mainNode"]
    for index in range(count):
        spans = [(_span(group["targetNodes"], count), group) for group in properties["nodeRangeProperties"]]
        group = min(((len(span), at) for at, (span, _) in enumerate(spans) if index in span))[1]
        own = spans[group][1]
        document = {key: value for key, value in job.document.items() if key != "nodeProperties"} | {
            "jobId": f"{job.id}#{index}",
            "jobArn": f"{job.document['jobArn']}#{index}",
            "nodeDetails": {"nodeIndex": index, "isMainNode": index == main},
            "attempts": [],
        }
        needs, types = containers.needs(own["container"]), tuple(own.get("instanceTypes", []))
        node = Job(job.queue, document, own["container"], needs, job.overrides, whole=job, types=types)
        batch.jobs[node.id] = node
        job.nodes.append(node)
