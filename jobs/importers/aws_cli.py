"""Reader of a pasted `aws batch submit-job` or `register-job-definition`: options, JSON, file:// and the shorthand.
Sources: https://docs.aws.amazon.com/cli/latest/reference/batch/submit-job.html, .../register-job-definition.html and
https://docs.aws.amazon.com/cli/latest/userguide/cli-usage-shorthand.html"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal, cast

from accel.diagnostics.errors import BadInput

from . import script_text
from .names import suggestion
from .reading import STDIN, Json, named_file, read
from .shell import PastedCommand, pasted_command

VERB = "batch submit-job"
DEFINITION = "batch register-job-definition"
Shape = Literal["text", "words", "mapping", "list", "flag"]
OPTIONS: Mapping[str, tuple[str, Shape]] = {
    "--job-name": ("jobName", "text"),
    "--job-queue": ("jobQueue", "text"),
    "--job-definition": ("jobDefinition", "text"),
    "--share-identifier": ("shareIdentifier", "text"),
    "--scheduling-priority-override": ("schedulingPriorityOverride", "text"),
    "--array-properties": ("arrayProperties", "mapping"),
    "--depends-on": ("dependsOn", "list"),
    "--parameters": ("parameters", "mapping"),
    "--container-overrides": ("containerOverrides", "mapping"),
    "--node-overrides": ("nodeOverrides", "mapping"),
    "--retry-strategy": ("retryStrategy", "mapping"),
    "--propagate-tags": ("propagateTags", "flag"),
    "--no-propagate-tags": ("propagateTags", "flag"),
    "--timeout": ("timeout", "mapping"),
    "--tags": ("tags", "mapping"),
    "--eks-properties-override": ("eksPropertiesOverride", "mapping"),
    "--ecs-properties-override": ("ecsPropertiesOverride", "mapping"),
    "--consumable-resource-properties-override": ("consumableResourcePropertiesOverride", "mapping"),
}
"""Field of a SubmitJob request, and its shape, by option."""
OPTIONS_OF_DEFINITION: Mapping[str, tuple[str, Shape]] = {
    "--job-definition-name": ("jobDefinitionName", "text"),
    "--type": ("type", "text"),
    "--parameters": ("parameters", "mapping"),
    "--scheduling-priority": ("schedulingPriority", "text"),
    "--container-properties": ("containerProperties", "mapping"),
    "--node-properties": ("nodeProperties", "mapping"),
    "--retry-strategy": ("retryStrategy", "mapping"),
    "--propagate-tags": ("propagateTags", "flag"),
    "--no-propagate-tags": ("propagateTags", "flag"),
    "--timeout": ("timeout", "mapping"),
    "--tags": ("tags", "mapping"),
    "--platform-capabilities": ("platformCapabilities", "words"),
    "--eks-properties": ("eksProperties", "mapping"),
    "--ecs-properties": ("ecsProperties", "mapping"),
    "--consumable-resource-properties": ("consumableResourceProperties", "mapping"),
}
WHOLE = ("--cli-input-json", "--cli-input-yaml")
GLOBAL = {
    **dict.fromkeys(("--profile", "--region", "--output", "--query", "--endpoint-url", "--color"), True),
    **dict.fromkeys(("--ca-bundle", "--cli-read-timeout", "--cli-connect-timeout", "--cli-binary-format"), True),
    **dict.fromkeys(("--debug", "--no-verify-ssl", "--no-paginate", "--no-sign-request", "--no-cli-pager"), False),
    **dict.fromkeys(("--cli-auto-prompt", "--no-cli-auto-prompt", "--generate-cli-skeleton"), False),
}
"""Options of the CLI itself, and whether each takes a value."""
LISTS = (
    *("command", "environment", "resourceRequirements", "evaluateOnExit", "nodePropertyOverrides", "instanceTypes"),
    *("consumableResourceList", "volumes", "mountPoints", "secrets", "ulimits", "nodeRangeProperties", "devices"),
    *("taskProperties", "containers"),
)
"""Fields that are lists where the shorthand has a single value."""
DEPTH_MAX = 12


@dataclass
class Request:
    """Request of a command. `beside` holds the parts that do not belong to the request, by how they are written."""

    document: Json = field(default_factory=dict[str, Any])
    beside: dict[str, Any] = field(default_factory=dict[str, Any])
    unknown: dict[str, str] = field(default_factory=dict[str, str])
    """Options that do not exist or lack a value, and what is wrong with each."""
    written: PastedCommand = field(default_factory=PastedCommand)
    region: str = ""


def request(name: str, text: str, variables: Mapping[str, str], verb: str = VERB) -> Request:
    """Return the request of the one command in a text. Raise BadInput if it cannot be read."""
    options = OPTIONS if verb == VERB else OPTIONS_OF_DEFINITION
    text = script_text.readable(text)
    written = pasted_command(name, text, variables, verb, "aws")
    written.unknown = script_text.by_holder(text, written.unknown)
    found = Request(written=written)
    given: dict[str, Any] = {}
    words = written.argv[1:]
    while words and words[0].startswith("--"):  # before the service
        _global(found, words)
    left = words[2:]
    while left:
        if left[0].partition("=")[0] in GLOBAL:
            _global(found, left)
            continue
        option, equals, value = left.pop(0).partition("=")
        if not option.startswith("--"):
            _word(found, option if not equals else f"{option}={value}")
            continue
        values = [value] if equals else []
        shape = options[option][1] if option in options else "text"
        several = shape in ("list", "words")
        while left and not left[0].startswith("--") and shape != "flag" and (several or not values):
            values.append(left.pop(0))
        if option in WHOLE:
            found.document = _whole(name, option, values, written)
        elif option not in options:
            found.unknown[option] = f"is no option of this command{suggestion(option, [*options, *WHOLE])}"
            found.beside[option] = " ".join(values)
        elif not values and shape != "flag":
            found.unknown[option] = "has no value"
        else:
            key = options[option][0]
            given[key] = _value(name, option, shape, values, written)
    for key, value in found.document.items():
        if key in given:
            found.beside[f"{key} of the file"] = value if isinstance(value, str) else "another value"
    found.document = {**found.document, **given}
    if written.rest:
        found.beside["after the command"] = written.rest
    return found


def _word(found: Request, word: str) -> None:
    found.beside["words of the command"] = [*found.beside.get("words of the command", []), word]


def _global(found: Request, words: list[str]) -> None:
    option, equals, value = words.pop(0).partition("=")
    if GLOBAL.get(option, True) and not equals and words:
        value = words.pop(0)
    found.beside[option] = value
    if option == "--region":
        found.region = value


def _whole(name: str, option: str, values: list[str], written: PastedCommand) -> Json:
    text = " ".join(values)
    if text.startswith(("file://", "fileb://")):
        data, at = _file(name, option, text, written)
        return read(at, data)
    return read(f"{name}: {option}", text.encode())


def _file(name: str, option: str, address: str, written: PastedCommand) -> tuple[bytes, str]:
    """Return what a file:// address names, a heredoc or a file, and its name. Raise BadInput if it cannot be read."""
    path = address.partition("://")[2]
    if path in STDIN:
        path = written.take_input() or path
    for file, text in written.files.items():
        if (path in STDIN and file == "-") or (file and PurePosixPath(file) == PurePosixPath(path)):
            written.unknown = {
                key: mark
                for key, mark in written.unknown.items()
                if any(mark in word for word in _others(written, path))
            }
            return text.encode(), f"{name}: {path}"
    if lacking := [mark for mark in written.unknown.values() if mark in path]:
        raise BadInput(f"{name}: {option}: holds {lacking[0]}, which no shell has replaced; write the file's name")
    return named_file(name, option, path)


