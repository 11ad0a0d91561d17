"""Translation of a SkyPilot task's `resources`: machines, disks, and their location.
Source: https://docs.skypilot.co/en/latest/reference/yaml-spec.html and SkyPilot's own schema."""

import re
from typing import Any, cast

from accel.catalog.machines import machine
from accel.catalog.nearest import UnknownName
from accel.rules.gcp import gpus

from .fields import RequestFields
from .images import image_of
from .reading import Json
from .tasks import TPU_KINDS, Destination, accelerator, cloud_of, is_filled, is_slice, least, mib

BASE = "resources"
KNOWN = (
    *("cloud", "region", "zone", "infra", "cpus", "memory", "accelerators", "instance_type", "use_spot"),
    *("job_recovery", "spot_recovery", "strategy", "max_restarts_on_errors", "recover_on_exit_codes", "volumes"),
    *("disk_size", "ephemeral_storage", "disk_tier", "network_tier", "local_disk", "max_hourly_cost", "ports"),
    *("labels", "accelerator_args", "runtime_version", "tpu_name", "tpu_vm", "gcp_queued_resource", "image_id"),
    *("autostop", "idle_minutes", "down", "wait_for", "hook", "hook_timeout", "priority", "priority_class"),
    *("gpus", "any_of", "ordered", "container_image", "ref", "release", "distribution", "path", "auto_delete"),
    *("storage_type", "attach_mode"),
)
LEFT_OUT = {
    "disk_tier": "a target's disks have a type of their own (vertex.disk_type, a disk's type in google_batch.disks)",
    "network_tier": "the network is the target's, with EFA or gVNIC where the stack says so",
    "max_hourly_cost": "a job file has no price; `accel-jobs explain` says what it costs, and budgets are the stack's",
    "ports": "a job listens to nobody outside",
    "priority": "a target's own priorities are gke.priority and aws_batch.scheduling_priority",
    "priority_class": "a target's own priorities are gke.priority and aws_batch.scheduling_priority",
    "local_disk": "a target's machines have their disks; the stack says whether jobs see them",
    "autostop.idle_minutes": "a job's machines go when it ends",
    "autostop.down": "a job's machines go when it ends",
    "autostop.wait_for": "a job's machines go when it ends",
    "autostop.hook_timeout": "a job has no hook",
    "accelerator_args.tpu_name": "a job's TPUs are named by accel",
    "accelerator_args.gcp_queued_resource": "a job's TPUs are always queued for",
    "_no_missing_accel_warnings": "is SkyPilot's own",
}
LISTS = ("any_of", "ordered")


class Resources:
    """Fields of `resources`, or of the first of its alternatives, which also has those of `resources`."""

    def __init__(self, given: RequestFields) -> None:
        self.given = given
        self.choice = ""
        for each in LISTS:
            items = given.items(f"{BASE}.{each}")
            self.choice = self.choice or (items[0] if items else "")
            others = items if items and items[0] != self.choice else items[1:]
            for path in (path for item in others for path in given.paths(item)):
                why = "is another choice, and a job file has one: the first is taken; submit another job file for this"
                given.report.decide(given.name(path), why, is_open=False)

    def at(self, name: str) -> str:
        """Return the path of a field, in the alternative if it has the field."""
        base, choice = f"{BASE}.{name}", f"{self.choice}.{name}"
        if not self.choice or not self.given.has(choice):
            return base
        self.given.left_out(base, f"{self.given.name(choice)} is in its place")
        return choice


def read(given: RequestFields, image: str | None, values: Json, block: Json, place: Destination) -> None:
    """Put what `resources` asks for into the job. `block`: the values of `tpu_vm`."""
    of = Resources(given)
    _accelerators(of, values)
    _size(of, "memory", "memory_mib", values)
    _cpus(of, values)
    _disk(of, values)
    _spot(of, values)
    _recovery(of, values)
    _image(of, image, values)
    _where(of, place)
    _instance_type(of, values, place)
    _tpu(of, values, block, place)
    for name, why in LEFT_OUT.items():
        given.leave_value(of.at(name), why)
        if name == "ports":
            for each in given.items(of.at(name)):
                given.leave_value(each, why)
    path = of.at("autostop")
    given.leave_value(path, "a job's machines go when it ends")
    if given.has(f"{path}.hook"):
        why = "is run before the machines go, which no target does; write it at the end of run"
        given.report.decide(given.name(f"{path}.hook"), why, is_open=False)
    _labels(of, values)
    for each in given.paths(of.at("volumes")):
        why = "is a disk of SkyPilot's; write google_batch.disks, or a larger disk_gib"
        given.report.decide(given.name(each), why, is_open=False)


