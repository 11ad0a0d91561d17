"""Settings of a Vertex AI custom job: command, variables, mounts, TensorBoard, network."""

import ipaddress
import re
import shlex
from collections.abc import Mapping, Sequence

from accel.diagnostics.findings import Finding
from accel.rules.batch import runnables
from accel.rules.jobs import placeholders
from accel.rules.table import rule

COMMAND = rule("vertex.command.one-word")
COMMAND_QUOTES = rule("vertex.command.quotes")
COMMAND_ARGS = rule("vertex.command.and-args")
PACKAGE = rule("vertex.package")
LOCAL_OUTPUT = rule("vertex.local-output")
OUTPUT = rule("vertex.output")
ENV_COUNT = rule("vertex.env.count")
ENV_EMPTY = rule("vertex.env.empty")
ENV_RESERVED = rule("vertex.env.reserved")
VISIBLE_DEVICES = rule("container.env.visible-devices")
SECRETS = rule("vertex.secrets")
TASKS = rule("vertex.tasks")
SHM = rule("vertex.shm")
BUCKET_PATH = rule("vertex.mount.path")
BUCKET_READ_ONLY = rule("vertex.mount.read-only")
MOUNT = rule("vertex.mount.source")
NFS = rule("vertex.mount.nfs")
TENSORBOARD = rule("vertex.tensorboard")
NETWORK = rule("vertex.network")

ENV_MAX = 100
NFS_ROOT = "/mnt/nfs/"
_SET_BY_VERTEX = re.compile(r"CLUSTER_SPEC|TF_CONFIG|AIP_.*|CLOUD_ML_.*")
_BUCKET = re.compile(r"gs://([a-z0-9][-_.a-z0-9]{1,220}[a-z0-9])(/[^\0]*)?")
_SHARE = re.compile(r"nfs://([^/]+)(/\S*)")
_BOARD = re.compile(r"projects/[^/]+/locations/([a-z0-9-]+)/tensorboards/[^/]+")
_NETWORK = re.compile(r"projects/\d+/global/networks/[a-z]([-a-z0-9]*[a-z0-9])?")


def command(words: Sequence[str], field: str = "command") -> list[Finding]:
    """Check for a first word with spaces. The replacement is the whole list."""
    if not words or len(words[0].split()) < 2:
        return []
    try:
        split = [*shlex.split(words[0]), *words[1:]]
    except ValueError as error:
        message = f"is one string, {words[0]!r}, with {str(error).lower()}"
        return [COMMAND_QUOTES.finding(field, message, "write a list: [python, train.py]")]
    return [COMMAND.finding(field, f"is one string, {words[0]!r}", f"write {_shown(split)}", split)]


def _shown(words: Sequence[str]) -> str:
    return f"[{', '.join(words)}]"


def program(words: Sequence[str], args: Sequence[str], package: bool, field: str = "command") -> list[Finding]:
    if words and package:
        return [PACKAGE.finding(field, "is there beside a package", "leave it out; args are the module's")]
    if words and args:
        return [COMMAND_ARGS.finding(field, "is there beside args", "put all words into one of the two")]
    return []


def local_output(words: Sequence[str], variables: Mapping[str, str], shares: Sequence[str]) -> list[Finding]:
    """Check for outputs, recognized by name, in neither /gcs, where buckets are, nor `shares`, mount points of NFS."""
    return [
        LOCAL_OUTPUT.finding(
            field,
            f"has {name} {value[:80]}, on the machine's own disk, which is deleted after the job",
            "write to /gcs/<bucket>, or where AIP_MODEL_DIR says",
        )
        for field, name, value in runnables.output_paths(words, variables, ["/gcs", *shares])
    ]


def output(value: str, field: str = "output") -> list[Finding]:
    if value.startswith("gs://"):
        return []
    return [OUTPUT.finding(field, f'is "{value}", which is not in Cloud Storage', "write gs://<bucket>/<folder>")]


def environment(variables: Mapping[str, object], *, own: int = 0, field: str = "env") -> list[Finding]:
    """Check names and number; `own` more are added."""
    found = [
        ENV_RESERVED.finding(f"{field}.{name}", "is set by Vertex AI", "give the variable another name")
        for name in variables
        if _SET_BY_VERTEX.fullmatch(name)
    ]
    found += [
        ENV_EMPTY.finding(f"{field}.{name}", "is empty, which Vertex AI does not take", "leave it out")
        for name, value in variables.items()
        if value == ""
    ]
    if (beyond := len(variables) + own - ENV_MAX) > 0:
        message = f"has {len(variables)} variables" + (f", with {own} of the platform's" if own else "")
        found.append(ENV_COUNT.finding(field, message, f"leave {beyond} out, or put them into a file"))
    return found


