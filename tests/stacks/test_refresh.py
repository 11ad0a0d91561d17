"""`stacks refresh` from end to end, and who uses what it wrote."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from accel.diagnostics.errors import BadInputs, NotFound
from stacks.cli.main import stacks
from stacks.operations.refresh.sources import regions_by_cloud
from tests.support import commands
from tests.support.project import KEY, environment, put

from .live_clouds import (
    Answer,
    Asked,
    ec2_error,
    instance_types,
    offerings,
    price_list,
    pricing_error,
    product,
    serving,
    skus,
    spot_history,
)
from .test_config import ROOT
from .test_refresh_gcp import LISTED

AT = "2026-11-22T08:00:00.000Z"
SIZES = ("xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge", "48xlarge")
REFRESH = ("stacks", "refresh", "--region", "us-east-1")
COST = ("stacks", "cost", "dev", "-o", "json")
OFFERS = ("jobs", "offers", "--gpu", "a10g:1", "--region", "us-east-1", "-o", "json", "--limit", "99")


def usual(asked: Asked) -> Answer:
    """g5.xlarge at half a dollar; g5 and g6 in one zone."""
    match asked.operation:
        case "GetProducts":
            return price_list(product("g5.xlarge", "0.5000000000", asked.price_region))
        case "DescribeSpotPriceHistory":
            return spot_history(("g5.xlarge", f"{asked.region}a", "0.100000", AT))
        case "DescribeInstanceTypes":
            return instance_types()
        case _:
            return offerings(*((f"{family}.{size}", "use1-az1") for family in ("g5", "g6") for size in SIZES))


@dataclass
class Done:
    """How a command ended."""

    code: int
    out: str
    err: list[str]


Command = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Command]:
    """A command in a folder with the environment `dev`, a cache of its own, and AWS at a server that answers so."""
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": {KEY: environment("dev")}}))
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    keys = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
    nowhere = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none"}
    with ExitStack() as stack:

        def call(*words: str, aws: Callable[[Asked], Answer] | None = None, catalog: str = "") -> Done:
            url = {"AWS_ENDPOINT_URL": stack.enter_context(serving(aws)), **keys} if aws else {}
            chosen = {"ACCEL_CATALOG": catalog} if catalog else {}
            done = commands.run(*words, cwd=tmp_path, env={**environ, **nowhere, **url, **chosen})
            assert "Traceback" not in done.stderr
            return Done(done.returncode, done.stdout, done.stderr.splitlines())

        yield call


def folders(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "accel" / "catalog").glob("*"))


def test_what_was_read_is_used_where_it_is_asked_for(run: Command, tmp_path: Path) -> None:
    shipped = [run(*words) for words in (COST, OFFERS)]
    done = run("stacks", "refresh", aws=usual)
    assert done.code == 0 and done.out.splitlines()[1].split() == ["aws", "us-east-1", "1", "1", "16"]
    (folder,) = folders(tmp_path)
    assert done.err == [f"Written to {folder}; ACCEL_CATALOG=refreshed uses it"]
    assert run(*OFFERS) == shipped[1], "nothing changes unless it is asked for"
    for catalog in ("refreshed", str(folder)):
        (offer,) = [each for each in json.loads(run(*OFFERS, catalog=catalog).out) if each["machine"] == "g5.xlarge"]
        assert (offer["on_demand"], offer["spot"], offer["dates"]) == (0.5, 0.1, [folder.name[:10]])
        assert offer["confidence"] == "high"
    live, old = (json.loads(each.out)[0] for each in (run(*COST, catalog="refreshed"), shipped[0]))
    assert live["totals"]["expected"] != old["totals"]["expected"]
    assert any(folder.name[:10] in row["price_dates"] for row in live["lines"])


def test_json_and_regions(run: Command) -> None:
    signed: list[str] = []

    def answer(request: Asked) -> Answer:
        signed.append(request.region)
        if request.operation == "DescribeInstanceTypeOfferings":
            return offerings(("g5.xlarge", "euw1-az1" if request.region == "eu-west-1" else "use2-az1"))
        return usual(request)

    words = ("--region", "eu-west-1", "--region", "us-east-2", "--region", "eu-west-1", "-o", "json")
    done = run("stacks", "refresh", *words, aws=answer)
    assert done.code == 0, done.err
    assert [(row["region"], row["on_demand"]) for row in json.loads(done.out)] == [("eu-west-1", 1), ("us-east-2", 1)]
    assert set(signed) == {"us-east-1", "eu-west-1", "us-east-2"}, "the price list is at us-east-1"


def test_a_region_that_refuses_is_a_warning_and_strict_refuses_it(run: Command, tmp_path: Path) -> None:
    def answer(asked: Asked) -> Answer:
        return usual(asked) if asked.operation == "GetProducts" else ec2_error(401, "AuthFailure", "not valid")

    strict = run(*REFRESH, "--strict", aws=answer)
    assert strict.code == 2 and strict.err[0].startswith(
        "error: kept as shipped: DescribeSpotPriceHistory of us-east-1"
    )
    assert folders(tmp_path) == []
    done = run(*REFRESH, aws=answer)
    assert done.code == 0 and len(folders(tmp_path)) == 1
    assert [line.split(":")[0] for line in done.err[:-1]] == ["warning"] * 3


@pytest.mark.parametrize(
    "answer, code, said",
    [
        (lambda _: pricing_error(400, "UnrecognizedClientException", "invalid token"), 3, "GetProducts of us-east-1: "),
        (
            lambda asked: (
                pricing_error(400, "AccessDeniedException")
                if asked.operation == "GetProducts"
                else ec2_error(403, "UnauthorizedOperation")
            ),
            4,
            "nothing was read: GetProducts of us-east-1: AccessDeniedException",
        ),
        (lambda asked: price_list("{") if asked.operation == "GetProducts" else usual(asked), 9, "GetProducts of us"),
    ],
)
def test_what_ends_it_writes_nothing(
    run: Command, tmp_path: Path, answer: Callable[[Asked], Answer], code: int, said: str
) -> None:
    run(*REFRESH, aws=usual)
    earlier = folders(tmp_path)
    done = run(*REFRESH, aws=answer)
    assert (done.code, folders(tmp_path)) == (code, earlier)
    assert done.err[0].startswith(f"error: {said}") and sum(line.startswith("error: ") for line in done.err) == 1


def test_without_credentials(run: Command, tmp_path: Path) -> None:
    done = run(*REFRESH)
    assert done.code == 3 and done.err[0] == "error: GetProducts of us-east-1: Unable to locate credentials"
    assert len(done.err) == 2 and folders(tmp_path) == []


@pytest.mark.parametrize(
    "words, code, said",
    [
        (("--region", "us-esat-1"), 2, 'error: --region: unknown region "us-esat-1"; nearest: us-east-1'),
        (
            ("--cloud", "aws", "--region", "us-central1"),
            2,
            'error: --region: unknown region "us-central1"; nearest: ',
        ),
        (("--cloud", "azure"), 2, "error: --cloud: unknown value azure; known: aws, gcp"),
        (("--regoin", "us-east-1"), 2, "error: stacks refresh: unknown option --regoin; did you mean --region?"),
        (("us-east-1",), 2, "error: stacks refresh: got unexpected extra argument"),
    ],
)
def test_wrong_arguments(run: Command, words: tuple[str, ...], code: int, said: str) -> None:
    done = run("stacks", "refresh", *words)
    assert done.code == code and done.err[0].startswith(said), done.err


def test_whose_regions_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(values: dict[str, Any]) -> None:
        path.write_text(yaml.safe_dump({"config": {KEY: values}}))

    monkeypatch.chdir(tmp_path)
    path = tmp_path / "Pulumi.dev.yaml"
    with pytest.raises(NotFound) as error:
        regions_by_cloud((), ())
    assert str(error.value.hint).startswith("name the regions with --region")
    write(environment("dev"))
    assert regions_by_cloud((), ()) == regions_by_cloud(("aws",), ()) == {"aws": ["us-east-1"]}
    assert regions_by_cloud((), ("us-central1", "eu-west-1", "eu-west-1")) == {
        "gcp": ["us-central1"],
        "aws": ["eu-west-1"],
    }
    assert regions_by_cloud(("gcp", "aws"), ("us-central1",)) == {"gcp": ["us-central1"], "aws": ["us-east-1"]}
    write({"owner": "a"})
    with pytest.raises(NotFound, match="no environment here has an aws section"):
        regions_by_cloud((), ())
    write(put("aws.environments.spot.max_vcpus", 0, environment("dev")))
    with pytest.raises(BadInputs, match="max_vcpus"):
        regions_by_cloud((), ())


def test_a_damaged_catalogue_is_one_line_and_can_be_made_again(run: Command, tmp_path: Path) -> None:
    run(*REFRESH, aws=usual)
    path = folders(tmp_path)[0] / "prices.csv"
    text = path.read_text()
    number = 1 + next(n for n, line in enumerate(text.splitlines()) if line.startswith("aws,us-east-1,,g5.xlarge,"))
    path.write_text(text.replace("aws,us-east-1,,g5.xlarge,machine,0.5,", "aws,us-east-1,,g5.xlarge,machine,half,"))
    hint = "hint: `stacks refresh` makes a new one; without ACCEL_CATALOG the shipped one is used"
    for words in (COST, OFFERS):
        done = run(*words, catalog="refreshed")
        assert done.code == 2
        assert done.err == [f"error: {path}:{number}: on_demand_usd_hour: not a number: half", hint]
    assert run(*OFFERS).code == 0
    assert run(*REFRESH, aws=usual, catalog="refreshed").code == 0
    assert run(*OFFERS, catalog="refreshed").code == 0


@pytest.mark.parametrize("catalog", ["refreshed", "nowhere"])
def test_a_catalogue_that_is_not_there(run: Command, catalog: str) -> None:
    for words in (COST, OFFERS):
        done = run(*words, catalog=catalog)
        assert done.code == 2 and done.err[0].startswith(f"error: ACCEL_CATALOG={catalog}: "), done.err
        assert len(done.err) == 2 and done.err[1].startswith("hint: `stacks refresh` makes a new one")


def test_google_for_all_its_regions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "k")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with serving(lambda _: skus(*LISTED)) as url:
        monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDBILLING", url)
        told = CliRunner().invoke(stacks, ["refresh", "--cloud", "gcp", "-o", "json"])
        rows = {row["region"]: row for row in json.loads(told.stdout)}
        assert told.exit_code == 0 and len(rows) == 44 and rows["europe-west4"]["on_demand"] == 0
        assert rows["us-central1"]["on_demand"] > 20 and rows["us-central1"]["spot"] == 5
        one = CliRunner().invoke(stacks, ["refresh", "--region", "us-central1", "-o", "id"])
        assert (one.exit_code, one.stdout) == (0, "us-central1\n")


@pytest.mark.parametrize(
    "verb, allowed",
    [("refresh", set[str]()), ("report", set[str]()), ("adopt", set[str]()), ("permissions", {"pydantic", "yaml"})],
)
def test_help_imports_no_sdk(verb: str, allowed: set[str]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "stacks", verb, "--help"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0, answer.stderr
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in answer.stderr.splitlines()}
    assert loaded & {"boto3", "botocore", "pydantic", "pulumi", "pulumi_aws", "yaml", "google", "urllib3"} <= allowed
