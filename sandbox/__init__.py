"""Embedded cloud: a stand-in for AWS, Google Cloud and Kubernetes where there is no account."""


class SandboxError(Exception):
    """Error that a command of the sandbox reports: an exit code, an error of one line, and a hint."""

    def __init__(self, code: int, error: str, hint: str) -> None:
        super().__init__(error)
        self.code, self.hint = code, hint
