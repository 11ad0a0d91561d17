"""The scripts of a GPU VM, run by bash beside a metadata server that answers as Google's does."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from components.gcp.vm_scripts import AUTHORS_SCRIPT, READY, checkpoint_script, shutdown_script, startup_script
from tests.support.serving import QuietServer
from tests.support.waiting import until

SMI = '#!/bin/sh\nfor n in {numbers}; do echo "GPU $n: NVIDIA L4 (UUID: GPU-$n)"; done\n'
SAVES = """
import os, pathlib, signal, sys, time
def saved(number, frame):
    with open(sys.argv[1], "a") as file:
        file.write("saved\\n")
    time.sleep(0.5)
    sys.exit(143)
signal.signal(signal.SIGTERM, saved)
pathlib.Path(sys.argv[2]).write_text(str(os.getpid()))
while True:
    time.sleep(0.1)
"""
PATIENCE_S = 30


class Metadata:
    """Attributes that can be asked for, and what was told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.attributes: dict[str, str] = {}
        self.preempted = threading.Event()
        self.server = QuietServer(_handler(self))
        self.host = self.server.host

    def answer(self, path: str) -> str | None:
        if path.startswith("preempted"):
            if "wait_for_change" in path:
                self.preempted.wait(PATIENCE_S)
            return "TRUE" if self.preempted.is_set() else "FALSE"
        return self.attributes.get(path.removeprefix("attributes/"))


def _handler(metadata: Metadata) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = metadata.answer(self.path.removeprefix("/computeMetadata/v1/instance/"))
            known = found is not None and self.headers.get("Metadata-Flavor") == "Google"
            self.send_response(200 if known else 404)
            self.end_headers()
            self.wfile.write((found or "").encode() if known else b"")

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            metadata.told.append(f"{self.path.partition('guest-attributes/')[2]}={body}")
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@pytest.fixture
def metadata() -> Iterator[Metadata]:
    made = Metadata()
    yield made
    made.server.stop()


def run(script: str, metadata: Metadata, home: Path, gpus: int | None = None) -> subprocess.CompletedProcess[str]:
    programs = home / "bin"
    programs.mkdir(exist_ok=True)
    smi = programs / "nvidia-smi"
    numbers = " ".join(map(str, range(gpus or 0)))
    smi.write_text("#!/bin/sh\nexit 9\n" if gpus is None else SMI.format(numbers=numbers))
    smi.chmod(0o755)
    variables = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "GCE_METADATA_HOST": metadata.host,
        "HOME": str(home),
    }
    return subprocess.run(
        ["bash", "-c", script], env=variables, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_the_gpus_are_told_of_and_then_the_authors_script_runs(metadata: Metadata, tmp_path: Path) -> None:
    metadata.attributes[AUTHORS_SCRIPT] = f"#!{sys.executable}\nopen({str(tmp_path / 'ran')!r}, 'w').write('python')\n"
    done = run(startup_script(2, wait_s=60, driver=False), metadata, tmp_path, gpus=2)
    assert (done.returncode, done.stderr) == (0, "")
    until(lambda: (tmp_path / "ran").exists() and (tmp_path / "ran").read_text())
    assert metadata.told == [f"{READY}=waiting", f"{READY}=2"]


@pytest.mark.parametrize("gpus", [None, 1])
def test_too_few_gpus_are_told_of_and_nothing_runs(metadata: Metadata, tmp_path: Path, gpus: int | None) -> None:
    metadata.attributes[AUTHORS_SCRIPT] = f"#!/bin/sh\ntouch {tmp_path}/ran\n"
    run(startup_script(2, wait_s=0, driver=False), metadata, tmp_path, gpus=gpus)
    until(lambda: len(metadata.told) == 2)
    assert metadata.told[1] == f"{READY}=driver-not-ready"
    log = tmp_path / "accel-startup.log"
    until(lambda: "of 2 GPUs" in log.read_text())
    assert not (tmp_path / "ran").exists()


@pytest.fixture
def training(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process group that saves at SIGTERM, half a second long."""
    saves = [sys.executable, "-c", SAVES, str(tmp_path / "saved"), str(tmp_path / "pid")]
    running = subprocess.Popen(saves, start_new_session=True)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    reaped = threading.Thread(target=running.wait, daemon=True)  # as init does
    reaped.start()
    yield running
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGKILL)
    reaped.join()


def test_the_end_waits_for_a_checkpoint(metadata: Metadata, tmp_path: Path, training: subprocess.Popen[bytes]) -> None:
    checkpoint = checkpoint_script(None, str(tmp_path / "pid"), 20)
    done = run(shutdown_script(checkpoint), metadata, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert training.poll() == 143
    assert (tmp_path / "saved").read_text() == "saved\n"


def test_a_notice_tells_once(metadata: Metadata, tmp_path: Path, training: subprocess.Popen[bytes]) -> None:
    checkpoint = checkpoint_script(None, str(tmp_path / "pid"), 20)
    script = startup_script(0, wait_s=0, driver=False, checkpoint=checkpoint)
    run(script, metadata, tmp_path, gpus=0)
    assert training.poll() is None
    metadata.preempted.set()
    until((tmp_path / "saved").exists)
    run(shutdown_script(checkpoint), metadata, tmp_path)
    assert training.poll() == 143
    assert (tmp_path / "saved").read_text() == "saved\n"


def test_what_does_not_end_is_not_waited_for_for_ever(metadata: Metadata, tmp_path: Path) -> None:
    stubborn = subprocess.Popen(
        [
            sys.executable,
            "-c",
            SAVES.replace("sys.exit(143)", "return"),
            str(tmp_path / "saved"),
            str(tmp_path / "pid"),
        ],
        start_new_session=True,
    )
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    try:
        run(shutdown_script(checkpoint_script(None, str(tmp_path / "pid"), 1)), metadata, tmp_path)
        assert stubborn.poll() is None
    finally:
        os.killpg(stubborn.pid, signal.SIGKILL)
        stubborn.wait()


def test_nothing_runs_that_could_be_told(metadata: Metadata, tmp_path: Path) -> None:
    done = run(shutdown_script(checkpoint_script(None, str(tmp_path / "none"), 20)), metadata, tmp_path)
    assert done.returncode == 0


def test_a_unit_is_stopped(metadata: Metadata, tmp_path: Path) -> None:
    systemctl = tmp_path / "bin" / "systemctl"
    systemctl.parent.mkdir()
    systemctl.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/asked\n')
    systemctl.chmod(0o755)
    run(shutdown_script(checkpoint_script("my training.service", None, 20)), metadata, tmp_path)
    assert (tmp_path / "asked").read_text() == "stop my training.service\n"
