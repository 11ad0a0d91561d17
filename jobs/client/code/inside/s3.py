"""An archive in S3: s3://<region>/<bucket>/<key>, read with the credentials of the job's role.

Sources: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-iam-roles.html,
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

import hashlib
import hmac
import json
import os
import time
from typing import Any
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener, urlopen


def signed(url: str, region: str, keys: dict[str, str], now: str) -> dict[str, str]:
    """Return the headers of a GET of the URL at a time such as 20260131T235959Z."""
    parts = urlsplit(url)
    empty = hashlib.sha256().hexdigest()
    sent = {"host": parts.netloc, "x-amz-content-sha256": empty, "x-amz-date": now}
    if keys.get("Token"):
        sent["x-amz-security-token"] = keys["Token"]
    names = ";".join(sent)
    lines = "\n".join(["GET", parts.path, "", *(f"{name}:{sent[name]}" for name in sent), "", names, empty])
    scope = f"{now[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(lines.encode()).hexdigest()])
    key = b"AWS4" + keys["SecretAccessKey"].encode()
    for word in (*scope.split("/"), text):
        key = hmac.new(key, word.encode(), "sha256").digest()
    who = f"AWS4-HMAC-SHA256 Credential={keys['AccessKeyId']}/{scope}"
    return {**sent, "Authorization": f"{who}, SignedHeaders={names}, Signature={key.hex()}"}


def opened(source: str) -> Any:
    """Open the archive for reading. Raise OSError."""
    env = os.environ
    region, bucket, name = source[5:].split("/", 2)
    suffix = {"cn-": "com.cn", "eus": "eu"}.get(region[:3], "com")  # of AWS's partitions, by the names of their regions
    root = f"https://{bucket}.s3.{region}.amazonaws.{suffix}/"
    path = env.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
    if path:
        # No proxy can reach the address of the instance itself.
        keys = json.load(build_opener(ProxyHandler({})).open(f"http://169.254.170.2{path}", timeout=20))
    elif env.get("AWS_ACCESS_KEY_ID"):
        keys = {"AccessKeyId": env["AWS_ACCESS_KEY_ID"], "SecretAccessKey": env["AWS_SECRET_ACCESS_KEY"]}
        keys["Token"] = env.get("AWS_SESSION_TOKEN", "")
        if env.get("AWS_ENDPOINT_URL"):
            root = f"{env['AWS_ENDPOINT_URL']}/{bucket}/"
    else:
        raise OSError("the container has no role")
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return urlopen(Request(root + name, headers=signed(root + name, region, keys, now)), timeout=60)
