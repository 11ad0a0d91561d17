"""Pasted scripts: what a shell would make of variables, lists and quotes around the one command that is read."""

import contextlib
import subprocess
from typing import Any

import pytest

from accel.diagnostics.errors import BadInput
from jobs.importers import recognition, xpk
from jobs.importers.options import ImportOptions
from jobs.importers.outcome import ImportResult
from jobs.importers.script_text import readable
from jobs.importers.shell import PastedCommand, pasted_command
from tests.support.speed import CpuTime

CALL = "xpk workload create"


def read(text: str, **given: str) -> PastedCommand:
    return pasted_command("stdin", readable(text), given, "workload create", "xpk")


def words(text: str, **given: str) -> list[str]:
    return read(text, **given).argv[3:]


LISTS: list[tuple[str, list[str]]] = [
        (f'A=(--a=1 --b "x y")\n{CALL} "${{A[@]}}" --c', ["--a=1", "--b", "x y", "--c"]),
        (f'A=( --a=1 --b=2 ) ; {CALL} "${{A[@]}}" --c', ["--a=1", "--b=2", "--c"]),
        (f'A=(--a) && B=2; {CALL} "${{A[@]}}" $B', ["--a", "2"]),
        (f'A=(\n  --a=1\n  # a comment (of one line\n  --b="x # y"  # and another\n)\n{CALL} "${{A[@]}}"',
         ["--a=1", "--b=x # y"]),
        (f'A=(--a \\\n  --b)\n{CALL} "${{A[@]}}"', ["--a", "--b"]),
        (f'A=(--a "x\ny")\n{CALL} "${{A[@]}}"', ["--a", "x\ny"]),
        (f'declare -a A=(--a)\nlocal -a B=(--b)\n{CALL} "${{A[@]}}" "${{B[@]}}"', ["--a", "--b"]),
        (f'A=()\nA+=(--a)\nA+=("--b")\n{CALL} "${{A[@]}}"', ["--a", "--b"]),
        (f'A+=(--a)\n{CALL} "${{A[@]}}"', ["--a"]),
        (f'A=(--a)\nA=("${{A[@]}}" --b)\n{CALL} "${{A[@]}}"', ["--a", "--b"]),
        (f'N=v6e-8\nA=(--a=$N "--b=${{N}}")\n{CALL} "${{A[@]}}"', ["--a=v6e-8", "--b=v6e-8"]),
        (f'A=()\n{CALL} "${{A[@]}}" --c', ["--c"]),
        (f'A=(a "b c")\n{CALL} ${{A[@]}} "${{A[*]}}" "x${{A[@]}}y"', ["a", "b", "c", "a b c", "xa", "b cy"]),
        (f"A=('it''s' \"\\\"q\\\"\")\n{CALL} \"${{A[@]}}\"", ["its", '"q"']),
        (f"A=(a)\n{CALL} '${{A[@]}}'", ["${A[@]}"]),
        (f'C=({CALL} --a)\n"${{C[@]}}" --b', ["--a", "--b"]),
        (f'A=(x)\n{CALL} "$A"', ["x"]),
]  # fmt: skip
VALUES: list[tuple[str, list[str]]] = [
        (f"A='say \"hi\" $X'\n{CALL} --command \"$A\"", ["--command", 'say "hi" $X']),
        (f'A="a=\\"b c\\""\n{CALL} --command "run; $A"', ["--command", 'run; a="b c"']),
        (f"A='a\\\\b\\n'\n{CALL} \"$A\"", ["a\\\\b\\n"]),
        (f"A='a  b'\nB=$A\n{CALL} \"$B\" $B", ["a  b", "a", "b"]),
        (f"A='a;b \"c'\n{CALL} $A", ["a;b", '"c']),
        (f"A=-x\nA+=' -y'\n{CALL} \"$A\"", ["-x -y"]),
        (f"export A=1 B='2 3'\n{CALL} $A \"$B\"", ["1", "2 3"]),
        (f"T=v6e-8\n{CALL} ${{Q:-$T}} ${{R:-a${{S:-b}}c}}", ["v6e-8", "abc"]),
        (f"Q=1\n{CALL} ${{Q:-$T}}", ["1"]),
        (f"Q='a b'\nC=\"{CALL} --a='$Q c' \\\n  --b=\\\"$Q\\\"\"\neval $C", ["--a=a b c", "--b=a b"]),
        (f"C='{CALL} --a $Q'\nQ=1\neval \"${{C}}\" --b", ["--a", "1", "--b"]),
        (f"Q=1\nC=\"{CALL} --a=$Q --b\"\necho \"$C\" > /dev/null\n$C", ["--a=1", "--b"]),
        (f"{CALL} --a 2 --b=a2 2> /dev/null", ["--a", "2", "--b=a2"]),
        (f"{CALL} --a 2>>/dev/null 1>/dev/stdout", ["--a"]),
        (f"{CALL} --cluster=<your cluster> --a", ["--cluster=<your cluster>", "--a"]),
        (f"{CALL} --cluster <any one, e.g.-this>", ["--cluster", "<any one, e.g.-this>"]),
        (f"{CALL} --cluster <cluster_name> --tpu-type=<type> --a", ["--cluster", "<cluster_name>",
                                                                   "--tpu-type=<type>", "--a"]),
]  # fmt: skip


