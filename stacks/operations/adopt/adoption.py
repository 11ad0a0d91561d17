"""All adopted resources as one environment, written as two files: a stack's config, and the input of `pulumi import`. A
URN contains the types of a resource's parents, so each resource is imported under the component that the program will
register, which the same file creates, empty; likewise the provider, from `providerInputs`. Sources:
https://www.pulumi.com/docs/iac/guides/migration/import/#bulk-import-operations,
https://github.com/pulumi/pulumi/pull/21671"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from accel.diagnostics import messages
from accel.diagnostics.errors import BadInput, BadInputs, NotFound
from accel.diagnostics.faults import Fault, parse, parse_path, replace_value
from accel.diagnostics.findings import Finding
from accel.files import write_output
from components.aws.compute_environment import ComputeEnvironment, OnDemandSpec, SpotSpec
from components.aws.job_definition import ExitRule, JobDefinition, JobDefinitionSpec
from components.aws.job_queue import JobQueue
from components.base import Spec

from ...environment.config import Environment, warnings
from ..stack_files import KEY, project_in
from . import batch
from .documents import AwsResource, Json, Kind, names, read
from .notes import Note, Part, Word

_SECTIONS: dict[Kind, str] = {"environment": "environments", "queue": "queues", "definition": "definitions"}
_KEY_MAX = 40
_WORDS: tuple[Word, ...] = ("left out", "lost", "kept", "translated", "set", "warning")
"""The order in which notes are printed."""
_COMPONENTS: Mapping[str, tuple[str, str]] = {
    "environments": (ComputeEnvironment.TYPE, "aws:batch/computeEnvironment:ComputeEnvironment"),
    "queues": (JobQueue.TYPE, "aws:batch/jobQueue:JobQueue"),
    "definitions": (JobDefinition.TYPE, "aws:batch/jobDefinition:JobDefinition"),
}
"""Types of the component, and of the resource in it, by section."""
_PROVIDER = "aws"
_STACK = re.compile(r"[A-Za-z0-9_.-]{1,100}")


@dataclass
class AdoptedEnvironment:
    """The environment as plain values, its existing resources (by section and key), and the notes."""

    values: Json
    existing: dict[tuple[str, str], AwsResource]
    notes: list[Note]
    faults: list[Fault] = field(default_factory=list[Fault])
    """Faults that prevent its deployment as it is."""


@dataclass(frozen=True)
class WrittenConfig:
    """The written files, the config's faults, and the next commands."""

    config: Path
    lines: list[str]
    faults: list[str]
    commands: list[str]


def write(files: list[str], stack: str, region: str | None, out: Path) -> WrittenConfig:
    """Write Pulumi.<stack>.yaml and, if something exists, import-<stack>.json; never overwrite an environment."""
    if not _STACK.fullmatch(stack):
        raise BadInput(f"--stack: must be letters, digits, - _ and ., is {messages.printable_name(stack)}")
    if not out.is_dir():
        raise NotFound(f"--out: {out}: no such folder")
    config = out / f"Pulumi.{stack}.yaml"
    before = _before(config)
    found = adopt(read(files), stack, region)
    section = found.values["aws"]
    if not any(section[name] for name in _COMPONENTS):
        said = [str(note) for note in found.notes if note.word == "left out"]
        raise BadInputs(said or ["these files hold nothing of AWS Batch"])
    after = {**before, "config": {**before.get("config", {}), KEY: found.values}}
    project = _project(out) if found.existing else ""
    write_output("--out", config, yaml.safe_dump(after, sort_keys=False, allow_unicode=True, width=110))
    lines = [f"{config}: {_counted(section)}"]
    commands = [f"pulumi stack init {stack}"] if "encryptionsalt" not in before else []
    if found.existing:
        imports = out / f"import-{stack}.json"
        document = import_document(found.existing, section["region"], project, stack)
        write_output("--out", imports, json.dumps(document, indent=2) + "\n")
        lines.append(f"{imports}: {len(found.existing)} that exist")
        commands.append(f"pulumi import --stack {stack} --file {imports} --generate-code=false")
    commands.append(f"pulumi up --stack {stack}")
    return WrittenConfig(config, lines + _said(found), [f"environment.{fault}" for fault in found.faults], commands)


