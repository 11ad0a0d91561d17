"""A tree as one compressed tar archive: the same bytes of content for the same files, whoever packs them and when.
Credentials are left out, by their names and by their content. Names that another machine cannot have and links that
lead outside are refused."""

import gzip
import hashlib
import io
import os
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import SpooledTemporaryFile
from types import MappingProxyType
from typing import IO

from accel.contract.buckets import CODE
from accel.diagnostics.errors import BadInput, BadInputs

from ... import runtime
from .tree import Entry, Tree, printable

MIB = 2**20
MOST_MIB = 250
"""Limit for all files together, before compression: an archive is sent whole, and code is not data."""
_IN_MEMORY = 16 * MIB
_LARGEST = 3


@dataclass(frozen=True)
class Archive:
    """A packed tree. `digest` is that of the content, since the same content may be compressed in several ways."""

    digest: str
    size: int
    """Bytes of the content, the tar archive."""
    data: IO[bytes]
    """The compressed archive."""
    packed: int
    """Bytes of the compressed archive."""
    files: int
    bytes: int
    largest: tuple[Entry, ...]
    warnings: tuple[str, ...] = ()
    """Warnings of what was left out, and of likely secrets that were not."""

    @property
    def name(self) -> str:
        return f"{CODE}/{self.digest}.tar.gz"

    def summary(self) -> str:
        if not self.files:
            return f"code: accel_runtime {_size(self.packed)} compressed, SHA-256 {self.digest}"
        largest = ", ".join(f"{printable(each.name)} {_size(each.size)}" for each in self.largest)
        files = "1 file" if self.files == 1 else f"{self.files:,} files"
        return (
            f"code: {files}, {_size(self.bytes)}; with accel_runtime {_size(self.packed)} compressed, "
            f"SHA-256 {self.digest}; largest: {largest}"
        )


