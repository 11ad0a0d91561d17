"""The images that AWS recommends now, by image type and region."""

import re
from typing import Any

from accel.clouds.aws.clients import client
from accel.clouds.aws.errors import asking
from accel.diagnostics.errors import CloudRefused, NotFound

from ...environment.images_lock import UNKNOWN, LockedImage

PARAMETERS = {
    "ECS_AL2023_NVIDIA": "/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/recommended",
    "ECS_AL2023": "/aws/service/ecs/optimized-ami/amazon-linux-2023/recommended",
}
"""Public SSM parameters by image type, both for x86_64.
Source: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/retrieve-ecs-optimized_AMI.html"""
RELEASES = "https://github.com/aws/amazon-ecs-ami/releases/tag/"
"""The only source of the driver's version: neither parameter, name nor description of an image has it. Source:
https://github.com/aws/amazon-ecs-ami/blob/main/generate-release-notes.sh"""

_RELEASE = re.compile(r"-\d+\.\d+\.(\d{8})\b")
_DRIVER = re.compile(r"NVIDIA driver(?: version)?:? v?(\d+(?:\.\d+)+)", re.IGNORECASE)
_CUDA = re.compile(r"CUDA(?: version)?:? v?(\d+(?:\.\d+)+)", re.IGNORECASE)


def recommended_image(image_type: str, region: str) -> LockedImage:
    """Ask SSM and EC2. Raise NoCredentials, CloudRefused, CloudSilent, and NotFound where AWS recommends none there."""
    names = [f"{PARAMETERS[image_type]}/{part}" for part in ("image_id", "image_name")]
    with asking(f"GetParameters {PARAMETERS[image_type]} in {region}"):
        answer = client("ssm", region, connect_s=3, read_s=20, attempts=4).get_parameters(Names=names)
        image_id, name = ({one["Name"]: one["Value"] for one in answer["Parameters"]}.get(each) for each in names)
    if not image_id:
        raise NotFound(f"{image_type}: AWS recommends no image in {region}", f"it would be in {names[0]}")
    image = _image(image_id, region)
    text = f"{image.get('Name', '')} {image.get('Description', '')}"
    driver, cuda = _DRIVER.search(text), _CUDA.search(text)
    return LockedImage(
        image_id=image_id,
        name=image.get("Name") or name or UNKNOWN,
        created=image.get("CreationDate") or UNKNOWN,
        nvidia_driver=driver[1] if driver else UNKNOWN,
        cuda=cuda[1] if cuda else UNKNOWN,
    )


def release_notes(image: LockedImage) -> str | None:
    """Return the page that names driver and CUDA of an image, by the date in its name."""
    found = _RELEASE.search(image.name)
    return f"{RELEASES}{found[1]}" if found else None


def _image(image_id: str, region: str) -> dict[str, Any]:
    """Return DescribeImages of one; empty without permission, since only name and date come from it."""
    try:
        with asking(f"DescribeImages {image_id} in {region}"):
            ec2 = client("ec2", region, connect_s=3, read_s=20, attempts=4)
            found: list[dict[str, Any]] = ec2.describe_images(ImageIds=[image_id])["Images"]
    except CloudRefused:
        found = []
    return found[0] if found else {}
