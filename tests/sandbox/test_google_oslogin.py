"""OS Login in the sandbox's Google."""

import base64
import time
from typing import Any

import pytest

from tests.support.google_fake import Fake, P
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake"]
USERS = "oslogin.googleapis.com/v1/users"


def key(text: str) -> str:
    return f"ssh-ed25519 {base64.b64encode(text.encode()).decode()} somebody@somewhere"


def keys(profile: Any) -> list[str]:
    return sorted(each["key"] for each in profile["sshPublicKeys"].values())


def test_a_key_is_imported_and_gives_an_account(fake: Fake) -> None:
    at = f"{USERS}/ada.l@example.com"
    assert fake.call("GET", f"{at}/loginProfile").get("posixAccounts") == []
    made = fake.call("POST", f"{at}:importSshPublicKey", {"key": key("one")}, projectId="accel-sandbox")["loginProfile"]
    (account,) = made["posixAccounts"]
    assert (account["username"], account["homeDirectory"]) == ("ada_l_example_com", "/home/ada_l_example_com")
    assert account["primary"] is True and account["accountId"] == "accel-sandbox"
    assert keys(made) == [key("one")]
    fake.call("POST", f"{at}:importSshPublicKey", {"key": key("one")})
    fake.call("POST", f"{at}:importSshPublicKey", {"key": key("two")})
    found = fake.call("GET", f"{at}/loginProfile")
    assert keys(found) == [key("one"), key("two")] and found["posixAccounts"] == [account]
    assert all(mark == each["fingerprint"] for mark, each in found["sshPublicKeys"].items())
    assert keys(fake.call("GET", f"{USERS}/ada.l%40example.com/loginProfile")) == keys(found)
    assert keys(fake.call("GET", f"{USERS}/other@example.com/loginProfile")) == []


def test_a_key_is_read_changed_and_deleted(fake: Fake) -> None:
    at = f"{USERS}/keys@example.com/sshPublicKeys"
    made = fake.call("POST", at, {"key": key("a")})
    mine = f"{at}/{made['fingerprint']}"
    assert fake.call("GET", mine) == made and "expirationTimeUsec" not in made
    late = str(int((time.time() + 600) * 1e6))
    fake.call("PATCH", mine, {"expirationTimeUsec": late}, updateMask="expirationTimeUsec")
    assert fake.call("GET", mine) == {**made, "expirationTimeUsec": late}
    fake.call("DELETE", mine)
    assert fake.ask("GET", mine).status_code == 404 and fake.ask("DELETE", mine).status_code == 404


def test_a_key_expires(fake: Fake) -> None:
    at = f"{USERS}/soon@example.com"
    body = {"key": key("soon"), "expirationTimeUsec": str(int((time.time() + 1) * 1e6))}
    fake.call("POST", f"{at}:importSshPublicKey", body)
    until(lambda: not keys(fake.call("GET", f"{at}/loginProfile")))
    past = fake.ask("POST", f"{at}:importSshPublicKey", {**body, "expirationTimeUsec": "1"})
    assert past.status_code == 400 and "in the past" in past.text


def test_a_service_account_has_a_name_of_its_own(fake: Fake) -> None:
    account = fake.call("POST", f"iam.googleapis.com/v1/{P}/serviceAccounts", {"accountId": "ssh-jobs"})
    at = f"{USERS}/{account['email']}"
    made = fake.call("POST", f"{at}/projects/accel-sandbox", {})
    assert made["username"] == f"sa_{account['uniqueId']}"
    fake.call("DELETE", f"iam.googleapis.com/v1/{P}/serviceAccounts/{account['email']}")


@pytest.mark.parametrize("text", ["", "nonsense", "ssh-ed25519 ***", "ssh-dss AAAA", "ssh-ed25519 "])
def test_what_is_no_key_is_refused(fake: Fake, text: str) -> None:
    refused = fake.ask("POST", f"{USERS}/a@example.com/sshPublicKeys", {"key": text})
    assert refused.status_code == 400 and "Invalid SSH public key" in refused.text