def pack(tree: Tree, more: Mapping[str, bytes] = MappingProxyType({})) -> Archive:
    """Add our own files `more`. Raises BadInputs for refused files, and BadInput for too much, or nothing, to send."""
    found = [(entry, *_judged(tree, entry)) for entry in tree.entries]
    notes = [f"--code: {line}" for line in tree.left_out] + [note for _, _, note in found if note]
    going = [entry for entry, goes, _ in found if goes]
    if refused := faults(tree.folder, going):
        raise BadInputs(refused)
    total = sum(each.size for each in going)
    if total > MOST_MIB * MIB:
        most = ", ".join(f"{printable(each.name)} {_size(each.size)}" for each in _largest(going))
        raise BadInput(
            f"--code: {tree.folder} has {_size(total)}, of which {MOST_MIB} MiB are sent; largest: {most}",
            "write into .gitignore what is not code, and keep data in a bucket",
        )
    data: IO[bytes] = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115, whoever sends it closes it
    sent: list[Entry] = []
    with gzip.GzipFile("", "wb", 6, data, mtime=0) as packing:
        content = _Counted(packing)
        # A stream writes nothing twice, and its digest is that of the written bytes.
        with tarfile.open(fileobj=content, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for entry in going:
                body = None if entry.link is not None else _body(tree.folder, entry)
                goes, note = (True, None) if body is None else _judged(tree, entry, body)
                notes += [note] if note else []
                if goes:
                    sent.append(entry)
                    tar.addfile(_of(entry), None if body is None else io.BytesIO(body))
            for name, said in sorted(more.items()):
                tar.addfile(_member(name, len(said)), io.BytesIO(said))
            for member, body in _added():
                tar.addfile(member, body)
    if not sent and not more:
        hidden = len(tree.entries)
        but = f", but for {hidden} that {'look' if hidden > 1 else 'looks'} like a secret" if hidden else ""
        raise BadInput(f"--code: {tree.folder} has no files that Git would add{but}", "see `git status --ignored`")
    digest, packed = content.digest.hexdigest(), data.tell()
    total = sum(each.size for each in sent)
    return Archive(digest, content.size, data, packed, len(sent), total, _largest(sent), tuple(notes))


def _largest(entries: list[Entry]) -> tuple[Entry, ...]:
    return tuple(sorted(entries, key=lambda each: (-each.size, each.name))[:_LARGEST])


class _Counted(io.RawIOBase):
    """Writer that passes on what is written, and records its size and SHA-256."""

    def __init__(self, to: gzip.GzipFile) -> None:
        self._to, self.size, self.digest = to, 0, hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.size += len(data)
        self.digest.update(data)
        return self._to.write(data)


def _of(entry: Entry) -> tarfile.TarInfo:
    if entry.link is None:
        return _member(entry.name, entry.size, executable=entry.executable)
    member = _member(entry.name, 0, executable=True)
    member.type, member.linkname = tarfile.SYMTYPE, entry.link
    return member


def _body(folder: Path, entry: Entry) -> bytes:
    """Read a file once, so that the judged bytes are the sent ones."""
    try:
        # O_NOFOLLOW: a link may have taken the file's place since.
        file = os.open(folder / entry.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(file, "rb") as opened:
            body = opened.read(entry.size + 1)
    except OSError as error:
        raise BadInput(f"--code: {printable(entry.name)}: {error.strerror}") from error
    if len(body) != entry.size:
        raise BadInput(f"--code: {printable(entry.name)}: changed while it was packed", "submit again")
    return body


def _added() -> Iterator[tuple[tarfile.TarInfo, IO[bytes]]]:
    """Yield the runtime package, under the name by which training programs import it in jobs."""
    folder = Path(next(iter(runtime.__path__)))
    for path in sorted(folder.rglob("*.py")):
        body = path.read_bytes()
        name = f"{OURS}/accel_runtime/{path.relative_to(folder).as_posix()}"
        yield _member(name, len(body)), io.BytesIO(body)


def _member(name: str, size: int, *, executable: bool = False) -> tarfile.TarInfo:
    # Owner and time default to 0.
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o755 if executable else 0o644
    return member


def _size(count: int) -> str:
    if count < 1024:
        return f"{count} B"
    return f"{count / MIB:,.1f} MiB" if count >= MIB else f"{count / 1024:,.1f} KiB"


_SECRET_NAMES = (
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
"""Patterns of a file's name in small letters. Names of gitrob that are code or data more often than not, such as
`settings.py`, `database.yml`, `*.sql` and `*.log`, are left out. Sources:
https://github.com/michenriksen/gitrob/blob/master/core/signatures.go,
https://github.com/eth0izzle/shhgit/blob/master/config.yaml,
https://github.com/github/gitignore/blob/main/Terraform.gitignore (*.tfvars, .terraformrc),
https://www.vaultproject.io/docs/commands/token-helper (.vault-token),
https://cloud.google.com/storage/docs/gsutil/commands/config (.boto), https://www.openssh.com/txt/release-8.2 (keys of
security keys, *_sk)"""
_SECRET_PLACES = (
    *(".docker/config.json", ".kube/config", "containers/auth.json", "doctl/config.yaml", "gh/hosts.yml"),
    *("config/hub", "huggingface/token", ".huggingface/token"),
)
"""Folder and name of files, in small letters, whose name alone says nothing. Sources: those of _SECRET_NAMES,
https://man.cx/containers-auth.json(5)"""
_NO_SECRETS = ("*.example", "*.sample", "*.template", "*.dist", "credentials.py", "*.pub")

_HEAD = rb"-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----"
_BREAK = rb"(?:\s|\\[nr])"
"""A line break, in the text itself or as JSON and programs write it."""
_PRIVATE_KEY = re.compile(
    _HEAD
    + rb"(?:\\[nr]|\s){1,20}(?:[A-Za-z-]{1,40}: [^\r\n\\]{0,200}"
    + _BREAK
    + rb"{1,20}){0,5}(?:[A-Za-z0-9+/=]{40}|(?:[A-Za-z0-9+/=]|"
    + _BREAK
    + rb"){1,400}-----END)"
)
"""A whole header followed by base64, which a program that only looks for such a header does not contain. Sources:
https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml (private-key),
https://www.rfc-editor.org/rfc/rfc7468, headers of older ones https://www.rfc-editor.org/rfc/rfc1421"""
_MARK = b"PRIVATE KEY"


def is_secret_name(name: str) -> bool:
    *folders, base = name.lower().split("/")
    place = "/".join([*folders[-1:], base])
    found = place in _SECRET_PLACES or any(fnmatchcase(base, each) for each in _SECRET_NAMES)
    return found and not any(fnmatchcase(base, each) for each in _NO_SECRETS)


def _holds_key(body: bytes) -> bool:
    return _MARK in body and _PRIVATE_KEY.search(body) is not None


def _judged(tree: Tree, entry: Entry, body: bytes | None = None) -> tuple[bool, str | None]:
    """Decide whether to send a file, and return a warning, if any. Judge by its name, or with `body` by its content."""
    if body is None:
        why = "looks like a secret" if is_secret_name(entry.name) else None
    else:
        why = "holds a private key" if _holds_key(body) else None
    if why is None:
        return True, None
    why = f"--code: {printable(entry.name)}: {why}, and is"
    if entry.tracked:
        return True, f"{why} sent since Git has it"
    if tree.everything:
        return True, f"{why} sent since --code-all sends every file"
    return False, f"{why} left out; give the job a reference in secrets"


OURS = ".accel"
"""Folder of an archive that holds what accel adds."""


def faults(folder: Path, entries: Iterable[Entry]) -> list[str]:
    return [f"--code: {printable(entry.name)}: {fault}" for entry in entries for fault in _entry_faults(folder, entry)]


def _entry_faults(folder: Path, entry: Entry) -> Iterator[str]:
    parts = entry.name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        yield "is not a name below the folder"
    if not _utf8(entry.name):
        yield "its name is not UTF-8; rename it"
    if parts[0] == OURS:
        yield f"{OURS} is for what accel adds; rename it"
    if entry.link is not None:
        yield from _link(folder, entry.name, entry.link)


def _link(folder: Path, name: str, target: str) -> Iterator[str]:
    if not _utf8(target):
        yield "it leads to a name that is not UTF-8"
    elif target.startswith("/"):
        yield f"leads to {printable(target)}, which another machine does not have; make it a relative link or a file"
    else:
        root = os.path.realpath(folder)
        # The path as the link reads, and the path it leads to on this machine through other links.
        read, led = os.path.normpath(f"{root}/{name}/../{target}"), os.path.realpath(f"{root}/{name}")
        if not all(os.path.commonpath([root, path]) == root for path in (read, led)):
            yield f"leads to {printable(target)}, outside of the folder; put a file there"


def _utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
