"""The commands that machines of the sandbox's Google find first on their PATH."""

from typing import Any

import pytest

from sandbox.environment import project
from sandbox.google.guests.guests import Guests
from tests.support.guests import KEY, machine, said

pytest_plugins = ["tests.support.guests"]


@pytest.mark.parametrize(
    "more, listed, queried",
    [
        ({"machine_type": "a2-highgpu-2g"}, ["GPU 0: NVIDIA A100 (UUID: GPU-", "GPU 1: NVIDIA A100 (UUID: GPU-"],
         ["0, NVIDIA A100, 40960", "1, NVIDIA A100, 40960"]),
        ({"machine_type": "n1-standard-8", "gpu": "nvidia-tesla-t4", "gpus": 1}, ["GPU 0: NVIDIA T4 (UUID: GPU-"],
         ["0, NVIDIA T4, 16384"]),
        ({"machine_type": "a2-highgpu-1g", "driver": False}, ["NVIDIA-SMI has failed because it couldn't"] * 2, None),
        ({"machine_type": "n1-standard-8"}, ["nvidia-smi: command not found"] * 2, None),
    ],
)  # fmt: skip
def test_nvidia_smi_shows_the_gpus_of_the_machine(
    guests: Guests, more: Any, listed: list[str], queried: list[str] | None
) -> None:
    query = "--query-gpu=index,name,memory.total --format=csv,noheader,nounits"
    guests.start(machine(f"nvidia-smi -L; nvidia-smi {query}; echo code $?", **more))
    code = said(guests, r"^code (\d+)$")[1]
    lines = guests.serial(KEY).splitlines()[1:-1]
    wanted = [*listed, *(queried or [])]
    assert len(lines) == len(wanted)
    assert all(line.startswith(start) for line, start in zip(lines, wanted, strict=True))
    assert (code == "0") == (queried is not None)


def test_a_container_is_a_process_in_its_folder(guests: Guests) -> None:
    script = """
    export GIVEN=1 KEPT=2
    docker run --rm --name job --network host --gpus all --shm-size 1g -e TOLD=3 -e GIVEN local/examples \
        sh -c 'pwd; env; exit 7'
    echo code $?
    docker run --rm --name job local/examples nosuchcommand; echo code $?
    docker run --rm --name job pytorch/pytorch:2.8 true; echo code $?
    docker run --rm --nosuchflag local/examples true; echo code $?
    docker run --rm local/nosuchfolder true; echo code $?
    docker pull local/examples; echo code $?
    docker pull pytorch/pytorch:2.8; echo code $?
    echo wrong | docker login -u oauth2accesstoken --password-stdin us-docker.pkg.dev; echo code $?
    echo over
    """
    guests.start(machine(script, machine_type="a2-highgpu-1g"))
    said(guests, "^over$")
    text = guests.serial(KEY)
    codes = [line.partition(" ")[2] for line in text.splitlines() if line.startswith("code ")]
    assert codes == ["7", "127", "125", "125", "125", "0", "1", "1"]
    assert f"{project() / 'examples'}\n" in text
    assert "TOLD=3\n" in text and "GIVEN=1\n" in text
    assert "KEPT" not in text and "ACCEL_" not in text.replace("ACCEL_STORAGE_ROOT=", ""), "where storage is, alone"
    assert "pull access denied for pytorch/pytorch:2.8" in text


def test_a_container_is_stopped_killed_and_entered(guests: Guests) -> None:
    script = """
    obeys='trap "echo asked; exit 3" TERM; echo up; while :; do sleep 0.05; done'
    deaf='trap "" TERM; echo up; while :; do sleep 0.05; done'
    up() { until docker logs $1 2>/dev/null | grep -q up; do sleep 0.05; done; }
    docker run --name one local/examples sh -c "$obeys" & up one
    docker exec -e TOLD=4 one sh -c 'echo inside $(basename $PWD) $TOLD'
    docker run --name one local/examples true; echo twice $?
    docker rm one; echo running $?
    docker ps -q --filter name=one | grep -c .
    docker stop -t 60 one; wait $!; echo obeyed $?
    docker rm one; docker ps -a | grep -c .
    docker run --rm --name two local/examples sh -c "$deaf" & up two
    docker stop -t 0 two; wait $!; echo deaf $?
    docker run --rm --name three local/examples sh -c "$deaf" & up three
    docker kill three; wait $!; echo killed $?
    docker run --rm --name four local/examples sh -c "$obeys" & up four
    kill $!; wait $!; echo handed on $?
    echo over
    """
    guests.start(machine(script))
    said(guests, "^over$")
    lines = guests.serial(KEY).splitlines()
    for line in ("inside examples 4", "twice 125", "running 1", "1", "obeyed 3", "0", "deaf 137", "killed 137"):
        assert line in lines
    assert lines.count("asked") == 2


def test_a_gpu_that_is_not_there_cannot_be_given_to_a_container(guests: Guests) -> None:
    guests.start(machine("docker run --gpus all local/examples true; echo code $?", machine_type="n1-standard-8"))
    assert said(guests, r"^code (\d+)$")[1] == "125"
    assert 'could not select device driver "" with capabilities: [[gpu]]' in guests.serial(KEY)
