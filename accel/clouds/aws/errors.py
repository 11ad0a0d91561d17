"""Translation of botocore's errors into those of this package.

NoCredentials   nothing was accepted: the cloud does not know the caller
BadInput        nothing was sent: an argument, or a setting of AWS on this machine, is wrong
CloudRefused    nothing was accepted: the cloud understood and refused
Throttled       nothing was accepted: the same call may be repeated
CloudSilent     unknown whether the call was accepted
"""

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from ...diagnostics.errors import BadInput, CloudRefused, CloudSilent, JobsError, NoCredentials, Throttled

WHO_AM_I = "`aws sts get-caller-identity` shows who you are; then `aws sso login`, AWS_PROFILE or new keys"
PERMISSION = "the message names the action; ask whoever owns the account for it, or use another AWS_PROFILE"
REACH = "the network, the region's name, and AWS_ENDPOINT_URL if it is set, decide whether AWS can be reached"
SETTINGS = "the variables AWS_* and the files ~/.aws/config and ~/.aws/credentials, or those that they name, hold it"

UNKNOWN_CALLER = frozenset({
    "ExpiredToken", "ExpiredTokenException", "IncompleteSignature", "IncompleteSignatureException",
    "InvalidAccessKeyId", "InvalidClientTokenId", "InvalidSignatureException", "InvalidToken",
    "MissingAuthenticationToken", "MissingAuthenticationTokenException", "NotAuthorized", "RequestExpired",
    "SignatureDoesNotMatch", "UnrecognizedClientException",
})  # fmt: skip
FORBIDDEN = frozenset({"AccessDenied", "AccessDeniedException", "OptInRequired", "UnauthorizedOperation"})
THROTTLES = frozenset({
    "LimitExceededException", "PriorRequestNotComplete", "ProvisionedThroughputExceededException",
    "RequestLimitExceeded", "RequestThrottled", "RequestThrottledException", "SlowDown", "Throttling",
    "ThrottlingException", "ThrottledException", "TooManyRequests", "TooManyRequestsException",
})  # fmt: skip
# A proxy may answer with these although it has passed the request on.
UNDECIDED_STATUSES = frozenset({408, 425, 499})
CREDENTIAL_ERRORS = (
    "NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ProfileNotFound",
    "TokenRetrievalError", "SSOError", "UnauthorizedSSOTokenError", "LoginError", "NoAuthTokenError",
)  # fmt: skip
INPUT_ERRORS = (
    "ParamValidationError",
    "NoRegionError",
    "InvalidRegionError",
    "InvalidEndpointConfigurationError",
)
SETTING_ERRORS = (
    "ConfigNotFound", "ConfigParseError", "InvalidChecksumConfigError", "InvalidConfigError", "InvalidDefaultsMode",
    "InvalidIMDSEndpointError", "InvalidIMDSEndpointModeError", "InvalidProxiesConfigError",
    "InvalidRetryConfigurationError", "InvalidS3AddressingStyleError", "InvalidS3UsEast1RegionalEndpointConfigError",
    "InvalidSTSRegionalEndpointsConfigError", "MissingDependencyException", "RefreshWithMFAUnsupportedError",
    "UnknownCredentialError",
)  # fmt: skip
TEXT_MAX = 500
_PAGE = re.compile(r"<(?:!doctype html|html)\b(?:.*?<title>(?P<title>[^<]*)</title>)?", re.IGNORECASE)


@contextmanager
def asking(doing: str) -> Generator[None]:
    """Translate botocore's errors into ours. `doing` begins the message: "SubmitJob digits-1a2b3c4d"."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    try:
        yield
    except ClientError as error:
        raise of_answer(doing, error.response) from error
    except (BotoCoreError, ResponseParserError) as error:
        raise of_client(doing, error) from error
    except OSError as error:
        if error.filename is None:
            raise CloudSilent(f"{doing}: {_line(error)}", REACH) from error
        # A program or a file that the settings name as a source of credentials.
        raise NoCredentials(f"{doing}: {_line(error)}", SETTINGS) from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # botocore's parsers assume that a body is a JSON object; a proxy's may be anything, and what is no JSON is read
        # as an answer without members.
        told = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise CloudSilent(f"{doing}: the answer is not AWS's: {told}", REACH) from error


def of_answer(doing: str, response: Any) -> JobsError:
    code = str(response.get("Error", {}).get("Code", ""))
    text = _line(response.get("Error", {}).get("Message", ""))
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    message = f"{doing}: {code}: {text}" if text else f"{doing}: {code or 'an error without a code'} (HTTP {status})"
    if code in THROTTLES or status == 429:
        return Throttled(message, "AWS accepts no more calls at the moment; try again in a minute")
    if code in UNKNOWN_CALLER or status == 401:
        return NoCredentials(message, WHO_AM_I)
    if code in FORBIDDEN or status == 403:
        return CloudRefused(message, PERMISSION)
    if 400 <= status < 500 and status not in UNDECIDED_STATUSES:
        return CloudRefused(message)
    return CloudSilent(message, REACH)


def of_client(doing: str, error: Exception) -> JobsError:
    """Return NoCredentials or BadInput if nothing was sent, otherwise CloudSilent."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    message = f"{doing}: {_line(error)}"
    if kinds.intersection(CREDENTIAL_ERRORS):
        return NoCredentials(message, WHO_AM_I)
    if kinds.intersection(INPUT_ERRORS):
        return BadInput(message)
    if kinds.intersection(SETTING_ERRORS):
        return BadInput(message, SETTINGS)
    return CloudSilent(message, REACH)


def _line(told: object) -> str:
    """Return one line, shortened. Replaces a web page, such as a proxy's answer, with its title."""
    text = " ".join(str(told).split())
    page = _PAGE.search(text)
    if page is None:
        return text[:TEXT_MAX]
    title = f" ({page['title'].strip()[:80]})" if page["title"] else ""
    return f"{text[: page.start()][:TEXT_MAX]}a web page{title}, not an answer of AWS"
