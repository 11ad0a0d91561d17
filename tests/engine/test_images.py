"""A pinned image through the real engine: deployed, upgraded in place, and let go."""

from pathlib import Path
from typing import Any

from stacks.environment.images_lock import LOCK, ImageLock, LockedImage, write
from tests.support.engine import Sandbox
from tests.support.project import Stack, environment
from tests.support.soak import soak_only

NVIDIA = "ECS_AL2023_NVIDIA"
OLD, NEW = "ami-0e46815163b0833b8", "ami-09b49eab44165178f"
"""The GPU images of 2026-02-23 and 2026-02-26 in us-east-1."""


def pin(folder: Path, image_id: str) -> None:
    write(folder, ImageLock().put({(NVIDIA, "us-east-1"): LockedImage(image_id=image_id)}))


@soak_only
def test_a_new_pin_is_an_update_in_place(tmp_path: Path, sandbox: Sandbox) -> None:
    batch = sandbox.client("batch")
    stack = Stack(tmp_path / "images", sandbox, environment("sandbox"), stack="images")

    def images() -> dict[str, Any]:
        found = batch.describe_compute_environments()["computeEnvironments"]
        return {
            one["computeEnvironmentName"]: one["computeResources"]["ec2Configuration"][0].get("imageIdOverride")
            for one in found
            if one["tags"].get("accel:stack") == "images"
        }

    try:
        stack.up()
        names = set(images())
        assert len(names) == 2 and set(images().values()) == {None}
        for image_id in (OLD, NEW):
            pin(stack.folder, image_id)
            done = stack.up()
            touched = {
                (step.op, step.name) for step in done.steps if step.type.startswith("aws:") and step.op != "same"
            }
            assert touched == {("update", "spot"), ("update", "on-demand")}
            (path,) = done.step("spot", "update").diffs
            assert path == "computeResources.ec2Configurations[0].imageIdOverride"
            assert images() == dict.fromkeys(names, image_id)
        assert stack.up("--refresh", "--expect-no-changes").ops("same", "refresh") == {}

        (stack.folder / LOCK).write_text(f"images:\n  {NVIDIA}:\n    us-east-1: {{image_id: ami-1}}\n")
        refused = stack.preview(check=False)
        assert refused.exit_code == 1 and "Traceback" not in refused.text
        assert f"{LOCK}:3: images.{NVIDIA}.us-east-1.image_id: must match" in "\n".join(refused.diagnostics)
        assert images() == dict.fromkeys(names, NEW)
    finally:
        (stack.folder / LOCK).unlink(missing_ok=True)
        stack.destroy()
