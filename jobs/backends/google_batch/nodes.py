"""Jobs of several nodes: tasks of one group that all run at once, a VM each, and find each other. Batch writes the
names of the group's VMs to a file, but not which task is on which VM, so a node's number is its VM's line in the file:
node 0 is on the host that all take for the main one. Sources:
https://docs.cloud.google.com/batch/docs/create-run-basic-job#use-predefined-environment-variables,
https://github.com/GoogleCloudPlatform/batch-samples/tree/main/mpi-container"""

import shlex
from collections.abc import Sequence

from accel.contract import variables

from .labels import KIND

PORT, JAX_PORT = 29500, 8482
"""Ports of torchrun's examples, and of JAX's coordinator on Cloud TPUs, the same as on VMs. Sources:
https://docs.pytorch.org/docs/stable/elastic/run.html,
https://github.com/jax-ml/jax/blob/main/jax/_src/clusters/cloud_tpu_cluster.py"""
HOSTS_FILE = "/etc/cloudbatch-taskgroup-hosts"
"""File to which Batch writes the list. Source: the samples' page above."""
SSH_FOLDERS = ("/etc/ssh", "/root/.ssh")
"""Folders that permissive SSH sets up on a VM."""
BOOT_IMAGE = "batch-debian"
"""Batch's own image for VMs that talk to each other: the firewall of the container image admits nothing. Source: the
samples' page above."""

_TOLD = ("node", "main", "own", "seen", "at", "host", "rest", "hosts")
# Only shell builtins, because an image may have no other program.
_PRELUDE = """\
accel_hosts=${BATCH_HOSTS_FILE:-%(file)s}
if [ ! -r "$accel_hosts" ]; then echo "accel: the list of hosts, $accel_hosts, cannot be read" >&2; exit 1; fi
accel_own= accel_main= accel_node= accel_seen=0 accel_at=0
if [ -r /proc/sys/kernel/hostname ]; then read -r accel_own < /proc/sys/kernel/hostname || :; fi
while read -r accel_host accel_rest || [ -n "$accel_host" ]; do
  if [ -z "$accel_host" ]; then continue; fi
  accel_main=${accel_main:-$accel_host}
  if [ "${accel_host%%%%.*}" = "${accel_own%%%%.*}" ]; then accel_node=$accel_at accel_seen=$((accel_seen + 1)); fi
  accel_at=$((accel_at + 1))
done < "$accel_hosts"
if [ "$accel_seen" != 1 ]; then accel_node=$BATCH_TASK_INDEX; fi
export %(index)s="$accel_node" PET_NODE_RANK="$accel_node" JAX_PROCESS_ID="$accel_node"
export MASTER_ADDR="${MASTER_ADDR:-$accel_main}"
export PET_RDZV_ENDPOINT="$MASTER_ADDR:${MASTER_PORT:-%(port)d}"
export JAX_COORDINATOR_ADDRESS="$MASTER_ADDR:%(jax)d"
unset %(told)s
"""
PRELUDE = _PRELUDE % {
    "file": HOSTS_FILE,
    "index": variables.NODE_INDEX,
    "port": PORT,
    "jax": JAX_PORT,
    "told": " ".join(f"accel_{name}" for name in _TOLD),
}
"""Commands before a node's command, which determine its place among the others. A VM whose name is not in the file
exactly once uses its task's number."""


def environment(name: str, count: int, gpus: int) -> dict[str, str]:
    """Return the variables that are the same on every node. `name` is the job's id."""
    return {
        variables.NODE_COUNT: str(count),
        **variables.NODE_VARIABLES[KIND],
        "MASTER_PORT": str(PORT),
        "JAX_NUM_PROCESSES": str(count),
        "PET_NNODES": str(count),
        "PET_NPROC_PER_NODE": str(gpus or 1),
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ID": name,
    }


def command(words: Sequence[str]) -> list[str]:
    """Return an argv with the prelude before the command. The image needs /bin/sh."""
    return ["/bin/sh", "-c", f'{PRELUDE}exec "$@"', "accel", *words]


def script(text: str) -> str | None:
    """Return a script with the prelude; None if its interpreter is not a shell."""
    first, newline, rest = text.partition("\n")
    if not first.startswith("#!"):
        return PRELUDE + text
    words = shlex.split(first[2:]) or [""]
    shell = words[-1] if words[0].endswith("/env") else words[0]
    if shell.rpartition("/")[2] not in ("sh", "bash", "dash", "ash", "zsh", "ksh"):
        return None
    return f"{first}\n{PRELUDE}{rest}" if newline else f"{first}\n{PRELUDE}"
