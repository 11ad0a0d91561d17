"""Blocks of a job file for Google Batch and Vertex AI."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .fields import Accelerator, Argument, Count, Part, Seconds, Variables

Flag = Annotated[bool, Field(strict=True)]
Text = Annotated[str, Field(min_length=1)]


class Runnable(Part):
    """A step of each task: a container, a script, or a barrier at which all tasks wait for each other."""

    image: Text | None = None
    entrypoint: Text | None = Field(default=None, description="Entry point of the container. Default: the image's")
    command: list[Argument] = Field(default_factory=list[str], description="Arguments of the entry point")
    script: Text | None = Field(default=None, description="Script for the VM's shell, outside of any container")
    barrier: Text | None = Field(default=None, description="Name of the barrier; barriers with the same name are one")
    env: Variables = Field(default_factory=dict)
    background: Flag = Field(default=False, description="Start the next step at once, without waiting for this one")
    always_run: Flag = Field(default=False, description="Run even after a failure")
    ignore_exit_status: Flag = False
    timeout_s: Seconds | None = None
    docker_options: Text | None = Field(default=None, description="Options of `docker run`")

    @model_validator(mode="after")
    def _one_kind(self) -> "Runnable":
        kinds = [name for name in ("image", "script", "barrier") if getattr(self, name)]
        if len(kinds) != 1:
            raise ValueError(f"must have one of image, script and barrier, has {' and '.join(kinds) or 'none'}")
        return self


class Disk(Part):
    """A disk that lives as long as a VM of the job."""

    name: Annotated[str, Field(pattern=r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$")]
    gib: Count
    path: str = Field(pattern=r"^/", description="Path in the tasks")
    type: str = Field(default="pd-balanced", min_length=1)


class ExitCodes(Part):
    """Action for a task that ends with one of these exit codes."""

    codes: list[Annotated[int, Field(strict=True, ge=1, le=59_999)]] = Field(min_length=1)
    action: Literal["retry", "fail"]


class GoogleBatch(Part):
    """Fields for Google Batch only."""

    machine_type: Text | None = Field(default=None, description="Machine type. Default: the smallest that fits the job")
    zones: list[Text] = Field(default_factory=list[str], description="Zones of the target. Default: all")
    provisioning: Literal["flex-start"] | None = Field(
        default=None, description="flex-start: wait for cheaper capacity, for at most seven days of run time"
    )
    args: list[Argument] = Field(
        default_factory=list[str], description="Arguments of the image's entry point, in place of command"
    )
    runnables: list[Runnable] = Field(
        default_factory=list[Runnable], description="Steps of each task, in place of image and command"
    )
    docker_options: Text | None = Field(default=None, description="Options of `docker run`")
    priority: int | None = Field(
        default=None, ge=0, le=99, strict=True, description="Priority, 0 to 99; jobs with a higher one start first"
    )
    tasks_per_vm: Count | None = Field(
        default=None, description="Tasks per VM. Default: one, or as many as the GPUs and memory of the machine allow"
    )
    in_order: Flag = Field(default=False, description="Start tasks in the order of their indices")
    hosts_file: Flag | None = Field(
        default=None,
        description="Give each task the addresses of the others. Default: true if the job has several nodes",
    )
    permissive_ssh: Flag = Field(default=False, description="Allow SSH between the VMs without a password")
    compact: Flag = Field(default=False, description="Place the VMs close to each other")
    reservation: Text | None = Field(
        default=None,
        description="projects/<p>/zones/<z>/reservations/<r>. Default: the target's, unless the job is Spot",
    )
    install_drivers: Flag | None = Field(
        default=None, description="Install GPU drivers. Default: true if the job has GPUs"
    )
    driver_version: Text | None = None
    boot_image: Text | None = Field(
        default=None, description="Boot image of the VMs. Default: the target's, or Batch's"
    )
    boot_disk_gib: Count | None = Field(
        default=None, description="Size of a VM's whole boot disk. Default: what the image needs, and disk_gib per task"
    )
    disks: list[Disk] = Field(default_factory=list[Disk])
    exit_codes: list[ExitCodes] = Field(
        default_factory=list[ExitCodes], description="Exit codes to retry. Default: all failures"
    )
    logs_path: str | None = Field(
        default=None, pattern=r"^/", description="Folder of a mount for logs, in place of Cloud Logging"
    )


class PythonPackage(Part):
    """A source distribution that the job's image installs and runs."""

    uris: list[Annotated[str, Field(pattern=r"^gs://")]] = Field(min_length=1, max_length=100)
    module: Text


class Pool(Part):
    """Machines of a job beside its first. Absent fields are as the first has them; a pool that names a machine type has
    only the GPUs that it names itself."""

    replicas: Count = 1
    machine_type: Text | None = None
    accelerator: Accelerator | None = None
    image: Text | None = None
    command: list[Argument] = Field(default_factory=list[str])
    args: list[Argument] = Field(default_factory=list[str])
    package: PythonPackage | None = None
    disk_gib: Count | None = None


class Vertex(Part):
    """Fields for Vertex AI only. A job of several nodes has one in its first worker pool, the others in the second."""

    machine_type: Text | None = Field(default=None, description="Machine type. Default: the smallest that fits the job")
    provisioning: Literal["flex-start"] | None = Field(
        default=None, description="flex-start: wait for cheaper capacity, for at most seven days of run time"
    )
    wait_s: Seconds | None = Field(default=None, description="Maximum wait for machines, such as 24h. Default: one day")
    topology: Text | None = Field(default=None, description="Topology of the TPUs, such as 2x2")
    args: list[Argument] = Field(
        default_factory=list[str], description="Arguments of the image's entry point, in place of command"
    )
    package: PythonPackage | None = Field(
        default=None, description="Python package to run in place of command; `image` runs it"
    )
    workers: Pool | None = Field(
        default=None, description="Workers, in place of nodes, on machines that differ from the first"
    )
    parameter_servers: Pool | None = None
    reduction_servers: Pool | None = Field(
        default=None, description="Reduction servers, which add up gradients for the workers' GPUs"
    )
    evaluators: Pool | None = None
    disk_type: Text | None = Field(
        default=None, description="Boot disk type: pd-ssd, pd-standard, or hyperdisk-balanced on newer machines"
    )
    restart: Flag | None = Field(default=None, description="Restart all machines of the job if one is lost")
    reservation: Text | None = Field(
        default=None,
        description="projects/<p>/zones/<z>/reservations/<r>. Default: the target's, unless the job is Spot",
    )
    persistent_resource: Text | None = Field(
        default=None, description="Id of a persistent resource, whose machines already run"
    )
    tensorboard: Text | None = Field(
        default=None, description="projects/<p>/locations/<r>/tensorboards/<t>. Default: the target's"
    )
    output: Annotated[str, Field(pattern=r"^gs://")] | None = Field(
        default=None, description="Base output directory. Default: a folder of the target's bucket"
    )
    web_access: Flag = Field(default=False, description="Allow a shell in the job's containers from the console")
    dashboard_access: Flag = False

    @model_validator(mode="after")
    def _second_pool(self) -> "Vertex":
        if self.parameter_servers and self.reduction_servers:
            raise ValueError("parameter_servers and reduction_servers are the same worker pool; a job has one of them")
        return self
