"""GPUs by nvidia-smi: a script on PATH that prints what the real one prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.runtime import gpus
from jobs.runtime.gpus_nvml import Smi, open_source

SCRIPT = """#!{python}
import json, sys, time
from pathlib import Path
told = json.loads(Path({told!r}).read_text())
asked = next((each for each in sys.argv[1:] if each.startswith("--query-")), sys.argv[1])
form, _, fields = asked.partition("=")
for bad in told.get("unknown", ()):
    if bad in fields.split(","):
        print(f'Field "{{bad}}" is not a valid field to query.\\n')
        sys.exit(2)
time.sleep(told.get("sleep", 0))
if form == "--query-gpu":
    for row in told.get("gpus", ()):
        print(", ".join(str(row.get(field, "[N/A]")) for field in fields.split(",")))
else:
    print(told.get(form, ""))
print(told.get("more", ""), end="")
sys.exit(told.get("code", 0))
"""
H100 = {
    "index": 0,
    "mig.mode.current": "Disabled",
    "utilization.gpu": 88,
    "utilization.memory": 41,
    "memory.used": 1024,
    "memory.total": 81559,
    "power.draw": "300.25",
    "temperature.gpu": 50,
    "clocks_event_reasons.active": "0x0000000000000000",
    "clocks_throttle_reasons.active": "0x0000000000000004",
    "pci.bus_id": "00000000:3B:00.0",
    "ecc.errors.uncorrected.volatile.total": 0,
    "name": "NVIDIA H100 80GB HBM3",
}

Make = Callable[..., Smi]


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """nvidia-smi on PATH: `smi(gpus=[...], code=18)`."""
    told, script = tmp_path / "told.json", tmp_path / "nvidia-smi"
    script.write_text(SCRIPT.format(python=sys.executable, told=str(told)))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    def call(timeout_s: float = 60, **values: object) -> Smi:
        told.write_text(json.dumps(values))
        return Smi(timeout_s=timeout_s)

    return call


def test_one_gpu(smi: Make) -> None:
    assert smi(gpus=[H100]).read() == [{
        "index": 0, "name": "NVIDIA H100 80GB HBM3", "use": 88, "memory_use": 41, "memory_mib": 1024,
        "memory_total_mib": 81559, "power_w": 300.25, "temperature_c": 50,
    }]  # fmt: skip


@pytest.mark.parametrize("count", [2, 8, 16])
def test_many_gpus_are_many_lines(smi: Make, count: int) -> None:
    readings = smi(gpus=[H100 | {"index": index} for index in range(count)]).read()
    assert [each["index"] for each in readings] == list(range(count))


@pytest.mark.parametrize(
    "cell", ["[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "[Insufficient Permissions]", "", "ERR!"]
)
def test_what_is_not_told_is_absent(smi: Make, cell: str) -> None:
    cells = {"utilization.gpu": cell, "utilization.memory": cell}
    row = H100 | cells | {"power.draw": cell, "clocks_event_reasons.active": cell, "memory.used": cell}
    assert smi(gpus=[row]).read() == [
        {"index": 0, "name": "NVIDIA H100 80GB HBM3", "memory_total_mib": 81559, "temperature_c": 50}
    ]


def test_units_and_commas_in_a_name(smi: Make) -> None:
    row = H100 | {"utilization.gpu": "88 %", "memory.used": "1024 MiB", "name": "Quadro, RTX, 8000"}
    reading = smi(gpus=[row]).read()[0]
    assert (reading["use"], reading["memory_mib"], reading["name"]) == (88, 1024, "Quadro, RTX, 8000")


def test_remarks_among_the_lines_are_left_out(smi: Make) -> None:
    assert len(smi(gpus=[H100], more="WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n").read()) == 1


@pytest.mark.parametrize(
    ("unknown", "reasons"),
    [
        (["clocks_event_reasons.active"], ["power cap"]),
        (["clocks_event_reasons.active", "clocks_throttle_reasons.active", "mig.mode.current"], None),
    ],
)
def test_an_older_nvidia_smi_knows_fewer_fields(smi: Make, unknown: list[str], reasons: list[str] | None) -> None:
    source = smi(gpus=[H100], unknown=unknown)
    for _ in range(2):
        reading = source.read()[0]
        assert (reading.get("throttle"), reading["use"], reading["name"]) == (reasons, 88, "NVIDIA H100 80GB HBM3")


def test_mig(smi: Make) -> None:
    cut = {"index": 1, "mig.mode.current": "Enabled", "utilization.gpu": "[N/A]", "pci.bus_id": "00000000:5E:00.0"}
    listed = (
        "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-a)\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-b)\n"
        "  MIG 1g.10gb     Device  0: (UUID: MIG-c)\n  MIG 1g.10gb     Device  1: (UUID: MIG-d)\n"
    )
    source = smi(gpus=[H100, H100 | cut], **{"-L": listed})
    assert [each.get("mig") for each in source.read()] == [None, True]
    assert "use" not in source.read()[1]
    assert [state.parts for state in source.states()] == [1, 2]


def test_states(smi: Make) -> None:
    sick = {
        "index": 1, "pci.bus_id": "00000000:5E:00.0", "ecc.errors.uncorrected.volatile.total": 3,
        "gpu_recovery_action": "Drain and Reset", "retired_pages.pending": "Yes",
    }  # fmt: skip
    rows = "00000000:3B:00.0, 0, 0\n00000000:5E:00.0, 1, 1\n"
    well, ill = smi(
        gpus=[H100 | {"gpu_recovery_action": "None"}, H100 | sick], **{"--query-remapped-rows": rows}
    ).states()
    assert (well.pci, well.ecc, well.action, well.retired_pending, well.remap_failed) == (
        (0, 0x3B, 0),
        0,
        0,
        None,
        False,
    )
    assert (ill.ecc, ill.action, ill.retired_pending, ill.remap_pending, ill.remap_failed) == (3, 4, True, True, True)


def test_a_gpu_that_wants_a_reset_is_at_fault(smi: Make) -> None:
    row = H100 | {"ecc.errors.uncorrected.volatile.total": "[GPU requires reset]"}
    assert smi(gpus=[row]).states()[0].fault == "answers: GPU requires reset"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (18, "Failed to initialize NVML: Driver/library version mismatch"),
        (15, "Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.  Reboot the system to recover"),
        (6, "No devices were found"),
    ],
)
def test_a_failure_says_code_and_words(smi: Make, code: int, said: str) -> None:
    with pytest.raises(gpus.Unreadable, match=f"ended with {code} and said: .*{said[:40]}"):
        smi(code=code, more=said + "\n").read()


def test_one_that_hangs_is_given_up(smi: Make) -> None:
    with pytest.raises(gpus.Unreadable, match=r"did not answer within 0\.2 s"):
        smi(timeout_s=0.2, sleep=600).read()


def test_no_such_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not Smi().there()
    with pytest.raises(gpus.Unreadable, match="nvidia-smi: No such file"):
        Smi().read()


def test_without_the_library_nvidia_smi_is_asked(smi: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_library(name: str) -> object:
        raise OSError(f"{name}: cannot open shared object file")

    smi(gpus=[H100])
    monkeypatch.setattr("ctypes.CDLL", no_library)
    source = open_source()
    assert isinstance(source, Smi)
    assert source.read()[0]["use"] == 88
    assert source.least_s >= 5
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert open_source() is None
