"""The health script: what it reads in the kernel's log, and what it does to its node."""

import http.server
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.kubernetes.cordon import ApiNode, parse_numbers, parse_record, records, watch
from tests.support.serving import QuietServer

SCRIPT = Path(__file__).parents[3] / "components" / "kubernetes" / "cordon.py"
FELL_OFF = (
    b"3,1042,5140900,-;NVRM: Xid (PCI:0000:b4:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
)
CRASHED = b"3,1043,5140901,-;NVRM: Xid (PCI:0000:b4:00): 31, pid=1896, name=python, Ch 00000008, MMU Fault"
OLD_FORM = b"3,1044,5140902,-;NVRM: Xid (0000:03:00): 14, Channel 00000001"
RESET = (
    b"4,1045,5140903,-;NVRM: Xid (PCI:0000:b4:00): 154, GPU recovery action changed from 0x0 (None) to 0x1"
    b" (GPU Reset Required)\n SUBSYSTEM=pci\n DEVICE=+pci:0000:b4:00.0\n"
)
CALM = b"4,1046,5140904,-;NVRM: Xid (PCI:0000:b4:00): 154, GPU recovery action changed from 0x1 to 0x0 (None)"
OTHER = b"6,1047,5140905,-;eth0: link becomes ready"


class FakeNode:
    def __init__(self, **annotations: str) -> None:
        self.written = annotations
        self.patches: list[dict[str, Any]] = []

    def annotations(self) -> dict[str, str]:
        return self.written

    def change(self, patch: dict[str, Any]) -> None:
        self.patches.append(patch)


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    path = tmp_path / "xids"
    path.write_text("79 # GPU fell off the bus\n\n# a remark\n154\n")
    return path


def watched(numbers: Path, node: FakeNode, *messages: bytes, cordons: bool = True) -> list[dict[str, Any]]:
    """Feeds records as the kernel does, one a read."""
    writer, reader = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for message in messages:
        writer.send(message)
    writer.close()
    watch(reader.fileno(), node, numbers, "boot-1", cordon=cordons)
    reader.close()
    return node.patches


@pytest.mark.parametrize(
    "record, gpu, number",
    [
        (FELL_OFF, "0000:b4:00", 79),
        (CRASHED, "0000:b4:00", 31),
        (OLD_FORM, "0000:03:00", 14),
        (RESET, "0000:b4:00", 154),
    ],
)
def test_an_error_is_read_with_its_gpu(record: bytes, gpu: str, number: int) -> None:
    xid = parse_record(record)
    assert xid is not None
    assert (xid.gpu, xid.number, "\n" in xid.text) == (gpu, number, False)


def test_other_messages_are_none() -> None:
    assert parse_record(OTHER) is None
    assert parse_record(b"3,1,1,-;NVRM: GPU at PCI:0000:b4:00: GPU-b850f46d") is None
    assert parse_record(b"\xff\xfe broken") is None


def test_a_listed_error_cordons_and_says_which(numbers: Path) -> None:
    (patch,) = watched(numbers, FakeNode(), OTHER, CRASHED, FELL_OFF)
    assert patch == {
        "metadata": {"annotations": {"accel/xid": "79 0000:b4:00", "accel/xid-seen": "boot-1/1042"}},
        "spec": {"unschedulable": True},
    }


def test_154_counts_by_what_it_asks_for(numbers: Path) -> None:
    assert len(watched(numbers, FakeNode(), RESET)) == 1
    assert watched(numbers, FakeNode(), CALM) == []


def test_an_error_that_was_answered_is_not_answered_again(numbers: Path) -> None:
    seen = FakeNode(**{"accel/xid-seen": "boot-1/1042"})
    assert watched(numbers, seen, FELL_OFF) == []
    assert len(watched(numbers, seen, RESET)) == 1


def test_after_a_boot_records_are_numbered_anew(numbers: Path) -> None:
    assert len(watched(numbers, FakeNode(**{"accel/xid-seen": "boot-0/9999"}), FELL_OFF)) == 1


def test_without_cordon_the_node_is_only_annotated(numbers: Path) -> None:
    (patch,) = watched(numbers, FakeNode(), FELL_OFF, cordons=False)
    assert "spec" not in patch


def test_the_list_is_read_for_each_error(numbers: Path) -> None:
    class Editing(FakeNode):
        def change(self, patch: dict[str, Any]) -> None:
            super().change(patch)
            numbers.write_text("154\n")

    assert len(watched(numbers, Editing(), FELL_OFF, FELL_OFF.replace(b"1042", b"2042"))) == 1


def test_overwritten_records_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: Iterator[Any] = iter([BrokenPipeError(), FELL_OFF, b""])

    def read(_: int, __: int) -> bytes:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(os, "read", read)
    assert list(records(0)) == [FELL_OFF]


def test_a_list_that_is_no_list_ends_the_program() -> None:
    with pytest.raises(ValueError, match="fifty"):
        parse_numbers("48\nfifty\n")


@pytest.fixture
def api(tmp_path: Path) -> Iterator[tuple[str, list[tuple[str, str, Any]]]]:
    """An API server that fails twice before it answers."""
    asked: list[tuple[str, str, Any]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_PATCH(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, self.headers["Authorization"], body))
            self.send_response(503 if len(asked) < 3 else 200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None: ...

    (tmp_path / "token").write_text("secret\n")
    server = QuietServer(Handler)
    yield server.url, asked
    server.stop()


def test_a_cordon_is_tried_until_it_is_done(api: tuple[str, list[Any]], tmp_path: Path) -> None:
    url, asked = api
    ApiNode("gke-a-1", url, tmp_path, first_wait_s=0.01).change({"spec": {"unschedulable": True}})
    assert len(asked) == 3
    assert asked[-1] == ("/api/v1/nodes/gke-a-1", "Bearer secret", {"spec": {"unschedulable": True}})


def test_it_runs_alone(tmp_path: Path) -> None:
    """As the pod has it: the one file, and nothing of the project beside it."""
    alone = tmp_path / "cordon.py"
    alone.write_text(SCRIPT.read_text())
    done = subprocess.run(
        [sys.executable, "-I", str(alone)], cwd=tmp_path, env={"PATH": ""}, capture_output=True, text=True, timeout=120
    )
    assert done.stderr.splitlines()[-1] == "KeyError: 'KUBERNETES_SERVICE_HOST'"
