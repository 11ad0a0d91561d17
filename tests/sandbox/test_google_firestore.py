"""Firestore in the sandbox's Google."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.support.google_fake import Fake, P

pytest_plugins = ["tests.support.google_fake"]
API = "firestore.googleapis.com/v1"
DATABASES = f"{API}/{P}/databases"
NATIVE = {"locationId": "us-central1", "type": "FIRESTORE_NATIVE"}
CLAIMS = f"{P}/databases/claims/documents/claims"
ONE = f"{CLAIMS}/one"


@pytest.fixture
def store(fake: Fake) -> Iterator[Fake]:
    """A database, which is gone afterwards."""
    fake.well()
    fake.finished(API, fake.call("POST", DATABASES, NATIVE, databaseId="claims"))
    yield fake
    fake.well()
    fake.finished(API, fake.call("DELETE", f"{DATABASES}/claims"))


def fields(**given: Any) -> dict[str, Any]:
    kinds = {str: "stringValue", int: "integerValue", bool: "booleanValue", float: "doubleValue"}
    return {"fields": {name: {kinds[type(value)]: value} for name, value in given.items()}}


def plain(item: Any) -> dict[str, Any]:
    return {name: next(iter(value.values())) for name, value in item["fields"].items()}


def create(fake: Fake, name: str = "one", **given: Any) -> requests.Response:
    return fake.ask("POST", f"{API}/{CLAIMS}", fields(**given), documentId=name)


def error(answer: requests.Response) -> tuple[int, str, str]:
    found = answer.json()["error"]
    return answer.status_code, found["status"], found["message"]


def test_databases(fake: Fake) -> None:
    made = fake.finished(API, fake.call("POST", DATABASES, NATIVE, databaseId="other"))["response"]
    assert made["name"] == f"{P}/databases/other" and made["uid"] and made["etag"]
    assert (made["concurrencyMode"], made["deleteProtectionState"]) == ("PESSIMISTIC", "DELETE_PROTECTION_DISABLED")
    assert f"{P}/databases/other" in [item["name"] for item in fake.call("GET", DATABASES)["databases"]]
    again = fake.ask("POST", DATABASES, NATIVE, databaseId="other")
    assert error(again) == (409, "ALREADY_EXISTS", "Database already exists. Please use another database_id")
    for body, name in (({}, "other2"), (NATIVE, "Other"), (NATIVE, "x")):
        assert fake.ask("POST", DATABASES, body, databaseId=name).status_code == 400
    protected = {"deleteProtectionState": "DELETE_PROTECTION_ENABLED"}
    mask = {"updateMask": "deleteProtectionState"}
    changed = fake.finished(API, fake.call("PATCH", f"{DATABASES}/other", protected, **mask))["response"]
    assert changed["etag"] != made["etag"]
    assert error(fake.ask("DELETE", f"{DATABASES}/other"))[:2] == (400, "FAILED_PRECONDITION")
    fake.finished(
        API, fake.call("PATCH", f"{DATABASES}/other", {"deleteProtectionState": "DELETE_PROTECTION_DISABLED"}, **mask)
    )
    fake.finished(API, fake.call("DELETE", f"{DATABASES}/other"))
    assert fake.ask("GET", f"{DATABASES}/other").status_code == 404


def test_a_database_that_is_not_there(fake: Fake) -> None:
    code, status, said = error(fake.ask("GET", f"{API}/{P}/databases/(default)/documents/a/b"))
    assert (code, status) == (404, "NOT_FOUND")
    assert said.startswith("The database (default) does not exist for project accel-sandbox Please visit https://")


def test_the_default_database(fake: Fake) -> None:
    fake.finished(API, fake.call("POST", DATABASES, NATIVE, databaseId="(default)"))
    path = f"{API}/{P}/databases/(default)/documents"
    fake.call("POST", f"{path}/a", fields(x=1), documentId="b")
    fake.call("POST", f"{path}/a/b/c", fields(x=2), documentId="d")
    assert plain(fake.call("GET", f"{path}/a/b/c/d")) == {"x": "2"}
    assert fake.call("GET", f"{path}/a/b/c")["documents"][0]["name"].endswith("/documents/a/b/c/d")
    fake.finished(API, fake.call("DELETE", f"{DATABASES}/(default)"))


def test_time_to_live(store: Fake) -> None:
    path = f"{API}/{P}/databases/claims/collectionGroups/claims/fields/expires"
    assert store.call("GET", path)["indexConfig"]["usesAncestorConfig"] is True
    operation = store.call("PATCH", path, {"ttlConfig": {}, "indexConfig": {"indexes": []}}, updateMask="ttlConfig")
    assert store.finished(API, operation)["response"]["ttlConfig"] == {"state": "ACTIVE"}
    found = store.call("GET", path)
    assert found["ttlConfig"]["state"] == "ACTIVE" and "usesAncestorConfig" in found["indexConfig"]
    store.finished(API, store.call("PATCH", path, {}, updateMask="ttlConfig"))
    assert "ttlConfig" not in store.call("GET", path)


def test_documents(store: Fake) -> None:
    made = create(store, state="claimed", count=1).json()
    assert made["name"] == ONE and made["createTime"] == made["updateTime"] and len(made["createTime"]) == 27
    assert plain(made) == {"state": "claimed", "count": "1"}
    assert error(create(store, state="x")) == (409, "ALREADY_EXISTS", f"Document already exists: {ONE}")
    assert plain(store.call("GET", f"{API}/{ONE}")) == {"state": "claimed", "count": "1"}
    none = store.ask("GET", f"{API}/{CLAIMS}/none")
    assert error(none) == (404, "NOT_FOUND", f'Document "{CLAIMS}/none" not found.')
    named = store.call("POST", f"{API}/{CLAIMS}", fields(x=1))
    assert len(named["name"].rpartition("/")[2]) == 20
    assert store.call("DELETE", f"{API}/{ONE}") == {} == store.call("DELETE", f"{API}/{ONE}")
    two = {"fields": {"x": {"stringValue": "a", "integerValue": 1}}}
    assert store.ask("POST", f"{API}/{CLAIMS}", two).status_code == 400


def test_fields_of_a_mask_are_changed(store: Fake) -> None:
    create(store, a="1", b="2", c="3")
    url = f"{store.url}/{API}/{ONE}?updateMask.fieldPaths=a&updateMask.fieldPaths=b"
    headers = {"Authorization": f"Bearer {store.token}"}
    changed = requests.patch(url, json=fields(a="x", c="y"), headers=headers, timeout=120).json()
    assert plain(changed) == {"a": "x", "c": "3"}, "b is in the mask, and not in the body"
    assert changed["updateTime"] > changed["createTime"]
    assert plain(store.call("PATCH", f"{API}/{ONE}", fields(d="4"))) == {"d": "4"}, "without a mask, all of it"


def test_a_write_that_changes_nothing_leaves_the_time(store: Fake) -> None:
    made = create(store, a="1").json()
    assert store.call("PATCH", f"{API}/{ONE}", fields(a="1"))["updateTime"] == made["updateTime"]
    writes = [{"update": {"name": ONE, **fields(a="1")}}]
    answer = store.call("POST", f"{DATABASES}/claims/documents:commit", {"writes": writes})
    assert answer["writeResults"] == [{"updateTime": made["updateTime"]}] and answer["commitTime"] > made["updateTime"]


def test_preconditions(store: Fake) -> None:
    made = create(store, a="1").json()
    exists, moment = "currentDocument.exists", "currentDocument.updateTime"
    changed = store.call("PATCH", f"{API}/{ONE}", fields(a="2"), **{moment: made["updateTime"]})
    late = store.ask("PATCH", f"{API}/{ONE}", fields(a="3"), **{moment: made["updateTime"]})
    assert error(late)[:2] == (400, "FAILED_PRECONDITION")
    assert error(late)[2].startswith("the stored version (1") and "match the required base version (1" in error(late)[2]
    none = f"{CLAIMS}/none"
    missing = store.ask("PATCH", f"{API}/{none}", fields(a="3"), **{exists: "true"})
    assert error(missing) == (404, "NOT_FOUND", f"No document to update: {none}")
    there = store.ask("PATCH", f"{API}/{ONE}", fields(a="3"), **{exists: "false"})
    assert error(there) == (409, "ALREADY_EXISTS", f"Document already exists: {ONE}")
    assert store.ask("DELETE", f"{API}/{ONE}", **{moment: made["updateTime"]}).status_code == 400
    assert store.call("DELETE", f"{API}/{ONE}", **{moment: changed["updateTime"]}) == {}
    assert store.ask("DELETE", f"{API}/{ONE}", **{moment: "yesterday"}).status_code == 400


def test_a_commit_is_all_or_nothing(store: Fake) -> None:
    create(store, a="1")
    commit, two = f"{DATABASES}/claims/documents:commit", f"{CLAIMS}/two"
    writes: list[Any] = [
        {"update": {"name": two, **fields(b="1")}, "currentDocument": {"exists": False}},
        {"update": {"name": ONE, **fields(a="2")}, "currentDocument": {"exists": False}},
    ]
    assert error(store.ask("POST", commit, {"writes": writes}))[:2] == (409, "ALREADY_EXISTS")
    assert store.ask("GET", f"{API}/{two}").status_code == 404
    clock = {"fieldPath": "at", "setToServerValue": "REQUEST_TIME"}
    writes = [{**writes[0], "updateTransforms": [clock]}, {"delete": ONE, "currentDocument": {"exists": True}}]
    answer = store.call("POST", commit, {"writes": writes})
    assert set(plain(store.call("GET", f"{API}/{two}"))) == {"b", "at"} and answer["writeResults"][1] == {}
    assert store.ask("GET", f"{API}/{ONE}").status_code == 404
    assert store.ask("POST", commit, {"writes": [{"delete": "projects/x"}]}).status_code == 400
    assert store.ask("POST", commit, {"writes": [], "transaction": "eA=="}).status_code == 501


def test_one_of_many_has_the_claim(store: Fake) -> None:
    answers: list[int] = []

    def claim(number: int) -> None:
        answers.append(create(store, owner=str(number)).status_code)

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200] + [409] * 7


def test_a_call_that_fails_after_it_was_carried_out(store: Fake) -> None:
    store.fault(method="firestore.*.createDocument", code=503, after=True)
    assert create(store, a="1").status_code == 503
    assert error(create(store, a="1"))[0] == 409


def query(fake: Fake, **query: Any) -> list[Any]:
    body = {"structuredQuery": {"from": [{"collectionId": "claims"}], **query}}
    return fake.call("POST", f"{DATABASES}/claims/documents:runQuery", body)


def where(path: str, op: str, **value: Any) -> dict[str, Any]:
    return {"fieldFilter": {"field": {"fieldPath": path}, "op": op, "value": value}}


def test_queries(store: Fake) -> None:
    assert [set(row) for row in query(store)] == [{"readTime"}]
    for number, state in enumerate(("open", "done", "open", "lost")):
        create(store, f"d{number}", state=state, n=number)

    def names(**given: Any) -> list[str]:
        return [row["document"]["name"].rpartition("/")[2] for row in query(store, **given) if "document" in row]

    is_open, above = where("state", "EQUAL", stringValue="open"), where("n", "GREATER_THAN", integerValue="0")
    assert names(where=is_open) == ["d0", "d2"]
    assert names(where={"compositeFilter": {"op": "AND", "filters": [is_open, above]}}) == ["d2"]
    assert names(where={"compositeFilter": {"op": "OR", "filters": [is_open, above]}}) == ["d0", "d1", "d2", "d3"]
    down = [{"field": {"fieldPath": "n"}, "direction": "DESCENDING"}]
    assert names(orderBy=down, limit=2, offset=1) == ["d2", "d1"]
    assert names(where=where("n", "LESS_THAN", stringValue="9")) == [], "values of other types are not compared"
    either = {"values": [{"stringValue": "done"}, {"stringValue": "lost"}]}
    assert names(where=where("state", "IN", arrayValue=either)) == ["d1", "d3"]
    (row,) = query(store, limit=1, select={"fields": [{"fieldPath": "n"}]})
    assert plain(row["document"]) == {"n": "0"}
    body = {"structuredQuery": {"from": [{"collectionId": "claims"}], "startAt": {}}}
    assert store.ask("POST", f"{DATABASES}/claims/documents:runQuery", body).status_code == 501


def test_lists_come_in_pages(store: Fake) -> None:
    for number in range(5):
        create(store, f"d{number}", n=number)
    first = store.call("GET", f"{API}/{CLAIMS}", pageSize=3)
    second = store.call("GET", f"{API}/{CLAIMS}", pageSize=3, pageToken=first["nextPageToken"])
    assert [len(page["documents"]) for page in (first, second)] == [3, 2] and "nextPageToken" not in second
