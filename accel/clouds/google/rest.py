"""Google's REST APIs for single calls of the command line: one JSON object by GET, with errors translated into ours.

NoCredentials   nobody signed in, or the token is not accepted
CloudRefused    understood, and refused: a permission, or an API that is not enabled
Conflict        a CloudRefused: somebody else was first
Unmet           a CloudRefused: a precondition of the call is not met
NotFound        no such project or region
CloudSilent     failing in all attempts, or out of reach
Throttled       a CloudSilent: 429, certain not to be carried out
GarbledAnswer   a CloudSilent: a response that is not Google's

Calls that change something are in api.py.
"""

import os
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any
from urllib.parse import quote

from accel.json_values import entries, mapping, object_at

from ...diagnostics.errors import BadInput, CloudRefused, CloudSilent, JobsError, NoCredentials, NotFound, Throttled

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
"""Scope that Cloud Quotas requires; its methods have no read-only scope. Source:
https://cloud.google.com/docs/quotas/reference/rest/v1/projects.locations.services.quotaInfos/list"""

EMAIL = "https://www.googleapis.com/auth/userinfo.email"
"""Scope without which clusters identify a service account by its number, so that bindings of its e-mail do not apply,
and without which userinfo does not answer. Sources:
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/role-based-access-control#forbidden_error_for_service_accounts_on_vm_instances,
data_source_google_client_openid_userinfo.go of https://github.com/hashicorp/terraform-provider-google"""

ROOTS = {
    "aiplatform": "https://aiplatform.googleapis.com/",
    "batch": "https://batch.googleapis.com/",
    "cloudbilling": "https://cloudbilling.googleapis.com/v1/",
    "compute": "https://compute.googleapis.com/compute/v1/",
    "container": "https://container.googleapis.com/",
    "cloudquotas": "https://cloudquotas.googleapis.com/",
    "monitoring": "https://monitoring.googleapis.com/",
    "tpu": "https://tpu.googleapis.com/",
    "storage": "https://storage.googleapis.com/storage/v1/",
    "firestore": "https://firestore.googleapis.com/",
    "logging": "https://logging.googleapis.com/",
    "openidconnect": "https://openidconnect.googleapis.com/",
    "oslogin": "https://oslogin.googleapis.com/",
    "cloudresourcemanager": "https://cloudresourcemanager.googleapis.com/",
    "pubsub": "https://pubsub.googleapis.com/",
    "secretmanager": "https://secretmanager.googleapis.com/",
    "artifactregistry": "https://artifactregistry.googleapis.com/",
    "cloudscheduler": "https://cloudscheduler.googleapis.com/",
    "cloudfunctions": "https://cloudfunctions.googleapis.com/",
    "file": "https://file.googleapis.com/",
    "iam": "https://iam.googleapis.com/",
}
"""Root URL of each API. CLOUDSDK_API_ENDPOINT_OVERRIDES_<NAME> overrides it, as for gcloud. Source:
https://cloud.google.com/sdk/gcloud/reference/topic/endpoint-override"""

GIVEN = "GOOGLE_OAUTH_ACCESS_TOKEN"
"""Environment variable for an existing token, the one that Pulumi's provider reads."""

KEY_FILE = "GOOGLE_APPLICATION_CREDENTIALS"
"""Environment variable for a file of credentials. Source:
https://cloud.google.com/docs/authentication/application-default-credentials"""

ATTEMPTS = 5
BACKOFF_S = 0.5
LONGEST_WAIT_S = 15
RATE_LIMITED = frozenset({"rateLimitExceeded", "userRateLimitExceeded"})
PASSING = frozenset({429, 500, 502, 503, 504})
UNDECIDED = frozenset({408, 425, 499})
"""Statuses that a proxy may return although it has passed the request on."""
CONNECT_S, READ_S = 3, 30

SIGN_IN = f"`gcloud auth application-default login`, {KEY_FILE}, or a token in {GIVEN}"
REACH = "the network, the proxy's variables and CLOUDSDK_API_ENDPOINT_OVERRIDES_* decide whether Google can be reached"
SLOWER = "the calls, or what they request, exceed a quota at the moment; try again in a minute"
NOT_ENABLED = "the API is not enabled"


class Conflict(CloudRefused):
    """The name is already taken (409), or the object is not in the state that the caller expected (409, 412)."""


class Unmet(CloudRefused):
    """A precondition of the call is not met (400 FAILED_PRECONDITION)."""


class GarbledAnswer(CloudSilent):
    """A response that is not Google's, such as a proxy's page, or a truncated one."""


def session(key: str = "") -> Any:
    """Create an HTTP session with the user's credentials, or with an API key where one is accepted. It retries
    transient errors with random pauses, and lives as long as a token, less than an hour. Raise NoCredentials and
    CloudSilent."""
    requests = import_module("requests")
    retry = import_module("urllib3.util").Retry(
        total=ATTEMPTS - 1,
        status_forcelist=PASSING,
        backoff_factor=BACKOFF_S,
        backoff_jitter=BACKOFF_S,
        backoff_max=LONGEST_WAIT_S,
        # A server may ask for hours; the command ends before that.
        respect_retry_after_header=False,
        raise_on_status=False,
    )
    made = requests.Session()
    for scheme in ("https://", "http://"):
        made.mount(scheme, requests.adapters.HTTPAdapter(max_retries=retry))
    made.headers.update({"X-Goog-Api-Key": key} if key else auth_headers())
    made.auth = no_session_auth
    return made


def no_session_auth(request: Any) -> Any:
    """Serve as a session's `auth`: without one a .netrc would replace the token."""
    return request


