"""`exec` in jobs on GPU VMs: real machines of the sandbox, its relay and its SSH server."""

import json
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from accel.clouds.google.api import Google
from accel.diagnostics.errors import BadInput, CloudRefused, CloudSilent, NoCredentials, NotFound
from jobs.backends.base import Places, Streams
from jobs.backends.vm import shell
from jobs.backends.vm.tpu import TpuVmBackend
from jobs.model.blocks import TpuVm
from jobs.model.fields import Accelerator
from jobs.model.job import Job
from jobs.model.keys import platform_name, submission_key
from tests.jobs.backends import tpu_cloud, tpu_target
from tests.jobs.backends.gce_cloud import QUICK, ZONE, left
from tests.jobs.backends.vm_shell import PROFILE, USER, run, submit
from tests.support.gathering import until_there
from tests.support.google_fake import Fake, P
from tests.support.soak import soak_only
from tests.support.waiting import until

pytest_plugins = ["tests.jobs.backends.gce_cloud", "tests.jobs.backends.vm_shell"]

BINARY = bytes(range(256))


def test_a_command_on_the_machine(entered: Fake) -> None:
    backend, ref = submit("bare")
    assert backend.places(ref) == Places(word=None, running=(0,), gpus=1)
    assert run(backend, ref, ["sh", "-c", "echo out; echo err >&2; exit 7"]) == (7, b"out\n", b"err\n")
    assert run(backend, ref, ["printf", "%s|", "a b", "$HOME", "it's"])[1] == b"a b|$HOME|it's|"
    assert run(backend, ref, ["sh", "-c", "kill -9 $$"])[0] == 137
    assert run(backend, ref, ["sh", "-c", 'echo "$USER"; hostname >/dev/null'])[1] == f"{USER}\n".encode()
    assert run(backend, ref, ["cat"]) == (0, b"", b""), "without --stdin it reads nothing"
    assert run(backend, ref, ["cat"], BINARY * 4000) == (0, BINARY * 4000, b"")
    megabytes = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 40960)"
    assert run(backend, ref, ["python3", "-c", megabytes]) == (0, BINARY * 40960, b"")


@soak_only
def test_a_terminal_has_the_size_of_ours(entered: Fake) -> None:
    backend, ref = submit("terminal")
    command = ["sh", "-c", "stty size; read line; echo got $line; test -t 2 && exit 5"]
    code, out, err = run(backend, ref, command, b"this\n", size=(100, 30))
    # The terminal's echo may come before the size.
    assert (code, sorted(out.splitlines()), err) == (5, [b"30 100", b"got this", b"this"], b"")


def test_a_command_runs_in_the_jobs_container_while_that_runs(entered: Fake, tmp_path: Path) -> None:
    go_on = tmp_path / "over"
    script = f"echo up; {until_there(go_on)}"
    backend, ref = submit("boxed", image="local/examples", command=["sh", "-c", script], env={"COLOUR": "blue"})
    listed = ["sh", "-c", "sudo docker ps"]
    until(lambda: ref.id.encode() in run(backend, ref, listed, host=True)[1])
    where = ["sh", "-c", 'basename "$PWD"; echo "$COLOUR"; cat; exit 3']
    assert run(backend, ref, where, b"given") == (3, b"examples\nblue\ngiven", b"")
    code, out, _ = run(backend, ref, where, b"given", host=True)
    assert (code, out) == (3, b"home\n\ngiven")


def test_a_container_that_is_not_there_is_said(entered: Fake) -> None:
    backend, ref = submit("unboxed", image="nowhere/to:be-found")
    code, out, err = run(backend, ref, ["echo", "in"])
    assert (code, out) == (0, b"in\n")
    assert err.decode() == f"accel-jobs: container {ref.id}-0 does not run; this is the machine itself\n"


@soak_only
def test_every_machine_has_its_number(entered: Fake) -> None:
    backend, ref = submit("several", nodes=2)
    assert backend.places(ref) == Places(word="node", running=(0, 1), gpus=1)
    name = "curl -sH 'Metadata-Flavor: Google' $GCE_METADATA_HOST/computeMetadata/v1/instance/name"
    for number in (0, 1):
        assert run(backend, ref, ["sh", "-c", name], task=number)[1] == f"{ref.id}-{number}".encode()
    with pytest.raises(BadInput, match="--node is missing; it has nodes 0 to 1"):
        run(backend, ref, ["true"])
    with pytest.raises(BadInput, match="has nodes 0 to 1, not 2"):
        run(backend, ref, ["true"], task=2)


