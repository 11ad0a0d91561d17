"""Pasted commands of AWS Batch and Google Batch, and job definitions: shapes that people have; nothing is lost."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from accel.diagnostics.errors import BadInput
from jobs.importers import aws_batch, google_batch, recognition
from jobs.importers.aws_cli import shorthand
from jobs.importers.options import ImportOptions
from jobs.importers.outcome import ImportResult
from tests.jobs.imports.leaf_laws import lost, unread

REQUEST = '{"jobName": "n", "jobQueue": "gpu", "jobDefinition": "train"}'
SUBMIT = "aws batch submit-job --job-name n --job-queue gpu --job-definition train"


STATED = ("jobQueue", "attempts", "].type", "targetNodes", "mainNode", "sourceVolume", "].name", "Capabilities", "type")
"""Fields that a job says in other words, or whose value its place in the job says."""


def within(values: dict[str, Any], job: dict[str, Any]) -> bool:
    return all(
        within(value, job[key]) if isinstance(value, dict) else job.get(key) == value for key, value in values.items()
    )


def of_aws(text: str, **variables: str) -> ImportResult:
    return aws_batch.import_job("stdin", text.encode(), ImportOptions(variables=variables))


def of_google(text: str, **variables: str) -> ImportResult:
    return google_batch.import_job("stdin", text.encode(), ImportOptions(variables=variables))


@pytest.mark.parametrize(
    "text, found",
    [
        ("size=10", {"size": "10"}),
        ("attempts=3,evaluateOnExit=[{action=RETRY,onExitCode=1}]",
         {"attempts": "3", "evaluateOnExit": [{"action": "RETRY", "onExitCode": "1"}]}),
        ("command=a", {"command": ["a"]}),
        ("command=a,b,vcpus=2", {"command": ["a", "b"], "vcpus": "2"}),
        ("command=[a,'b c',\"d,e\"],memory=5", {"command": ["a", "b c", "d,e"], "memory": "5"}),
        ("environment=[{name=A,value=b},{name=C,value=d=e}]",
         {"environment": [{"name": "A", "value": "b"}, {"name": "C", "value": "d=e"}]}),
        ("environment={name=A,value=}", {"environment": [{"name": "A", "value": ""}]}),
        ("a=s3://x/y:z,b=2", {"a": "s3://x/y:z", "b": "2"}),
        ("a={b={c=d}}", {"a": {"b": {"c": "d"}}}),
        ("command=[]", {"command": []}),
        ("jobId=a,type=N_TO_N", {"jobId": "a", "type": "N_TO_N"}),
    ],
)  # fmt: skip
def test_shorthand(text: str, found: dict[str, Any]) -> None:
    assert shorthand(text) == found


@pytest.mark.parametrize("text", ["", "a", "a=[b", "a={b=c", "a='b", "a=b,a=c", "=b", "a=" + "[" * 50])
def test_what_is_no_shorthand(text: str) -> None:
    with pytest.raises(ValueError):
        shorthand(text)


@pytest.mark.parametrize(
    "options, values, field, kind",
    [
        ("", {"name": "n", "aws_batch": {"definition": "train"}}, "jobQueue", "kept"),
        ("--array-properties size=4", {"tasks": 4}, "arrayProperties.size", "kept"),
        ("--array-properties '{\"size\": 4}'", {"tasks": 4}, "arrayProperties.size", "kept"),
        ("--container-overrides command=python,train.py", {"command": ["python", "train.py"]},
         "containerOverrides.command", "kept"),
        ("--container-overrides 'command=[\"nvidia-smi\"]'", {"command": ["nvidia-smi"]}, "containerOverrides.command",
         "kept"),
        ("--container-overrides='{\"command\": [\"a\", \"b c\"]}'", {"command": ["a", "b c"]},
         "containerOverrides.command", "kept"),
        ("--container-overrides environment='[{name=A,value=b}]'", {"env": {"A": "b"}},
         "containerOverrides.environment[0].value", "kept"),
        ("--container-overrides environment=[\\{name=A,value=b\\}]", {"env": {"A": "b"}},
         "containerOverrides.environment[0].value", "kept"),
        ("--container-overrides 'resourceRequirements=[{type=GPU,value=2},{type=VCPU,value=8}]'",
         {"accelerator": {"count": 2}, "cpus": 8}, "containerOverrides.resourceRequirements[0].value", "kept"),
        ("--container-overrides vcpus=4,memory=8000", {"cpus": 4, "memory_mib": 8000},
         "containerOverrides.vcpus", "kept"),
        ("--retry-strategy attempts=3", {"retries": 2}, "retryStrategy.attempts", "kept"),
        ("--timeout attemptDurationSeconds=600", {"timeout_s": 600}, "timeout.attemptDurationSeconds", "kept"),
        ("--tags team=a,owner=b", {"labels": {"team": "a", "owner": "b"}}, "tags.team", "kept"),
        ("--parameters x=1,y=s3://a/b --container-overrides command=run,Ref::x,Ref::y",
         {"command": ["run", "1", "s3://a/b"]}, "parameters.x", "kept"),
        ("--parameters x=1", {}, "parameters.x",
         "decision"),
        ("--depends-on jobId=a", {"aws_batch": {"definition": "train", "depends_on": ["a"]}},
         "dependsOn[0].jobId", "kept"),
        ("--depends-on jobId=a jobId=b,type=N_TO_N", {"aws_batch": {"definition": "train", "depends_on": [
            "a", {"type": "N_TO_N", "job": "b"}]}}, "dependsOn[1].type", "kept"),
        ("--depends-on '[{\"jobId\": \"a\"}]'", {"aws_batch": {"definition": "train", "depends_on": ["a"]}},
         "dependsOn[0].jobId", "kept"),
        ("--share-identifier s --scheduling-priority-override 5", {"aws_batch": {"definition": "train",
         "share_identifier": "s", "scheduling_priority": 5}}, "shareIdentifier", "kept"),
        ("--propagate-tags", {}, "propagateTags", "changed"),
        ("--no-propagate-tags", {}, "propagateTags", "changed"),
        ("--node-overrides numNodes=4", {}, "nodeOverrides.numNodes", "refused"),
        ("--eks-properties-override '{\"podProperties\": {}}'", {}, "eksPropertiesOverride.podProperties", "kept"),
        ("--region us-east-1 --query jobId --output text", {}, "--query", "changed"),
        ("--no-cli-pager", {}, "--no-cli-pager", "changed"),
        ("--job-nam x", {}, "--job-nam", "refused"),
        ("--container-overrides command=a extra", {"command": ["a"]}, "words of the command", "refused"),
        ("| jq -r .jobId", {}, "after the command", "changed"),
        ("--container-overrides zz=1", {}, "containerOverrides.zz", "refused"),
    ],
)  # fmt: skip
def test_submit_job(options: str, values: dict[str, Any], field: str, kind: str) -> None:
    found = of_aws(f"{SUBMIT} {options}\n")
    assert found.values | values == found.values, found.values
    kinds = {entry.field: entry.kind for entry in found.report.entries}
    assert kinds[field] == kind, [entry.text for entry in found.report.entries]
    assert lost(found, STATED) == []


@pytest.mark.parametrize(
    "text",
    [
        f"{SUBMIT}\n",
        f"$ {SUBMIT}\n",
        f"JOB_ID=$({SUBMIT} --query jobId --output text)\necho $JOB_ID\n",
        f"export JOB_ID=$({SUBMIT})\n",
        f"id=`{SUBMIT} | grep jobId`\n",
        f"AWS_PROFILE=me {SUBMIT}\n",
        "aws --profile me --region us-east-1 batch submit-job --job-queue gpu --job-name n --job-definition train\n",
        "#!/bin/bash\nset -e\nQ=gpu\nNAME=n\n\naws batch submit-job \\\n  --job-name \"$NAME\" \\\n"
        "  --job-queue ${Q} \\\n  --job-definition train\n",
        "for i in 1; do\n  " + SUBMIT + "\ndone\n",
        "aws batch submit-job --job-name \"n-$(date +%s)\" --job-queue gpu --job-definition train\n",
        "cat > job.json <<EOF\n{\"jobName\": \"n\", \"jobQueue\": \"gpu\", \"jobDefinition\": \"train\"}\nEOF\n"
        "aws batch submit-job --cli-input-json file://job.json\n",
        f"aws batch submit-job --cli-input-json '{REQUEST}'\n",
        "aws batch submit-job --cli-input-json file:///dev/stdin <<EOF\n"
        "{\"jobName\": \"n\", \"jobQueue\": \"gpu\", \"jobDefinition\": \"train\"}\nEOF\n",
    ],
)  # fmt: skip
def test_scripts_of_aws(text: str) -> None:
    assert recognition.recognize("stdin", text.encode()).kind == "aws-batch"
    found = of_aws(text)
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    assert found.values["name"] == "n" and found.queue == "gpu"


REGISTER = "aws batch register-job-definition --job-definition-name d --type container"


@pytest.mark.parametrize(
    "options, values, field, kind",
    [
        ("", {"image": "acme/train:1", "command": ["run"]}, "containerProperties.image", "kept"),
        ("--platform-capabilities EC2 FARGATE", {}, "platformCapabilities", "changed"),
        ("--platform-capabilities FARGATE", {}, "platformCapabilities", "changed"),
        ("--timeout attemptDurationSeconds=60", {"timeout_s": 60}, "timeout.attemptDurationSeconds", "kept"),
        ("--retry-strategy attempts=2", {"retries": 1}, "retryStrategy.attempts", "kept"),
        ("--tags team=a --region us-east-1", {"labels": {"team": "a"}}, "--region", "changed"),
        ("--no-such x", {}, "--no-such", "refused"),
    ],
)
def test_a_definition_that_a_command_registers(options: str, values: dict[str, Any], field: str, kind: str) -> None:
    properties = (
        '{"image": "acme/train:1", "command": ["run"], "resourceRequirements": [{"type": "GPU", "value": "2"}]}'
    )
    text = f"ARN=$({REGISTER} --container-properties '{properties}' {options} --query jobDefinitionArn)\n"
    assert recognition.recognize("stdin", text.encode()).kind == "aws-batch"
    found = of_aws(text)
    assert found.values | {"name": "d", "accelerator": {"count": 2}} | values == found.values, found.values
    assert {entry.field: entry.kind for entry in found.report.entries}[field] == kind
    shorthand_of_it = f"{REGISTER} --container-properties image=acme/train:1,vcpus=2,memory=512,command=run,x\n"
    assert of_aws(shorthand_of_it).values["command"] == ["run", "x"]


def test_a_quote_of_several_lines_in_the_middle_of_a_command() -> None:
    text = (
        f'{REGISTER} \\\n  --container-properties \'{{\n    "image": "acme/train:1",\n'
        '    "command": ["sh", "-c", "\'$RUN\'"]\n  }\' \\\n  --region $REGION \\\n'
        "  --timeout attemptDurationSeconds=60\n"
    )
    found = of_aws(text, RUN="train")
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    assert (found.values["command"], found.values["timeout_s"]) == (["sh", "-c", "train"], 60)
    assert found.region == ""


@pytest.mark.parametrize(
    "before, after", [("exec ", ""), ("if ! ", " || exit 1; then exit 1; fi"), ("time ", " 2>&1 | tee l")]
)
def test_what_stands_around_a_command(before: str, after: str) -> None:
    overrides = '"{\\"command\\": [\\"sh\\", \\"-c\\", \\"echo \\$AWS_BATCH_JOB_ARRAY_INDEX\\"]}"'
    text = f"#!/bin/bash\nset -e\n{before}{SUBMIT} --container-overrides {overrides}{after}\n"
    assert recognition.recognize("stdin", text.encode()).kind == "aws-batch"
    found = of_aws(text)
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    assert found.values["command"] == ["sh", "-c", "echo $AWS_BATCH_JOB_ARRAY_INDEX"]
    text = f"{before}gcloud batch jobs submit j --location us-central1 --config - <<EOF{after}\n{JOB}\nEOF\n"
    assert recognition.recognize("stdin", text.encode()).kind == "google-batch"
    assert not of_google(text, STEP="1").report.stops


def test_an_option_wins_over_the_file() -> None:
    found = of_aws(f"aws batch submit-job --cli-input-json '{REQUEST}' --job-name b\n")
    assert found.values["name"] == "b"
    assert {entry.field: entry.kind for entry in found.report.entries}["jobName of the file"] == "changed"


def test_what_a_shell_would_have_put_into_a_request_is_asked_for() -> None:
    text = (
        "OUT=s3://$(aws cloudformation describe-stacks --output text)\n"
        'cat > job.json <<EOF\n{"jobName": "n", "jobQueue": "gpu", "jobDefinition": "train", "containerOverrides": '
        '{"environment": [{"name": "A", "value": "${OUT}"}], "command": ["run", "$STEP", "\\$HOME"]}}\nEOF\n'
        "aws batch submit-job --cli-input-json file://job.json\n"
    )
    told = {entry.field: entry.text for entry in of_aws(text).report.stops}
    assert "give --var OUT=<value> --var STEP=<value>" in told["--var"]
    found = of_aws(text, OUT="s3://acme", STEP="1")
    assert not found.report.stops and found.values["env"] == {"A": "s3://acme"}
    assert found.values["command"] == ["run", "1", "$HOME"]


def test_variables_of_a_template_of_a_request() -> None:
    request = {**json.loads(REQUEST), "jobDefinition": "${DEFINITION}", "containerOverrides": {"vcpus": "${N}"}}
    text = json.dumps(request).replace('"${N}"', "${N}")
    assert "--var DEFINITION=<value> --var N=<value>" in str([entry.text for entry in of_aws(text).report.stops])
    assert of_aws(text, DEFINITION="train", N="2").values["cpus"] == 2


def test_names_and_variables_of_a_script() -> None:
    text = (
        'QUEUE=$(terraform output -raw queue)\nlocal model="$1"\n'
        'aws batch submit-job --job-name "exp-${model//[^a-z]/-}-${SHA::7}-$(date +%s)" --job-queue $QUEUE '
        '--job-definition train --container-overrides "{\\"command\\": [\\"$model\\"]}"\n'
    )
    told = of_aws(text)
    assert "give --var QUEUE=<value> --var model=<value>" in str([entry.text for entry in told.report.stops])
    found = of_aws(text, QUEUE="gpu", model="bert")
    assert not found.report.stops and (found.values["name"], found.values["command"]) == ("exp", ["bert"])


def test_what_a_script_computes_is_asked_for_by_what_holds_it() -> None:
    text = (
        "NAME=trains\nDEFINITION=$(aws cloudformation describe-stacks \\\n  --stack-name $STACK \\\n  --output text)\n"
        'COUNT="$(count_records "$INPUT")"\naws batch submit-job --job-name n --job-definition $DEFINITION \\\n'
        "  --job-queue `aws batch describe-job-queues --job-queues $NAME` --array-properties size=$COUNT\n"
    )
    told = {entry.field: entry for entry in of_aws(text).report.stops}
    assert "give --var DEFINITION=<value> --var COUNT=<value>" in told["--var"].text
    assert told["jobQueue"].text.count("holds ") == 1 and "write its value instead" in told["jobQueue"].text
    assert told["arrayProperties.size"].kind == "decision" and "must be" not in told["arrayProperties.size"].text
    text = text.replace("`aws batch describe-job-queues --job-queues $NAME`", "gpu")
    found = of_aws(text, DEFINITION="train", COUNT="3")
    assert not found.report.stops and found.values["tasks"] == 3 and found.definition == "train"


@pytest.mark.parametrize("name", ["trains-${RUN}", "trains-$RUN"])
def test_a_variable_in_a_name_is_asked_for(name: str) -> None:
    text = f"aws batch submit-job --job-name {name} --job-queue q --job-definition d\n"
    (stop,) = of_aws(text).report.stops
    assert "give it with --var RUN=<value>" in stop.text and "makes each name another" not in stop.text
    assert of_aws(text, RUN="7").values["name"] == "trains-7"


def test_the_answer_with_one_definition_is_recognized() -> None:
    text = json.dumps({"jobDefinitions": [{**DEFINITION, "revision": 3, "status": "ACTIVE"}]})
    assert recognition.recognize("stdin", text.encode()).kind == "aws-batch"
    assert of_aws(text).values["name"] == DEFINITION["jobDefinitionName"]


def test_variables_of_a_command() -> None:
    text = f'{SUBMIT} --container-overrides "{{\\"environment\\": [{{\\"name\\": \\"A\\", \\"value\\": \\"$X\\"}}]}}"\n'
    assert [entry.field for entry in of_aws(text).report.stops] == ["containerOverrides.environment[0].value"]
    assert of_aws(text, X="5").values["env"] == {"A": "5"}
    with pytest.raises(BadInput, match="--var N=<value>"):
        of_aws(f"{SUBMIT} --array-properties '{{\"size\": '$N'}}'\n")


@pytest.mark.parametrize(
    "text, message",
    [
        ("aws batch create-job-queue --job-queue-name a\n", "is a resource of AWS Batch and no job"),
        ("aws batch create-compute-environment --type MANAGED\n", "`stacks adopt` takes it"),
        ("aws batch describe-jobs --jobs a\n", "is a command of aws that submits no job"),
        (f"{SUBMIT}\n{SUBMIT}\n", "must hold one command"),
        (f"{SUBMIT} --array-properties size\n", "is neither JSON nor shorthand"),
        (f'{SUBMIT} --container-overrides "$(cat crops.json)"\n', r"write the text itself, or file://<file>"),
        (f"{SUBMIT} --array-properties '{{'\n", "is not JSON"),
        (f"{SUBMIT} --container-overrides file://gone.json\n", "cannot be read"),
        ("aws batch submit-job --cli-input-json file://$FILE\n", "holds $FILE, which no shell has replaced"),
        ("gcloud batch jobs submit a --config gone.json\n", "cannot be read"),
        (
            "gcloud batch jobs submit a --config - <<EOF\n$(envsubst '$A' < ./job.json)\nEOF\n",
            "is what `envsubst` makes of a file: import ./job.json itself, with --var NAME=VALUE",
        ),
        ("gcloud batch jobs submit a --script-file-path gone.sh\n", "cannot be read"),
    ],
)
def test_what_is_one_line(home: Path, invoke: Callable[..., Result], text: str, message: str) -> None:
    done = invoke("import", "-", text=text)
    assert (done.exit_code, done.stdout) == (2, "") and message in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("error")]) == 1


IMAGE = "us-docker.pkg.dev/acme/train/flowers:1.4"
JOB = json.dumps(
    {"taskGroups": [{"taskSpec": {"runnables": [{"container": {"imageUri": IMAGE, "commands": ["train", "$STEP"]}}]}}]}
)


@pytest.mark.parametrize(
    "command, values, field, kind",
    [
        ("n --location us-central1 --config - <<'EOF'\nJOB\nEOF", {"name": "n", "image": IMAGE}, "--location",
         "kept"),
        ("n --location=us-central1 --config=- <<EOF\nJOB\nEOF", {"name": "n"}, "--config", "kept"),
        ("projects/p/locations/us-central1/jobs/n --config - <<EOF\nJOB\nEOF", {"name": "n"}, "name", "kept"),
        ("--job-prefix=n --location us-central1 --config - <<EOF\nJOB\nEOF", {"name": "n"}, "name", "kept"),
        ("n-$(date +%s) --location us-central1 --config - <<EOF\nJOB\nEOF", {"name": "n"}, "name",
         "changed"),
        ("n --machine-type=n2-standard-4 --config - <<EOF\nJOB\nEOF",
         {"google_batch": {"machine_type": "n2-standard-4"}},
         "allocationPolicy.instances[0].policy.machineType", "kept"),
        ("n --provisioning-model spot --config - <<EOF\nJOB\nEOF",
         {"spot": True},
         "allocationPolicy.instances[0].policy.provisioningModel", "kept"),
        ("n --priority 5 --config - <<EOF\nJOB\nEOF", {"google_batch": {"priority": 5}}, "priority", "kept"),
        ("n --network a --subnetwork b --no-external-ip-address --config - <<EOF\nJOB\nEOF", {}, "--network",
         "changed"),
        ("n --project p --config - <<EOF\nJOB\nEOF", {}, "--project", "changed"),
        (f"n --container-image-uri {IMAGE} --container-entrypoint train", {"image": IMAGE},
         "taskGroups[0].taskSpec.runnables[0].container.entrypoint", "kept"),
        (f"n --container-image-uri {IMAGE} --container-commands-file c.txt", {}, "--container-commands-file",
         "refused"),
        ("n --locaton x --config - <<EOF\nJOB\nEOF", {}, "--locaton", "refused"),
        ("n m --config - <<EOF\nJOB\nEOF", {}, "words of the command", "refused"),
    ],
)  # fmt: skip
def test_jobs_submit(command: str, values: dict[str, Any], field: str, kind: str) -> None:
    for prefix in ("gcloud", "gcloud beta"):
        text = f"STEP=1\n{prefix} batch jobs submit {command.replace('JOB', JOB)}\n"
        assert recognition.recognize("stdin", text.encode()).kind == "google-batch"
        found = of_google(text)
        assert within(values, found.values), found.values
        kinds = {entry.field: entry.kind for entry in found.report.entries}
        assert kinds[field] == kind, [entry.text for entry in found.report.entries]
        assert set(found.report.fields) <= set(kinds)


def test_variables_of_a_heredoc() -> None:
    text = f"gcloud batch jobs submit n --location us-central1 --config - <<EOF\n{JOB}\nEOF\n"
    assert [entry.rules[0] for entry in of_google(text).report.stops] == ["import.variable"]
    assert of_google(text, STEP="7").values["google_batch"]["args"] == ["train", "7"]
    assert not of_google(text.replace("$STEP", "x")).report.stops


DEFINITION: dict[str, Any] = {
    "jobDefinitionName": "train",
    "type": "container",
    "parameters": {"epochs": "5"},
    "platformCapabilities": ["EC2"],
    "schedulingPriority": 3,
    "containerProperties": {

                "image": "acme/train:1",
        "command": ["python", "train.py", "Ref::epochs"],
        "resourceRequirements": [{"type": "GPU", "value": "1"}, {"type": "VCPU", "value": "8"}],
        "memory": 30000,
        "jobRoleArn": "arn:aws:iam::210987654321:role/job",
        "environment": [{"name": "A", "value": "b"}],
        "secrets": [{"name": "T", "valueFrom": "arn:aws:secretsmanager:us-east-1:210987654321:secret:t"}],
        "volumes": [
            {"name": "e", "efsVolumeConfiguration": {"fileSystemId": "fs-1", "rootDirectory": "/x",
             "transitEncryption": "ENABLED"}},
            {"name": "h", "host": {"sourcePath": "/scratch"}},
        ],
        "mountPoints": [
            {"sourceVolume": "e", "containerPath": "/data", "readOnly": True},
            {"sourceVolume": "h", "containerPath": "/tmp/s"},
        ],
        "linuxParameters": {"sharedMemorySize": 1024, "devices": [{"hostPath": "/dev/fuse"}]},
        "ulimits": [{"name": "nofile", "hardLimit": 10, "softLimit": 10}],
        "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "x"}},
        "privileged": False,
        "user": "root",
    },
    "retryStrategy": {"attempts": 2},
    "timeout": {"attemptDurationSeconds": 600},
    "tags": {"team": "a"},
}  # fmt: skip


def test_a_definition_is_a_job() -> None:
    found = of_aws(json.dumps(DEFINITION))
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    assert found.values == {
        "name": "train",
        "image": "acme/train:1",
        "command": ["python", "train.py", "5"],
        "env": {"A": "b"},
        "accelerator": {"count": 1},
        "cpus": 8,
        "memory_mib": 30000,
        "secrets": {"T": "arn:aws:secretsmanager:us-east-1:210987654321:secret:t"},
        "mounts": [
            {"source": "efs://fs-1/x", "path": "/data", "read_only": True},
            {"source": "host:///scratch", "path": "/tmp/s"},
        ],
        "shm_mib": 1024,
        "retries": 1,
        "timeout_s": 600,
        "labels": {"team": "a"},
        "aws_batch": {"scheduling_priority": 3},
    }
    kinds = {entry.field: entry.kind for entry in found.report.entries}
    assert kinds["containerProperties.user"] == "decision" and kinds["containerProperties.jobRoleArn"] == "changed"
    assert any("stacks adopt" in entry.text for entry in found.report.entries)
    assert of_aws(json.dumps(DEFINITION), epochs="9").values["command"][-1] == "9"


def multi_node(**nodes: Any) -> dict[str, Any]:
    ranges = [
        {"targetNodes": "0:", "container": {"image": "acme/train:1", "command": ["x"], "vcpus": 4, "memory": 100}}
    ]
    return {
        "jobDefinitionName": "m",
        "type": "multinode",
        "nodeProperties": {"numNodes": 4, "mainNode": 0, "nodeRangeProperties": ranges, **nodes},
    }


def test_a_definition_of_several_nodes() -> None:
    found = of_aws(json.dumps(multi_node()))
    assert not found.report.stops and found.values["nodes"] == 4 and found.values["cpus"] == 4
    assert of_aws(json.dumps(multi_node(mainNode=1))).report.stops
    two = [{"targetNodes": "0:0", "container": {"image": "a:1"}}, {"targetNodes": "1:3", "container": {"image": "b:1"}}]
    assert of_aws(json.dumps(multi_node(nodeRangeProperties=two))).report.stops


def test_nothing_of_a_definition_is_lost() -> None:
    for document in (DEFINITION, multi_node()):
        assert lost(of_aws(json.dumps(document)), STATED) == []
        free = ("parameters", "tags")
        assert unread(lambda each: of_aws(json.dumps(each)), document, free) == []
    with pytest.raises(BadInput, match="holds 2 job definitions: `stacks adopt` takes them"):
        of_aws(json.dumps({"jobDefinitions": [DEFINITION, DEFINITION]}))
    assert of_aws(json.dumps({"jobDefinitions": [DEFINITION]})).values["name"] == "train"


def test_the_command_line_prints_a_job(home: Path, invoke: Callable[..., Result]) -> None:
    done = invoke("import", "-", text=f"{SUBMIT} --container-overrides command=a\n")
    assert done.exit_code == 0 and "queue gpu: submit it with --to" in done.stderr, done.stderr
    done = invoke("import", "-", text=json.dumps(DEFINITION))
    assert done.exit_code == 0 and "submit it with --to a target of kind aws-batch" in done.stderr, done.stderr