def auth_headers() -> dict[str, str]:
    """Return headers with the given token, or a new one of the application default credentials, and the billing project
    if they name one. Raise NoCredentials and CloudSilent."""
    if token := os.environ.get(GIVEN):
        return {"Authorization": f"Bearer {token}"}
    headers: dict[str, str] = {}
    credentials(SCOPE, EMAIL).apply(headers)
    return headers


def credentials(*scopes: str) -> Any:
    """Return the application default credentials, with a new token. Raise NoCredentials and CloudSilent. Source:
    https://googleapis.dev/python/google-auth/latest/reference/google.auth.html"""
    try:
        auth = import_module("google.auth")
        failures = import_module("google.auth.exceptions")
        transport = import_module("google.auth.transport.requests")
    except ImportError as missing:
        raise NoCredentials(f"Google: {missing}, and {GIVEN} is not set", SIGN_IN) from None
    try:
        found, _ = auth.default(scopes=[*scopes])
        found.refresh(transport.Request())
        return found
    except failures.TransportError as error:
        raise CloudSilent(f"Google: sign-in: {line(error)}", REACH) from error
    except failures.GoogleAuthError as error:
        raise NoCredentials(f"Google: {line(_auth_error(error))}", SIGN_IN) from error
    except (AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError) as error:
        # google-auth expects what gcloud writes; the file that the variable names may hold anything.
        file = os.environ.get(KEY_FILE) or "the application default credentials"
        raise NoCredentials(f"Google: {file}: not readable as credentials: {line(error)}", SIGN_IN) from error


def _auth_error(error: Exception) -> str:
    """Return the text of an error of google-auth, and that of its cause: its str() is the repr() of a tuple."""
    text, *rest = error.args or ("no credentials",)
    return ": ".join([str(text).rstrip("."), *(str(each) for each in rest if isinstance(each, Exception))])


def get(http: Any, api: str, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Get a path of an API of ROOTS. The caller quotes the parts of the path (`path_segment`)."""
    import json

    failures = import_module("requests.exceptions")
    doing = f"{api} {path}"
    try:
        answer = http.get(f"{root_of(api)}/{path}", params=query, timeout=(CONNECT_S, READ_S), allow_redirects=False)
    except failures.RequestException as error:
        raise CloudSilent(f"{doing}: {line(error)}", REACH) from error
    try:
        body = mapping(json.loads(answer.content))
    except ValueError:
        body = None
    if answer.status_code != 200:
        raise refusal(doing, answer.status_code, body)
    if body is None:
        raise GarbledAnswer(f"{doing}: the answer is not a JSON object", REACH)
    return body


def root_of(api: str) -> str:
    """Return the URL without a trailing slash. A regional API is <region>-<name>
    (https://github.com/googleapis/python-aiplatform/issues/1684). Raise BadInput for an invalid region, which would
    send the user's credentials to another host."""
    region, _, name = api.rpartition("-")
    if not re.fullmatch(r"[a-z0-9-]*", region):
        raise BadInput(f"region: {region[:60]!r} is no region of Google Cloud")
    given = os.environ.get(f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{name.upper()}")
    return (given or ROOTS[name].replace(name, api, 1)).rstrip("/")


def path_segment(text: str) -> str:
    return quote(text, safe="")


ACT_AS = "whoever submits needs roles/iam.serviceAccountUser on the account that the job runs as"
_ACT_AS = r"access to (act as|service account)|permission to act as|serviceAccounts\.actAs"
"""Wordings cited by the causes of `explain`. Source of the role:
https://docs.cloud.google.com/iam/docs/service-accounts-actas"""


def refusal(doing: str, status: int, body: Any) -> JobsError:
    """Translate an error response. Source: https://google.aip.dev/193"""
    error = object_at(body, "error")
    message = f"{doing}: {_told(error) or f'HTTP {status}'}"
    # Google answers 400 for a key that does not exist.
    if status == 401 or "API_KEY_INVALID" in str(error.get("details")):
        return NoCredentials(message, SIGN_IN)
    if status == 404:
        return NotFound(message)
    if status in (409, 412):
        return Conflict(message)
    if status == 429 or (status == 403 and _limited(error)):
        return Throttled(message, SLOWER)
    if status in PASSING | UNDECIDED or status >= 500:
        return CloudSilent(message, REACH)
    if status == 400 and error.get("status") == "FAILED_PRECONDITION":
        return Unmet(message)
    if 400 <= status < 500 and error:
        return CloudRefused(message, ACT_AS if re.search(_ACT_AS, message) else None)
    return GarbledAnswer(f"{doing}: HTTP {status} without an error of Google's", REACH)


def _limited(error: Mapping[str, Any]) -> bool:
    """Return whether a 403 reports too many calls. Sources: https://docs.cloud.google.com/compute/api-quota, and for
    the second reason https://github.com/googleapis/google-cloud-go/issues/269"""
    return any(object_at(each).get("reason") in RATE_LIMITED for each in entries(error.get("errors")))


def _told(error: Mapping[str, Any]) -> str:
    """Return the API to enable or the missing permission, if the error names it; otherwise its own message."""
    infos = [object_at(each) for each in entries(error.get("details"))]
    found = {str(each.get("reason")): mapping(each.get("metadata")) for each in infos}
    disabled, denied = found.get("SERVICE_DISABLED"), found.get("IAM_PERMISSION_DENIED")
    if disabled and disabled.get("service"):
        consumer = str(disabled.get("consumer", "")).removeprefix("projects/")
        project = f" --project {consumer}" if consumer else ""
        return line(f"{NOT_ENABLED}: gcloud services enable {disabled['service']}{project}")
    if denied and denied.get("permission"):
        return line(f"permission {denied['permission']} is missing on {denied.get('resource', 'the project')}")
    return line(error.get("message") or "")


def line(value: object) -> str:
    return " ".join(str(value).split())[:400]
