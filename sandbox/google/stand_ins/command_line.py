"""The command line of the docker stand-in."""

import os
from dataclasses import dataclass, field
from pathlib import Path

_VALUES = (
    "--name --network --net --gpus --shm-size -e --env --env-file -v --volume --mount --entrypoint -w --workdir "
    "--stop-timeout -u --user --ipc --ulimit -l --label -h --hostname --pull --device -m --memory --cpus --log-driver "
    "--log-opt --cap-add --pid --restart --runtime -t --time --timeout -s --signal -f --filter -p --password "
    "--username --format --tmpfs"
)
VALUES = frozenset(_VALUES.split())
"""Options with a value; -t, -f and -u are switches or have one, by verb."""
_SWITCHES = "--rm --privileged -d --detach -i --interactive --tty -it --init -q --quiet -a --all --force --follow"
SWITCHES = frozenset([*_SWITCHES.split(), "--password-stdin"])
OWN_SWITCHES = {"run": {"-t"}, "exec": {"-t"}, "rm": {"-f", "-v"}, "logs": {"-f"}}


class Failed(Exception):
    """What docker says, and its exit code."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


@dataclass
class CommandLine:
    """A command line: options by name, and what follows them."""

    options: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    rest: list[str] = field(default_factory=list[str])

    def last(self, *names: str) -> str | None:
        found = [value for name in names for value in self.options.get(name, [])]
        return found[-1] if found else None

    def has(self, *names: str) -> bool:
        return any(name in self.options for name in names)


def parse(verb: str, arguments: list[str]) -> CommandLine:
    """Options up to the first other word; for verbs without a command, wherever they are."""
    asked, words = CommandLine(), list(arguments)
    while words:
        name, equals, value = words.pop(0).partition("=")
        if not name.startswith("-") or name == "-":
            asked.rest.append(name + equals + value)
            if verb in ("run", "exec"):
                asked.rest += words
                break
        elif name in OWN_SWITCHES.get(verb, ()) or name in SWITCHES:
            asked.options.setdefault(name, []).append(value or "true")
        elif name not in VALUES:
            raise Failed(f"unknown flag: {name}\n\nUsage:  docker {verb}", 125)
        elif not equals and not words:
            raise Failed(f"flag needs an argument: {name}", 125)
        else:
            asked.options.setdefault(name, []).append(value if equals else words.pop(0))
    return asked


def variables(asked: CommandLine) -> dict[str, str]:
    """The variables of --env-file and -e; a name alone takes the value that the client has."""
    files = [Path(name).read_text().splitlines() for name in asked.options.get("--env-file", [])]
    lines = [line for rows in files for line in rows if line.strip() and not line.lstrip().startswith("#")]
    found: dict[str, str] = {}
    for line in [*lines, *asked.options.get("-e", []), *asked.options.get("--env", [])]:
        name, given, value = line.partition("=")
        if given or name in os.environ:
            found[name] = value if given else os.environ[name]
    return found