@soak_only
def test_every_host_of_every_slice_of_a_tpu(entered: Fake) -> None:
    """Host 3 is the second of slice 1; its machine's name is in guest attributes and nowhere else."""
    target = tpu_target.make_target(**tpu_cloud.GROUND)
    backend = TpuVmBackend("tpus", target, timing=QUICK)
    job = Job(
        name="slices",
        accelerator=Accelerator(type="v5p-16"),
        command=["sleep", "600"],
        tpu_vm=TpuVm(slices=2),
    )
    key = submission_key("slices", "once")
    ref = backend.submit(backend.render(job, platform_name("slices", key), key))
    until(lambda: backend.tend(ref).phase == "RUNNING")
    assert backend.places(ref) == Places(word="node", running=tuple(range(4)), chips=4)
    record, _ = backend.records.read(ref.id)
    until(lambda: all(left(entered, record, f"host-{number}.json") for number in range(4)))
    ask = "curl -sH 'Metadata-Flavor: Google' $GCE_METADATA_HOST/computeMetadata/v1/instance/attributes/tpu-env"
    said = run(backend, ref, ["sh", "-c", ask], task=3)[1].decode()
    assert "WORKER_ID: '1'" in said and f"NODE_ID: '{ref.id}-1'" in said
    entered.fault(method="tpu.projects.locations.nodes.getGuestAttributes", code=403)
    with pytest.raises(CloudRefused):
        run(backend, ref, ["true"], task=3)
    backend.cancel(ref, "")
    until(lambda: backend.tend(ref).phase.ended)


def test_the_check_of_machines_that_are_well_and_of_one_without_its_driver(
    entered: Fake, invoke: Callable[..., Result], home: Path
) -> None:
    _, ref = submit("checked", nodes=2)
    well = invoke("exec", str(ref), "--check", "-o", "json")
    assert well.exit_code == 0, well.output
    rows = json.loads(well.stdout)
    assert [(row["node"], row["devices"], row["verdict"]) for row in rows] == [(n, "1 NVIDIA L4", "ok") for n in (0, 1)]
    machine = entered.home / "machines" / "compute" / P / "zones" / "us-central1-a" / "instances" / f"{ref.id}-1"
    shown = machine / "0" / "gpus.json"
    shown.write_text(json.dumps(json.loads(shown.read_text()) | {"driver": False}))
    broken = invoke("exec", str(ref), "--check")
    assert broken.exit_code == 125
    assert "node 1: no NVIDIA driver answers; 0 of 1 GPUs are there\n" in broken.stderr
    every = invoke("exec", str(ref), "--", "nvidia-smi", "-L")
    assert (
        every.exit_code == 9 and "[node 0] GPU 0: NVIDIA L4" in every.stdout and "[node 1] NVIDIA-SMI" in every.stdout
    )


def test_the_key_is_ours_alone_and_given_once(entered: Fake, tmp_path: Path) -> None:
    backend, ref = submit("keyed")
    run(backend, ref, ["true"])
    key = tmp_path / "state" / "accel" / "ssh" / "key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    (kept,) = entered.call("GET", f"{PROFILE}/loginProfile")["sshPublicKeys"].values()
    assert kept["key"].endswith(" accel-jobs") and kept["expirationTimeUsec"]
    entered.fault(method="oslogin.users.importSshPublicKey", code=403)
    assert shell.login(Google(QUICK), "accel-sandbox", "us-central1").fresh, "it was given seconds ago"
    later = str(int(kept["expirationTimeUsec"]) - 600 * 10**6)
    at = f"{PROFILE}/sshPublicKeys/{kept['fingerprint']}"
    entered.call("PATCH", at, {"expirationTimeUsec": later}, updateMask="expirationTimeUsec")
    assert not shell.login(Google(QUICK), "accel-sandbox", "us-central1").fresh
    entered.call("DELETE", at)
    with pytest.raises(CloudRefused, match="importSshPublicKey"):
        shell.login(Google(QUICK), "accel-sandbox", "us-central1")


