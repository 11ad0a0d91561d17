"""Stand-in for docker on a machine: `main(FOLDER, ARGUMENTS)`.

`docker run local/<folder> COMMAND` runs the command in <project>/<folder> by jobs/backends/local_programs/runner.py,
with the variables of -e and those that every image has. A container goes on without its client, and ends with the
machine. Volumes, networks, limits and -w have no effect here, and its stderr comes on stdout. Any other image cannot be
pulled.

FOLDER/docker/<name>/  spec.json, output.log and status.json of the runner; pid of it; id; client: pid; stop: seconds
                       before SIGKILL; rm: it is removed when it has ended
Exit codes: https://docs.docker.com/engine/containers/run/#exit-status
"""

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

PROJECT = Path(__file__).resolve().parents[3]
RUNNER = PROJECT / "jobs" / "backends" / "local_programs" / "runner.py"
FOREVER_S = 10**8  # a client that forwards SIGTERM does not send SIGKILL after it
STOP_S = 10
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


_VALUES = (
    "--name --network --net --gpus --shm-size -e --env --env-file -v --volume --mount --entrypoint -w --workdir "
    "--stop-timeout -u --user --ipc --ulimit -l --label -h --hostname --pull --device -m --memory --cpus --log-driver "
    "--log-opt --cap-add --pid --restart --runtime -t --time --timeout -s --signal -f --filter -p --password "
    "--username --format --tmpfs"
)
_OPTIONS_WITH_VALUE = frozenset(_VALUES.split())
"""Options with a value; -t, -f and -u are switches or have one, by verb."""
_SWITCHES = "--rm --privileged -d --detach -i --interactive --tty -it --init -q --quiet -a --all --force --follow"
_ALL_SWITCHES = frozenset([*_SWITCHES.split(), "--password-stdin"])
_OWN_SWITCHES = {"run": {"-t"}, "exec": {"-t"}, "rm": {"-f", "-v"}, "logs": {"-f"}}


class DockerError(Exception):
    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


@dataclass
class CommandLine:
    options: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    rest: list[str] = field(default_factory=list[str])

    def last(self, *names: str) -> str | None:
        found = [value for name in names for value in self.options.get(name, [])]
        return found[-1] if found else None

    def has(self, *names: str) -> bool:
        return any(name in self.options for name in names)


def parse(verb: str, arguments: list[str]) -> CommandLine:
    """Return options up to the first other word; for verbs without a command, options at any place."""
    asked, words = CommandLine(), list(arguments)
    while words:
        name, equals, value = words.pop(0).partition("=")
        if not name.startswith("-") or name == "-":
            asked.rest.append(name + equals + value)
            if verb in ("run", "exec"):
                asked.rest += words
                break
        elif name in _OWN_SWITCHES.get(verb, ()) or name in _ALL_SWITCHES:
            asked.options.setdefault(name, []).append(value or "true")
        elif name not in _OPTIONS_WITH_VALUE:
            raise DockerError(f"unknown flag: {name}\n\nUsage:  docker {verb}", 125)
        elif not equals and not words:
            raise DockerError(f"flag needs an argument: {name}", 125)
        else:
            asked.options.setdefault(name, []).append(value if equals else words.pop(0))
    return asked


def variables(asked: CommandLine) -> dict[str, str]:
    """Return the variables of --env-file and -e; a name alone takes the client's value."""
    files = [Path(name).read_text().splitlines() for name in asked.options.get("--env-file", [])]
    lines = [line for rows in files for line in rows if line.strip() and not line.lstrip().startswith("#")]
    found: dict[str, str] = {}
    for line in [*lines, *asked.options.get("-e", []), *asked.options.get("--env", [])]:
        name, given, value = line.partition("=")
        if given or name in os.environ:
            found[name] = value if given else os.environ[name]
    return found


_TICK_S = 0.02


@dataclass(frozen=True)
class Container:
    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    def read(self, name: str) -> str:
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / name).read_text()
        return ""

    def status(self) -> Any:
        return json.loads(self.read("status.json") or "{}")

    def runner(self) -> psutil.Process | None:
        with contextlib.suppress(psutil.Error, ValueError):
            process = psutil.Process(int(self.read("pid")))
            ours = str(self.folder) in process.cmdline()
            return process if ours and process.status() != psutil.STATUS_ZOMBIE else None
        return None

    def signal(self, number: signal.Signals) -> None:
        if runner := self.runner():
            with contextlib.suppress(psutil.Error):
                runner.send_signal(number)

    def kill(self) -> None:
        if runner := self.runner():
            for process in [*runner.children(recursive=True), runner]:
                with contextlib.suppress(psutil.Error):
                    process.kill()

    def over(self, within_s: float) -> bool:
        """Return whether it ends within this time."""
        until = time.monotonic() + within_s
        while self.runner() is not None:
            if time.monotonic() > until:
                return False
            time.sleep(_TICK_S)
        return True

    def exit_code(self) -> int:
        """Return the exit code that docker reports; 137 for a container that was killed with its runner."""
        code, why = self.status().get("exit_code"), self.status().get("reason") or ""
        if why.startswith("not-started"):
            said = f"failed to create task for container: {why[12:].strip()}"
            sys.stderr.write(f"docker: Error response from daemon: {said}\n")
        return 137 if code is None else code


