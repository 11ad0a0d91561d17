"""Machines of the sandbox's Google: metadata, scripts, and how they end."""

import os
import signal
import subprocess
import sys
import threading
from ipaddress import ip_address
from pathlib import Path

import pytest
import requests

from sandbox.environment import project
from sandbox.google.guests.guests import Guests
from sandbox.processes import stop
from tests.support.guests import KEY, TOKEN, address, machine, processes, runs, said
from tests.support.nobody import as_nobody, as_root
from tests.support.soak import soak_only
from tests.support.waiting import until

pytest_plugins = ["tests.support.guests"]

FLAVOR = {"Metadata-Flavor": "Google"}
OPEN = {"enable-guest-attributes": "TRUE"}


def get(url: str, **query: str) -> requests.Response:
    return requests.get(url, params=query, headers=FLAVOR, timeout=60)


def test_a_script_learns_what_its_machine_is_and_tells_how_it_went(guests: Guests) -> None:
    ask = "curl -sS -H 'Metadata-Flavor: Google' http://$GCE_METADATA_HOST/computeMetadata/v1/instance"
    script = f"""
    echo name $({ask}/name) zone $({ask}/zone) colour $({ask}/attributes/colour)
    echo worker $({ask}/attributes/agent-worker-number)
    {ask}/guest-attributes/accel/result -X PUT -d well
    pwd > where
    echo storage $ACCEL_STORAGE_ROOT logging $ACCEL_LOGGING_ROOT
    """
    guests.start(machine(script, metadata={"colour": "blue", **OPEN}, more={"agent-worker-number": "3"}))
    said(guests, "^name trainer zone projects/210020003000/zones/us-central1-a colour blue$")
    said(guests, "^worker 3$")
    said(guests, r"^storage http://127.0.0.1:9/storage.googleapis.com/ logging \S+/logging.googleapis.com/$")
    assert guests.attributes(KEY)["accel"] == {"result": "well"}
    assert guests.attributes(KEY)["hostkeys"]["ssh-ed25519"].startswith("AAAA")
    assert guests.running(KEY)


