"""Jobs on Google Batch: one breach and one near miss for each rule of what tasks run, and on which VMs."""

from accel.catalog import machine
from accel.rules.batch import machines as vms
from accel.rules.batch import runnables as runs

from .case import Case

RESERVED = "projects/acme/zones/us-central1-b/reservations/r"

CASES = [
    Case(
        "google-batch.unexpanded", "command", ("has ${BATCH_TASK_INDEX}", "arguments of python"), "/bin/sh -c",
        lambda: runs.command(["python", "train.py", "--out=gs://b/a b/${BATCH_TASK_INDEX}"]),
        lambda: runs.command(["/bin/bash", "-ec", "echo ${BATCH_TASK_INDEX}"]) + runs.command(["echo", "$BATCHES"]),
        ["/bin/sh", "-c", "exec python train.py '--out=gs://b/a b/'\"${BATCH_TASK_INDEX}\""],
    ),
    Case(
        "google-batch.entry-point", "commands", ('begin with "python"', "ENTRYPOINT"), "named as the entry point",
        lambda: runs.entry_point(None, ["python", "train.py"]),
        lambda: runs.entry_point("python3", ["python"]) + runs.entry_point(None, ["train.py"]), "python",
    ),
    Case(
        "google-batch.command.one-word", "command", ("is one string, 'python train.py'",), "[python, train.py]",
        lambda: runs.command(["python train.py"]), lambda: runs.command(["python", "train.py a"]),
        ["python", "train.py"],
    ),
    Case(
        "google-batch.gpus-option", "docker_options", ('are "--gpus all --ipc=host"',), "--gpus is left out",
        lambda: runs.docker_options("--gpus all --ipc=host"),
        lambda: runs.docker_options("--ipc=host --device /dev/nvidia0") + runs.docker_options(None), "--ipc=host",
    ),
    Case(
        "google-batch.docker-options", "docker_options", ("have -v",), "use mounts",
        lambda: runs.docker_options("-v /a:/b"), lambda: runs.docker_options("--privileged --network host"),
    ),
    Case(
        "google-batch.bind-mount", "volumes[0]", ('is "/mnt/disks/data:/data"', "empty on a new VM"), "gs://<bucket>",
        lambda: runs.binds(["/mnt/disks/data:/data"], ["/mnt/disks/dat"]),
        lambda: runs.binds(["/mnt/disks/data/in:/data:ro", "/etc/ssh:/etc/ssh"], ["/mnt/disks/data"]),
    ),
    Case(
        "google-batch.mount", "source", ('is "host:///data"', "new for the job"), "nfs://",
        lambda: runs.mount("host:///data"),
        lambda: runs.mount("gs://acme-data/a") + runs.mount("nfs://10.0.0.2/share/a"),
    ),
    Case(
        "google-batch.mount-path", "b.path", ("is /data, as is a.path",), "another folder",
        lambda: runs.mount_paths({"a.path": "/data", "b.path": "/data/"}),
        lambda: runs.mount_paths({"a.path": "/data", "b.path": "/data/x"}),
    ),
    Case(
        "google-batch.logs-path", "logs_path", ("is /logs", "deleted with the VM"), "a folder of /out",
        lambda: runs.logs_path("/logs", ["/out"]),
        lambda: runs.logs_path("/out/logs", ["/out"]) + runs.logs_path(None, []),
    ),
    Case(
        "google-batch.local-output", "command", ("has model-output /tmp/model", "deleted"), "mounted bucket",
        lambda: runs.local_output(["python", "t.py", "--model-output=/tmp/model"], {}, ["/data"]),
        lambda: runs.local_output(["x", "--output", "/data/m", "--input=/tmp/x"], {"OUT": "gs://b/m"}, ["/data"]),
    ),
    Case(
        "google-batch.runnables", "runnables", ("tasks end at once",), "foreground",
        lambda: runs.steps(["container", "barrier"], [True, False]),
        lambda: runs.steps(["container", "barrier", "script"], [True, False, False]),
    ),
    Case(
        "google-batch.fit", "memory_mib", ("is 32768 MiB", "n1-standard-8 has 30720 MiB"), "g2-standard-12",
        lambda: vms.fit("n1-standard-8", 8, 30_720, 8_000, 32_768, 1, [machine("gcp", "g2-standard-12")]),
        lambda: vms.fit("n1-standard-8", 8, 30_720, 8_000, 30_720, 1, []),
    ),
    Case(
        "google-batch.headroom", "memory_mib", ("is 32768 MiB", "leaves 0 MiB of g2-standard-8"), "at most 30720",
        lambda: vms.fit("g2-standard-8", 8, 32_768, 8_000, 32_768, 1, []),
        lambda: vms.fit("g2-standard-8", 8, 32_768, 4_000, 15_360, 2, []),
    ),
    Case(
        "google-batch.shared-gpus", "tasks_per_vm", ("is 2", "sees all 2 GPUs"), "take its own",
        lambda: vms.gpus("g2-standard-24", 2, 1, 2), lambda: vms.gpus("g2-standard-24", 2, 2, 1),
    ),
    Case(
        "google-batch.idle-gpus", "accelerator_count", ("is 1 for 1 task on g2-standard-24", "has 2"), "of 1 GPUs",
        lambda: vms.gpus("g2-standard-24", 2, 1, 1), lambda: vms.gpus("g2-standard-24", 2, 1, 2),
    ),
    Case(
        "google-batch.drivers", "install_drivers", ("is false", "no boot image"), "boot_image",
        lambda: vms.drivers(False, 1, own_image=False),
        lambda: vms.drivers(False, 1, own_image=True) + vms.drivers(None, 1, own_image=False),
    ),
    Case(
        "google-batch.drivers-alone", "install_drivers", ("is true", "no GPUs"), "ask for an accelerator",
        lambda: vms.drivers(True, 0, own_image=False), lambda: vms.drivers(True, 1, own_image=False),
    ),
    Case(
        "google-batch.accelerator-drivers", "accelerators[0].installGpuDrivers", ("is true", "deprecated"),
        "instances[0].installGpuDrivers", lambda: vms.accelerator_drivers(True),
        lambda: vms.accelerator_drivers(None), True,
    ),
    Case(
        "google-batch.zone", "zones[0]", ("is us-east1-a", "does not exist"), "us-east1-b",
        lambda: vms.zones(["us-east1-a"], "us-east1"),
        lambda: vms.zones(["us-east1-d"], "us-east1") + vms.zones(["us-west3-a"], "us-west3"),
    ),
    Case(
        "google-batch.region", "zones", ("are of us-central1 and us-west1", "one region"), "those of us-central1",
        lambda: vms.zones(["us-central1-a", "us-west1-a"], "us-central1"),
        lambda: vms.zones(["us-central1-a", "us-central1-b"], "us-central1"),
    ),
    Case(
        "google-batch.location", "allowedLocations[0]", ('is "us-central1-a"', "no location"), "zones/us-central1-b",
        lambda: vms.locations(["us-central1-a"], "us-central1")[1],
        lambda: vms.locations(["regions/us-central1", "zones/us-central1-a"], "us-central1")[1],
    ),
    Case(
        "google-batch.reservation", "reservation", ("and the job is spot",), "leave one",
        lambda: vms.reservation(RESERVED, [], "spot", compact=False),
        lambda: vms.reservation(RESERVED, ["us-central1-b"], "on-demand", compact=False)
        + vms.reservation(None, [], "spot", compact=True),
    ),
    Case(
        "google-batch.template", "spot", ("gets those of small",), "machine_type",
        lambda: vms.template("projects/p/global/instanceTemplates/small", {"spot": True, "disks": []}),
        lambda: vms.template("projects/p/global/instanceTemplates/small", {"spot": None, "disks": []}),
    ),
    Case(
        "google-batch.disk", "disks[1].name", ("is data a second time",), "name of its own",
        lambda: vms.disks(["data", "data"], ["pd-ssd", "pd-ssd"], "g2-standard-8"),
        lambda: vms.disks(["data", "more"], ["pd-ssd", "local-ssd"], "g2-standard-8"),
    ),
]  # fmt: skip
