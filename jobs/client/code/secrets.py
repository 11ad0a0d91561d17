"""Which files of a folder are credentials, by their names and by what they hold, and what is done about them."""

import re
from fnmatch import fnmatchcase

from .tree import Entry, Tree, printable

NAMES = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", "pgpass", ".pypirc", ".npmrc", ".dockercfg"),
    *(".git-credentials", ".htpasswd", "htpasswd", ".s3cfg", ".boto", ".boto.bak", ".vault-token", ".my.cnf"),
    *(".tugboat", "sftp-config.json", "filezilla.xml", "recentservers.xml", "secret_token.rb", "rclone.conf"),
    *("*.pem", "*.key", "*.keypair", "*.p12", "*.pkcs12", "*.pfx", "*.jks", "*.keystore", "*.keytab", "*.kdb"),
    *("*.kdbx", "*.kwallet", "*.keychain", "*.agilekeychain", "*.psafe3", "*.ppk", "*.ovpn", "*.bek", "secring.gpg"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*_rsa", "*_dsa", "*_ecdsa", "*_ed25519", "*_ecdsa_sk"),
    *("*_ed25519_sk", "kubeconfig", "*.kubeconfig", "kaggle.json", "access_tokens.db"),
    *("credentials", "credentials.*", "*credentials.json", "client_secret*.json", "service-account*.json"),
    *("service_account*.json", "secrets.yaml", "secrets.yml", "secrets.json", "secrets.toml"),
    *("*.tfstate", "*.tfstate.*", "*.tfvars", "*.tfvars.json", ".terraformrc", "terraform.rc"),
    *(".bash_history", ".zsh_history", ".sh_history", ".mysql_history", ".psql_history"),
)
"""Of a file's name in small letters. Names of gitrob that are code or data more often than not, such as `settings.py`,
`database.yml`, `*.sql` and `*.log`, are left out.
Sources: https://github.com/michenriksen/gitrob/blob/master/core/signatures.go,
https://github.com/eth0izzle/shhgit/blob/master/config.yaml,
https://github.com/github/gitignore/blob/main/Terraform.gitignore (*.tfvars, .terraformrc),
https://www.vaultproject.io/docs/commands/token-helper (.vault-token),
https://cloud.google.com/storage/docs/gsutil/commands/config (.boto),
https://www.openssh.com/txt/release-8.2 (keys of security keys, *_sk)"""
PLACES = (
    *(".docker/config.json", ".kube/config", "containers/auth.json", "doctl/config.yaml", "gh/hosts.yml"),
    *("config/hub", "huggingface/token", ".huggingface/token"),
)
"""Of a file's folder and name likewise: the name alone says nothing.
Sources: those of NAMES, https://man.cx/containers-auth.json(5)"""
NO_SECRETS = ("*.example", "*.sample", "*.template", "*.dist", "credentials.py", "*.pub")

_HEAD = rb"-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----"
_BREAK = rb"(?:\s|\\[nr])"
"""Of a line, in the text itself or as JSON and programs write it."""
_PRIVATE_KEY = re.compile(
    _HEAD
    + rb"(?:\\[nr]|\s){1,20}(?:[A-Za-z-]{1,40}: [^\r\n\\]{0,200}"
    + _BREAK
    + rb"{1,20}){0,5}(?:[A-Za-z0-9+/=]{40}|(?:[A-Za-z0-9+/=]|"
    + _BREAK
    + rb"){1,400}-----END)"
)
"""A whole header and base64 after it: a program that looks for such a header has none.
Sources: https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml (private-key),
https://www.rfc-editor.org/rfc/rfc7468, headers of older ones https://www.rfc-editor.org/rfc/rfc1421"""
_MARK = b"PRIVATE KEY"


def is_secret_name(name: str) -> bool:
    """Whether a file of this name is likely to hold a secret."""
    *folders, base = name.lower().split("/")
    place = "/".join([*folders[-1:], base])
    found = place in PLACES or any(fnmatchcase(base, each) for each in NAMES)
    return found and not any(fnmatchcase(base, each) for each in NO_SECRETS)


def holds_key(body: bytes) -> bool:
    """Whether a private key is in a file's content."""
    return _MARK in body and _PRIVATE_KEY.search(body) is not None


def judged(tree: Tree, entry: Entry, body: bytes | None = None) -> tuple[bool, str | None]:
    """Whether a file goes, and what is warned of it: by its name, or with a `body` by its content."""
    if body is None:
        why = "looks like a secret" if is_secret_name(entry.name) else None
    else:
        why = "holds a private key" if holds_key(body) else None
    if why is None:
        return True, None
    why = f"--code: {printable(entry.name)}: {why}, and is"
    if entry.tracked:
        return True, f"{why} sent since Git has it"
    if tree.everything:
        return True, f"{why} sent since --code-all sends every file"
    return False, f"{why} left out; give the job a reference in secrets"