def _others(written: PastedCommand, path: str) -> list[str]:
    return [word for word in written.argv if not word.endswith(path)]


def _value(name: str, option: str, shape: Shape, values: list[str], written: PastedCommand) -> Any:
    if shape == "flag":
        return option == "--propagate-tags"
    texts = [
        _file(name, option, text, written)[0].decode(errors="replace") if re.match("fileb?://", text) else text
        for text in values
    ]
    if shape == "text":
        return texts[0]
    if shape == "words" and not texts[0].lstrip().startswith("["):
        return [word for text in texts for word in text.split(",")]
    found: list[Any] = []
    for text in texts:
        if text.lstrip().startswith(("{", "[")):
            found.append(_json(name, option, text, written))
        else:
            try:
                found.append(shorthand(text))
            except ValueError as error:
                said = f"is neither JSON nor shorthand: {error}"
                if text.lstrip().startswith(("$(", "`")):
                    said = "is what a command prints, and none is run; write the text itself, or file://<file>"
                raise BadInput(f"{name}: {option}: {said}") from None
    if shape in ("list", "words"):
        return [each for one in found for each in (cast(list[Any], one) if isinstance(one, list) else [one])]
    return found[0]


def _json(name: str, option: str, text: str, written: PastedCommand) -> Any:
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        if lacking := next((key for key, mark in written.unknown.items() if mark in text), ""):
            fix = f"give --var {lacking}=<value>" if re.fullmatch(r"\w+", lacking) else "write its value instead"
            said = f"holds {written.unknown[lacking]}, which no shell has replaced; {fix}"
        else:
            said = f"is not JSON: {getattr(error, 'msg', 'too many levels')}"
        raise BadInput(f"{name}: {option}: {said}") from None
    return read(f"{name}: {option}", f'{{"value": {text}}}'.encode())["value"]


