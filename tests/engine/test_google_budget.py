"""A budget of Google Cloud that stops its section, through the real engine and the function that it deploys."""

import base64
import copy
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from accel.budget import acting
from accel.budget.levers import drill
from accel.contract.budgets import Budget
from accel.contract.targets import read_one
from accel.diagnostics.errors import OverLimit
from jobs.backends import google_budget_gate
from jobs.backends.registry import of_target
from jobs.model.job import Job
from sandbox.google.billing import ACCOUNT
from stacks.operations.budget.google import cloud_budgets as part_of
from tests.support.engine import Engine
from tests.support.google_batch import JOBS, body, create, shell
from tests.support.google_fake import Fake, P, engine_on
from tests.support.soak import soak_only
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.support.google_batch"]
pytestmark = pytest.mark.engine
REGION = "us-central1"
CONFIG = {"gcp:project": "accel-sandbox", "gcp:region": REGION}
BUDGETS = f"billingbudgets.googleapis.com/v1/billingAccounts/{ACCOUNT}/budgets"

SECTION: dict[str, Any] = {
    "project": "accel-sandbox",
    "region": REGION,
    "network": {
        "kind": "create",
        "subnets": {REGION: {"nodes": "10.0.0.0/22", "pods": "10.4.0.0/14", "services": "10.8.0.0/20"}},
    },
    "batch": {"bucket": {"force_delete": True}, "targets": {"batch": {}}},
    "budgets": {
        "ml": {
            "billing_account": ACCOUNT,
            "amount": 1000,
            "recipients": {"emails": ["ml@mail.company.com"], "chat_secret": "chat"},
            "stop": {"at": 0.9},
        }
    },
    "budget_stop": {"readers": ["group:ml@company.com"]},
}


def program(section: dict[str, Any]) -> str:
    text = "from stacks.environment.config import load_environment\nfrom stacks.environment.deployment import deploy\n"
    return f"{text}deploy(load_environment({ {'owner': 'ml', 'gcp': section}!r}))\n"


@pytest.fixture
def engine(tmp_path: Path, fake: Fake, provider: dict[str, str]) -> Iterator[Engine]:
    yield from engine_on(tmp_path, fake, provider, CONFIG, "--run-program")


def spend(fake: Fake, budget: str, actual: float, **more: Any) -> dict[str, Any]:
    """What the sandbox's billing says; the function's call with it, when that has ended."""
    message = fake.call("POST", "sandbox-api/spend", {"budget": budget, "actual": actual, **more})["messageId"]
    return until(lambda: next((each for each in calls(fake) if each["message"] == message and each["ended"]), None))


def calls(fake: Fake) -> list[dict[str, Any]]:
    return fake.call("GET", "sandbox-api/functions")["calls"]


def state(fake: Fake, name: str) -> str:
    return fake.call("GET", f"{JOBS}/{name}")["status"]["state"]


def job(fake: Fake, name: str, labels: dict[str, str], machine: str = "e2-standard-2") -> None:
    create(fake, body(shell("sleep 600"), labels=labels, policy={"machineType": machine}), name)


class Chat(BaseHTTPRequestHandler):
    heard: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"])
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        pass


