"""Commands to build and push container images that fit a stack's GPUs and their driver."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from shlex import quote

from accel.catalog import cuda
from accel.catalog.accelerators import Accelerator, accelerators
from accel.catalog.cuda import Base, format_driver, releases, version_text
from accel.catalog.machines import machines
from accel.clouds import image_registry
from accel.diagnostics.errors import BadInput

from ..stack_files import ReadStack
from .gpus import ImageTarget

TEMPLATE = Path(__file__).with_name("images.Dockerfile")
RUNTIME = Path(__file__).parents[3] / "jobs" / "runtime"
TAG = "$(git rev-parse --short HEAD)"
_READ = "import json, sys; print(json.load(sys.stdin)[sys.argv[1]])"


def build_commands(stack: ReadStack, wanted_at: Iterable[ImageTarget], tag: str, pin: bool) -> Iterator[str]:
    wanted: dict[tuple[Base, str], dict[str, None]] = {}
    for place in wanted_at:
        for name in place.accelerators:
            base = _base(accelerators()[name], place)
            wanted.setdefault((base, _platform(name)), {})[name] = None
    for (base, platform), gpus in wanted.items():
        yield f"# {stack.name}: {', '.join(gpus)}"
        yield from _about(base)
        for repository, login in _repositories(stack):
            yield from _build(repository, login, base, platform, tag, pin)


def _base(kind: Accelerator, place: ImageTarget) -> Base:
    base = cuda.base(kind, place.driver)
    if base is None:
        driver = f" and driver {cuda.format_driver(place.driver)}" if place.driver else ""
        raise BadInput(f"{place.name}: there is no base image for {kind.name}{driver}", "pin a newer machine image")
    return base


def _about(base: Base) -> Iterator[str]:
    release = releases()[base.cuda]
    yield f"# CUDA {version_text(base.cuda)}: driver {format_driver(release.driver)} or later runs all of it"
    ends = "has ended" if base.branch_ends == "ended" else f"ends {base.branch_ends}"
    yield f"# driver branch {base.driver_branch} {ends}, and six months later NVIDIA deletes the base: keep a copy"


def _repositories(stack: ReadStack) -> Iterator[tuple[str, str]]:
    """Yield the shell's word for each repository of a stack, and the command that logs in to it."""
    aws, gcp = stack.environment.aws, stack.environment.gcp
    for key in aws.repositories if aws else ():
        login = f"aws ecr get-login-password --region {aws.region if aws else ''} | docker login --username AWS"
        yield _output("repositories", key, stack.name), f'{login} --password-stdin "${{REPOSITORY%%/*}}"'
    for key in gcp.images if gcp else ():
        login = 'gcloud auth configure-docker --quiet "${REPOSITORY%%/*}"'
        yield f"{_output('gcp_repositories', key, stack.name)}/{key}", login
    if not (aws and aws.repositories) and not (gcp and gcp.images):
        yield "registry.example.com/team/train # the stack has no repository: name yours", "docker login"


def _output(name: str, key: str, stack: str) -> str:
    return f"$(pulumi stack output {name} --stack {quote(stack)} --json | python3 -c '{_READ}' {quote(key)})"


def _build(repository: str, login: str, base: Base, platform: str, tag: str, pin: bool) -> Iterator[str]:
    image = image_registry.pin_digest(base.image) if pin else base.image
    whole = f'"$REPOSITORY:{tag}-cuda{version_text(base.cuda)}"'
    yield f"REPOSITORY={repository}"
    yield login
    yield (
        f"docker build --platform {platform} --build-arg BASE={image} --build-arg CUDA={version_text(base.cuda)}"
        f" --build-context {quote(f'accel_runtime={RUNTIME}')} --tag {whole} ."
    )
    yield f"docker push {whole}"
    yield ""


def _platform(accelerator: str) -> str:
    every = machines("aws") + machines("gcp")
    arches = {each.cpu_arch for each in every if each.accelerator == accelerator}
    return "linux/arm64" if arches == {"arm64"} else "linux/amd64"


def write_dockerfile(folder: Path) -> str:
    """Return a sentence about what was done. Raise BadInput if a different Dockerfile exists."""
    path, text = folder / "Dockerfile", TEMPLATE.read_text(encoding="utf-8")
    try:
        if path.exists():
            if path.read_text(encoding="utf-8") == text:
                return f"{path}: is there already"
            raise BadInput(f"{path}: is there, and another one", "rename it, or write into another folder")
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None
    return f"{path}: written"
