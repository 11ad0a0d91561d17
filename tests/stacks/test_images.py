"""`images.lock.yaml`: how it is read, what it pins, and what `stacks images` and `stacks validate` say of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from click.testing import CliRunner, Result

from accel.diagnostics.errors import BadInputs, NotFound
from stacks.cli.main import stacks
from stacks.environment.config import ConfigFaults, load_environment
from stacks.environment.deployment import deploy
from stacks.environment.images_lock import LOCK, ImageLock, LockedImage, read, write
from stacks.operations.images.recommendation import PARAMETERS, release_notes
from tests.support import memory
from tests.support.project import KEY, environment, put

NVIDIA = "ECS_AL2023_NVIDIA"
TYPE = f"images:\n  {NVIDIA}:\n"
OLD = LockedImage(
    image_id="ami-0e46815163b0833b8",
    name="al2023-ami-ecs-gpu-hvm-2023.0.20260223-kernel-6.1-x86_64-ebs",
    created="2026-02-23T20:00:00.000Z",
    nvidia_driver="570.195.03",
)
NEW = LockedImage(
    image_id="ami-09b49eab44165178f",
    name="al2023-ami-ecs-gpu-hvm-2023.0.20260226-kernel-6.1-x86_64-ebs",
    created="2026-02-26T20:00:00.000Z",
)


def lock_of(*entries: tuple[str, str, LockedImage]) -> ImageLock:
    return ImageLock().put({(image_type, region): image for image_type, region, image in entries})


# --- the file


def test_every_image_type_has_a_parameter() -> None:
    from accel.rules.aws.images import IMAGE_TYPES

    assert set(PARAMETERS) == set(IMAGE_TYPES)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert read(tmp_path) is None
    numbers = OLD.model_copy(update={"nvidia_driver": "580.10", "cuda": "13"})
    lock = lock_of((NVIDIA, "us-west-2", NEW), (NVIDIA, "us-east-1", numbers))
    write(tmp_path, lock)
    assert read(tmp_path) == lock
    assert list(lock.images[NVIDIA]) == ["us-east-1", "us-west-2"], "sorted, so that a change is a small diff"
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]


def test_versions_and_dates_without_quotes_stay_as_written(tmp_path: Path) -> None:
    text = "{image_id: ami-12345678, nvidia_driver: 580.10, cuda: 13.0, created: 2026-02-01}"
    (tmp_path / LOCK).write_text(f"images: {{{NVIDIA}: {{us-east-1: {text}}}}}")
    lock = read(tmp_path)
    assert lock
    found = lock.find(NVIDIA, "us-east-1")
    assert found and (found.nvidia_driver, found.cuda, found.created) == ("580.10", "13.0", "2026-02-01")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("images: [", ":2: is not YAML"),
        ("", ":1: is empty"),
        ("imags: {}", ":1: imags: unknown key; did you mean images?"),
        ("images:\n  ECS_AL2023_NVIDA: {}", ":2: images.ECS_AL2023_NVIDA: no image type ECS_AL2023_NVIDA; nearest: "),
        (f"{TYPE}    useast: {{image_id: ami-12345678}}", f":3: images.{NVIDIA}.useast: must match"),
        (f"{TYPE}    us-east-1:\n      image_id: ami-1", f":4: images.{NVIDIA}.us-east-1.image_id: must match"),
        (f"{TYPE}    us-east-1:\n      name: a", f":3: images.{NVIDIA}.us-east-1.image_id: is missing"),
        (f"{TYPE}    us-east-1: {{}}\n    us-east-1: {{}}", f":4: images.{NVIDIA}.us-east-1: is set twice"),
    ],
)  # fmt: skip
def test_a_bad_file_is_said_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / LOCK).write_text(text)
    with pytest.raises(BadInputs) as refused:
        read(tmp_path)
    assert any(f"{LOCK}{said}" in message for message in refused.value.messages), refused.value.messages


# --- the program


@pytest.fixture
def pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's folder, with a lock for the region of `dev`."""
    monkeypatch.setattr(pulumi, "get_root_directory", lambda: str(tmp_path))
    write(tmp_path, lock_of((NVIDIA, "us-east-1", OLD)))
    return tmp_path


