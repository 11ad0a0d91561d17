"""A search over hyperparameters of AI Platform Training as a HyperparameterTuningJob of Vertex AI."""

from accel.rules.vertex import ai_platform_programs as rules

from .fields import RequestFields
from .reading import Json

BASE = "trainingInput.hyperparameters"
METRIC = "training/hptuning/metric"
"""The tag that was read where none was named. Source: discovery document ml.v1, hyperparameterMetricTag."""

GOALS = ("MAXIMIZE", "MINIMIZE")
ALGORITHMS = ("GRID_SEARCH", "RANDOM_SEARCH")
SCALES = ("UNIT_LINEAR_SCALE", "UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE")
TYPES = ("DOUBLE", "INTEGER", "CATEGORICAL", "DISCRETE")


def is_search(given: RequestFields) -> bool:
    """Whether the job is a search."""
    return given.has(BASE)


def left_to_decide(given: RequestFields) -> None:
    """For a job file, which cannot say it: what was asked for is to be decided."""
    count = len(given.items(f"{BASE}.params"))
    for path in [path for path in given.values if path.startswith(f"{BASE}.")]:
        given.report.findings(given.name(path), rules.tuning(count or 1))


def tuning(given: RequestFields, *, container: bool) -> Json:
    """The fields of a HyperparameterTuningJob beside its trialJobSpec."""
    report = given.report
    metric: Json = {
        "metricId": given.text(f"{BASE}.hyperparameterMetricTag") or METRIC,
        "goal": _one_of(given, f"{BASE}.goal", GOALS) or "MAXIMIZE",
    }
    given.keep(f"{BASE}.hyperparameterMetricTag", "studySpec.metrics[0].metricId")
    given.keep(f"{BASE}.goal", "studySpec.metrics[0].goal")
    report.findings(given.name(f"{BASE}.hyperparameterMetricTag"), rules.metric(container))
    study: Json = {
        "metrics": [metric],
        "parameters": [_parameter(given, path) for path in given.items(f"{BASE}.params")],
    }
    if algorithm := _one_of(given, f"{BASE}.algorithm", ALGORITHMS, ("ALGORITHM_UNSPECIFIED",)):
        study["algorithm"] = algorithm
    given.keep(f"{BASE}.algorithm", "studySpec.algorithm")
    stopping = f"{BASE}.enableTrialEarlyStopping"
    if given.flag(stopping):
        study["medianAutomatedStoppingSpec"] = {}
    given.keep(stopping, "studySpec")
    report.findings(given.name(stopping), rules.early_stopping(given.flag(stopping) or False))
    resume = f"{BASE}.resumePreviousJobId"
    if previous := given.text(resume):
        for finding in rules.resume(previous):
            report.decide(given.name(resume), finding.text, finding.rule, is_open=False)
    if not study["parameters"]:
        report.refuse(given.name(f"{BASE}.params"), "is missing: a search has parameters")
    found: Json = {"studySpec": study}
    for name, to, default in (
        ("maxTrials", "maxTrialCount", 1),
        ("maxParallelTrials", "parallelTrialCount", 1),
        ("maxFailedTrials", "maxFailedTrialCount", None),
    ):
        value = given.whole(f"{BASE}.{name}")
        given.keep(f"{BASE}.{name}", to)
        if value is not None or default is not None:
            found[to] = value or default or 0
    if found["parallelTrialCount"] > found["maxTrialCount"]:
        report.refuse(given.name(f"{BASE}.maxParallelTrials"), "is above maxTrials")
    return found


def _one_of(given: RequestFields, path: str, known: tuple[str, ...], unset: tuple[str, ...] = ()) -> str | None:
    """One of the names of a choice; None for those that leave it unset."""
    value = given.text(path)
    if value is None or value in unset:
        return None
    if value not in known:
        given.report.refuse(given.name(path), f"must be one of {', '.join(known)}")
        return None
    return value


def _parameter(given: RequestFields, path: str) -> Json:
    """A ParameterSpec of a StudySpec. Source: discovery documents ml.v1 and aiplatform.v1."""
    name, kind = given.text(f"{path}.parameterName"), _one_of(given, f"{path}.type", TYPES)
    spec: Json = {"parameterId": name}
    for lacking, there in (("parameterName", name), ("type", kind)):
        if there is None and f"{path}.{lacking}" not in given.values:
            given.report.refuse(given.name(f"{path}.{lacking}"), "is missing")
    given.keep(f"{path}.parameterName", "parameterId")
    given.keep(f"{path}.type", "studySpec.parameters")
    if scale := _one_of(given, f"{path}.scaleType", SCALES, ("NONE", "SCALE_TYPE_UNSPECIFIED")):
        spec["scaleType"] = scale
    given.keep(f"{path}.scaleType", "scaleType")
    low, high = f"{path}.minValue", f"{path}.maxValue"
    if kind in ("DOUBLE", "INTEGER"):
        spec |= _range(given, low, high, kind)
    elif kind == "CATEGORICAL":
        spec["categoricalValueSpec"] = {"values": _values(given, f"{path}.categoricalValues")}
    elif kind == "DISCRETE":
        spec["discreteValueSpec"] = {"values": _numbers(given, f"{path}.discreteValues")}
    for each in ("minValue", "maxValue", "categoricalValues", "discreteValues"):
        if f"{path}.{each}" in given.values and kind is not None:
            given.left_out(f"{path}.{each}", f"does not go with type {kind}") if not _read(each, kind) else None
    return spec


def _read(name: str, kind: str) -> bool:
    fits = {"CATEGORICAL": ("categoricalValues",), "DISCRETE": ("discreteValues",)}
    return name in fits.get(kind, ("minValue", "maxValue"))


def _range(given: RequestFields, low: str, high: str, kind: str) -> Json:
    ends = [given.number(low), given.number(high)]
    given.keep(low)
    given.keep(high)
    for path, value in zip((low, high), ends, strict=True):
        if value is None and path not in given.values:
            given.report.refuse(given.name(path), f"is missing, and the type is {kind}")
        elif value is not None and kind == "INTEGER" and value != int(value):
            given.report.refuse(given.name(path), "must be an integer, since the type is INTEGER")
    if None in ends:
        return {}
    first, last = float(ends[0] or 0), float(ends[1] or 0)
    if first > last:
        given.report.refuse(given.name(low), "is above maxValue")
    if kind == "INTEGER":
        return {"integerValueSpec": {"minValue": str(int(first)), "maxValue": str(int(last))}}
    return {"doubleValueSpec": {"minValue": first, "maxValue": last}}


def _values(given: RequestFields, path: str) -> list[str]:
    found = given.texts(path)
    given.keep(path, "categoricalValueSpec.values")
    if not found and path not in given.values:
        given.report.refuse(given.name(path), "is missing, and the type is CATEGORICAL")
    return found


def _numbers(given: RequestFields, path: str) -> list[float]:
    found: list[float] = []
    given.keep(path, "discreteValueSpec.values")
    for text in given.texts(path):
        try:
            found.append(float(text))
        except ValueError:
            given.report.refuse(given.name(path), "must be numbers")
            return []
    if not found or sorted(set(found)) != found:
        given.report.refuse(given.name(path), "must be numbers, each above the one before")
    return found