def adopt(found: list[AwsResource], owner: str, region: str | None) -> AdoptedEnvironment:
    """Raise BadInput if the resources' region cannot be determined."""
    parts, refused = _parts(found)
    kept = {kind: [one for one in found if one.kind == kind and one.name not in refused[kind]] for kind in _SECTIONS}
    existing = {
        (_SECTIONS[one.kind], parts[one.kind][one.name].key): one
        for every in kept.values()
        for one in every
        if one.exists
    }
    notes = [Note("left out", f"{kind} {name}", why) for kind, each in refused.items() for name, why in each.items()]
    network = _network(found, kept["environment"], parts["environment"], notes)
    section: Json = {"region": _region_of([one.arn for one in found if one.exists and one.kind in _SECTIONS], region)}
    accounts = sorted({one.arn.split(":")[4] for one in existing.values()})
    if len(accounts) > 1:
        raise BadInput(f"an environment is in one account, and these are of {', '.join(accounts)}")
    section |= {"account_id": accounts[0]} if accounts else {}
    section["network"] = network
    if repositories := _repositories(parts["definition"]):
        section["roles"] = {"repositories": repositories}
    for kind, name in _SECTIONS.items():
        section[name] = {part.key: part.values for part in parts[kind].values()}
    values: Json = {"owner": owner, "aws": section}
    notes.append(Note("set", "owner", f"to {owner}; write who answers for it"))
    for one in (part for each in parts.values() for part in each.values()):
        notes += one.notes
    for one in found:
        if not one.exists and one.kind in _SECTIONS and one.name not in refused[one.kind]:
            text = "is a request and no answer of AWS, so `up` makes a new one"
            notes.append(Note("warning", f"{one.kind} {one.name}", text))
    return _judged(AdoptedEnvironment(values, existing, notes))


def import_document(
    existing: Mapping[tuple[str, str], AwsResource], region: str, project: str, stack: str
) -> dict[str, Any]:
    """Return the input of `pulumi import`. The id of an environment is its name, that of others their ARN."""
    sdk = version("pulumi_aws")
    resources: list[dict[str, Any]] = []
    for (section, key), found in existing.items():
        component, resource = _COMPONENTS[section]
        # `name` is local to this file and has to be unique, since components share names with their content
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
                "provider": _PROVIDER,
                "version": sdk,
            },
        ]
    return {
        "nameTable": {_PROVIDER: f"urn:pulumi:{stack}::{project}::pulumi:providers:aws::aws-{region}"},
        "providerInputs": {_PROVIDER: {"region": region, "version": sdk}},
        "resources": resources,
    }


def _before(config: Path) -> dict[str, Any]:
    if not config.exists():
        return {}
    try:
        there: Any = yaml.safe_load(config.read_text()) or {}
    except (yaml.YAMLError, RecursionError, ValueError):
        raise BadInput(f"{config}: is there and is not YAML") from None
    if not isinstance(there, dict) or not isinstance(there.get("config", {}), dict):  # pyright: ignore[reportUnknownMemberType]
        raise BadInput(f"{config}: is there, and no config of a stack")
    if KEY in there.get("config", {}):  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        raise BadInput(f"{config}: has an environment already", "give another --stack or --out")
    return there  # pyright: ignore[reportUnknownVariableType]


def _project(out: Path) -> str:
    if name := project_in(out) or project_in(Path()):
        return name
    raise NotFound(
        f"no Pulumi.yaml with a name in {out} or here, and a URN holds the project's name", "run this where it is"
    )


def _counted(section: dict[str, Any]) -> str:
    counts = {name: len(section[name]) for name in _COMPONENTS}
    return ", ".join(f"{count} {name[:-1] if count == 1 else name}" for name, count in counts.items())


def _said(found: AdoptedEnvironment) -> list[str]:
    return [str(note) for word in _WORDS for note in found.notes if note.word == word]


def _parts(found: list[AwsResource]) -> tuple[dict[Kind, dict[str, Part]], dict[Kind, dict[str, str]]]:
    """Return the resources by kind and name, and why others are left out. Raise BadInput for a malformed value."""
    parts: dict[Kind, dict[str, Part]] = {kind: {} for kind in _SECTIONS}
    refused: dict[Kind, dict[str, str]] = {kind: {} for kind in _SECTIONS}
    for kind in _SECTIONS:
        for one in (one for one in found if one.kind == kind):
            key = _key(one.name, [part.key for part in parts[kind].values()])
            try:
                made = _part(one, key, {name: part.key for name, part in parts["environment"].items()}, refused)
            except BadInput as fault:
                raise BadInput(f"{one.place}: {fault.message}") from None
            if isinstance(made, str):
                refused[kind][one.name] = made
            else:
                parts[kind][one.name] = made
    return parts, refused


def _part(one: AwsResource, key: str, by_name: Mapping[str, str], refused: dict[Kind, dict[str, str]]) -> Part | str:
    """Return one resource, or why it is left out. `by_name`: the keys of the environments before it."""
    match one.kind:
        case "environment":
            return batch.unfit_environment(one.document) or batch.environment(one, key)
        case "queue":
            return batch.unfit_queue(one, by_name, refused["environment"]) or batch.queue(one, key, by_name)
        case _:
            return batch.unfit_definition(one.document) or batch.definition(one, key)