@pytest.mark.parametrize("script, expected", LISTS)
def test_lists(script: str, expected: list[str]) -> None:
    found = read(script)
    assert found.argv[3:] == expected and found.lost == []


@pytest.mark.parametrize("script, expected", VALUES)
def test_values(script: str, expected: list[str]) -> None:
    found = read(script)
    assert found.argv[3:] == expected and found.lost == []


@pytest.mark.parametrize("script, expected", [each for each in (*LISTS, *VALUES) if "<" not in each[0]])
def test_a_shell_makes_the_same_words(script: str, expected: list[str]) -> None:
    text = f"xpk() {{ shift 2; printf '%s\\0' \"$@\"; }}\nrun() {{\n{script}\n}}\nrun"
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.split("\0")[:-1] == expected, done.stderr


@pytest.mark.parametrize(
    "change",
    [
        'if [ -n "$R" ]; then\n  A+=(--spot)\nfi',
        'if [ -n "$R" ]; then A+=(--spot); fi',
        '[[ -n "$R" ]] && A+=(--spot)',
        "for x in 1 2; do\n  A+=(--env X=$x)\ndone",
        "case $R in\n  a) A+=(--spot);;\nesac",
        "A[3]=--spot",
        "mapfile -t A < flags.txt",
        "A=(--a | b)",
    ],
)
def test_a_list_that_is_changed_in_a_way_that_is_not_read_is_refused(change: str) -> None:
    found = read(f'A=(--a)\n{change}\n{CALL} "${{A[@]}}"\n')
    (fault,) = found.lost
    assert "A" in fault and "write the words themselves into the command" in fault, fault


def test_a_change_that_does_not_concern_the_command_is_no_fault() -> None:
    text = f'A=(--a)\nB=(b)\nif x; then B+=(c); fi\n{CALL} "${{A[@]}}"\nif x; then A+=(--b); fi\n'
    assert read(text).lost == []


def test_a_variable_that_is_written_in_two_ways_is_one() -> None:
    found = read(f"A=gs://${{B}}/a\n{CALL} --a=$A --b=$B --c=x${{B}}y --d=$D\n")
    assert found.argv[3:] == ["--a=gs://${B}/a", "--b=${B}", "--c=x${B}y", "--d=$D"]
    assert found.unknown == {"B": "${B}", "D": "$D"}
    text = f"{CALL} --workload=w --cluster=c --zone=$B --tpu-type=v6e-8 --docker-image=us-docker.pkg.dev/a/b/c:${{B}}\n"
    assert [entry.field for entry in of(f"{text.strip()} --command=a\n").report.stops] == ["--docker-image"]
    found = read(f"cat > $D/a <<EOF\n1\nEOF\n{CALL} --a=${{D}}/a\n")
    assert found.argv[3:] == [f"--a={name}" for name in found.files]


