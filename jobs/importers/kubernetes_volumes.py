"""Translation of a pod's volumes, as its container mounts them, into mounts of a job file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from accel.json_values import entries, object_at

from .kubernetes_values import ManifestFields, at, ceiling, quantity
from .reading import Json

SHM = "/dev/shm"  # noqa: S108 - the mount point that programs look for
_DRIVER = re.compile(r"^(/usr/local/nvidia|/home/kubernetes/bin/nvidia|/dev/nvidia|/usr/local/cuda|/usr/lib/nvidia)")
GCSFUSE = "gcsfuse.csi.storage.gke.io"
_FILES = {
    "configMap": "is a ConfigMap: put its files into the image, or into the folder of `submit --code`",
    "secret": "is a Secret as files: a job has secrets as variables (secrets), and the target's service account",
    "projected": "is made of other objects: put its files into the image, or into the folder of `submit --code`",
    "downwardAPI": "tells the pod of itself: a job has its variables (docs/runtime.md)",
}


@dataclass
class Volumes:
    """Translated volumes. `folders`: the volume of each folder that the command creates; `folders_gib`: the disk that
    they ask for; `gib`: the size of other disks."""

    mounts: list[Json] = field(default_factory=list[Json])
    folders: dict[str, str] = field(default_factory=dict[str, str])
    shm_mib: int | None = None
    has_shm: bool = False
    folders_gib: int = 0
    gib: int = 0


def volumes(given: ManifestFields, document: Any, spec: str, container: str, chosen: Mapping[str, str]) -> Volumes:
    """Translate volumes that the container mounts. `spec`, `container`: paths; `chosen`: sources by path."""
    found = Volumes()
    by_name: dict[str, str] = {}
    for index, each in enumerate(entries(at(document, f"{spec}.volumes"))):
        by_name[str(object_at(each).get("name"))] = f"{spec}.volumes[{index}]"
    used: set[str] = set()
    paths: set[str] = set()
    claims = _claims(document)
    for index, each in enumerate(entries(at(document, f"{container}.volumeMounts"))):
        mount = f"{container}.volumeMounts[{index}]"
        name, path = str(object_at(each).get("name")), object_at(each).get("mountPath")
        volume = by_name.get(name)
        if volume is None and name in claims:
            _claim(given, mount, path, chosen, found)
            paths.add(str(path).rstrip("/"))
            continue
        if volume is None:
            given.report.refuse(given.name(f"{mount}.name"), "is no volume of the pod")
            continue
        used.add(volume)
        is_absolute = isinstance(path, str) and path.startswith("/")
        if not is_absolute and not given.is_stopped(f"{mount}.mountPath"):
            given.report.refuse(given.name(f"{mount}.mountPath"), "must be an absolute path")
        path = str(path).rstrip("/") or "/"
        if path in paths:
            given.refuse(mount, f"is at {path}, where another volume is mounted")
            continue
        paths.add(path)
        _mount(given, document, mount, volume, path, chosen, found)
    for volume in by_name.values():
        if volume not in used:
            given.left_out(volume, "is mounted nowhere in the container")
    for path, source in chosen.items():
        if path.rstrip("/") not in paths:
            found.mounts.append({"source": source, "path": path})
    return found


def _claims(document: Any) -> set[str]:
    """Return the names of claims that a JobSet makes: https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/"""
    policies = entries(at(document, "spec.volumeClaimPolicies"))
    templates = [each for policy in policies for each in entries(object_at(policy).get("templates"))]
    return {str(at(each, "metadata.name")) for each in templates}


def _claim(given: ManifestFields, mount: str, path: Any, chosen: Mapping[str, str], found: Volumes) -> None:
    """Translate the mount of a claim that a JobSet makes, which a job does not have: --mount says what is there."""
    source = chosen.get(path if isinstance(path, str) else "")
    if not source:
        given.ask(mount, f"is of a claim that JobSet makes: --mount {path}=<source> says what is there")
        return
    _placed(given, mount, path, source, bool(given.flag(f"{mount}.readOnly")), found)
    given.report.changed(given.name(f"{mount}.name"), f"mounts: {source}", "--mount says what is there")


def _mount(
    given: ManifestFields, document: Any, mount: str, volume: str, path: str, chosen: Mapping[str, str], found: Volumes
) -> None:
    raw = object_at(at(document, volume))
    kind = next((key for key in raw if key != "name"), "")
    report = given.report
    source_path = f"{volume}.{kind}"
    for each in (f"{mount}.name", f"{volume}.name"):
        given.keep(each, why="is the name of the volume here")
    read_only = any([given.flag(f"{mount}.readOnly"), given.flag(f"{source_path}.readOnly")])
    folder = object_at(at(document, mount)).get("subPath")
    suffix = f"/{folder.strip('/')}" if isinstance(folder, str) and folder.strip("/") else ""
    for each in ("mountPropagation", "recursiveReadOnly"):
        given.left_out(f"{mount}.{each}", "is of mounts that a job has none of")
    if given.has(f"{mount}.subPathExpr"):
        report.decide(given.name(f"{mount}.subPathExpr"), "is a folder that variables name: write subPath, or --mount")
    source = next((chosen[each] for each in (path, f"{path}/") if each in chosen), "")
    if source:
        _placed(given, mount, path, source, read_only, found)
        for each in given.paths(volume):
            if not report.is_settled(given.name(each)) or each == source_path:
                report.changed(given.name(each), f"mounts: {source}", "--mount says what is there")
        return
    if kind == "emptyDir":
        _empty(given, mount, volume, path, found)
    elif kind == "persistentVolumeClaim":
        claim = given.text(f"{source_path}.claimName")
        if not claim:
            report.refuse(given.name(source_path), "names no claim")
            return
        source = f"volume://{claim}{suffix}"
        _placed(given, mount, path, source, read_only, found)
        why = f"is a claim; a target's volumes have keys: --mount {path}=volume://<key>, where it is another"
        report.decide(given.name(f"{source_path}.claimName"), why, new=source, is_open=False)
        given.keep(f"{source_path}.readOnly", "mounts.read_only")
    elif kind == "csi" and given.text(f"{source_path}.driver") == GCSFUSE:
        _bucket(given, document, mount, volume, path, suffix, read_only, found)
    elif kind == "hostPath" and (host := given.text(f"{source_path}.path")) and (host == SHM or _DRIVER.match(host)):
        found.has_shm |= host == SHM
        given.left_out(volume, "a job's container has the GPUs' driver, and shared memory of its own")
        given.left_out(mount, "a job's container has the GPUs' driver, and shared memory of its own")
    elif kind == "ephemeral":
        storage = f"{source_path}.volumeClaimTemplate.spec.resources.requests.storage"
        size = quantity(at(document, storage))
        found.gib += ceiling(size / 2**30) if size and 0 < size < 2**60 else 0
        for each in [*given.paths(source_path), *given.paths(f"{mount}.mountPath")]:
            report.decide(given.name(each), "is a disk for a while: disk_gib", new="disk_gib", is_open=False)
        found.folders[path] = volume
    else:
        why = _FILES.get(kind) or f"is a volume of the kind {kind or 'none'}, which a job file has none of"
        for each in [*given.paths(source_path), *given.paths(mount)]:
            if not report.is_settled(given.name(each)) or each == source_path:
                report.decide(given.name(each), f"{why}; --mount {path}=<source> says what is there")


def _placed(given: ManifestFields, mount: str, path: str, source: str, read_only: bool, found: Volumes) -> None:
    found.mounts.append({"source": source, "path": path, **({"read_only": True} if read_only else {})})
    given.keep(f"{mount}.mountPath", "mounts")
    if given.has(f"{mount}.readOnly"):
        given.keep(f"{mount}.readOnly", "mounts.read_only")
    if given.has(f"{mount}.subPath"):
        given.report.changed(given.name(f"{mount}.subPath"), source, "is a folder of the source")


def _empty(given: ManifestFields, mount: str, volume: str, path: str, found: Volumes) -> None:
    """Translate an emptyDir, a folder that lives as long as the pod."""
    report, base = given.report, f"{volume}.emptyDir"
    medium, limit = given.text(f"{base}.medium"), given.values.get(f"{base}.sizeLimit")
    size = quantity(limit) if limit is not None else None
    if limit is not None and (size is None or size <= 0 or size > 2**60):
        report.refuse(given.name(f"{base}.sizeLimit"), "must be a size such as 16Gi")
        return
    other = next((each for each in found.folders if found.folders[each] == volume), "")
    if other and not given.has(f"{mount}.subPath"):
        why = f"is the folder {other} too; here each path has a folder of its own: let the program use one"
        report.decide(given.name(f"{mount}.mountPath"), why, new="command", is_open=False)
    given.left_out(f"{mount}.readOnly", "is a folder of the container's own")
    given.left_out(f"{mount}.subPath", "is a folder of the container's own")
    if path == SHM:
        found.has_shm = True
        given.keep(f"{mount}.mountPath", "shm_mib")
        given.keep(f"{base}.medium", "shm_mib")
        if size is not None:
            found.shm_mib = ceiling(size / 2**20)
            given.keep(f"{base}.sizeLimit", "shm_mib")
        if medium != "Memory" and given.has(base):
            report.note(given.name(f"{mount}.mountPath"), "is memory in a job")
        return
    said = "is a folder of the container's own disk, which the command makes"
    if medium == "Memory":
        report.decide(given.name(f"{base}.medium"), f"{path} is memory; in a job memory is at {SHM}", is_open=False)
    else:
        given.left_out(f"{base}.medium", said)
    report.changed(given.name(f"{mount}.mountPath"), "command", said)
    report.changed(given.name(base), None, said) if base in given.names else None
    if size is not None:
        found.folders_gib += ceiling(size / 2**30) if medium != "Memory" and not other else 0
        report.changed(given.name(f"{base}.sizeLimit"), "disk_gib" if medium != "Memory" else None, said)
    found.folders[path] = volume


def _bucket(
    given: ManifestFields,
    document: Any,
    mount: str,
    volume: str,
    path: str,
    suffix: str,
    read_only: bool,
    found: Volumes,
) -> None:
    report, base = given.report, f"{volume}.csi"
    attributes = f"{base}.volumeAttributes"
    bucket = given.text(f"{attributes}.bucketName")
    if not bucket:
        report.refuse(given.name(f"{attributes}.bucketName"), "is missing")
        return
    if bucket == "_":
        why = f"means every bucket: --mount {path}=gs://<bucket> says which one, and the program finds it at {path}"
        report.decide(given.name(f"{attributes}.bucketName"), why)
    options = given.text(f"{attributes}.mountOptions") or ""
    read_only |= "ro" in options.split(",")
    folder = next((each[9:] for each in options.split(",") if each.startswith("only-dir=")), "").strip("/")
    source = f"gs://{bucket}{'/' + folder if folder else ''}{suffix}"
    _placed(given, mount, path, source, read_only, found)
    given.keep(f"{base}.driver", "mounts")
    given.keep(f"{base}.readOnly", "mounts.read_only")
    given.keep(f"{attributes}.bucketName", "mounts")
    kept = ("", "implicit-dirs", "ro")
    left = [each for each in options.split(",") if each not in kept and not each.startswith("only-dir=")]
    if given.has(f"{attributes}.mountOptions"):
        name = given.name(f"{attributes}.mountOptions")
        if left:
            new = ",".join(each for each in options.split(",") if each not in left)
            report.decide(
                name, f"a job has its own options of gcsfuse, without {', '.join(left)[:80]}", new=new, is_open=False
            )
        else:
            report.keep(name, "mounts")
    for each in given.paths(attributes):
        if not report.is_settled(given.name(each)):
            report.decide(given.name(each), "a job has its own options of gcsfuse", is_open=False)