def _accelerators(of: Resources, values: Json) -> None:
    given, path = of.given, of.at("accelerators")
    if not given.has(path):
        path = of.at("gpus")
    choices: list[tuple[str, str]] = []
    value = given.values.get(path)
    if isinstance(value, list):
        choices = [(path, each) for each in cast(list[Any], value) if isinstance(each, str)]
    elif isinstance(value, str) and value:
        choices = [(path, each.strip()) for each in value.strip("{} ").split(",")]
    elif value is not None and value != "":
        given.report.refuse(given.name(path), "must be a name such as A100:8, a list of names, or a mapping")
        return
    for each in given.paths(path):
        if each != path and re.match(r"[^.\[]", each[len(path) + 1 :]) and each[len(path)] == ".":
            count = given.values[each]
            name = each[len(path) + 1 :]
            if isinstance(count, str) or count is None:
                choices.append((each, name if count is None else f"{name}:{count}"))
    given.keep_value(path, "accelerator")
    if not choices:
        return
    first = next((each for each in choices if _is_known(each[1])), choices[0])
    which = "the first" if first == choices[0] else "the first that a target may have"
    for at, text in choices:
        if (at, text) == first:
            name, count = _name_and_count(text)
            accelerator(given, at, name, count, values)
        elif at != path:
            why = f"is one of several, and a job file has one type: {first[1][:60]} is taken, {which}"
            given.report.decide(given.name(at), why, is_open=False)
    if len(choices) > 1 and first[0] == path:
        why = f"are several, and a job file has one type: {which} is taken; choose another where it is not to be had"
        given.report.decide(given.name(path), why, new=first[1], is_open=False)


def _name_and_count(text: str) -> tuple[str, str]:
    name, _, count = text.replace("=", ":").partition(":")
    return name.strip(), count.strip() or "1"


def _is_known(text: str) -> bool:
    """Return whether targets may have an accelerator. SkyPilot's clouds have others too, such as A10 and L40."""
    name = _name_and_count(text)[0]
    found = gpus.accelerator_name(name, "accelerator", cloud="aws")
    return is_slice(name) or not any(finding.severity == "reject" for finding in found)


def _size(of: Resources, name: str, to: str, values: Json) -> None:
    """Set a size of memory. A GB of SkyPilot has 2^30 bytes."""
    given, path = of.given, of.at(name)
    text = given.text(path)
    if text is None:
        return
    plain, open_ended = least(text)
    size = mib(plain)
    if size is None:
        given.report.refuse(given.name(path), "must be GB such as 32, 32+ or 32GB")
        return
    values[to] = size
    if open_ended:
        given.report.changed(
            given.name(path), size, "is the least that machines may have; a job file says what it gets"
        )
    else:
        given.report.keep(given.name(path), f"{to}: {size}")
    why = "is a whole machine's there; a container gets less, so ask for a little less where it does not fit"
    given.report.note(given.name(path), why)


def _cpus(of: Resources, values: Json) -> None:
    given, path = of.given, of.at("cpus")
    text = given.text(path)
    if text is None:
        return
    plain, open_ended = least(text)
    found = re.fullmatch(r"(\d{1,5})(\.\d{1,6})?", plain)
    count = int(found[1]) + bool(found[2] and float(found[2])) if found else 0
    if not count:
        given.report.refuse(given.name(path), "must be a number of vCPUs such as 8 or 8+")
        return
    values["cpus"] = count
    if open_ended or str(count) != plain:
        why = "is the least that machines may have" if open_ended else "is rounded up: vCPUs are whole"
        given.report.changed(given.name(path), count, why)
    else:
        given.keep_value(path, "cpus")


def _disk(of: Resources, values: Json) -> None:
    given = of.given
    for name in ("disk_size", "ephemeral_storage"):
        path = of.at(name)
        text = given.text(path)
        if text is None:
            continue
        plain, open_ended = least(text)
        size = mib(plain)
        gib = size // 1024 if size else 0
        if not gib:
            given.report.refuse(given.name(path), "must be GB such as 256 or 256GB")
        elif "disk_gib" in values:
            given.leave_value(path, "a job file has one size, which disk_size says")
        else:
            values["disk_gib"] = gib
            if open_ended:
                given.report.changed(given.name(path), gib, "is the least that disks may have")
            else:
                given.report.keep(given.name(path), f"disk_gib: {gib}")


def _spot(of: Resources, values: Json) -> None:
    given, path = of.given, of.at("use_spot")
    spot = given.flag(path)
    values["spot"] = bool(spot)
    given.keep_value(path, "spot")
    if not given.has(path):
        given.report.note(path, "is false there without it, so the job is on demand: spot: false")


def _recovery(of: Resources, values: Json) -> None:
    given = of.given
    for old in ("job_recovery", "spot_recovery"):
        path = of.at(old)
        for at in (path, f"{path}.strategy"):
            strategy = given.text(at)
            if strategy is None:
                continue
            if strategy.lower() == "none":
                values["lost_retries"] = 0
                given.report.keep(given.name(at), "lost_retries: 0")
            else:
                why = "a target tries again what the cloud takes away, at its own places (lost_retries says how often)"
                given.leave_value(at, why)
        if (count := given.whole(f"{path}.max_restarts_on_errors")) is not None:
            values["retries"] = count
            given.keep_value(f"{path}.max_restarts_on_errors", "retries")
        codes = f"{path}.recover_on_exit_codes"
        if codes in given.values:
            why = "a job is tried again by its exit code on Google Batch alone: google_batch.exit_codes"
            given.report.decide(given.name(codes), why, is_open=False)


