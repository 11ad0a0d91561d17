"""The dashboard of a stack, as the document that CloudWatch takes."""

from collections.abc import Mapping, Sequence
from typing import Any

from .gpu_metrics import MEMORY_USED, MEMORY_UTILISATION, UTILISATION
from .queue_age_function import METRIC

JOB_EVENTS = "JobEvents"
BLOCKED_EVENTS = "QueueBlockedEvents"

_WIDTH, _HEIGHT = 8, 6
_COLUMNS = 24 // _WIDTH
_PERIOD_S = 300


def dashboard(
    *,
    region: str,
    namespace: str,
    queues: Mapping[str, str],
    clusters: Mapping[str, str],
    gpu_namespaces: Mapping[str, str],
    alarms: Sequence[str],
) -> dict[str, Any]:
    """Return what CloudWatch takes. `queues`: ARN by name; `clusters`: ARN of the ECS cluster by environment;
    `gpu_namespaces`: by environment, empty where no agent publishes; `alarms`: ARNs. Source:
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html"""
    widgets = [_alarms(alarms)] if alarms else []
    for name, arn in queues.items():
        # AWS Batch publishes no metric of its own: these are counts of its events.
        widgets.append(_searched(region, f"{name}: jobs that changed to a state", namespace, arn, JOB_EVENTS))
        widgets.append(_searched(region, f"{name}: blocked", namespace, arn, BLOCKED_EVENTS))
        widgets.append(_searched(region, f"{name}: oldest RUNNABLE job, s", namespace, arn, METRIC, "Maximum"))
    for name, arn in clusters.items():
        # None where the environment was not created: in a destroy that runs the program, and with --continue-on-error.
        widgets.append(_reserved(region, name, arn and arn.rpartition("/")[2]))
        if name in gpu_namespaces:
            widgets.append(_gpus(region, f"{name}: GPU in use, percent", gpu_namespaces[name], UTILISATION))
            widgets.append(_gpus(region, f"{name}: GPU memory busy, percent", gpu_namespaces[name], MEMORY_UTILISATION))
            widgets.append(_gpus(region, f"{name}: GPU memory, MiB", gpu_namespaces[name], MEMORY_USED))
    return {"widgets": [{**widget, **_place(index)} for index, widget in enumerate(widgets)]}


def _place(index: int) -> dict[str, int]:
    return {
        "x": index % _COLUMNS * _WIDTH,
        "y": index // _COLUMNS * _HEIGHT,
        "width": _WIDTH,
        "height": _HEIGHT,
    }


def _alarms(arns: Sequence[str]) -> dict[str, Any]:
    return {"type": "alarm", "properties": {"title": "Alarms", "alarms": list(arns)}}


def _metrics(region: str, title: str, metrics: list[Any], **properties: Any) -> dict[str, Any]:
    shown = {"title": title, "region": region, "view": "timeSeries", "period": _PERIOD_S, "metrics": metrics}
    return {"type": "metric", "properties": {**shown, **properties}}


def _search(terms: str, statistic: str) -> dict[str, str]:
    return {"expression": f"SEARCH('{terms}', '{statistic}', {_PERIOD_S})", "id": "e1"}


def _searched(
    region: str, title: str, namespace: str, queue: str, metric: str, statistic: str = "Sum"
) -> dict[str, Any]:
    terms = f'Namespace="{namespace}" MetricName="{metric}" Queue="{queue}"'
    return _metrics(region, title, [[_search(terms, statistic)]], stat=statistic)


def _reserved(region: str, environment: str, cluster: str) -> dict[str, Any]:
    """Return a widget of the resources reserved by running jobs; ECS publishes them only while one runs. Source:
    https://docs.aws.amazon.com/AmazonECS/latest/developerguide/available-metrics.html"""
    kinds = ("GPUReservation", "CPUReservation", "MemoryReservation")
    rows: list[Any] = [["AWS/ECS", kind, "ClusterName", cluster] for kind in kinds]
    return _metrics(region, f"{environment}: reserved by jobs, percent", rows, stat="Average")


def _gpus(region: str, title: str, namespace: str, metric: str) -> dict[str, Any]:
    return _metrics(region, title, [[_search(f'Namespace="{namespace}" MetricName="{metric}"', "Average")]])
