"""Blocks of a job file for Google Batch and Vertex AI."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .fields import Accelerator, Argument, Count, Part, Seconds, Variables

Flag = Annotated[bool, Field(strict=True)]
Text = Annotated[str, Field(min_length=1)]


class Runnable(Part):
    """A step of each task: a container, a script, or a barrier at which all tasks wait for each other."""

    image: Text | None = None
    entrypoint: Text | None = Field(default=None, description="of the container; without one, the image's own")
    command: list[Argument] = Field(default_factory=list[str], description="what the entry point is given")
    script: Text | None = Field(default=None, description="run by the VM's shell, outside of any container")
    barrier: Text | None = Field(default=None, description="its name; barriers of one name are one")
    env: Variables = Field(default_factory=dict)
    background: Flag = Field(default=False, description="the next begins at once, and this one's end is not waited for")
    always_run: Flag = Field(default=False, description="after a failure too")
    ignore_exit_status: Flag = False
    timeout_s: Seconds | None = None
    docker_options: Text | None = Field(default=None, description="as `docker run` takes them")

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
    path: str = Field(pattern=r"^/", description="where tasks see it")
    type: str = Field(default="pd-balanced", min_length=1)


class ExitCodes(Part):
    """Action for a task that ends with one of these exit codes."""

    codes: list[Annotated[int, Field(strict=True, ge=1, le=59_999)]] = Field(min_length=1)
    action: Literal["retry", "fail"]


class GoogleBatch(Part):
    """Fields for Google Batch only."""

    machine_type: Text | None = Field(
        default=None, description="without one, the smallest that has what the job asks for"
    )
    zones: list[Text] = Field(default_factory=list[str], description="of the target's; without any, all")
    provisioning: Literal["flex-start"] | None = Field(
        default=None, description="wait for capacity that is cheaper, and lasts for seven days at most"
    )
    args: list[Argument] = Field(
        default_factory=list[str], description="for the image's own entry point, in place of command"
    )
    runnables: list[Runnable] = Field(
        default_factory=list[Runnable], description="steps of each task, in place of image and command"
    )
    docker_options: Text | None = Field(default=None, description="as `docker run` takes them")
    priority: int | None = Field(default=None, ge=0, le=99, strict=True, description="before jobs of a lower one")
    tasks_per_vm: Count | None = Field(
        default=None, description="without it, one, or as many as the machine's GPUs and memory are enough for"
    )
    in_order: Flag = Field(default=False, description="tasks begin in the order of their indices")
    hosts_file: Flag | None = Field(
        default=None, description="each task finds the others' addresses; without it, where the job has several nodes"
    )
    permissive_ssh: Flag = Field(default=False, description="tasks' VMs may enter each other without a password")
    compact: Flag = Field(default=False, description="VMs of the job are placed close to each other")
    reservation: Text | None = Field(
        default=None, description="projects/<p>/zones/<z>/reservations/<r>; without it, the target's, if it is not Spot"
    )
    install_drivers: Flag | None = Field(default=None, description="without it, where the job has GPUs")
    driver_version: Text | None = None
    boot_image: Text | None = Field(default=None, description="of the VMs; without it, the target's, or Batch's own")
    disks: list[Disk] = Field(default_factory=list[Disk])
    exit_codes: list[ExitCodes] = Field(
        default_factory=list[ExitCodes], description="which failures are tried again; without any, all of them"
    )
    logs_path: str | None = Field(
        default=None, pattern=r"^/", description="folder of a mount to write logs to, in place of Cloud Logging"
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

    machine_type: Text | None = Field(
        default=None, description="without one, the smallest that has what the job asks for"
    )
    provisioning: Literal["flex-start"] | None = Field(
        default=None, description="wait for capacity that is cheaper, and lasts for seven days at most"
    )
    wait_s: Seconds | None = Field(default=None, description="how long to wait for machines: 24h; without it, a day")
    topology: Text | None = Field(default=None, description="of TPUs, such as 2x2")
    args: list[Argument] = Field(
        default_factory=list[str], description="for the image's own entry point, in place of command"
    )
    package: PythonPackage | None = Field(default=None, description="in place of command; image is what runs it")
    workers: Pool | None = Field(default=None, description="in place of nodes, machines that differ from the first")
    parameter_servers: Pool | None = None
    reduction_servers: Pool | None = Field(default=None, description="they add up gradients for the workers' GPUs")
    evaluators: Pool | None = None
    disk_type: Text | None = Field(default=None, description="pd-ssd or pd-standard, and what newer machines take")
    restart: Flag | None = Field(default=None, description="all machines of the job, where one of them is lost")
    reservation: Text | None = Field(
        default=None, description="projects/<p>/zones/<z>/reservations/<r>; without it, the target's, if it is not Spot"
    )
    persistent_resource: Text | None = Field(default=None, description="its id; machines that are there already")
    tensorboard: Text | None = Field(
        default=None, description="projects/<p>/locations/<r>/tensorboards/<t>; without it, the target's"
    )
    output: Annotated[str, Field(pattern=r"^gs://")] | None = Field(
        default=None, description="base output directory; without it, a folder of the target's bucket"
    )
    web_access: Flag = Field(default=False, description="a shell in the job's containers from the console")
    dashboard_access: Flag = False

    @model_validator(mode="after")
    def _second_pool(self) -> "Vertex":
        if self.parameter_servers and self.reduction_servers:
            raise ValueError("parameter_servers and reduction_servers are the same worker pool; a job has one of them")
        return self