def visible_devices(variables: Mapping[str, str], gpus: int, field: str = "env") -> list[Finding]:
    """Ignore names of GPUs, and -1."""
    value = variables.get("CUDA_VISIBLE_DEVICES", "")
    named = [int(each) for each in value.split(",") if each.strip().isdigit()]
    beyond = [each for each in named if each >= gpus]
    if not beyond:
        return []
    has = f"has {gpus} GPU{'s' * (gpus > 1)}, 0 to {gpus - 1}" if gpus else "has no GPU"
    message = f'is "{value}", and the machine {has}'
    fix = "leave it out: all GPUs are seen without it"
    return [VISIBLE_DEVICES.finding(f"{field}.CUDA_VISIBLE_DEVICES", message, fix)]


def secret(name: str, project: str, field: str = "secrets") -> list[Finding]:
    """Return the finding without the reference, which may be the secret itself."""
    fix = (
        f"read projects/{project}/secrets/<secret> in the program, as the job's account may, or use google-batch or gke"
    )
    return [SECRETS.finding(f"{field}.{name}", "cannot be set: Vertex AI has no secret variables", fix)]


def tasks(count: int, field: str = "tasks") -> list[Finding]:
    if count == 1:
        return []
    fix = "submit several jobs, or use a target of kind google-batch or gke"
    return [TASKS.finding(field, f"is {count}, and Vertex AI runs one task", fix)]


def shm(mib: int | None, field: str = "shm_mib") -> list[Finding]:
    if mib is None:
        return []
    return [SHM.finding(field, f"is {mib}, which Vertex AI cannot be told", "leave it out, or use google-batch or gke")]


def mount(source: str, path: str, *, read_only: bool, networked: bool, at: str = "mounts[0]") -> list[Finding]:
    """Check a mount. `networked`: the job is in a network."""
    if unfilled := placeholders.value(f"{at}.source", source):
        return unfilled
    if share := _SHARE.fullmatch(source):
        return _share(share[1], path, networked, at)
    bucket = _BUCKET.fullmatch(source)
    if bucket is None:
        message = f'is "{source[:80]}", which Vertex AI does not mount'
        return [MOUNT.finding(f"{at}.source", message, "write gs://<bucket>[/folder] or nfs://<address>/<path>")]
    if path.rstrip("/") != (seen := bucket_path(source)):
        message = f'is "{path}", and Vertex AI has {source} at {seen}'
        return [BUCKET_PATH.finding(f"{at}.path", message, f"write {seen}, and read it there")]
    if read_only:
        message = "is true, and Vertex AI mounts buckets as the job's account may use them"
        return [BUCKET_READ_ONLY.finding(f"{at}.read_only", message, "give the account roles/storage.objectViewer")]
    return []


def bucket_path(source: str) -> str:
    return f"/gcs/{source.removeprefix('gs://')}".rstrip("/")


def _share(server: str, path: str, networked: bool, at: str) -> list[Finding]:
    found: list[Finding] = []
    try:
        private = ipaddress.ip_address(server).is_private
    except ValueError:
        private = False
    if not private:
        fix = "write the private IP address of the server"
        found.append(NFS.finding(f"{at}.source", f'has server "{server}"', fix))
    folder = path.removeprefix(NFS_ROOT)
    if folder == path or not folder or "/" in folder.rstrip("/"):
        found.append(NFS.finding(f"{at}.path", f'is "{path}"', f"write {NFS_ROOT} and one folder's name"))
    if not networked:
        message = "is an NFS share, and the target is in no network"
        found.append(NFS.finding(f"{at}.source", message, "give the target a network_attachment or a network"))
    return found


def tensorboard(
    name: str | None, service_account: str | None, region: str, field: str = "tensorboard"
) -> list[Finding]:
    if name is None:
        return []
    found = _BOARD.fullmatch(name)
    if found is None:
        return [TENSORBOARD.finding(field, f'is "{name}"', f"write projects/<p>/locations/{region}/tensorboards/<id>")]
    if found[1] != region:
        message = f"is of {found[1]}, and the job runs in {region}"
        return [TENSORBOARD.finding(field, message, "use one of that region")]
    if not service_account:
        return [TENSORBOARD.finding(field, "is there without a service account", "name a service account")]
    return []


def network(name: str | None, field: str = "network") -> list[Finding]:
    if name is None or _NETWORK.fullmatch(name):
        return []
    fix = "write projects/<number of the project>/global/networks/<name>"
    return [NETWORK.finding(field, f'is "{name}"', fix)]
