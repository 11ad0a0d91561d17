"""The two files of an adoption, and the lines about them: the config of a stack, and what `pulumi import --file` takes.

A URN holds the types of a resource's parents, so each resource is imported under the component that the program will
register, which the same file makes, empty; the provider likewise, from `providerInputs`.
Sources: https://www.pulumi.com/docs/iac/guides/migration/import/#bulk-import-operations,
https://github.com/pulumi/pulumi/pull/21671
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from accel.diagnostics import messages
from accel.diagnostics.errors import BadInput, BadInputs, NotFound
from components.aws.compute_environment import ComputeEnvironment
from components.aws.job_definition import JobDefinition
from components.aws.job_queue import JobQueue

from ..stack_files import KEY
from .documents import AwsResource, read
from .notes import Word
from .section import Adopted, adopt

WORDS: tuple[Word, ...] = ("left out", "lost", "kept", "translated", "set", "warning")
"""In the order in which they are said."""

_STACK = re.compile(r"[A-Za-z0-9_.-]{1,100}")


@dataclass(frozen=True)
class Written:
    """What was written, what is wrong with it, and the commands that come next."""

    config: Path
    lines: list[str]
    faults: list[str]
    commands: list[str]


def write(files: list[str], stack: str, region: str | None, out: Path) -> Written:
    """Writes Pulumi.<stack>.yaml and, where something exists, import-<stack>.json; overwrites no environment."""
    if not _STACK.fullmatch(stack):
        raise BadInput(f"--stack: must be letters, digits, - _ and ., is {messages.name_shown(stack)}")
    if not out.is_dir():
        raise NotFound(f"--out: {out}: no such folder")
    config = out / f"Pulumi.{stack}.yaml"
    before = _before(config)
    found = adopt(read(files), stack, region)
    section = found.values["aws"]
    if not any(section[name] for name in COMPONENTS):
        said = [str(note) for note in found.notes if note.word == "left out"]
        raise BadInputs(said or ["these files hold nothing of AWS Batch"])
    after = {**before, "config": {**before.get("config", {}), KEY: found.values}}
    config.write_text(yaml.safe_dump(after, sort_keys=False, allow_unicode=True, width=110))
    lines = [f"{config}: {_counted(section)}"]
    commands = [f"pulumi stack init {stack}"] if "encryptionsalt" not in before else []
    if found.existing:
        imports = out / f"import-{stack}.json"
        document = import_document(found.existing, section["region"], _project(out), stack)
        imports.write_text(json.dumps(document, indent=2) + "\n")
        lines.append(f"{imports}: {len(found.existing)} that exist")
        commands.append(f"pulumi import --stack {stack} --file {imports} --generate-code=false")
    commands.append(f"pulumi up --stack {stack}")
    return Written(config, lines + _said(found), [f"environment.{fault}" for fault in found.faults], commands)


def _before(config: Path) -> dict[str, Any]:
    if not config.exists():
        return {}
    try:
        there: Any = yaml.safe_load(config.read_text()) or {}
    except (yaml.YAMLError, UnicodeDecodeError):
        raise BadInput(f"{config}: is there and is not YAML") from None
    if not isinstance(there, dict) or KEY in (there.get("config") or {}):  # pyright: ignore[reportUnknownMemberType]
        raise BadInput(f"{config}: has an environment already", "give another --stack or --out")
    return there  # pyright: ignore[reportUnknownVariableType]


def _project(out: Path) -> str:
    """The name of the project, which every URN holds."""
    for folder in (out, Path()):
        try:
            document: Any = yaml.safe_load((folder / "Pulumi.yaml").read_text())
        except (OSError, yaml.YAMLError):
            continue
        return str(document["name"])
    raise NotFound(f"no Pulumi.yaml in {out} or here, and a URN holds the project's name", "run this where it is")


def _counted(section: dict[str, Any]) -> str:
    counts = {name: len(section[name]) for name in COMPONENTS}
    return ", ".join(f"{count} {name[:-1] if count == 1 else name}" for name, count in counts.items())


def _said(found: Adopted) -> list[str]:
    return [str(note) for word in WORDS for note in found.notes if note.word == word]


COMPONENTS: Mapping[str, tuple[str, str]] = {
    "environments": (ComputeEnvironment.TYPE, "aws:batch/computeEnvironment:ComputeEnvironment"),
    "queues": (JobQueue.TYPE, "aws:batch/jobQueue:JobQueue"),
    "definitions": (JobDefinition.TYPE, "aws:batch/jobDefinition:JobDefinition"),
}
"""By section: the component's type, and that of the resource in it."""

PROVIDER = "aws"


def import_document(
    existing: Mapping[tuple[str, str], AwsResource], region: str, project: str, stack: str
) -> dict[str, Any]:
    """What exists, as the program of this project registers it. An environment's id is its name, others' their ARN."""
    sdk = version("pulumi_aws")
    resources: list[dict[str, Any]] = []
    for (section, key), found in existing.items():
        component, resource = COMPONENTS[section]
        # `name` is of this file alone and has to differ, since components are named as what is in them
        # (https://github.com/pulumi/pulumi/issues/17375); `logicalName` is the one in the URN.
        parent = f"{section}.{key}"
        resources += [
            {"type": component, "name": parent, "logicalName": key, "component": True},
            {
                "type": resource,
                "name": f"{parent}.resource",
                "logicalName": key,
                "id": found.name if section == "environments" else found.arn,
                "parent": parent,
                "provider": PROVIDER,
                "version": sdk,
            },
        ]
    return {
        "nameTable": {PROVIDER: f"urn:pulumi:{stack}::{project}::pulumi:providers:aws::aws-{region}"},
        "providerInputs": {PROVIDER: {"region": region, "version": sdk}},
        "resources": resources,
    }
