"""The CloudWatch agent on GPU instances: its metrics, and the boot script that installs it."""

import json
from typing import Any

UTILISATION = "nvidia_smi_utilization_gpu"
MEMORY_UTILISATION = "nvidia_smi_utilization_memory"
MEMORY_USED = "nvidia_smi_memory_used"
"""Names of the agent's nvidia-smi metrics: percent of the time that a kernel ran, percent of the time that memory was
read or written, and MiB. Source:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Agent-NVIDIA-GPU.html"""

_MEASURED = ("utilization_gpu", "utilization_memory", "memory_used", "memory_total")

_CONFIG = "/opt/aws/amazon-cloudwatch-agent/etc/gpu.json"


def gpu_namespace(namespace: str, environment: str) -> str:
    """Return the metric namespace of one environment's instances, not a dimension: the agent takes no custom dimension
    on its GPU metrics (https://github.com/aws/amazon-cloudwatch-agent/issues/489)."""
    return f"{namespace}/{environment}"


def agent_config(namespace: str, interval_s: int) -> dict[str, Any]:
    """Return the agent's configuration: every GPU by instance, and all GPUs of the namespace as one metric without
    dimensions, so that an alarm can name it before an instance exists. Source:
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Agent-Configuration-File-Details.html"""
    return {
        "agent": {"metrics_collection_interval": interval_s, "run_as_user": "root"},
        "metrics": {
            "namespace": namespace,
            "append_dimensions": {"InstanceId": "${aws:InstanceId}"},
            "aggregation_dimensions": [[]],
            "metrics_collected": {"nvidia_gpu": {"measurement": list(_MEASURED)}},
        },
    }


def cloudwatch_agent_script(namespace: str, interval_s: int) -> str:
    """Return a user data script that installs the agent from Amazon Linux's own packages and starts it. A second run
    changes nothing. An instance without a driver, or one that cannot get the package, runs jobs all the same."""
    config = json.dumps(agent_config(namespace, interval_s), indent=2, sort_keys=True)
    return f"""\
#!/bin/bash
set -u
command -v nvidia-smi >/dev/null || exit 0
rpm --quiet -q amazon-cloudwatch-agent || dnf install -y amazon-cloudwatch-agent || exit 0
cat >{_CONFIG} <<'CONFIG'
{config}
CONFIG
/opt/aws/amazon-cloudwatch-agent/bin/amazon-cloudwatch-agent-ctl -a fetch-config -m ec2 -s -c file:{_CONFIG}
"""