@pytest.fixture
def chat(fake: Fake) -> Iterator[list[str]]:
    """What a chat hears, whose address is in the secret `chat`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Chat)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    secrets = f"secretmanager.googleapis.com/v1/{P}/secrets"
    fake.call("POST", secrets, {"replication": {"automatic": {}}}, secretId="chat")
    address = f"http://127.0.0.1:{server.server_address[1]}/hook?key=PLANTED-SECRET"
    fake.call("POST", f"{secrets}/chat:addVersion", {"payload": {"data": base64.b64encode(address.encode()).decode()}})
    Chat.heard.clear()
    yield Chat.heard
    server.shutdown()
    server.server_close()
    fake.call("DELETE", f"{secrets}/chat")


@soak_only
def test_a_budget_stops_its_section_and_resume_takes_it_back(
    engine: Engine, batch: Fake, chat: list[str], provider: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = batch
    made = engine.write(program(SECTION)).up().outputs
    (budget,) = fake.call("GET", BUDGETS)["budgets"]
    assert budget["amount"]["specifiedAmount"] == {"currencyCode": "USD", "units": "1000"}
    assert budget["budgetFilter"]["projects"] == ["projects/210020003000"]
    assert [each["thresholdPercent"] for each in budget["thresholdRules"]] == [0.5, 0.9, 1.0, 1.0]
    promise = Budget.model_validate(made["gcp_budgets"]["ml"])
    assert (promise.name, promise.stops_at, promise.currency) == (budget["name"], 0.9, "USD")
    result = engine.up("--refresh")
    changed = {step.name: (step.op, step.diffs) for step in result.steps if step.op not in ("same", "refresh")}
    assert changed == {}

    for name, value in provider.items():
        monkeypatch.setenv(name, value)
    part = part_of({"ml": promise})
    assert part is not None and part.store.load()[0].stopped is None
    target = read_one(made["targets"]["batch"])
    backend = of_target("batch", target)
    request = backend.render(Job(name="train", image="local/tests", command=["true"]), "train-1", "train-1")

    # Messages come whatever is spent, and what is below the line stops nothing.
    call = spend(fake, budget["name"], 899)
    assert (call["code"], call["attempts"]) == (0, 1), call["output"]
    assert chat.pop().splitlines()[1:] == ["over 50% of the amount"]
    assert spend(fake, budget["name"], 899.5)["code"] == 0
    assert chat == [], "told once"
    assert part.store.load()[0].stopped is None and backend.submit(request)
    (reading,) = part.readings()
    assert (reading.actual, reading.amount, reading.currency) == (899.5, 1000, "USD")

    stack = {"accel-project": engine.project, "accel-stack": "test", "accel-maker": "jobs"}
    fake.fault(stockout=["n1-standard-4"])
    job(fake, "waits", stack, "n1-standard-4")
    job(fake, "of-others", {"accel-maker": "jobs", "accel-stack": "other"}, "n1-standard-4")
    job(fake, "runs", stack)
    until(lambda: state(fake, "runs") == "RUNNING")
    rehearsed = drill(part.levers(), running=False)
    assert [change.name.rpartition("/")[2] for change in rehearsed] == ["submissions", "waits"]

    call = spend(fake, budget["name"], 900)
    assert call["code"] == 0, call["output"]
    stopped, _ = part.store.load()
    assert list(stopped.changes) == rehearsed
    assert stopped.stopped and "900.00 USD actual of 1,000.00" in stopped.stopped
    until(lambda: state(fake, "waits") in ("CANCELLATION_IN_PROGRESS", "CANCELLED"))
    assert state(fake, "runs") == "RUNNING" and state(fake, "of-others") in ("QUEUED", "SCHEDULED")
    heard = chat.pop().splitlines()
    assert heard[1] == "over 90% of the amount" and any("waits" in line for line in heard)
    google_budget_gate._looked.clear()
    with pytest.raises(OverLimit, match="accepts no new jobs: budget ml: 900"):
        backend.submit(request)

    # The same again, and more of it, changes nothing.
    for actual in (900, 950):
        assert spend(fake, budget["name"], actual)["code"] == 0
    assert part.store.load()[0] == stopped and chat == []
    assert "PLANTED-SECRET" not in json.dumps([calls(fake), engine.export(), made])

    outcome = acting.resume(part.levers(), part.store, time.time())
    assert outcome.done == ("new submissions: accepted again",)
    assert spend(fake, budget["name"], 990)["code"] == 0
    assert part.store.load()[0].stopped is None, "a person has waved it through"
    google_budget_gate._looked.clear()
    assert backend.submit(request)
    engine.destroy("--run-program")
    assert fake.call("GET", BUDGETS).get("budgets", []) == []
    assert fake.ask("GET", f"cloudfunctions.googleapis.com/v2/{promise.function}").status_code == 404


def test_what_is_wrong_with_an_account_is_one_line(engine: Engine, fake: Fake) -> None:
    other = copy.deepcopy(SECTION)
    del other["budgets"]["ml"]["stop"], other["budgets"]["ml"]["recipients"]["chat_secret"], other["batch"]
    other["budgets"]["ml"]["billing_account"] = "AAAAAA-BBBBBB-CCCCCC"
    refused = engine.write(program(other)).preview(check=False)
    said = [text for text in refused.diagnostics if "cannot be read" in text]
    assert refused.exit_code and said and "roles/billing.costsManager" in said[0], refused.diagnostics
    other["budgets"]["ml"] |= {"billing_account": ACCOUNT, "currency": "EUR"}
    refused = engine.write(program(other)).preview(check=False)
    assert any("is EUR, and the billing account's is USD; write USD" in text for text in refused.diagnostics)