def test_arguments_of_a_script() -> None:
    text = f'N="${{1:-v6e-8}}"\n{CALL} --a=$N --b=$2 --c="${{3:?usage}}"\n'
    found = read(text)
    assert found.argv[3:] == ["--a=v6e-8", "--b=$2", "--c=${3}"]
    assert found.notes == ["$1 is not set here, and its default is used; --var 1=<value> sets it"]
    assert read(text, **{"1": "v5p-8", "2": "x", "3": "y z"}).argv[3:] == ["--a=v5p-8", "--b=x", "--c=y z"]


CHOICES = {
    "if": 'Q=1\nif [ -n "$R" ]; then\n  Q=2\nfi',
    "branches": "case $R in\n  a)\n    Q=1\n    ;;\n  *)\n    Q=2\n    ;;\nesac",
    "a loop": 'Q=""\nfor x in a b; do\n  Q="$Q --x=$x"\ndone',
    "an addition": 'Q=1\nif [ -n "$R" ]; then\n  Q=2\nfi\nQ+=3',
}


@pytest.mark.parametrize("choice", CHOICES)
def test_a_variable_of_which_a_condition_chooses_the_value_is_not_known(choice: str) -> None:
    found = read(f"{CHOICES[choice]}\n{CALL} --a=$Q\n")
    assert found.unknown == {"Q": "$Q"} and "sets Q under a condition, and its value is not known" in str(found.notes)
    assert words(f"{CHOICES[choice]}\n{CALL} --a=$Q\n", Q="5") == ["--a=5"]
    assert words(f"{CHOICES[choice]}\nQ=7\n{CALL} --a=$Q\n") == ["--a=7"]


def test_a_variable_that_has_one_value_in_all_branches_is_known() -> None:
    assert words(f'if [ -n "$R" ]; then\n  Q=1\nelse\n  Q=1\nfi\n{CALL} --a=$Q\n') == ["--a=1"]
    assert words(f'if [ -z "$Q" ]; then\n  Q=1\nfi\n{CALL} --a=$Q\n') == ["--a=1"]


def test_a_list_that_is_not_known_stays_as_it_is_written() -> None:
    assert words(f'{CALL} "${{A[@]}}"') == ["${A[@]}"]
    found = read(f'A=(--a=$X --b=$(date))\n{CALL} "${{A[@]}}"')
    assert found.unknown == {"X": "$X", "$(date)": "$(date)"}
    assert words(f'A=(--a=$X)\n{CALL} "${{A[@]}}"', X="1 2") == ["--a=1", "2"]
    assert words(f'A=(--a="$X")\n{CALL} "${{A[@]}}"', X="1 2") == ["--a=1 2"]


def test_what_is_set_for_the_command_alone_is_named() -> None:
    found = read(f"SUB_SLICING=true Limits='a b' {CALL} --a\n")
    assert found.argv == ["xpk", "workload", "create", "--a"]
    assert found.notes == ["line 1: sets SUB_SLICING, Limits for xpk alone, which no job has"]


