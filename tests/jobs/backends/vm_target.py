"""What targets of both kinds of machines have, and what their jobs may ask for or not."""

from collections.abc import Sequence
from typing import Any

PROJECT = "accel-sandbox"
IMAGE = "us-docker.pkg.dev/acme/ml/train:1.4"
Fields = dict[str, Any]

COMMON_FIELDS: Fields = {
    "image": IMAGE,
    "spot": True,
    "shm_mib": 4096,
    "env": {"EPOCHS": "50"},
    "secrets": {"HF_TOKEN": "projects/acme/secrets/hf", "WANDB": "wandb/versions/3"},
    "mounts": [{"source": "gs://acme-data/imagenet", "path": "/data", "read_only": True}],
    "labels": {"Team": "Vision"},
}
"""Of a job, whatever its machines are."""
REFUSALS: list[tuple[Fields, Fields, str]] = [
    ({}, {"tasks": 2}, "tasks: is 2, and machines of its own run one task; submit several"),
    ({}, {"command": []}, "command: is missing, and there is no image that would have one"),
    ({}, {"shm_mib": 64}, "shm_mib: is of a container, and without an image"),
    ({}, {"image": "a b"}, 'image: is "a b"'),
    ({}, {"mounts": [{"source": "efs://fs-1", "path": "/d"}]}, 'mounts[0].source: "efs://fs-1" is no gs://'),
    ({}, {"mounts": [{"source": "gs://bkt/../x", "path": "/d"}]}, 'mounts[0].source: "gs://bkt/../x" has ..'),
    ({}, {"secrets": {"A": "hf_abcdefghijklmnop"}}, "secrets.A: must be projects/<project>/secrets/<secret>, or"),
    ({}, {"labels": {"accel-job": "x"}}, 'labels: has "accel-job", and keys of accel- are'),
    ({}, {"command": ["x" * 300_000]}, "request: has"),
]
"""Of a target, a job's fields, and why."""


def values(zones: Sequence[str], tag: str) -> Fields:
    regions = dict.fromkeys(zone.rpartition("-")[0] for zone in zones)
    return {
        "project": PROJECT,
        "zones": list(zones),
        "network": f"projects/{PROJECT}/global/networks/ml",
        "subnetworks": {region: f"projects/{PROJECT}/regions/{region}/subnetworks/ml" for region in regions},
        "service_account": f"runner@{PROJECT}.iam.gserviceaccount.com",
        "bucket": "acme-jobs",
        "tags": [tag],
        "labels": {"team": "vision"},
    }