def shorthand(text: str) -> Json:
    """Parse `size=10`, `command=a,b` or `environment=[{name=A,value=b}]`. Raise ValueError if the text is not valid."""
    reader = _Shorthand(text)
    found = reader.pairs("")
    if reader.at < len(text):
        raise ValueError(f"{text[reader.at : reader.at + 20]!r} is left over")
    return found


class _Shorthand:
    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0

    def pairs(self, end: str) -> Json:
        """Read the fields that precede the sign `end`."""
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise ValueError("too many levels")
        found: Json = {}
        while True:
            self._skip()
            key = re.compile(r"[^=,\[\]{}\s]+").match(self.text, self.at)
            if key is None:
                raise ValueError(f"a name= is missing at {self.text[self.at : self.at + 20]!r}")
            self.at = key.end()
            if self.text[self.at : self.at + 1] != "=":
                raise ValueError(f"{key[0][:20]!r} has no =")
            self.at += 1
            if key[0] in found:
                raise ValueError(f"{key[0][:20]!r} is set twice")
            found[key[0]] = self._values(key[0], end)
            self._skip()
            if not self._take(","):
                break
        self.depth -= 1
        return found

    def _values(self, key: str, end: str) -> Any:
        found: list[Any] = [self._one(end)]
        while self.text[self.at : self.at + 1] == "," and not re.compile(r",\s*[^\s=,\[\]{}\"']+=").match(
            self.text, self.at
        ):
            self.at += 1
            if self.at >= len(self.text):
                break
            found.append(self._one(end))
        if len(found) > 1:
            return found
        is_list = isinstance(found[0], list)
        return found if key in LISTS and not is_list else found[0]

    def _one(self, end: str) -> Any:
        self._skip()
        opened = self.text[self.at : self.at + 1]
        if opened == "{":
            self.at += 1
            self._skip()
            inside = {} if self.text[self.at : self.at + 1] == "}" else self.pairs("}")
            self._close("}")
            return inside
        if opened == "[":
            return self._items()
        if opened in ("'", '"'):
            return self._quoted(opened)
        stop = re.compile(rf"[^,{re.escape(end)}]*" if end else r"[^,]*").match(self.text, self.at)
        self.at = stop.end() if stop else self.at
        return stop[0].rstrip() if stop else ""

    def _items(self) -> list[Any]:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise ValueError("too many levels")
        self.at += 1
        found: list[Any] = []
        self._skip()
        while self.text[self.at : self.at + 1] not in ("]", ""):
            found.append(self._one("]"))
            self._skip()
            if not self._take(","):
                break
            self._skip()
        self._close("]")
        self.depth -= 1
        return found

    def _quoted(self, quote: str) -> str:
        found = re.compile(rf"{quote}((?:\\.|[^{quote}\\])*){quote}", re.DOTALL).match(self.text, self.at)
        if found is None:
            raise ValueError("a quote is not closed")
        self.at = found.end()
        return re.sub(rf"\\([{quote}\\])", r"\1", found[1])

    def _skip(self) -> None:
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1

    def _take(self, sign: str) -> bool:
        if self.text[self.at : self.at + 1] != sign:
            return False
        self.at += 1
        return True

    def _close(self, sign: str) -> None:
        self._skip()
        if not self._take(sign):
            raise ValueError(f"a {sign} is missing")