def test_gclouds_key_is_used_where_there_is_one(entered: Fake, tmp_path: Path) -> None:
    own = shell.key_pair()
    place = tmp_path / "home" / ".ssh" / "google_compute_engine"
    place.parent.mkdir(parents=True)
    (tmp_path / "state" / "accel" / "ssh" / "key").rename(place)
    assert shell.key_pair().get_base64() == own.get_base64()
    place.write_text("damaged")
    assert shell.key_pair().get_base64() != own.get_base64()


def test_whoever_has_no_name_is_told_what_to_do(entered: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    backend, ref = submit("nameless")
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "expired")
    with pytest.raises(NoCredentials, match="the owner of these credentials is unknown") as refused:
        shell.login(Google(QUICK), "accel-sandbox", "us-central1")
    assert "ACCEL_GOOGLE_ACCOUNT" in str(refused.value.hint)
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", entered.token)
    monkeypatch.setenv("ACCEL_GOOGLE_ACCOUNT", "robot@example.com")
    assert run(backend, ref, ["sh", "-c", "echo $USER"])[1] == b"robot_example_com\n"


@soak_only
def test_a_machine_that_does_not_let_one_in(entered: Fake) -> None:
    """Without OS Login on the machine its own metadata has the keys, and ours is not among them."""
    backend, ref = submit("closed")
    found = entered.call("GET", f"{ZONE}/instances/{ref.id}")
    items = [item for item in found["metadata"]["items"] if item["key"] != "enable-oslogin"]
    body = {"items": items, "fingerprint": found["metadata"]["fingerprint"]}
    entered.done("POST", f"{ZONE}/instances/{ref.id}/setMetadata", body)
    with pytest.raises(CloudRefused, match=f"SSH does not let {USER} in") as refused:
        run(backend, ref, ["true"])
    assert "roles/compute.osLogin" in str(refused.value.hint)


def test_a_host_key_that_the_machine_did_not_tell_is_refused(entered: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    backend, ref = submit("other")
    read = Google.get

    def told(self: Google, api: str, path: str, **query: object) -> dict[str, object]:
        if not path.endswith("/getGuestAttributes"):
            return read(self, api, path, **query)
        return {"queryValue": {"items": [{"namespace": "hostkeys", "key": "ssh-ed25519", "value": "AAAA"}]}}

    monkeypatch.setattr(Google, "get", told)
    with pytest.raises(CloudRefused, match="host key is none of those in its guest attributes"):
        run(backend, ref, ["true"])


def test_without_guest_attributes_the_first_host_key_is_trusted(entered: Fake, tmp_path: Path) -> None:
    backend, ref = submit("silent")
    entered.fault(method="compute.instances.getGuestAttributes", code=403, count=100)
    assert run(backend, ref, ["true"])[0] == 0
    (kept,) = (tmp_path / "state" / "accel" / "ssh" / "hosts").iterdir()
    assert run(backend, ref, ["true"])[0] == 0
    kept.write_text("ssh-ed25519 AAAA\n")
    with pytest.raises(CloudRefused, match="not the one that it had before") as refused:
        run(backend, ref, ["true"])
    assert str(kept) in str(refused.value.hint)


@soak_only
def test_a_machine_that_goes_takes_the_command_with_it(entered: Fake) -> None:
    """Its shutdown ends the command by a signal, and perhaps the shell around it, or first the connection."""
    backend, ref = submit("goes")
    up = threading.Event()

    def take() -> None:
        assert up.wait(60)
        name = f"{P}/zones/us-central1-a/instances/{ref.id}"
        entered.ask("POST", "sandbox-api/preempt", {"name": name})

    taker = threading.Thread(target=take)
    taker.start()
    script = "echo up; while :; do sleep 0.05; done"
    try:
        told = str(backend.run(ref, ["sh", "-c", script], Streams(lambda is_error, data: up.set())))
    except CloudSilent as cut:
        told = cut.message.rpartition(": ")[2]
    assert told in ("143", "255", "the connection ended before the command's end was told")
    taker.join()


def test_a_job_without_machines(entered: Fake) -> None:
    backend, ref = submit("over")
    entered.done("DELETE", f"{ZONE}/instances/{ref.id}")
    with pytest.raises(NotFound, match="there is no machine 0"):
        run(backend, ref, ["true"])
    backend.cancel(ref, "")
    until(lambda: backend.tend(ref).phase.ended)
    with pytest.raises(BadInput, match="it has no machine now"):
        run(backend, ref, ["true"])
