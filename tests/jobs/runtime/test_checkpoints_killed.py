"""Checkpoints of a program that is killed at any byte, on a disk, in S3 and in Cloud Storage."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from jobs.runtime import Checkpoints
from sandbox import keys
from tests.jobs.runtime.relay import Relay
from tests.jobs.runtime.saver import FOLDER_FILE, content
from tests.sandbox.conftest import Aws, start
from tests.support import google_fake
from tests.support.soak import SOAK

SAVER = Path(__file__).with_name("saver.py")
fake = google_fake.fake
KILLS = 200
"""Of the soak."""
PLACES = (0.3, 0.55)
"""Of two kills in a row, in shares of what an undisturbed program sends."""
SIZE, STEPS = 40_000, 4


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    root = tmp_path_factory.mktemp("root")
    found = start(root / "home", root)
    found.client("s3").create_bucket(Bucket="runs")
    yield found
    found.process.terminate()
    found.process.wait(120)


def on_aws(aws: Aws) -> dict[str, str]:
    return {**keys.aws(keys.key(aws.home)), "AWS_DEFAULT_REGION": "us-east-1"}


def run(
    where: str, env: dict[str, str], kill_at: int | None = None, relay: Relay | None = None
) -> tuple[int, int, int]:
    """Exit code, the last step that was told to be saved, and the total at its end."""
    command = [sys.executable, str(SAVER), where, str(STEPS), str(SIZE)]
    if kill_at is not None and relay is None:
        command.append(str(kill_at))
    base = {name: value for name, value in os.environ.items() if not name.startswith(("ACCEL_", "AWS_", "GOOGLE_"))}
    process = subprocess.Popen(command, env=base | env, stdout=subprocess.PIPE, text=True)
    if relay:
        relay.arm(kill_at)
        relay.victim = process.pid
    out, _ = process.communicate(timeout=300)
    told = [line.split() for line in out.splitlines()]
    steps = [int(words[1]) for words in told if words[0] == "saved"]
    return process.returncode, max(steps, default=0), max([int(w[1]) for w in told if w[0] == "total"], default=0)


def newest(where: str) -> int:
    """The step that a resume finds, whose content is the right one."""
    found = Checkpoints(where).resume()
    if found is None:
        return 0
    assert found.open("state.bin").read() == content(found.step, SIZE)
    assert found.path(FOLDER_FILE).read_text() == str(found.step)
    return found.step


def hunt(where: Callable[[int], str], env: dict[str, str], relay: Relay | None, seed: int, total: int) -> list[int]:
    """Kills a program again and again, each going on where the one before was; what each resume found."""
    chance, found, kills, number = random.Random(seed), [], 0, 0
    points = [int(total * (share + chance.random() / 20)) for share in PLACES]
    while kills < (KILLS if SOAK else len(PLACES)):
        place, known, number = where(number), 0, number + 1
        while True:
            point = chance.randrange(1, max(2, total)) if SOAK else points.pop(0) if points else None
            code, saved, _ = run(place, env, point, relay)
            if relay:
                relay.quiet()
            now = newest(place)
            assert now in (max(known, saved), max(known, saved) + 1), (place, known, saved, now)
            known = now
            if code == 0:
                break
            assert code == -signal.SIGKILL
            kills += 1
            found.append(now)
        assert known == STEPS
        assert complete(place) in ([STEPS - 1, STEPS], [STEPS - 2, STEPS - 1, STEPS]), "killed before it deleted one"
    return found


def complete(place: str) -> list[int]:
    """Steps of the complete ones; what a kill left of another is of the last step, and goes with the next save."""
    checkpoints = Checkpoints(place)
    steps: dict[bool, list[int]] = {True: [], False: []}
    for name, sizes in checkpoints._store.names().items():
        steps[checkpoints._complete(name, sizes)].append(int(name.split("-")[1]))
    assert set(steps[False]) <= {STEPS}, (place, steps)
    return sorted(steps[True])


def test_a_kill_at_any_byte_loses_no_more_than_one_save_on_a_disk(tmp_path: Path) -> None:
    code, saved, total = run(str(tmp_path / "whole"), {})
    assert (code, saved) == (0, STEPS) and total > STEPS * SIZE
    found = hunt(lambda number: str(tmp_path / f"run-{number}"), {}, None, 1, total)
    assert len(set(found)) > 1, "the kills were meant to come at several steps"
    for place in tmp_path.iterdir():
        assert [path.name for path in place.iterdir() if path.name.startswith(".")] == []


def test_a_kill_at_any_byte_loses_no_more_than_one_save_in_s3(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    relay = Relay(urlsplit(aws.told["url"]).netloc)
    for name, value in {**on_aws(aws), "AWS_ENDPOINT_URL_S3": aws.told["url"]}.items():
        monkeypatch.setenv(name, value)
    _hunted("s3://runs", on_aws(aws) | {"AWS_ENDPOINT_URL_S3": relay.url}, relay, 2)


def test_an_object_that_is_not_what_s3_has_a_checksum_of_is_damaged(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {**on_aws(aws), "AWS_ENDPOINT_URL_S3": aws.told["url"]}.items():
        monkeypatch.setenv(name, value)
    checkpoints = Checkpoints("s3://runs/damaged", keep=3)
    for step in (1, 2, 3):
        checkpoints.save(step, lambda into: into.open("state.bin").write(b"right"))
    names = {int(name.split("-")[1]): name for name in checkpoints._store.names()}
    for step, file in (2, "state.bin"), (3, "manifest.json"):
        aws.client("s3").put_object(
            Bucket="runs", Key=f"damaged/{names[step]}/{file}", Body=b"wrong", ChecksumCRC32="MLOIrA=="
        )
    found = checkpoints.resume()
    assert found and found.step == 1
    assert capsys.readouterr().out.count("skipped") == 2


def test_a_kill_at_any_byte_loses_no_more_than_one_save_in_cloud_storage(
    fake: google_fake.Fake,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = f"{fake.url}/storage.googleapis.com"
    fake.call("POST", "storage.googleapis.com/storage/v1/b", {"name": "runs"}, project="accel-sandbox")
    relay = Relay(urlsplit(fake.url).netloc)
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", fake.token)
    monkeypatch.setenv("ACCEL_STORAGE_ROOT", f"{url}/")
    env = {"GOOGLE_OAUTH_ACCESS_TOKEN": fake.token, "ACCEL_STORAGE_ROOT": f"{relay.url}/storage.googleapis.com/"}
    _hunted("gs://runs", env, relay, 3)


def _hunted(bucket: str, env: dict[str, str], relay: Relay, seed: int) -> None:
    code, saved, _ = run(f"{bucket}/whole", env, None, relay)
    assert (code, saved) == (0, STEPS) and relay.sent > STEPS * SIZE
    found = hunt(lambda number: f"{bucket}/run-{number}", env, relay, seed, relay.sent)
    assert len(set(found)) > 1, "the kills were meant to come at several steps"
    relay.close()
