"""Dispatch of rendered requests: check images, backends and quotas, reserve the cost, then submit."""

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from accel.diagnostics.errors import BadInput, BadInputs, CloudSilent, Interrupted, JobsError
from accel.folders import cache, write_json
from accel.rules import Finding
from accel.rules.batch import runnables
from accel.rules.jobs import entry_points
from accel.rules.jobs.containers import LOCAL

from ..backends.base import Request
from . import history
from .accrued_cost import size_of
from .allowances.submitter import Submitter, reserve
from .bulk import submit_all
from .code.option import send_code
from .quota import check

if TYPE_CHECKING:
    from accel.console.reporter import Reporter

    from ..backends.base import Backend, JobRef
    from ..model.job import Job
    from .bulk import BulkResult, Item
    from .code.shipping import Shipping
    from .targets import Targets

IMAGE_SWITCH = "ACCEL_IMAGE_CHECK"
"""Value `off` skips all image registries, for a network that reaches none."""
THROUGH_ENTRYPOINT = ("aws-batch", "tpu-vm", "gce", "local")
"""Kinds of targets that pass a command to the image's ENTRYPOINT; the others replace it."""
IMAGE_AGE_MAX_S = 3600.0
_REGISTRY_S = 3.0
_PRIVATE = (".dkr.ecr.",)
"""Registries that serve no anonymous reads."""

_ARGV_RULES: dict[str, tuple[Callable[[Sequence[str]], list[Finding]], ...]] = {
    "google-batch": (runnables.command,),
}
"""Rules on what a container runs, entry point first, by kind of target, for jobs with their image's own command."""


@contextmanager
def prepare_submission(
    pairs: "list[tuple[Job, Item]]",
    known: "Targets",
    shipping: "Shipping | None",
    reporter: "Reporter",
    *,
    prefers_spot: bool,
    quota: bool,
) -> Generator[tuple[Submitter, list[str]]]:
    """Yield the submitter, and the unknowns about quotas. `prefers_spot`: a job is to move to on demand."""
    check_images(pairs, reporter)
    check_feasible(pairs)
    unknown = check_quotas(pairs, reporter) if quota else []
    send_code(shipping, reporter)
    if prefers_spot:
        from .deadline.record import begin

        begin(pairs, known)
    with reserve(pairs, known, reporter) as submitter:
        submitter.sizes = {request.key: size_of(job) for job, (_, request) in pairs}
        yield submitter, unknown


class Receipts:
    """Reports of jobs as they are submitted. This class reports nothing; a command prints references."""

    def one(self, backend: "Backend", request: "Request", ref: "JobRef") -> None:
        """Report a job."""

    @contextmanager
    def many(self, items: "list[Item]") -> "Generator[Callable[[int, JobRef], None]]":
        """Yield the function that reports each of many jobs by its number, in order."""
        yield lambda number, ref: None

    def stopping(self, count: int) -> None:
        """Report that submits have stopped, with the most submits that are still waited for."""

    def all_made(self, refs: "list[JobRef]") -> None:
        """Report that all of many jobs exist."""

    def interrupt(self, pressed: KeyboardInterrupt, hint: str) -> BaseException:
        """Return the exception to raise when somebody interrupts a submit. `hint` says how to find the job."""
        pressed.add_note(f"what was under way may have been made; {hint}")
        return pressed


def submit_one(
    backend: "Backend",
    request: "Request",
    caller: str,
    reporter: "Reporter",
    submitter: Submitter,
    receipts: Receipts | None = None,
) -> "JobRef":
    """Submit a job and record it in the history. Raises CloudSilent with a hint on how to learn what became of it."""
    receipts = receipts or Receipts()
    try:
        ref = submitter.submit(backend, request)
    except CloudSilent as silent:
        raise CloudSilent(silent.message, how_to_find(caller, reporter)) from silent
    except KeyboardInterrupt as pressed:
        raise receipts.interrupt(pressed, how_to_find(caller, reporter)) from None
    record_history(ref, request, caller, submitter, reporter)
    receipts.one(backend, request, ref)
    return ref


def how_to_find(caller: str, reporter: "Reporter") -> str:
    return f"{reporter.resubmission(caller)} finds the job if it was made, and makes it if not"


def submit_many(
    items: "list[Item]",
    caller: str,
    reporter: "Reporter",
    submitter: Submitter,
    receipts: Receipts,
    rate: int | None,
    stop: threading.Event | None,
) -> "list[JobRef]":
    """Submit at most `rate` jobs per second, and record them in the history. Setting `stop`, or SIGINT without it,
    stops. Raises Interrupted, or the first error; both tell how many jobs exist, and that the same command goes on."""
    with receipts.many(items) as tell:

        def record(number: int, ref: "JobRef") -> None:
            record_history(ref, items[number][1], caller, submitter, reporter)
            tell(number, ref)

        try:
            result = submit_all(
                items,
                submits_per_s=rate,
                made=record,
                stopping=receipts.stopping,
                send=submitter.submit,
                stop=stop,
            )
        except KeyboardInterrupt as pressed:
            raise receipts.interrupt(pressed, how_to_find(caller, reporter)) from None
    raise_if_incomplete(result, len(items), caller, reporter)
    return [result.refs[number] for number in range(len(items))]


