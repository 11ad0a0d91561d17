"""Jobs that run on this machine and outlive the command line, each in $XDG_STATE_HOME/accel/local/<id>/
(local_programs/supervisor.py). `cpus`, `memory_mib`, `shm_mib`, `disk_gib` and `accelerator` are requests that the
machine meets if it has that much for one task: checked when the job is submitted, neither reserved nor enforced. GPUs
are shared out among the tasks of one job, not between jobs."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Self

from accel.contract.targets import LocalTarget
from accel.diagnostics.errors import BadInput, BadInputs, CloudSilent, Damaged, JobsError, NoRuntime, NotFound
from accel.folders import state
from accel.rules.jobs import launchers

from ...model import keys, sweep_tasks
from ...model.job import Job, unused_blocks
from ...model.owners import owner_of
from .. import grace
from ..base import Attempt, Explanation, JobRef, LogLine, Phase, PlatformBackend, Request, Status
from ..local_programs import docker, supervisor
from ..local_programs.process import presence
from ..local_programs.supervisor import is_retried
from ..tasks import TaskStatus
from .files import numbers, put_if_absent, read, read_if_there
from .logs import lines
from .records import CancelRecord, RequestRecord, StatusRecord, SupervisorRecord

KIND = "local"
GRACE_S = 30
"""Between SIGTERM and SIGKILL, the same as on AWS Batch and Kubernetes."""

_IMAGES = "local/"
_TASKS_MAX = 10_000
"""As many as an array of AWS Batch has: accel.rules.aws.jobs."""
_ATTEMPTED_MAX = 100
_ENDS = {"exited": None, "terminated": "it was asked to stop", "timeout": "ran longer than its timeout_s"}
"""What a runner wrote as the reason of an attempt's end, in words."""
_SHM = Path("/dev/shm")  # noqa: S108, looked at only
_ROOT = Path(__file__).parents[__name__.count(".") + 1]


