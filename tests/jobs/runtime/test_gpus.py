"""GPUs by NVML: a library compiled here, with the signatures of NVIDIA's; and the choice between it and nvidia-smi."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobs.runtime import gpus
from jobs.runtime.gpus_nvml import Nvml
from tests.support import fake_nvml

needs_compiler = pytest.mark.skipif(fake_nvml.compiler() is None, reason="no C compiler")

Open = Callable[..., Nvml]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nvml")


@pytest.fixture
def nvml(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """NVML with what the fake shall say: `nvml("gpus=2")`; what it says is changed by tell()."""
    opened: list[Nvml] = []

    def call(text: str, *options: str) -> Nvml:
        library = fake_nvml.build(folder / "-".join(options), *options)
        monkeypatch.setenv("FAKE_NVML", text)
        opened.append(Nvml(str(library)))
        return opened[-1]

    yield call
    for each in opened:
        each.close()


@needs_compiler
@pytest.mark.parametrize("count", [1, 2, 8, 16])
def test_every_gpu_is_read(nvml: Open, count: int) -> None:
    source = nvml(f"gpus={count};0.use=3;0.used=512;0.power=71250;0.temperature=33")
    readings = source.read()
    assert [each["index"] for each in readings] == list(range(count))
    assert readings[0] == {
        "index": 0, "name": "NVIDIA H100 80GB HBM3", "use": 3, "memory_use": 1, "memory_mib": 512,
        "memory_total_mib": 81559, "power_w": 71.2, "temperature_c": 33,
    }  # fmt: skip
    assert source.driver() == "580.95.05"


@needs_compiler
@pytest.mark.parametrize("options", [(), ("-DOLD_DRIVER",)])
def test_throttle_reasons_have_names_and_idle_is_none(nvml: Open, options: tuple[str, ...]) -> None:
    source = nvml("gpus=3;0.throttle=0x1;1.throttle=0x45;2.throttle=0x3A", *options)
    told = [each.get("throttle") for each in source.read()]
    assert told == [
        None, ["power cap", "hardware thermal slowdown"], ["hardware slowdown", "sync boost", "thermal slowdown"]
    ]  # fmt: skip


@needs_compiler
def test_what_a_driver_does_not_tell_is_absent(nvml: Open) -> None:
    source = nvml("gpus=1;0.use=-1;0.used=-1;0.power=-1;0.throttle=-1")
    assert source.read() == [{"index": 0, "name": "NVIDIA H100 80GB HBM3", "temperature_c": 61}]


@needs_compiler
def test_mig_instances_of_this_process_are_counted_and_summed(nvml: Open) -> None:
    source = nvml("gpus=2;1.mig=1;1.parts=7;1.use=-1;1.used=-1")
    whole, cut = source.read()
    assert "mig" not in whole
    assert (cut["mig"], cut["memory_mib"], cut["memory_total_mib"]) == (True, 4000, 4 * 9856)
    assert not {"use", "memory_use"} & cut.keys()
    assert [state.parts for state in source.states()] == [1, 4]


@needs_compiler
def test_errors_come_once_with_their_gpu(nvml: Open, folder: Path) -> None:
    source = nvml("gpus=4")
    assert source.xids() == {}
    fake_nvml.tell(fake_nvml.build(folder), "1.xid=31;3.xid=79")
    assert source.xids() == {1: [31], 3: [79]}
    assert source.xids() == {}


@needs_compiler
def test_a_gpu_without_events_has_no_errors(nvml: Open) -> None:
    assert nvml("gpus=1;quiet=1;0.xid=79").xids() == {}


@needs_compiler
def test_a_gpu_that_is_lost_meanwhile_keeps_its_place(nvml: Open, folder: Path) -> None:
    source = nvml("gpus=2")
    fake_nvml.tell(fake_nvml.build(folder), "0.lost=1")
    lost, other = source.read()
    assert lost == {"index": 0, "name": "NVIDIA H100 80GB HBM3"}
    assert other["use"] == 97
    assert [state.fault for state in source.states()] == ["is lost: it fell off the bus", ""]


@needs_compiler
def test_states(nvml: Open) -> None:
    text = "0.ecc=2;0.pending=1;0.action=4;1.failed=1;2.retired=1;2.pending=-1;2.action=-1;3.handle=15"
    first, second, third, gone = nvml(f"gpus=4;{text}").states()
    assert (first.pci, first.ecc, first.remap_pending, first.action) == ((0, 0x10, 0), 2, True, 4)
    assert (second.remap_failed, second.action, second.retired_pending) == (True, 0, None)
    assert (third.retired_pending, third.remap_pending, third.remap_failed, third.action) == (True, None, None, None)
    assert (gone.fault, gone.parts) == ("is lost: it fell off the bus", 0)


@needs_compiler
def test_before_ampere_and_with_old_drivers_rows_are_not_known(nvml: Open) -> None:
    assert nvml("gpus=1", "-DOLD_DRIVER").states()[0].remap_pending is None


@needs_compiler
@pytest.mark.parametrize(
    ("code", "words"), [(18, r"Driver/library version mismatch \(error 18\)"), (9, r"Driver Not Loaded \(error 9\)")]
)
def test_a_driver_that_does_not_start_says_why(nvml: Open, code: int, words: str) -> None:
    with pytest.raises(gpus.Unreadable, match=words):
        nvml(f"init={code}")


@needs_compiler
def test_a_library_of_another_time_is_none(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"none\.so"):
        Nvml(str(tmp_path / "none.so"))
    source = tmp_path / "old.c"
    source.write_text("int nvmlInit_v2(void) { return 0; }")
    compiler = fake_nvml.compiler()
    assert compiler
    subprocess.run([compiler, "-shared", "-fPIC", "-o", tmp_path / "old.so", source], check=True)
    with pytest.raises(OSError, match="has no nvmlEventSetWait_v2"):
        Nvml(str(tmp_path / "old.so"))


@pytest.mark.parametrize(
    ("text", "place"),
    [("00000000:3B:00.0", (0, 0x3B, 0)), ("0000:3b:00", (0, 0x3B, 0)), ("3b:00", None), ("N/A", None), ("", None)],
)
def test_places_on_the_bus(text: str, place: gpus.Pci | None) -> None:
    assert gpus.pci(text) == place