def test_only_what_is_given_is_in_the_environment_of_a_script(guests: Guests, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the person")
    guests.start(machine("env; echo over"))
    said(guests, "^over$")
    names = {line.partition("=")[0] for line in guests.serial(KEY).splitlines() if "=" in line}
    roots = {f"ACCEL_{api}_ROOT" for api in ("STORAGE", "LOGGING", "SECRETMANAGER")}
    given = {"PATH", "HOME", "TMPDIR", "LANG", "GCE_METADATA_HOST"} | roots
    assert names == given | {"PWD", "SHLVL", "_"}


def test_the_metadata_server_speaks_as_googles(guests: Guests) -> None:
    guests.start(machine("true", account="trainer@accel-sandbox.iam.gserviceaccount.com", machine_type="n1-standard-8"))
    root = address(guests)
    assert get(root.removesuffix("/computeMetadata/v1")).headers["Metadata-Flavor"] == "Google"
    bare = requests.get(f"{root}/instance/name", timeout=60)
    assert (bare.status_code, bare.text) == (403, "Missing required header: Metadata-Flavor\n")
    assert get(f"{root}/instance/none").status_code == 404
    assert get(f"{root}/instance/attributes/none").status_code == 404
    assert get(f"{root}/").text == "instance/\nproject/\n"
    whole = get(f"{root}/", recursive="true", alt="json").json()
    assert whole["project"] == {"attributes": {}, "numericProjectId": 210020003000, "projectId": "accel-sandbox"}
    about = whole["instance"]
    assert about["machineType"] == "projects/210020003000/machineTypes/n1-standard-8"
    ((ip,),) = [each.values() for each in about["networkInterfaces"]]
    assert about["id"] == 4711 and ip_address(ip).is_loopback
    assert about["attributes"].keys() == {"startup-script"}
    assert get(f"{root}/instance/network-interfaces/0/ip").text == ip
    for account in ("default", "trainer@accel-sandbox.iam.gserviceaccount.com"):
        made = get(f"{root}/instance/service-accounts/{account}/token").json()
        assert made == {"access_token": TOKEN, "expires_in": 3599, "token_type": "Bearer"}
    assert TOKEN not in get(f"{root}/", recursive="true").text


@as_root
def test_another_user_is_told_nothing(guests: Guests) -> None:
    guests.start(machine("true"))
    place = f"{address(guests)}/instance/name"
    assert get(place).ok

    def ask() -> tuple[int, str]:
        answer = get(place)
        return answer.status_code, answer.text

    assert as_nobody(ask) == (403, "the sandbox tells this to its own user alone\n")


def test_a_page_is_told_nothing(guests: Guests) -> None:
    guests.start(machine("true"))
    for foreign in ({"Host": "attacker.example"}, {"Origin": "http://attacker.example"}):
        assert requests.get(f"{address(guests)}/instance/name", headers=FLAVOR | foreign, timeout=60).status_code == 403


def test_a_machine_without_an_account_has_no_token(guests: Guests) -> None:
    guests.start(machine("true"))
    root = address(guests)
    assert get(f"{root}/instance/service-accounts/default/token").status_code == 404
    assert get(f"{root}/instance/service-accounts/").text == ""


def test_guest_attributes_have_to_be_enabled(guests: Guests) -> None:
    guests.start(machine("true"))
    place = f"{address(guests)}/instance/guest-attributes/accel/result"
    refused = requests.put(place, data="well", headers=FLAVOR, timeout=60)
    assert (refused.status_code, refused.text) == (403, "Guest attributes endpoint access is disabled.")
    guests.change(KEY, OPEN)
    assert requests.put(place, data="well", headers=FLAVOR, timeout=60).ok
    assert requests.put(place.removesuffix("/result"), data="x", headers=FLAVOR, timeout=60).status_code == 404
    assert get(place).text == "well"
    assert requests.delete(place, headers=FLAVOR, timeout=60).ok
    assert get(place).status_code == 404


def test_a_change_is_waited_for(guests: Guests) -> None:
    guests.start(machine("true", metadata={"colour": "blue"}))
    place = f"{address(guests)}/instance/attributes/colour"
    first = get(place)
    late = get(place, wait_for_change="true", last_etag=first.headers["ETag"], timeout_sec="0")
    assert (late.text, late.headers["ETag"]) == ("blue", first.headers["ETag"])
    found: list[requests.Response] = []
    query = {"wait_for_change": "true", "last_etag": first.headers["ETag"]}
    waiting = threading.Thread(target=lambda: found.append(get(place, **query)))
    waiting.start()
    guests.change(KEY, {"colour": "red"})
    waiting.join(60)
    assert found[0].text == "red"
    assert get(place, wait_for_change="true", last_etag="0").text == "red"


_NOTICED = """#!/usr/bin/env python3
import os, signal, sys, threading, urllib.request
print("at", os.environ["GCE_METADATA_HOST"], flush=True)
root = f"http://{os.environ['GCE_METADATA_HOST']}/computeMetadata/v1/instance/preempted"
told, asked = threading.Event(), threading.Event()
signal.signal(signal.SIGTERM, lambda *_: asked.set())
def ask(query):
    request = urllib.request.Request(f"{root}{query}", headers={"Metadata-Flavor": "Google"})
    with urllib.request.urlopen(request) as answer:
        return answer.read().decode(), answer.headers["ETag"]
value, etag = ask("")
print("preempted", value, flush=True)
def wait():
    print("preempted", ask(f"?wait_for_change=true&last_etag={etag}")[0], flush=True)
    told.set()
threading.Thread(target=wait).start()
told.wait()
while not asked.wait(1):
    pass
print("asked to end", flush=True)
"""


def test_a_machine_that_is_taken_away_is_told_twice(guests: Guests) -> None:
    guests.start(machine(metadata={"startup-script": _NOTICED}))
    said(guests, "^preempted FALSE$")
    guests.preempt(KEY, 600)
    until(lambda: not guests.running(KEY))
    assert guests.serial(KEY).splitlines()[1:] == ["preempted FALSE", "preempted TRUE", "asked to end"]


def test_a_script_that_does_not_end_is_killed_when_its_time_is_over(guests: Guests, tmp_path: Path) -> None:
    guests.start(machine("trap 'echo deaf' TERM; echo up; while :; do sleep 0.05; done"))
    said(guests, "^up$")
    guests.preempt(KEY, 1)
    until(lambda: not guests.running(KEY))
    assert "deaf" in guests.serial(KEY)
    assert processes(tmp_path) == []


def test_a_stop_runs_the_shutdown_script_and_leaves_the_disk(guests: Guests) -> None:
    down = {"shutdown-script": "echo down in $(basename $PWD); cat kept"}
    guests.start(machine("echo kept > kept; sleep 1000", metadata=down | OPEN))
    until(lambda: list(guests._folder.glob("**/home/kept")))
    guests.stop(KEY)
    until(lambda: not guests.running(KEY))
    assert guests.serial(KEY).splitlines()[1:] == ["down in home", "kept"]
    key = guests.attributes(KEY)["hostkeys"]
    guests.start(machine("ls; echo over", metadata=OPEN))
    said(guests, "^kept\nover$")
    assert guests.attributes(KEY)["hostkeys"] == key
    guests.start(machine("ls; echo over", metadata=OPEN, id="4712"))
    said(guests, "^at .+\nover$")
    assert guests.attributes(KEY)["hostkeys"] != key


def test_a_machine_can_switch_itself_off(guests: Guests) -> None:
    guests.start(machine("sudo -n shutdown -h now; sleep 1000"))
    until(lambda: not guests.running(KEY))


def test_a_machine_without_scripts_is_there_and_costs_nothing(guests: Guests, tmp_path: Path) -> None:
    guests.start(machine())
    assert guests.running(KEY)
    assert processes(tmp_path) == []
    guests.stop(KEY)
    assert not guests.running(KEY)


def test_hosts_of_a_key_end_together(guests: Guests) -> None:
    for number in range(2):
        guests.start(machine("echo I am $(hostname); sleep 1000", number=number, name=f"w-{number}", metadata=OPEN))
    until(lambda: all("I am" in guests.serial(KEY, number) for number in range(2)))
    assert guests.attributes(KEY, 0)["hostkeys"] != guests.attributes(KEY, 1)["hostkeys"]
    guests.stop(KEY)
    until(lambda: not guests.running(KEY))


# What ends with its own parent, what does not, and a container of its own.
_HARD = """
setsid sh -c 'trap "" TERM HUP; echo $$ > daemon; while :; do sleep 0.05; done' < /dev/null &
(docker run --rm --name job local/examples sh -c 'trap "" TERM; echo pid $$; while :; do sleep 0.05; done' &)
trap '' TERM
echo script $$
while :; do sleep 0.05; done
"""


def _hard(guests: Guests) -> list[int]:
    guests.start(machine(_HARD))
    pids = [int(said(guests, rf"^{name} (\d+)$")[1]) for name in ("script", "pid")]
    path = until(lambda: [each for each in guests._folder.glob("**/home/daemon") if each.read_text().strip()])[0]
    return [*pids, int(path.read_text())]


def test_nothing_is_left_after_close(guests: Guests, tmp_path: Path) -> None:
    pids = _hard(guests)
    assert all(runs(pid) for pid in pids)
    guests.close()
    assert not any(runs(pid) for pid in pids)
    assert processes(tmp_path) == []


_OWNER = """
import sys, time
from pathlib import Path
from sandbox.google.guests.guests import Guests
from tests.sandbox.test_guests import _hard
guests = Guests(Path(sys.argv[1]), "http://127.0.0.1:9", lambda account: "token", lambda user: None)
print(*_hard(guests), flush=True)
time.sleep(1000)
"""


def test_nothing_is_left_when_the_server_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _OWNER, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(project())}
    with subprocess.Popen(command, cwd=project(), stdout=subprocess.PIPE, text=True, env=environment) as owner:
        assert owner.stdout
        pids = [int(word) for word in owner.stdout.readline().split()]
        assert len(pids) == 3 and all(runs(pid) for pid in pids)
        owner.send_signal(signal.SIGKILL)
    until(lambda: not any(runs(pid) for pid in pids))
    until(lambda: not processes(tmp_path))


@soak_only
def test_what_outlived_its_machine_is_found_by_a_stop(guests: Guests, tmp_path: Path) -> None:
    pids = _hard(guests)
    (life,) = [int(path.read_text()) for path in guests._folder.glob("**/pid") if "docker" not in path.parts]
    os.kill(life, signal.SIGKILL)
    until(lambda: not guests.running(KEY))
    assert any(runs(pid) for pid in pids)
    stop(tmp_path)
    assert not any(runs(pid) for pid in pids)