def _key(name: str, taken: list[str]) -> str:
    """Return the author's key for a physical name: my-queue for My_Queue."""
    bare = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    bare = (bare if bare[:1].isalpha() else f"x-{bare}")[:_KEY_MAX].rstrip("-")
    tried, number = bare, 2
    while tried in taken:
        tried, number = f"{bare[: _KEY_MAX - 3]}-{number}", number + 1
    return tried


def _network(found: list[AwsResource], kept: list[AwsResource], parts: Mapping[str, Part], notes: list[Note]) -> Json:
    """Return the network of the first environment; keep that of another one, or note it as lost."""
    places = [(batch.resources(one.document), parts[one.name], one) for one in kept]
    first = places[0][0] if places else {}
    subnets, groups = names(first, "subnets"), names(first, "securityGroupIds")
    for inner, part, one in places[1:]:
        if names(inner, "subnets") != subnets:
            part.values["subnet_ids"] = names(inner, "subnets")
        others = names(inner, "securityGroupIds")
        if others == groups:
            continue
        text = f"{', '.join(others)}, unlike {places[0][1].key}"
        if one.exists:
            part.keep("network", "computeResources.securityGroupIds", text)
        else:
            part.note("lost", "computeResources.securityGroupIds", f"{text}; it gets the network's")
    by_subnet = {one.name: str(one.document.get("VpcId")) for one in found if one.kind == "subnet"}
    vpcs = sorted({by_subnet[name] for name in subnets if name in by_subnet})
    if len(vpcs) != 1:
        text = f"give what `aws ec2 describe-subnets --subnet-ids {' '.join(subnets)}` answers too, or write it"
        notes.append(Note("warning", "network.vpc_id", f"is not in these files: {text}"))
    return {
        "kind": "existing",
        "vpc_id": vpcs[0] if len(vpcs) == 1 else "CHANGEME",
        "subnet_ids": subnets,
        "security_group_ids": groups,
    }


def _region_of(arns: list[str], given: str | None) -> str:
    regions = sorted({arn.split(":")[3] for arn in arns} | ({given} if given else set[str]()))
    if not regions:
        raise BadInput("--region: is missing, and these files do not tell it", "give --region, such as us-east-1")
    if len(regions) > 1:
        raise BadInput(f"--region: an environment has one region, and these are of {', '.join(regions)}")
    return regions[0]


def _repositories(parts: Mapping[str, Part]) -> list[str]:
    images = [str(p.values.get("image", "")) for p in parts.values() if "execution_role" not in p.values]
    return sorted({arn for image in images if (arn := batch.repository(image))})


def _judged(adopted: AdoptedEnvironment) -> AdoptedEnvironment:
    """Translate outdated values, and add the other findings of our rules."""
    said: list[Note] = []
    for place, spec in _specs(adopted.values["aws"]):
        for finding in _findings(spec):
            path = (*place, finding.field)
            if finding.severity == "translate":
                at = ("aws", *place, *parse_path(finding.field))
                adopted.values = replace_value(adopted.values, at, finding.replacement)
                said.append(_note("translated", path, finding))
            elif finding.severity == "warn":
                said.append(_note("warning", path, finding))
    # Replaced values come last; move them to where the author expects them.
    section = adopted.values["aws"]
    order = ("region", "account_id", "network", "roles", *_SECTIONS.values())
    adopted.values["aws"] = {name: section[name] for name in order if name in section}
    environment, adopted.faults = parse(Environment, adopted.values)
    if environment:
        said = [note for note in said if note.word == "translated"]
        said += [Note("warning", ".".join(map(str, fault.path[2:])), fault.message)
                 for fault in warnings(environment)]  # fmt: skip
    adopted.notes += said
    return adopted


def _findings(spec: Spec) -> Sequence[Finding]:
    try:
        return spec.findings
    except (AttributeError, TypeError, ValueError):
        return ()  # a value of another type, which `find` says


def _note(word: Word, path: tuple[str | int, ...], finding: Finding) -> Note:
    return Note(word, ".".join(map(str, path)), f"{finding.text} [{finding.rule}]")


def _specs(section: Json) -> list[tuple[tuple[str, ...], Spec]]:
    """Return specs without validation, since one wrong value must not hide the findings about the others."""
    specs: list[tuple[tuple[str, ...], Spec]] = []
    for key, values in section["environments"].items():
        variant = SpotSpec if values["capacity"] == "spot" else OnDemandSpec
        if {"instance_types", "max_vcpus"} <= values.keys():
            specs.append((("environments", key), variant.model_construct(None, **values)))
    for key, values in section["definitions"].items():
        if {"image", "vcpus", "memory_mib"} <= values.keys():
            given: Json = dict(values)
            if "evaluate_on_exit" in given:
                given["evaluate_on_exit"] = [
                    ExitRule.model_construct(None, **rule) for rule in given["evaluate_on_exit"]
                ]
            specs.append((("definitions", key), JobDefinitionSpec.model_construct(None, **given)))
    return specs