def _image(of: Resources, image: str | None, values: Json) -> None:
    given, path = of.given, of.at("image_id")
    texts = {each: given.values[each] for each in given.paths(path)}
    if image:
        values["image"] = image_of(given, "--image", image)
        for each in texts:
            given.report.changed(given.name(each), image, "is chosen with --image")
    elif not texts:
        why = "is a machine's own image there; name a container's with --image, or a definition of the target has one"
        given.report.decide(path, why, is_open=False)
    for each, text in () if image else texts.items():
        named = text.strip() if isinstance(text, str) else ""
        if named.startswith("docker:") and "image" not in values:
            if is_filled(given, each, named):
                values["image"] = image_of(given, each, re.sub(r"^docker:(//)?", "", named), to="image")
        elif named.startswith("docker:"):
            given.leave_value(each, "is of another region; a job file has one image")
        elif isinstance(text, str):
            why = "is an image of machines, and a job runs in a container: name one with --image"
            given.report.decide(given.name(each), why)
    _container_image(of, values)


def _container_image(of: Resources, values: Json) -> None:
    given, base = of.given, of.at("container_image")
    at = base if base in given.values else f"{base}.ref"
    text = given.text(at)
    if text and "image" in values:
        given.leave_value(at, "another image is in its place")
    elif text and is_filled(given, at, text):
        values["image"] = image_of(given, at, text, to="image")
    for each in ("release", "distribution"):
        given.leave_value(f"{base}.{each}", "is of SkyPilot's own registry")


def _where(of: Resources, place: Destination) -> None:
    given = of.given
    infra, cloud, region = of.at("infra"), of.at("cloud"), of.at("region")
    if text := given.text(infra):
        parts = text.split("/")
        named = parts[0].lower() in ("k8s", "kubernetes", "ssh", "slurm")
        where = parts[1] if len(parts) > 1 and not named and parts[1] != "*" else ""
        given.leave_value(infra, cloud_of(given, infra, parts[0], where, place))
    if text := given.text(cloud):
        given.leave_value(cloud, cloud_of(given, cloud, text, given.text(region) or "", place))
    elif text := given.text(region):
        place.region = text
    given.leave_value(region, "is the target's")
    zone = of.at("zone")
    given.leave_value(zone, "is the target's; a job's own are zones of the block gce, google_batch or tpu_vm")


def _instance_type(of: Resources, values: Json, place: Destination) -> None:
    given, path = of.given, of.at("instance_type")
    name = given.text(path)
    if not name:
        return
    cloud = "gcp" if "-" in name else "aws"
    try:
        found = machine(cloud, name)
    except UnknownName:
        why = "is no machine type of AWS or Google Cloud; a target's machines are chosen by what the job asks for"
        given.report.decide(given.name(path), why, is_open=False)
        return
    if not place.kinds:
        cloud_of(given, path, cloud, place.region, place)
    if found.accelerator and "accelerator" not in values and found.accelerator_count >= 1:
        values["accelerator"] = {"type": found.accelerator, "count": int(found.accelerator_count)}
    elif "cpus" not in values:
        values["cpus"] = found.vcpus
    had = ", ".join(f"{each}: {values[each]}" for each in ("accelerator", "cpus") if each in values)
    how = "google_batch, gce and vertex have machine_type" if cloud == "gcp" else "an environment of the stack has it"
    why = f"a job file asks for what it needs ({had}); {how}"
    given.report.decide(given.name(path), why, is_open=False)


def _tpu(of: Resources, values: Json, block: Json, place: Destination) -> None:
    given = of.given
    is_tpu = str(values.get("accelerator", {}).get("type", "")).startswith("v")
    if is_tpu and place.kinds in ((), ("gce", "google-batch", "vertex", "gke", "tpu-vm")):
        place.kinds = TPU_KINDS
    path = of.at("accelerator_args.runtime_version")
    if version := given.text(path):
        if is_tpu:
            block["runtime_version"] = version
            given.keep_value(path, "tpu_vm.runtime_version")
        else:
            given.leave_value(path, "is of TPUs, and the job has none")
    path = of.at("accelerator_args.tpu_vm")
    if given.flag(path) is False:
        given.report.refuse(given.name(path), "is a TPU node, which has ended; TPU VMs are what there is")
    given.leave_value(path, "TPU VMs are what there is")


def _labels(of: Resources, values: Json) -> None:
    given, path = of.given, of.at("labels")
    for name, text in given.mapping(path).items():
        if name.startswith("accel-"):
            given.leave_value(f"{path}.{name}", "is the platform's own")
        elif is_filled(given, f"{path}.{name}", text):
            values.setdefault("labels", {})[name] = text
            given.keep_value(f"{path}.{name}", "labels")