def test_a_list_of_flags_is_a_job() -> None:
    text = (
        "#!/bin/bash\nset -e\nDEVICE=${DEVICE:-v6e-16}\n"
        'CMD="export XLA=\\"--x=1 --y=2\\" && python3 train.py"\n'
        "ARGS=(\n  --cluster=c1\n  --workload digits # its name\n  --tpu-type=$DEVICE\n)\n"
        'ARGS+=(--docker-image "us-docker.pkg.dev/acme/train/max:1" --zone us-east5-b)\n'
        'xpk workload create "${ARGS[@]}" --command "$CMD"\n'
    )
    assert recognition.recognize("stdin", text.encode()).kind == "xpk"
    found = of(text)
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    assert found.values["command"] == ["bash", "-c", 'export XLA="--x=1 --y=2" && python3 train.py']
    assert found.values["accelerator"] == {"type": "v6e-16"} and found.region == "us-east5"
    assert of(text, variables={"DEVICE": "v6e-8"}).values["accelerator"] == {"type": "v6e-8"}


def test_a_whole_command_in_a_list_is_recognized() -> None:
    text = 'CMD=(xpk workload create --cluster=c --workload=w --tpu-type=v6e-8 --command=a)\n"${CMD[@]}"\n'
    assert recognition.recognize("stdin", text.encode()).kind == "xpk"
    assert of(text).values["name"] == "w"


@pytest.mark.parametrize("call", ["eval $C", 'eval "${C}"', "$C"])
@pytest.mark.parametrize("program", ["xpk", "python3 ~/xpk/xpk.py"])
def test_a_whole_command_in_a_variable_is_recognized(program: str, call: str) -> None:
    text = f'C="{program} workload create --cluster=c --workload=w --tpu-type=v6e-8 --command=a"\necho "$C"\n{call}\n'
    assert recognition.recognize("run.sh", text.encode()).kind == "xpk"
    assert of(text).values["name"] == "w"


def test_commands_of_other_tools_in_variables() -> None:
    text = 'CMD="gcloud batch jobs submit a --location us-central1"\neval $CMD\n'
    assert recognition.recognize("run.sh", text.encode()).kind == "google-batch"
    text = 'C="aws batch submit-job --job-name n --job-queue q --job-definition d"\neval $C\n'
    assert recognition.recognize("run.sh", text.encode()).kind == "aws-batch"
    text = 'HELP="gcloud batch jobs submit a"\naws batch submit-job --job-name n --job-queue q --job-definition d\n'
    assert recognition.recognize("run.sh", text.encode()).kind == "aws-batch"


def test_a_place_of_a_page_is_refused_as_one() -> None:
    found = of("xpk workload create --cluster <c> --workload <my-name> --tpu-type=<tpu_type> --command a\n")
    said = {entry.field: entry for entry in found.report.entries}
    assert said["--cluster"].kind == "changed" and said["--command"].kind == "kept"
    for flag in ("--workload", "--tpu-type"):
        assert said[flag].kind == "refused" and "placeholder" in said[flag].text, said[flag].text


def of(text: str, **chosen: Any) -> ImportResult:
    return xpk.import_job("stdin", text.encode(), ImportOptions(**chosen))


@pytest.mark.parametrize(
    "text",
    [
        "A=(\n" * 20_000,
        "A=(x\n" + "y\n" * 50_000,
        "A=${a:-" * 20_000 + "}",
        "A=" + "${a:-" * 5_000 + "}" * 5_000,
        f"A=({'x ' * 20_000})\n{CALL} {'${A[@]} ' * 3}",
        "A=1; " * 20_000 + CALL,
        "A=(x); " * 2_000 + CALL,
        f"{CALL} " + "<a" * 50_000,
        f"{CALL} --a=" + "x" * 900_000,
        f"{CALL} --a=" + "`" * 99_999,
    ],
)
def test_long_texts_are_answered_at_once(text: str) -> None:
    with CpuTime() as cpu, contextlib.suppress(BadInput):
        read(text)
    assert cpu.seconds < 2


def test_lists_that_grow_without_end_are_refused() -> None:
    doubled = 'A=("${A[@]}" "${A[@]}")\n' * 40
    with pytest.raises(BadInput, match=r"stdin:\d+: its variables become more than"):
        read(f'A=(x)\n{doubled}{CALL} "${{A[@]}}"\n')