class LocalBackend(PlatformBackend[LocalTarget, str, None]):
    """Backend that runs jobs as processes of this user."""

    KIND = KIND

    def __init__(self, target_name: str, target: LocalTarget, *, timing: None = None) -> None:
        super().__init__(target_name, target, timing=timing)
        self.name = target_name
        self.root = PurePosixPath(Path(target.root).absolute())

    @classmethod
    def of_scope(cls, scope: str, *, timing: None = None) -> Self:
        """Return a backend for existing jobs, which need no target and have no scope."""
        return cls("local", LocalTarget())

    @staticmethod
    def _scope_of(target: LocalTarget) -> str:
        return ""

    def render(self, job: Job, name: str, key: str) -> Request:
        faults = _refusals(job)
        try:
            folder = self._folder(job.image)
        except BadInput as fault:
            faults.append(fault.message)
            folder = self.root
        if faults:
            raise BadInputs([f"target {self.name}: {fault}" for fault in faults])
        body: dict[str, Any] = {
            "job": job.name,
            "command": sweep_tasks.command(job, job.command, KIND),
            "env": job.env | grace.environment(KIND, GRACE_S) | sweep_tasks.environment(job),
            "folder": str(folder),
            "tasks": job.tasks,
            "parallelism": job.parallelism,
            "retries": job.retries or 0,
            "timeout_s": job.timeout_s,
            "grace_s": GRACE_S,
            "cpus": job.cpus,
            "memory_mib": job.memory_mib,
            "shm_mib": job.shm_mib,
            "disk_gib": job.disk_gib,
            "accelerator": job.accelerator.model_dump() if job.accelerator else None,
            "labels": job.labels,
        }
        if _is_contained(job):
            mounts = [mount.model_dump() for mount in job.mounts]
            body |= {"image": job.image, "mounts": mounts}
        return Request(KIND, self.name, name, key, body, unused_blocks(job, KIND))

    def check(self, request: Request) -> None:
        """Raise NoRuntime if no container can be run here, BadInputs if the machine has less than the job requests. A
        job that exists is not checked: the machine may have had more when it was created."""
        if (_folder_of(request.name) / "request.json").exists():
            return
        if "image" in request.body:
            _check_runtime(request)
        devices, kinds = gpus() if request.body["accelerator"] else ([], [])
        _check_size(request, devices, kinds)

    def submit(self, request: Request) -> JobRef:
        """Start the job, or find the one that this key started: one run, whatever crashes in between. Raise the errors
        of `check`, and BadInput if the key belongs to another job."""
        self.check(request)
        folder = _folder_of(request.name)
        devices = gpus()[0] if request.body["accelerator"] else []
        try:
            there = not self._claim(request, folder, devices)
        except OSError as error:
            hint = "XDG_STATE_HOME names another folder; its file system must have hard links"
            raise JobsError(f"the job cannot be kept in {folder}: {error.strerror}", hint) from error
        _supervise(folder)
        return JobRef(KIND, "", request.name, there)

    def _claim(self, request: Request, folder: Path, devices: "list[str]") -> bool:
        """Return whether the job is new. Raise BadInput if the key belongs to another job."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        claim = {
            "key": request.key,
            "spec_hash": keys.content_hash(request.body),
            "name": request.name,
            "target": self.name,
            "devices": devices,
            "created": datetime.now().astimezone().isoformat(),
            "body": request.body,
        }
        if not (new := put_if_absent(folder / "request.json", claim)):
            held = read(folder / "request.json", RequestRecord)
            if (held["key"], held["spec_hash"]) != (claim["key"], claim["spec_hash"]):
                raise BadInput(
                    f"key: job {request.name} exists with another content under the same key",
                    "use another --key, or the job file as it was",
                )
        return new

    def status(self, ref: JobRef) -> Status:
        folder = _existing(ref)
        request = read(folder / "request.json", RequestRecord)
        seen = _state(folder)
        return Status(
            ref=ref,
            name=request["name"],
            phase=Phase[seen["phase"].upper()],
            native=seen["phase"],
            reason=seen.get("reason"),
            exit_code=seen.get("exit_code"),
            attempts=seen.get("attempts", 0),
            lost=0,
            tasks=seen.get("tasks", {}) if request["body"]["tasks"] > 1 else {},
            created=_time(request["created"]),
            started=_time(seen.get("started")),
            stopped=_time(seen.get("stopped")),
            target=request["target"],
            gpus=(request["body"]["accelerator"] or {"count": 0})["count"],
            owner=owner_of(request["body"]["labels"]),
        )

    def cancel(self, ref: JobRef, reason: str) -> None:
        folder = _existing(ref)
        if self.status(ref).phase.ended:
            return
        put_if_absent(folder / "cancel.json", {"reason": reason})
        running = read_if_there(folder / "supervisor.json", SupervisorRecord)
        if running and presence(running) == "there":
            os.kill(running["pid"], 15)

    def logs(
        self, ref: JobRef, *, task: int | None = None, follow: bool = False, tail: int | None = None
    ) -> Iterator[LogLine]:
        folder = _existing(ref)
        tasks: int = read(folder / "request.json", RequestRecord)["body"]["tasks"]
        if task is not None and not 0 <= task < tasks:
            raise NotFound(f"job {ref} has no task {task}; it has 0 to {tasks - 1}")
        return lines(folder, tasks, task, lambda: not follow or self.status(ref).phase.ended, tail)

    def list(
        self, *, limit: int, ended: bool, progress: Callable[[int], None] = lambda count: None
    ) -> Iterator[Status]:
        """Yield the jobs, newest first. A folder whose submit wrote no request is no job. Raise Damaged at the end."""
        claimed: list[tuple[int, str]] = []
        if _jobs().exists():
            for entry in os.scandir(_jobs()):
                request = Path(entry.path, "request.json")
                if request.exists():
                    claimed.append((request.stat().st_mtime_ns, entry.name))
        damaged: list[str] = []
        for _, name in sorted(claimed, reverse=True):
            if limit <= 0:
                break
            try:
                status = self.status(JobRef(KIND, "", name))
            except CloudSilent as error:
                damaged.append(error.message)
                continue
            if ended or not status.phase.ended:
                limit -= 1
                yield status
        if damaged:
            raise Damaged(damaged)

    def explain(self, ref: JobRef, *, elsewhere: Callable[[], Sequence[str]] = tuple) -> Explanation:
        from ..diagnosis.local import explain

        folder = _existing(ref)
        return explain(folder, self.status(ref), read(folder / "request.json", RequestRecord)["body"])

    def attempts(self, ref: JobRef) -> Sequence[Attempt]:
        folder = _existing(ref)
        return _attempts(folder, read(folder / "request.json", RequestRecord))

    def resubmit_request(self, ref: JobRef, key: str) -> Request:
        request = read(_existing(ref) / "request.json", RequestRecord)
        name = keys.platform_name(request["body"]["job"], key)
        return Request(KIND, request["target"], name, key, request["body"])

    def resubmit_tasks_request(self, ref: JobRef, key: str, tasks: Sequence[int]) -> Request:
        return _in_part(self.resubmit_request(ref, key), tasks, ref)

    def tasks(self, ref: JobRef) -> Sequence[TaskStatus]:
        folder = _existing(ref)
        return _task_states(folder, self.status(ref), read(folder / "request.json", RequestRecord)["body"])

    def _folder(self, image: str | None) -> PurePosixPath:
        if image is None:
            return self.root
        inside = PurePosixPath(image.removeprefix(_IMAGES))
        if not image.startswith(_IMAGES):
            return self.root
        if inside.is_absolute() or ".." in inside.parts or "\0" in image or not inside.parts:
            raise BadInput(f"image: {image!r}: must be local/<folder>, a folder below {self.root}")
        return self.root / inside


def _in_part(request: Request, tasks: Sequence[int], ref: JobRef) -> Request:
    """Turn a request that repeats the whole job of `ref` into one for these tasks alone."""
    env = sweep_tasks.narrow_environment(request.body["env"], tasks, ref)
    most = request.body["parallelism"]
    parallelism = None if most is None else min(most, len(tasks))
    return replace(request, body=request.body | {"env": env, "tasks": len(tasks), "parallelism": parallelism})


def _task_states(folder: Path, job: Status, body: dict[str, Any]) -> list[TaskStatus]:
    """Return the state of each task; one without attempts waits, unless the job has ended."""
    return [_task_state(folder / "tasks" / str(index), index, job, body["retries"]) for index in range(body["tasks"])]


def _attempts(folder: Path, request: dict[str, Any]) -> list[Attempt]:
    """Return the attempts of the first _ATTEMPTED_MAX tasks. What a killed runner did not write is unknown."""
    several: bool = request["body"]["tasks"] > 1
    found: list[Attempt] = []
    for task in range(min(request["body"]["tasks"], _ATTEMPTED_MAX)):
        tries = folder / "tasks" / str(task)
        made = numbers(tries)
        for number in made:
            # None between the start of an attempt and its runner's first status.
            told = read_if_there(tries / str(number) / "status.json", StatusRecord) or {}
            gone = told.get("phase") == "running" and number != made[-1]
            reason: str | None = told.get("reason")
            found.append(
                Attempt(
                    number,
                    task if several else None,
                    created=_time(request["created"]) if number == 1 else None,
                    started=_time(told.get("started")),
                    stopped=_time(told.get("stopped")),
                    exit_code=told.get("exit_code"),
                    reason="its runner was killed" if gone else _ENDS.get(reason or "", reason),
                    lost=gone,
                )
            )
    return found


def _task_state(folder: Path, index: int, job: Status, retries: int) -> TaskStatus:
    attempts = max(numbers(folder), default=0)
    if not attempts:
        if job.phase.ended:
            return TaskStatus(index, Phase.FAILED, "never started", reason=job.reason)
        return TaskStatus(index, Phase.QUEUED, "queued")
    told = read_if_there(folder / str(attempts) / "status.json", StatusRecord) or {"phase": "starting"}
    phase, reason, code = Phase[told["phase"].upper()], told.get("reason"), told.get("exit_code")
    if phase is Phase.FAILED and not job.phase.ended and is_retried(told, attempts, retries):
        phase = Phase.QUEUED  # the supervisor begins the next attempt
    elif job.phase.ended and not phase.ended:
        phase, reason = Phase.FAILED, job.reason  # its runner was killed
    if reason == "exited":
        reason = f"exit code {code}" if code else None
    return TaskStatus(index, phase, told["phase"], attempts, code, reason)


def _supervise(folder: Path) -> None:
    """Start a supervisor unless the job has one. At most one of those started ever runs the job."""
    if (folder / "supervisor.json").exists():
        return
    python = [sys.executable, "-m", supervisor.__name__, str(folder)]
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    # cwd: -m makes Python import from there first, and a job's folder holds no module.
    started = subprocess.run(
        python, cwd=folder, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    if started.returncode != 0:
        detail = started.stderr.strip().splitlines()[-1:] or [f"see {folder / 'supervisor.log'}"]
        raise JobsError(f"the job's supervisor did not start: {detail[0]}", "the same --key tries again")


def _state(folder: Path) -> dict[str, Any]:
    running = read_if_there(folder / "supervisor.json", SupervisorRecord)
    if running is None:
        if cancelled := read_if_there(folder / "cancel.json", CancelRecord):
            return {"phase": "failed", "reason": f"cancelled before it started: {cancelled['reason']}"}
        return {
            "phase": "queued",
            "reason": "its submit was interrupted; the same submit with the same --key starts it",
        }
    # The order matters: a supervisor that ends between the two has written its last status by then.
    there = presence(running)
    seen = read_if_there(folder / "status.json", StatusRecord) or {"phase": "starting"}
    if there == "gone" and seen["phase"] not in ("succeeded", "failed"):
        return seen | {
            "phase": "failed",
            "reason": "runner is gone: it was killed, or this machine was restarted",
        }
    return seen


def _jobs() -> Path:
    return state() / "local"


def _folder_of(name: str) -> Path:
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise NotFound(f"no local job has the id {name!r}")
    return _jobs() / name


def _existing(ref: JobRef) -> Path:
    folder = _folder_of(ref.id)
    if not (folder / "request.json").exists():
        raise NotFound(f"no job {ref} on this machine")
    return folder


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _is_contained(job: Job) -> bool:
    return job.image is not None and not job.image.startswith(_IMAGES)


def _refusals(job: Job) -> list[str]:
    contained = _is_contained(job)
    faults = {
        "command: is missing; a folder has no command of its own": not (job.command or contained),
        f"tasks: {job.tasks:,}: this machine runs at most {_TASKS_MAX:,} of one job": job.tasks > _TASKS_MAX,
        "nodes: this machine is one node": job.nodes > 1,
        "spot: this machine is not Spot capacity": bool(job.spot),
        "mounts: nothing is mounted here; the job sees this machine's files": bool(job.mounts) and not contained,
        "secrets: references are resolved by the cloud only; give the value with --env": bool(job.secrets),
        "aws_batch.depends_on: jobs on AWS Batch cannot be waited for here": bool(
            job.aws_batch and job.aws_batch.depends_on
        ),
    }
    found = [fault for fault, applies in faults.items() if applies]
    gpus = job.accelerator.count if job.accelerator else None
    shape = launchers.Shape(1, gpus)
    wrong = [each for each in launchers.check(job.command, job.env, shape) if each.severity == "reject"]
    found += [f"{each.field}: {each.text}" for each in wrong] if job.nodes == 1 else []
    return found + (docker.faults([(mount.source, mount.path) for mount in job.mounts]) if contained else [])


def _check_runtime(request: Request) -> None:
    """Raise NoRuntime, with the command that would run the first task, if no container can be run here."""
    if (why := docker.absence()) is None:
        return
    body = request.body
    env = body["env"] | docker.task_variables(body, 0, 1)
    line = shlex.join(docker.command(body, f"accel-{request.name}", env, ()))
    raise NoRuntime(f"image: {body['image']}: {why}", f"a machine with docker runs it by: {line}")


def _check_size(request: Request, devices: list[str], kinds: list[str]) -> None:
    faults = _shortfalls(request.body, devices, kinds)
    if not Path(request.body["folder"]).is_dir():
        faults.append(f"image: the folder {request.body['folder']} does not exist")
    if faults:
        raise BadInputs([f"target {request.target}: {fault}" for fault in faults])


def gpus() -> tuple[list[str], list[str]]:
    """Return the ids for CUDA_VISIBLE_DEVICES that this process may use, and the names of the GPU kinds."""
    command = ["nvidia-smi", "--query-gpu=index,name", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return [], []
    if answer.returncode != 0:
        return [], []
    found = dict(line.split(", ", 1) for line in answer.stdout.splitlines() if ", " in line)
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    ids = list(found) if allowed is None else [one.strip() for one in allowed.split(",") if one.strip()]
    return ids, sorted(set(found.values()))


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory_mib() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20


def _shm_mib() -> int:
    return shutil.disk_usage(_SHM).total // 2**20 if _SHM.exists() else 0


def _disk_gib() -> int:
    """Return the free space where local jobs store their output."""
    folder = state()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free // 2**30


_MEASURES: dict[str, Callable[[], int]] = {
    "cpus": _cpus,
    "memory_mib": _memory_mib,
    "shm_mib": _shm_mib,
    "disk_gib": _disk_gib,
}


def _shortfalls(body: dict[str, Any], devices: list[str], names: list[str]) -> list[str]:
    faults = [
        f"{field}: asks for {wanted}, this machine has {has}"
        for field, measure in _MEASURES.items()
        if (wanted := body[field]) is not None and wanted > (has := measure())
    ]
    accelerator: dict[str, Any] | None = body["accelerator"]
    if not accelerator:
        return faults
    if accelerator["count"] > len(devices):
        seen = f"{len(devices)} GPU(s) visible to nvidia-smi" if devices else "no GPU visible to nvidia-smi"
        faults.append(f"accelerator.count: asks for {accelerator['count']}, this machine has {seen}")
    elif accelerator["type"] and not any(_plain(accelerator["type"]) in _plain(name) for name in names):
        faults.append(f"accelerator.type: asks for {accelerator['type']}, this machine has {', '.join(names)}")
    return faults


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
