"""Reading job files: values, overrides, places, and nothing that could be a secret in a message."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accel.diagnostics.errors import BadInput, BadInputs, NotFound
from jobs.model import document
from jobs.model.job import Job

BASE = "name: digits\ncommand: [python, train.py]\n"


def job(text: str, *sets: str, env: tuple[str, ...] = ()) -> Job:
    read = document.parse(text.encode(), "f.yaml", Job)
    for one in sets:
        read.set(one)
    for one in env:
        read.set_env(one)
    return read.job()


def faults(text: str, *sets: str, env: tuple[str, ...] = ()) -> list[str]:
    with pytest.raises(BadInputs) as caught:
        job(text, *sets, env=env)
    return caught.value.messages


def test_every_field_is_read() -> None:
    read = job("""
name: digits
image: local/examples
command: [python, train.py, --epochs, 5]
accelerator: {type: h100, count: 8}
cpus: 4
memory_mib: 2048
shm_mib: 64
disk_gib: 10
env: {EPOCHS: 20, RATE: 3.10, DAY: 2024-01-01, MODE: 0755}
secrets: {TOKEN: "arn:x"}
nodes: 2
retries: 0
timeout_s: 4h
spot: yes
labels: {run: 007}
mounts: [{source: efs://fs-1, path: /data, read_only: true}]
aws_batch: {definition: gpu}
""")
    assert read.command == ["python", "train.py", "--epochs", "5"]
    assert read.env == {"EPOCHS": "20", "RATE": "3.10", "DAY": "2024-01-01", "MODE": "0755"}
    assert (read.timeout_s, read.spot, read.labels) == (14_400, True, {"run": "007"})
    assert read.accelerator is not None and read.accelerator.count == 8


def test_anchors_and_merge_keys_within_bounds() -> None:
    read = job("name: a\nenv: &e {A: x, B: y}\nlabels:\n  <<: *e\n  B: z\n")
    assert read.labels == {"A": "x", "B": "z"}


def test_a_byte_order_mark_and_windows_lines() -> None:
    assert document.parse(b"\xef\xbb\xbfname: a\r\ncpus: 2\r\n", "f", Job).job().cpus == 2


def test_the_job_of_python_and_of_a_file_are_one() -> None:
    assert job(BASE + "env: {EPOCHS: 20}") == Job(name="digits", command=["python", "train.py"], env={"EPOCHS": 20})


# --- overrides


@pytest.mark.parametrize(
    "override, field, value",
    [
        ("cpus=4", "cpus", 4),
        ("accelerator.count=2", "accelerator.count", 2),
        ("accelerator={type: a100, count: 2}", "accelerator.type", "a100"),
        ('accelerator={"type": "a100"}', "accelerator.type", "a100"),
        ("accelerator=null", "accelerator", None),
        ("command=[a, 1.10]", "command", ["a", "1.10"]),
        ("command.1=other.py", "command.1", "other.py"),
        ("command.2=--fast", "command.2", "--fast"),
        ("env.RATE=3.10", "env.RATE", "3.10"),
        ("env.URL=http://x?a=b", "env.URL", "http://x?a=b"),
        ("env.EMPTY=", "env.EMPTY", ""),
        ("labels.team=yes", "labels.team", "yes"),
        ("timeout_s=30m", "timeout_s", 1800),
        ("spot=true", "spot", True),
        ("name=other", "name", "other"),
        ("image=repo/x:1.0", "image", "repo/x:1.0"),
        ("aws_batch.definition=big", "aws_batch.definition", "big"),
        ("mounts=[{source: a, path: /b}]", "mounts.0.path", "/b"),
    ],
)
def test_set(override: str, field: str, value: object) -> None:
    found: object = job(BASE, override).model_dump()
    for part in field.split("."):
        found = found[int(part)] if isinstance(found, list) else found[part]  # type: ignore[index]
    assert found == value


@pytest.mark.parametrize(
    "override, fault",
    [
        ("cpus=x", "--set cpus=x: cpus: must be an integer, is 'x'"),
        ("cpu=4", "--set cpu=4: unknown field cpu; did you mean cpus"),
        ("accelerator.cuont=4", "unknown field accelerator.cuont; did you mean accelerator.count"),
        ("cpus", "--set cpus: expected <field>=<value>, such as cpus=4"),
        ("=4", "expected <field>=<value>"),
        ("cpus=", "--set cpus='': cpus: must have a value; null leaves the field out"),
        ("cpus.x=4", "cpus has no fields"),
        ("cpus=[", "--set cpus=[: cpus: is not YAML"),
        ("env=[a]", "--set env: env: must be a mapping, is a list"),
        ("env.A-B=x", "--set env.A-B: env.A-B: not the name of an environment variable"),
        ("mounts.0.path=/x", "there is nothing at mounts.0 to set it in"),
        ("command.7=x", "there is nothing at command to set it in"),
        ("tasks=010", "YAML reads a leading zero as octal"),
        ("accelerator={count: 1, count: 2}", "accelerator.count: is set twice"),
        ("..=4", "unknown field"),
        ("nodes=.nan", "--set nodes=.nan: nodes: must be a number, is .nan"),
        ("name=$(id)", "--set name=$(id): name: must be letters"),
    ],
)
def test_a_wrong_set_names_itself(override: str, fault: str) -> None:
    (line,) = faults(BASE, override)
    assert line.startswith("--set") and fault in line


def test_env(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERE", "value of here")
    read = job(BASE + "env: {A: 1}", env=("A=2", "B=x=y", "HERE"))
    assert read.env == {"A": "2", "B": "x=y", "HERE": "value of here"}


@pytest.mark.parametrize(
    "text, fault",
    [
        ("NOT_SET_ANYWHERE", "--env NOT_SET_ANYWHERE: is not set here; write NOT_SET_ANYWHERE=<value>"),
        ("1A=x", "--env 1A: env.1A: not the name"),
        ("=x", "not the name of an environment variable"),
        ("A=x\ny", "--env A: env.A: the value holds a line break"),
        ("ACCEL_X=1", "names that begin with ACCEL_"),
    ],
)
def test_a_wrong_env_names_itself(text: str, fault: str) -> None:
    (line,) = faults(BASE, env=(text,))
    assert line.startswith("--env") and fault in line


def test_faults_of_file_and_overrides_come_together_in_order() -> None:
    found = faults("name: a b\ncpus: 0\n", "tasks=0", "cpu=1", env=("1=2",))
    assert [line.split(": ")[0] for line in found] == [
        "f.yaml:1",
        "f.yaml:2",
        "--set cpu=1",
        "--env 1",
        "--set tasks=0",
    ]


def test_a_hundred_faults_are_enough() -> None:
    found = faults("name: a\n" + "".join(f"x{n}: 1\n" for n in range(150)))
    assert len(found) == 101 and found[-1] == "f.yaml: and 50 more faults"


def test_an_override_mends_a_file() -> None:
    assert job("name: a b\ncpus: x", "name=a", "cpus=1").cpus == 1


# --- secrets

SECRETS = [
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "AKIAIOSFODNN7EXAMPLE",
    "hf_abcdefghijklmnop",
    "sk-abc123",
    "eyJhbGciOiJIUzI1NiJ9.e30.x",
    "https://user:hunter2@example.com/x",
    "password=hunter2",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "-----BEGIN PRIVATE KEY-----",
    "my-api-key: 12345",
]
PLACES = [
    "env: {{T: [{0}]}}",
    "env: '{0}'",
    "env: ['{0}']",
    "secrets: {{T: {{v: '{0}'}}}}",
    "command: 'x {0}'",
    "command: [[ '{0}' ]]",
    "labels: '{0}'",
    "cpus: '{0}'",
    "image: ['{0}']",
    "accelerator: '{0}'",
    "timeout_s: '{0}'",
    "spot: '{0}'",
    "zzz: '{0}'",
    "mounts: ['{0}']",
    "env: {{T: true, U: '{0}'}}",
    "name: 'x {0}'",
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("secret", SECRETS)
def test_no_message_shows_a_secret(place: str, secret: str) -> None:
    text = ("" if place.startswith("name") else "name: a\n") + place.format(secret.replace("'", ""))
    shown = "\n".join(faults(text))
    assert secret not in shown and secret[:12] not in shown


@pytest.mark.parametrize("override", ["env.T={0}\n", "cpus={0}", "command={0}", "timeout_s={0}"])
@pytest.mark.parametrize("secret", SECRETS)
def test_no_override_shows_a_secret(override: str, secret: str) -> None:
    assert secret[:12] not in "\n".join(faults(BASE, override.format(secret)))


def test_values_are_shortened() -> None:
    (line,) = faults(BASE + f"cpus: '{'x y ' * 100}'")
    assert len(line) < 120 and line.endswith("...")


# --- files


def test_files(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no such file"):
        document.read(str(tmp_path / "none.yaml"), Job)
    with pytest.raises(BadInput, match="cannot be read: Is a directory"):
        document.read(str(tmp_path), Job)
    with pytest.raises(BadInput, match="cannot be read"):
        document.read("a\0b", Job)
    (tmp_path / "j.yaml").write_text(BASE)
    assert document.read(str(tmp_path / "j.yaml"), Job).job().name == "digits"


# --- there and back

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
counts = st.integers(1, 2**31 - 1)
variables = st.dictionaries(
    st.from_regex(r"X[A-Za-z0-9_]{0,20}", fullmatch=True),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30),
    max_size=4,
)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    fields: dict[str, object] = {"name": draw(names), "env": draw(variables)}
    optional = {
        "image": texts.filter(bool),
        "command": st.lists(texts, max_size=4),
        "cpus": counts,
        "disk_gib": counts,
        "tasks": counts,
        "retries": st.integers(0, 20),
        "timeout_s": counts,
        "spot": st.booleans(),
        "labels": st.dictionaries(texts, texts, max_size=3),
        "accelerator": st.fixed_dictionaries({"count": counts}, optional={"type": texts.filter(bool)}),
        "mounts": st.lists(
            st.fixed_dictionaries({"source": texts.filter(bool), "path": names.map(lambda name: f"/{name}")}),
            max_size=2,
            unique_by=lambda mount: mount["path"],
        ),
    }
    for field, strategy in optional.items():
        if draw(st.booleans()):
            fields[field] = draw(strategy)
    return Job.model_validate(fields)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(jobs())
@example(Job(name="a", command=["a\x85b", "\n\x85"], labels={"lines": "x\n\u2028y\u2029"}))
def test_dump_and_parse_are_inverse(made: Job) -> None:
    assert document.parse(document.dump(made).encode(), "f", Job).job() == made