def images(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The ec2Configuration of each environment, as the program registers it."""
    loaded = load_environment(values)
    made = memory.run(lambda: deploy(loaded)).of("batch/computeEnvironment:ComputeEnvironment")
    return {one.name: one.inputs["computeResources"]["ec2Configurations"][0] for one in made}


def test_the_pinned_image_reaches_the_environments(pinned: Path) -> None:
    both = {"imageType": NVIDIA, "imageIdOverride": OLD.image_id}
    assert images(environment("dev")) == {"spot": both, "on-demand": both}


def test_another_region_and_no_file_leave_the_choice_to_batch(pinned: Path) -> None:
    assert images(environment("prod"))["spot"] == {"imageType": NVIDIA}
    (pinned / LOCK).unlink()
    assert images(environment("dev"))["spot"] == {"imageType": NVIDIA}


def test_an_image_of_ones_own_goes_before_the_pin(pinned: Path) -> None:
    own = put("aws.environments.spot.image_id_override", "ami-0123456789abcdef0", environment("dev"))
    assert images(own)["spot"]["imageIdOverride"] == "ami-0123456789abcdef0"
    assert images(own)["on-demand"]["imageIdOverride"] == OLD.image_id


def test_a_pin_does_not_pass_for_an_image_of_ones_own(pinned: Path) -> None:
    with pytest.raises(ConfigFaults, match=r"p3.*ECS_AL2023_NVIDIA does not support"):
        load_environment(put("aws.environments.spot.instance_types", ["p3"], environment("dev")))
    outdated = put("aws.environments.spot.image_type", "ECS_AL2_NVIDIA", environment("dev"))
    assert images(outdated)["spot"] == {"imageType": NVIDIA, "imageIdOverride": OLD.image_id}


def test_a_bad_file_ends_the_program_with_its_lines(pinned: Path) -> None:
    (pinned / LOCK).write_text("images: []")
    with pytest.raises(pulumi.RunError, match=rf"{LOCK}:1: images: must be a mapping, is a list"):
        images(environment("dev"))


# --- the commands


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`stacks` in a folder with the stack dev; AWS recommends `now`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": {KEY: environment("dev")}}, sort_keys=False))

    def call(*arguments: str, now: LockedImage | Exception = NEW) -> Result:
        def answer(image_type: str, region: str) -> LockedImage:
            assert (image_type, region) == (NVIDIA, "us-east-1")
            if isinstance(now, Exception):
                raise now
            return now

        monkeypatch.setattr("stacks.operations.images.pins.recommended_image", answer)
        return CliRunner().invoke(stacks, [*arguments])

    return call


def test_validate_warns_of_what_is_not_pinned_once_there_is_a_file(run: Any, tmp_path: Path) -> None:
    assert run("validate", "--strict").exit_code == 0
    write(tmp_path, lock_of((NVIDIA, "us-west-2", OLD)))
    told = run("validate")
    assert told.exit_code == 0
    place = "environment.aws.environments.spot.image_type: is ECS_AL2023_NVIDIA, which images.lock.yaml does not pin"
    assert any(line.startswith("warning: Pulumi.dev.yaml:") and place in line for line in told.stdout.splitlines())
    assert run("validate", "--strict").exit_code == 2
    write(tmp_path, lock_of((NVIDIA, "us-east-1", OLD)))
    assert run("validate", "--strict").stdout == "Pulumi.dev.yaml: valid\n"
    (tmp_path / LOCK).write_text("images: []")
    bad = run("validate")
    assert (bad.exit_code, bad.stderr) == (2, "error: images.lock.yaml:1: images: must be a mapping, is a list\n")
    assert run("images").exit_code == run("images", "upgrade").exit_code == 2
    assert run("cost").exit_code == 0, "what asks for no image needs no lock"


def test_list_shows_pins_and_who_uses_them(run: Any, tmp_path: Path) -> None:
    own = put("aws.environments.spot.image_id_override", "ami-0123456789abcdef0", environment("dev"))
    (tmp_path / "Pulumi.own.yaml").write_text(yaml.safe_dump({"config": {KEY: own}}))
    assert [row["image_id"] for row in json.loads(run("images", "-o", "json").stdout)] == [
        "not pinned",
        "ami-0123456789abcdef0",
    ]
    write(tmp_path, lock_of((NVIDIA, "us-east-1", OLD), (NVIDIA, "eu-west-1", OLD)))
    lines = [line.split() for line in run("images", "list").stdout.splitlines()]
    assert lines[0] == ["IMAGE_TYPE", "REGION", "IMAGE_ID", "NAME", "CREATED", "NVIDIA_DRIVER", "CUDA", "USED_BY"]
    assert lines[1] == [NVIDIA, "eu-west-1", OLD.image_id, OLD.name, OLD.created, "570.195.03", "unknown"]
    assert lines[2][-3:] == ["dev/spot,", "dev/on-demand,", "own/on-demand"]
    assert lines[3][-1] == "own/spot"


def test_upgrade_shows_old_and_new_and_writes_only_when_told(run: Any, tmp_path: Path) -> None:
    write(tmp_path, lock_of((NVIDIA, "us-east-1", OLD), (NVIDIA, "eu-west-1", OLD)))
    before = (tmp_path / LOCK).read_text()
    told = run("images", "upgrade")
    assert told.exit_code == 0
    assert ["image_id", OLD.image_id, NEW.image_id] in [line.split()[2:] for line in told.stdout.splitlines()]
    assert "releases/tag/20260226" in told.stderr and "nothing was written; --yes writes it" in told.stderr
    assert run("images", "upgrade", "--yes", "--expect-no-changes").exit_code == 7
    assert (tmp_path / LOCK).read_text() == before

    told = run("images", "upgrade", "--yes", "--nvidia-driver", "580.126.09")
    assert "warning: ECS_AL2023_NVIDIA in us-east-1: a MAJOR change of the NVIDIA driver, 570.195.03 to 580.126.09" in (
        told.stderr
    )
    lock = read(tmp_path)
    assert lock and lock.find(NVIDIA, "us-east-1") == NEW.model_copy(update={"nvidia_driver": "580.126.09"})
    assert lock.find(NVIDIA, "eu-west-1") == OLD, "what these stacks do not use stays"

    # The same image again: what was filled in by hand stays, and nothing changes.
    again = run("images", "upgrade", "--yes", "--expect-no-changes", "-o", "json")
    assert again.exit_code == 0 and "nothing to change" in again.stderr
    (row,) = json.loads(again.stdout)
    assert (row["changed"], row["new"]["nvidia_driver"]) == (False, "580.126.09")


def test_a_minor_change_of_the_driver_is_none_to_warn_of(run: Any, tmp_path: Path) -> None:
    write(tmp_path, lock_of((NVIDIA, "us-east-1", OLD)))
    told = run("images", "upgrade", "-o", "json", "--nvidia-driver", "570.211.01")
    assert json.loads(told.stdout)[0]["driver_major_changed"] is False and "MAJOR" not in told.stderr
    assert json.loads(run("images", "upgrade", "-o", "json").stdout)[0]["driver_major_changed"] is None


def test_upgrade_of_what_is_not_there(run: Any) -> None:
    assert run("images", "upgrade", now=NotFound("no image")).exit_code == 6
    bad = run("images", "upgrade", "--cuda", "latest")
    assert bad.exit_code == 2 and "must be a version such as" in bad.stderr


def test_release_notes_by_the_date_in_the_name() -> None:
    assert release_notes(NEW) == "https://github.com/aws/amazon-ecs-ami/releases/tag/20260226"
    assert release_notes(LockedImage(image_id="ami-12345678")) is None