def raise_if_incomplete(sent: "BulkResult", wanted: int, caller: str, reporter: "Reporter") -> None:
    """Raise the first error, or Interrupted, where not all jobs were made."""
    if len(sent.refs) == wanted:
        return
    count = f"{len(sent.refs):,} of {wanted:,} jobs are created"
    again = f"{reporter.resubmission(caller)} creates the rest, and none twice"
    reporter.say(count)
    if not sent.errors:
        raise Interrupted(f"interrupted; {count}", again)
    first, *others = [sent.errors[number] for number in sorted(sent.errors)]
    for message in list(dict.fromkeys(error.message for error in others if error.message != first.message))[:10]:
        reporter.say(f"error: {message}")
    first.hint = f"{first.hint}; {again}" if first.hint else again
    raise first


def record_history(ref: "JobRef", request: "Request", caller: str, submitter: Submitter, reporter: "Reporter") -> None:
    try:
        size = submitter.sizes.get(request.key)
        history.append(str(ref), request.name, request.target, caller, submitter.note(request), size)
    except OSError as error:
        reporter.say(f"the job is not in the history of this machine: {error}")


def check_images(pairs: "Sequence[tuple[Job, Item]]", reporter: "Reporter") -> None:
    """Check commands against what their images run by themselves; raise BadInputs where a container would run nothing.
    Registries are read only for jobs without a command, and for commands that the platform passes to the image's entry
    point. One that refuses anonymous reads or does not answer is no reason to refuse a job. Answers are kept for an
    hour, since registries count such reads (https://docs.docker.com/docker-hub/usage/)."""
    if os.environ.get(IMAGE_SWITCH) == "off":
        return
    rejected: dict[str, None] = {}
    warned: dict[str, None] = {}
    images: dict[str, entry_points.Image | None] = {}
    for job, (_, request) in pairs:
        if not _needs_image(job, request.kind, request.body):
            continue
        name = str(job.image)
        if name not in images:
            images[name] = _read_image(name)
        if (image := images[name]) is None:
            continue
        for finding in _image_findings(image, job, request.kind):
            told = rejected if finding.severity == "reject" else warned
            told[f"{finding.field}: {finding.text} (image {name})"] = None
    for warning in warned:
        reporter.warn(warning)
    if rejected:
        raise BadInputs(list(rejected))


@runtime_checkable
class Feasible(Protocol):
    """A backend that can check a request without making anything."""

    def check(self, request: Request) -> None:
        """Check the request with reads only. Raises what submit raises for a job that does not exist yet."""
        ...


def check_feasible(pairs: "Sequence[tuple[Job, Item]]") -> None:
    """Raise BadInputs with every fault, or the first job's other error. Name the job where there are several."""
    faults: list[str] = []
    for job, (backend, request) in pairs:
        if not isinstance(backend, Feasible):
            continue
        prefix = f"{job.name}: " if len(pairs) > 1 else ""
        try:
            backend.check(request)
        except BadInput as error:
            messages = error.messages if isinstance(error, BadInputs) else [error.message]
            faults += [prefix + message for message in messages]
        except JobsError as error:
            raise type(error)(prefix + error.message, error.hint) from None
    if faults:
        raise BadInputs(faults)


_SIZE = {
    *("accelerator", "cpus", "memory_mib", "image", "nodes", "tasks", "parallelism", "spot"),
    *("aws_batch", "gce", "tpu_vm", "google_batch", "vertex"),
}
"""Fields that decide which quotas a job uses, and how much of them."""


def check_quotas(jobs: "list[tuple[Job, Item]]", reporter: "Reporter") -> list[str]:
    """Check as quota.check does, once for jobs of one size on one target."""
    seen: dict[str, tuple[Job, Item]] = {}
    for job, item in jobs:
        size = job.model_dump_json(include=_SIZE)
        seen.setdefault(f"{item[1].target} {size}", (job, item))
    return list(dict.fromkeys(line for job, (backend, _) in seen.values() for line in check(backend, job, reporter)))


def _image_findings(image: entry_points.Image, job: "Job", kind: str) -> list[Finding]:
    replaced, swept = kind not in THROUGH_ENTRYPOINT, bool(job.sweep and job.sweep.shell)
    found = entry_points.command(image, job.command, replaced=replaced, swept=swept)
    if found or job.command:
        return found
    line = entry_points.argv(image, job.command, replaced=replaced)
    own = "write command in the job file, which is then run so that it holds"
    return [replace(each, fix=own) for rule in _ARGV_RULES.get(kind, ()) for each in rule(line)]


def _needs_image(job: "Job", kind: str, body: dict[str, object]) -> bool:
    if job.image is None or job.image.startswith(LOCAL) or any(part in job.image for part in _PRIVATE):
        return False
    if job.command:
        return kind in THROUGH_ENTRYPOINT
    if kind == "aws-batch":
        return body.get("register") is not None  # else the stack's definition has a command, or has none on purpose
    block = {"google-batch": job.google_batch, "vertex": job.vertex}.get(kind)
    # The block then names what runs, for each step or pool.
    return block is None or not block.model_fields_set & {"runnables", "args", "package"}


def _read_image(name: str) -> entry_points.Image | None:
    """Return None where the registry does not answer."""
    from accel.clouds.image_registry import Registry, parse

    path = cache() / f"entry-point-{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(path.read_text())
        if 0 <= time.time() - kept["at"] < IMAGE_AGE_MAX_S:
            return entry_points.Image(tuple(kept["entry_point"]), tuple(kept["cmd"]))
    try:
        found = Registry(parse(name), _REGISTRY_S).image("amd64")
    except JobsError:
        return None
    with suppress(OSError):
        write_json(path, {"at": time.time(), "entry_point": found.entry_point, "cmd": found.cmd})
    return entry_points.Image(found.entry_point, found.cmd)
