"""GPUs shared by several pods on GKE: MIG partitions, time-sharing and MPS."""

from accel.catalog.gke import gpu_partitions
from accel.diagnostics.findings import Finding
from accel.rules.table import rule

NO_MIG = rule("gke.mig.gpu")
PROFILE = rule("gke.mig.profile")
PROFILE_PLUGIN = rule("gke.mig.profile-plugin")
WHOLE = rule("gke.mig.fraction")
CLIENTS = rule("gke.sharing.clients")
MPS_MIG = rule("gke.sharing.mps-mig")
SEVERAL = rule("gke.sharing.several")
HOST_IPC = rule("gke.sharing.mps-host-ipc")

CLIENTS_LEAST, CLIENTS_MOST = 2, 48
_NOT_IN_PLUGIN = ("4g.20gb", "4g.40gb")


def partition(profile: str, accelerator: str, count: float, field: str = "mig_partition") -> list[Finding]:
    """Check a MIG profile of a GPU (a key of the catalogue), of which a node has `count`."""
    if 0 < count < 1:
        return [WHOLE.finding(field, f"is {profile}, and the machine has {count:g} of a GPU", "use a larger machine")]
    known = gpu_partitions(accelerator)
    if not known:
        fix = "leave it out, or use an A100, H100, H200 or B200"
        return [NO_MIG.finding(field, f"is {profile}, and {accelerator} cannot be partitioned", fix)]
    if profile not in known:
        message = f'is "{profile}", which {accelerator} has not'
        return [PROFILE.finding(field, message, f"use one of {', '.join(known)}")]
    if profile in _NOT_IN_PLUGIN:
        message = f"is {profile}, for which GKE's device plugin may offer no GPU"
        others = ", ".join(each for each in known if each not in _NOT_IN_PLUGIN)
        return [PROFILE_PLUGIN.finding(field, message, f"use one of {others}")]
    return []


def sharing(
    strategy: str, clients: int, *, units: float, partition: str | None = None, field: str = "sharing"
) -> list[Finding]:
    """Check time-sharing or MPS of `clients` per GPU or partition. `units` are those of a node."""
    found: list[Finding] = []
    if not CLIENTS_LEAST <= clients <= CLIENTS_MOST:
        message = f"must be {CLIENTS_LEAST} to {CLIENTS_MOST}, is {clients}"
        fix = "leave sharing out" if clients < CLIENTS_LEAST else f"write {CLIENTS_MOST} or less"
        found.append(CLIENTS.finding(f"{field}.clients", message, fix))
    if 0 < units < 1:
        message = f"is {strategy}, and the machine has {units:g} of a GPU"
        found.append(WHOLE.finding(f"{field}.strategy", message, "use a larger machine"))
    if strategy == "mps" and partition:
        message = f"is mps, and mig_partition is {partition}"
        found.append(MPS_MIG.finding(f"{field}.strategy", message, "use time-sharing, or leave mig_partition out"))
    elif strategy == "mps":
        message = "is mps, which only pods with hostIPC: true can use"
        found.append(HOST_IPC.finding(f"{field}.strategy", message, "set it in pods, or use time-sharing"))
    if units > 1:
        message = f"is {strategy} on nodes with {units:g} GPUs or partitions, where a container gets one share"
        found.append(SEVERAL.finding(f"{field}.strategy", message, "ask for one GPU a container, or use one-GPU nodes"))
    return found
