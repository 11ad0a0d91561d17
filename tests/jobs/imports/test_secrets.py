"""What looks like a secret in a document is in the job file, if anywhere, and in no line of the report."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

SECRET = "hunter2zq"
"""Of no form that would be known for a secret."""
URL = f"https://me:{SECRET}@registry.example/train:1"
IMAGE = "us-docker.pkg.dev/acme/train/flowers:1.4"

AWS = {"jobName": "n", "jobQueue": "gpu", "jobDefinition": "train"}
BATCH_STEP = {"container": {"imageUri": IMAGE, "commands": ["train"]}}


def batch(step: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"taskGroups": [{"taskSpec": {"runnables": [step or BATCH_STEP], **spec}}]}


def definition(**container: Any) -> dict[str, Any]:
    return {"jobDefinitionName": "d", "containerProperties": {"image": "acme/train:1", **container}}


def vertex(**container: Any) -> dict[str, Any]:
    spec = {"imageUri": IMAGE, **container}
    return {"workerPoolSpecs": [{"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": spec}]}


def legacy(**training: Any) -> dict[str, Any]:
    return {"trainingInput": {"scaleTier": "BASIC", "masterConfig": {"imageUri": IMAGE}, **training}}


def kubernetes(pod: dict[str, Any] | None = None, **container: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "a", "image": IMAGE, "command": ["a"], **container}], **(pod or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize(
    "kind, document",
    [
        ("kubernetes", kubernetes(env=[{"name": "A", "value": SECRET}, {"name": "B", "value": [SECRET]}])),
        ("kubernetes", kubernetes(env=[{"name": "A", "value": f"x\n{SECRET}"}, {"name": "", "value": SECRET}])),
        ("kubernetes", kubernetes(command=["a", "--password", SECRET], args=[f"--token={SECRET}"])),
        ("kubernetes", kubernetes(env=[{"name": "A", "value": SECRET}], args=["$(A)"])),
        ("kubernetes", kubernetes(password=SECRET, token={"a": SECRET})),
        ("kubernetes", kubernetes(image=URL)),
        ("kubernetes", kubernetes({"dbPassword": SECRET})),
        ("kubernetes", {**kubernetes(), "metadata": {"name": "a", "labels": {"api_token": SECRET}}}),
        ("kubernetes", {**kubernetes(), "metadata": {"name": "a", "annotations": {"api_token": SECRET}}}),
        (
            "kubernetes",
            {
                "apiVersion": "v1",
                "kind": "List",
                "items": [
                    kubernetes(envFrom=[{"configMapRef": {"name": "c"}}]),
                    {"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"A": SECRET, "B": f"{SECRET}\n"}},
                    {"kind": "Secret", "metadata": {"name": "s"}, "stringData": {"A": SECRET}, "data": {"A": SECRET}},
                ],
            },
        ),
        ("aws-batch", {**AWS, "containerOverrides": {"environment": [{"name": "A", "value": SECRET}]}}),
        ("aws-batch", {**AWS, "containerOverrides": {"environment": [{"name": "A", "value": [SECRET]}]}}),
        ("aws-batch", {**AWS, "containerOverrides": {"environment": {"DB_PASSWORD": SECRET}}}),
        ("aws-batch", {**AWS, "containerOverrides": {"command": ["a", "--password", SECRET, f"HF_TOKEN={SECRET}"]}}),
        ("aws-batch", {**AWS, "parameters": {"a": SECRET}}),
        ("aws-batch", {**AWS, "parameters": {"a": SECRET}, "containerOverrides": {"command": ["x", "Ref::a"]}}),
        ("aws-batch", {**AWS, "parameters": {"a": SECRET}, "containerOverrides": {"command": ["x", "aRef::a"]}}),
        ("aws-batch", {**AWS, "tags": {"api_token": SECRET, "SIGNING_KEY": SECRET}}),
        ("aws-batch", {**AWS, "password": SECRET, "signing_key": SECRET, "dbPassword": [SECRET]}),
        ("aws-batch", {**AWS, "jobDefinition": URL}),
        ("aws-batch", {**AWS, "timeout": {"attemptDurationSeconds": "5", "token": SECRET}}),
        ("aws-batch", definition(environment=[{"name": "A", "value": SECRET}])),
        ("aws-batch", definition(command=["a", "--password", SECRET])),
        ("aws-batch", {**definition(command=["a", "Ref::b"]), "parameters": {"b": SECRET, "c": SECRET}}),
        ("skypilot", {"run": f"x --password {SECRET}", "setup": f"export T={SECRET}"}),
        ("skypilot", {"run": "x", "envs": {"A": SECRET, "B": [SECRET], "WANDB_API_KEY": SECRET}}),
        ("skypilot", {"run": "x", "secrets": {"A": SECRET, "B": {"c": SECRET}}}),
        ("skypilot", {"run": "x", "envs": {"HF_TOKEN": SECRET}, "file_mounts": {"/a": "s3://$HF_TOKEN/b"}}),
        ("skypilot", {"run": "x", "password": SECRET, "resources": {"image_id": f"docker:{URL}"}}),
        ("dstack", {"type": "task", "commands": [f"x --password {SECRET}"], "env": [f"A={SECRET}", f"B={SECRET}"]}),
        ("dstack", {"type": "task", "image": "a:1", "entrypoint": f"x --password {SECRET}"}),
        ("dstack", {"type": "task", "image": URL, "registry_auth": {"username": SECRET, "password": SECRET}}),
        ("dstack", {"type": "task", "commands": ["x"], "env": {"A": SECRET, "B": [SECRET]}, "api_key": SECRET}),
        ("google-batch", batch({"container": {"imageUri": IMAGE, "username": "me", "password": SECRET}})),
        ("google-batch", batch({"container": {"imageUri": URL}})),
        ("google-batch", batch(environments={"A": SECRET})),
        ("google-batch", batch(environment={"variables": {"A": SECRET, "B": [SECRET]}})),
        ("google-batch", batch({**BATCH_STEP, "environment": {"variables": {"A": SECRET}}})),
        ("google-batch", batch({"script": {"text": f"export TOKEN={SECRET}; run {SECRET}"}})),
        ("google-batch", {**batch(), "labels": {"my_token": SECRET}}),
        ("vertex", vertex(env=[{"name": "WANDB_API_KEY", "value": SECRET}, {"name": "B", "value": [SECRET]}])),
        ("vertex", vertex(args=["--password", SECRET])),
        ("vertex", vertex(password=SECRET)),
        ("vertex", vertex(imageUri=URL)),
        ("ai-platform", legacy(args=["--password", SECRET])),
        ("ai-platform", legacy(password=SECRET, enableWebAccess={"token": SECRET})),
    ],
)
def test_no_line_has_a_secret(home: Any, invoke: Callable[..., Result], kind: str, document: dict[str, Any]) -> None:
    for options in ((), ("--report", "json"), ("--strict",)):
        done = invoke("import", kind, "-", *options, text=json.dumps(document))
        assert done.exit_code in (0, 2) and SECRET not in done.stderr, done.stderr


VERTEX = "gcloud ai custom-jobs create --region=us-central1 --display-name=a"
POOL = f"--worker-pool-spec=machine-type=n1-standard-4,container-image-uri={IMAGE}"
SUBMIT = "aws batch submit-job --job-name n --job-queue q --job-definition d"
LEGACY = f"gcloud ai-platform jobs submit training a --region us-central1 --master-image-uri {IMAGE} --scale-tier basic"


@pytest.mark.parametrize(
    "text",
    [
        f"#SBATCH --export=ALL,TOKEN={SECRET},A={SECRET}\npython a.py {SECRET}\n",
        f"#SBATCH --comment=token={SECRET}\nexport HF_TOKEN={SECRET}\nsrun --export=A={SECRET} python a.py\n",
        f"#SBATCH -c 2\nTOKEN={SECRET}\nsource activate a; srun --container-env=$TOKEN python a.py --token $TOKEN\n",
        f"#SBATCH -c 2\napptainer exec --env PASSWORD={SECRET} docker://{URL[8:]} a\nmodule load --token={SECRET}\n",
        f"export TOKEN={SECRET}\n{VERTEX} {POOL} --args=--token=$TOKEN\n",
        f"export TOKEN={SECRET}\n{VERTEX} {POOL} --labels=token=$TOKEN\n",
        f"export DB_KEY='{SECRET}\n{VERTEX} {POOL}\n",
        f"{VERTEX} {POOL} --password={SECRET}\n",
        f"{VERTEX} {POOL} --access-token {SECRET}\n",
        f"{VERTEX} {POOL} && export HF_KEY={SECRET}\n",
        f"{VERTEX} {POOL} -- --password {SECRET}\n",
        f"{LEGACY} -- --password {SECRET} --api-key={SECRET}\n",
        f"{LEGACY} --labels=token={SECRET}\n",
        f"{LEGACY} | tee {SECRET}\n",
        f"{SUBMIT} --container-overrides command=a,--password,{SECRET}\n",
        f"export TOKEN={SECRET}\n{SUBMIT} --tags token=$TOKEN --parameters a=$TOKEN\n",
        f"{SUBMIT} --password {SECRET}\n",
        f"export TOKEN={SECRET}\ngcloud batch jobs submit n --script-text 'x' --config - <<EOF\n"
        '{"labels": {"a": "$TOKEN"}}\nEOF\n',
        f"curl -H 'Authorization: Bearer {SECRET}' x\n{LEGACY}\n",
    ],
)
def test_no_line_has_a_secret_of_a_script(home: Any, invoke: Callable[..., Result], text: str) -> None:
    for options in ((), ("--report", "json"), ("--strict",)):
        done = invoke("import", "-", *options, text=text)
        assert done.exit_code in (0, 2) and SECRET not in done.stderr, done.stderr


def test_a_placeholder_is_no_secret(home: Any, invoke: Callable[..., Result]) -> None:
    done = invoke("import", "-", "--image", IMAGE, text="#SBATCH -c 2\nexport TOKEN=<your-token>\npython a.py\n")
    assert done.exit_code == 2 and '"<your-token>" is a placeholder' in done.stderr, done.stderr
