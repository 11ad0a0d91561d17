"""The stores of an earlier version, filled with what it left in them: two tables of DynamoDB, a database of Firestore,
the files of one machine."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3

from accel.clouds.aws.clients import Clients
from accel.clouds.aws.clients import Timing as AwsTiming
from accel.clouds.google.api import Google
from accel.contract import allowances as columns_of_ledgers
from accel.contract import claims as columns
from jobs.backends.claims.claim import Claims
from jobs.backends.claims.dynamodb import TableClaims
from jobs.backends.claims.files import FileClaims
from jobs.backends.claims.firestore import FirestoreClaims
from jobs.client.allowances.ledgers import ledger_at
from jobs.client.allowances.reservation import Ledger
from tests.jobs.spend import books
from tests.support import records
from tests.support.google_fake import Fake, P
from tests.support.records import Json
from tests.support.restoration import shift_times
from tests.support.waiting import until

SERVICES = {"file": "file", "dynamodb": "batch", "firestore": "vertex"}
"""By the kind of a store, how the names of the jobs begin whose claims are there."""
SCOPE = "accel/aws"
FIRESTORE = "firestore.googleapis.com/v1/"


class Stores:
    """The stores of a version, as it left them, under names that no other test has."""

    def __init__(self, whole: records.Records, kind: str) -> None:
        self.whole, self.kind = whole, kind

    def rows(self) -> list[Json]:
        """The claims, as they are stored."""
        raise NotImplementedError

    def put_claims(self, moment: int) -> None:
        """Stores the claims; what was to be at `moment` is to be now."""
        raise NotImplementedError

    def put_ledger(self) -> None:
        """Stores the ledger, as if it had just been written."""
        raise NotImplementedError

    def claims(self) -> Claims:
        """As a new client has them."""
        raise NotImplementedError

    def ledger(self) -> Ledger:
        """As a new client has it."""
        raise NotImplementedError

    def stored(self, key: str) -> Json:
        """The claim of a submission key as it is stored now."""
        raise NotImplementedError

    def spoil(self, key: str) -> None:
        """Takes the owner out of a claim."""
        raise NotImplementedError

    def row(self, job: str) -> Json:
        """The plain claim of a job, with the names of the contract."""
        wanted = f"{SERVICES[self.kind]}-{job}-"
        (found,) = [row for row in map(self.plain, self.rows()) if row["job_name"].startswith(wanted)]
        return {columns.BY_FIELD.get(name, name): value for name, value in found.items()}

    def plain(self, row: Json) -> Json:
        return {name: next(iter(value.values())) for name, value in row.items()}

    def shape(self, row: Json) -> Json:
        """Of what type each value is."""
        return {name: next(iter(value)) for name, value in row.items()}


class Table(Stores):
    name = ""

    @property
    def _dynamodb(self) -> Any:
        return boto3.Session().client("dynamodb", region_name="us-east-1")

    def _items(self, name: str) -> list[Json]:
        return next(items for table, items in self.whole.tables.items() if table.startswith(name))

    def rows(self) -> list[Json]:
        return self._items("claims-")

    def put_claims(self, moment: int) -> None:
        self.name = f"claims-{uuid4().hex[:8]}"
        key = columns.KEY
        self._dynamodb.create_table(
            TableName=self.name,
            KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        self._put("claims-", moment)

    def put_ledger(self) -> None:
        self.name = f"ledger-{uuid4().hex[:8]}"
        books.make_table(self.name)
        self._put("ledger-", self.whole.moment)

    def _put(self, old: str, moment: int) -> None:
        for item in json.loads(shift_times(json.dumps(self._items(old)), moment)):
            self._dynamodb.put_item(TableName=self.name, Item=item)

    def claims(self) -> Claims:
        return TableClaims(Clients("us-east-1", AwsTiming()), self.name)

    def ledger(self) -> Ledger:
        return ledger_at(f"dynamodb:us-east-1/{self.name}")

    def stored(self, key: str) -> Json:
        return self._dynamodb.get_item(TableName=self.name, Key={columns.KEY: {"S": key}})["Item"]

    def spoil(self, key: str) -> None:
        self._dynamodb.update_item(
            TableName=self.name,
            Key={columns.KEY: {"S": key}},
            UpdateExpression="REMOVE #owner",
            ExpressionAttributeNames={"#owner": columns.OWNER},
        )


class Documents(Stores):
    fake: Fake
    database = ""

    def rows(self) -> list[Json]:
        return [each["fields"] for each in self.whole.documents if f"/{columns.COLLECTION}/" in each["name"]]

    def put_claims(self, moment: int) -> None:
        self._put(moment, (columns.COLLECTION,))

    def put_ledger(self) -> None:
        self._put(self.whole.moment, (columns_of_ledgers.TEAMS,))

    def _put(self, moment: int, collections: tuple[str, ...]) -> None:
        self.database = self._database()
        for each in json.loads(shift_times(json.dumps(self.whole.documents), moment)):
            _, _, name = each["name"].partition("/documents/")
            if name.startswith(collections):
                self.fake.call("PATCH", f"{FIRESTORE}{self.database}/documents/{name}", {"fields": each["fields"]})

    def _database(self) -> str:
        name = f"records-{uuid4().hex[:6]}x"
        where = {"locationId": "us-central1", "type": "FIRESTORE_NATIVE"}
        self.fake.call("POST", f"{FIRESTORE}{P}/databases", where, databaseId=name)
        until(lambda: self.fake.ask("GET", f"{FIRESTORE}{P}/databases/{name}").status_code != 404)
        return f"{P}/databases/{name}"

    def claims(self) -> Claims:
        return FirestoreClaims(Google(), self.database)

    def ledger(self) -> Ledger:
        return ledger_at(f"firestore:{self.database}")

    def stored(self, key: str) -> Json:
        return self.fake.call("GET", self._path(key))["fields"]

    def spoil(self, key: str) -> None:
        self.fake.call("PATCH", self._path(key), {"fields": {}}, **{"updateMask.fieldPaths": columns.OWNER})

    def _path(self, key: str) -> str:
        return f"{FIRESTORE}{self.database}/documents/{columns.COLLECTION}/{key}"


class Files(Stores):
    state: Path

    def rows(self) -> list[Json]:
        return [json.loads(text) for text in self._claims().values()]

    def _claims(self) -> dict[str, str]:
        return {name: text for name, text in self.whole.files.items() if name.startswith("accel/claims/")}

    def put_claims(self, moment: int) -> None:
        self._put(moment)

    def put_ledger(self) -> None:
        self._put(self.whole.moment)

    def _put(self, moment: int) -> None:
        self.whole = replace(self.whole, files=json.loads(shift_times(json.dumps(self.whole.files), moment)))
        records.unpack(self.whole, self.state)

    def claims(self) -> Claims:
        """Of the folder that the version made: its name is the scope's hash."""
        claims = FileClaims("")
        (folder,) = {Path(name).parent for name in self._claims()}
        claims._files._folder = self.state / folder  # pyright: ignore[reportPrivateUsage]
        return claims

    def ledger(self) -> Ledger:
        return ledger_at(f"file:{SCOPE}")

    def stored(self, key: str) -> Json:
        return json.loads(self._path(key).read_text())

    def spoil(self, key: str) -> None:
        kept = {name: value for name, value in self.stored(key).items() if name != columns.OWNER}
        self._path(key).write_text(json.dumps(kept))

    def _path(self, key: str) -> Path:
        (path,) = [path for path in (self.state / "accel" / "claims").rglob("*.json") if key in path.read_text()]
        return path

    def plain(self, row: Json) -> Json:
        return row

    def shape(self, row: Json) -> Json:
        return {name: type(value).__name__ for name, value in row.items()}