class Docker:
    def __init__(self, folder: Path) -> None:
        self.folder, self.containers = folder, folder / "docker"

    def container(self, name: str) -> Container:
        for found in self.all():
            if found.name == name or (len(name) >= 4 and found.read("id").startswith(name)):
                return found
        raise DockerError(f"Error response from daemon: No such container: {name}")

    def all(self) -> list[Container]:
        """Return all containers, after removing ended ones with --rm."""
        found = [Container(path) for path in sorted(self.containers.glob("*")) if (path / "spec.json").exists()]
        gone = [each for each in found if (each.folder / "rm").exists() and each.runner() is None]
        for each in gone:
            if (each.folder / "client").exists() and psutil.pid_exists(int(each.read("client"))):
                continue  # its client still reads how it ended
            shutil.rmtree(each.folder, ignore_errors=True)
        return [each for each in found if each.folder.exists()]

    def run(self, asked: CommandLine) -> int:
        if not asked.rest:
            raise DockerError('"docker run" requires at least 1 argument.', 125)
        image, *command = asked.rest
        workdir = folder_of(image)
        if workdir is None:
            sys.stderr.write(f"Unable to find image '{image}' locally\n")
            raise DockerError(f"docker: {_denied(image)}", 125)
        if entry := asked.last("--entrypoint"):
            command = [entry, *command]
        if not command:
            raise DockerError("docker: Error response from daemon: no command specified", 125)
        known = json.loads((self.folder / "gpus.json").read_text())
        if asked.has("--gpus") and not (known["gpus"] and known["driver"]):
            said = 'could not select device driver "" with capabilities: [[gpu]]'
            raise DockerError(f"docker: Error response from daemon: {said}", 125)
        container = self._made(asked)
        # Inside a container, the metadata server and storage have names on Google Cloud; here variables lead to them.
        given = {"HOSTNAME": container.read("id")[:12]}
        given |= {name: os.environ[name] for name in ("GCE_METADATA_HOST", "ACCEL_STORAGE_ROOT") if name in os.environ}
        spec = {"command": command, "env": given | variables(asked), "workdir": str(workdir), "timeout_s": None}
        (container.folder / "spec.json").touch(mode=0o600)
        (container.folder / "spec.json").write_text(json.dumps(spec | {"grace_s": FOREVER_S}))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: container.signal(signal.SIGTERM))
        with (container.folder / "runner.log").open("wb") as log, (self.folder / "life").open("rb") as life:
            process = subprocess.Popen(
                [sys.executable, str(RUNNER), str(container.folder), "--tied"],
                stdin=life, stdout=log, stderr=log, cwd=PROJECT, start_new_session=True,
                env={"PATH": _PATH, "HOME": str(container.folder)},
            )  # fmt: skip
        (container.folder / "pid").write_text(str(process.pid))
        if asked.has("-d", "--detach"):
            return _say(container.read("id"))
        self._follow(container, lambda: process.poll() is None)
        code = container.exit_code()
        if asked.has("--rm"):
            shutil.rmtree(container.folder, ignore_errors=True)
        return code

    def _made(self, asked: CommandLine) -> Container:
        number = secrets.token_hex(32)
        container = Container(self.containers / (asked.last("--name") or f"sandbox_{number[:8]}"))
        self.all()
        try:
            container.folder.mkdir(parents=True)
        except FileExistsError:
            said = f'The container name "/{container.name}" is already in use by container "{container.read("id")}".'
            raise DockerError(f"docker: Error response from daemon: Conflict. {said}", 125) from None
        (container.folder / "id").write_text(number)
        (container.folder / "stop").write_text(asked.last("--stop-timeout") or str(STOP_S))
        if asked.has("--rm"):
            (container.folder / "rm").touch()
        (container.folder / "client").write_text(str(os.getpid()))
        return container

    def _follow(self, container: Container, running: Callable[[], bool]) -> None:
        offset, goes_on = 0, True
        while goes_on:
            goes_on = running()  # called before reading, so that the last output is read
            with contextlib.suppress(FileNotFoundError), (container.folder / "output.log").open("rb") as output:
                output.seek(offset)
                while part := output.read(1 << 16):
                    offset += len(part)
                    with contextlib.suppress(BrokenPipeError):
                        sys.stdout.buffer.write(part)
                sys.stdout.flush()
            if goes_on:
                time.sleep(_TICK_S)

    def exec(self, asked: CommandLine) -> int:
        container, command = self.container(asked.rest[0]), asked.rest[1:]
        if container.runner() is None:
            raise DockerError(f"Error response from daemon: container {container.name} is not running")
        spec = json.loads(container.read("spec.json"))
        path = os.pathsep.join([str(Path(sys.executable).parent), _PATH])
        made = {"PATH": path, "HOME": str(container.folder)} | spec["env"] | variables(asked)
        os.chdir(spec["workdir"])
        os.environ["PATH"] = made["PATH"]
        try:
            os.execvpe(command[0], command, made)  # noqa: S606, it takes the place of this client
        except OSError as error:
            said = f'exec failed: unable to start container process: exec: "{command[0]}": {error.strerror}'
            raise DockerError(f"OCI runtime exec failed: {said}", 127) from None

    def logs(self, asked: CommandLine) -> int:
        container = self.container(asked.rest[0])
        follow = asked.has("-f", "--follow")
        self._follow(container, lambda: follow and container.runner() is not None)
        return 0

    def stop(self, asked: CommandLine) -> int:
        for name in asked.rest:
            container = self.container(name)
            container.signal(signal.SIGTERM)
            if not container.over(float(asked.last("-t", "--time", "--timeout") or container.read("stop"))):
                container.kill()
                container.over(STOP_S)
            _say(name)
        return 0

    def kill(self, asked: CommandLine) -> int:
        for name in asked.rest:
            container = self.container(name)
            if container.runner() is None:
                raise DockerError(f"Error response from daemon: cannot kill container: {name}: is not running")
            if (asked.last("-s", "--signal") or "KILL").removeprefix("SIG") == "KILL":
                container.kill()
                container.over(STOP_S)
            else:
                container.signal(signal.SIGTERM)
            _say(name)
        return 0

    def rm(self, asked: CommandLine) -> int:
        for name in asked.rest:
            container = self.container(name)
            if container.runner() is not None:
                if not asked.has("-f", "--force"):
                    said = f"cannot remove container {name}: container is running: stop the container before removing"
                    raise DockerError(f"Error response from daemon: {said} or force remove")
                container.kill()
                container.over(STOP_S)
            shutil.rmtree(container.folder, ignore_errors=True)
            _say(name)
        return 0

    def ps(self, asked: CommandLine) -> int:
        filters = [*asked.options.get("--filter", []), *asked.options.get("-f", [])]
        names = [value.removeprefix("name=") for value in filters]
        for container in self.all():
            shown = asked.has("-a", "--all") or container.runner() is not None
            if shown and all(name.strip("^$/") in container.name for name in names):
                number = container.read("id")[:12]
                _say(number if asked.has("-q", "--quiet") else f"{number}  {container.name}")
        return 0

    def pull(self, asked: CommandLine) -> int:
        for image in asked.rest:
            if folder_of(image) is None:
                raise DockerError(_denied(image))
            _say(image)
        return 0

    def login(self, asked: CommandLine) -> int:
        given = asked.last("-p", "--password") or (sys.stdin.read().strip() if asked.has("--password-stdin") else "")
        if given != json.loads((self.folder / "machine.json").read_text())["token"]:
            where = asked.rest[0] if asked.rest else "https://index.docker.io/v1/"
            raise DockerError(f'Error response from daemon: Get "{where}": unauthorized: authentication failed')
        return _say("Login Succeeded")

    def info(self, asked: CommandLine) -> int:
        return _say("Server Version: sandbox")


def folder_of(image: str) -> Path | None:
    """Return the folder of a `local/<folder>` image; None for other images and folders outside of the project."""
    folder = (PROJECT / image.removeprefix("local/").partition(":")[0]).resolve()
    known = image.startswith("local/") and folder.is_relative_to(PROJECT) and folder.is_dir()
    return folder if known else None


def _denied(image: str) -> str:
    return (
        f"Error response from daemon: pull access denied for {image}, repository does not exist or may require "
        "'docker login': denied: the sandbox runs only local/<folder> images"
    )


def _say(text: str) -> int:
    sys.stdout.write(f"{text}\n")
    return 0


def main(folder: str, arguments: list[str]) -> int:
    docker = Docker(Path(folder))
    verb = arguments[0] if arguments else ""
    known = (docker.run, docker.exec, docker.logs, docker.stop, docker.kill, docker.rm, docker.ps)
    verbs = {each.__name__: each for each in (*known, docker.pull, docker.login, docker.info)}
    try:
        if verb not in verbs:
            raise DockerError(f"docker: '{verb}' is not a docker command that the sandbox knows.")
        return verbs[verb](parse(verb, arguments[1:]))
    except DockerError as failed:
        sys.stderr.write(f"{failed}\n")
        return failed.code
