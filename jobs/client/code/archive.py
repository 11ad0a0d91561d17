"""A tree as one compressed tar archive, the same bytes of content for the same files, whoever packs them and when."""

import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO

from accel.contract.buckets import CODE
from accel.diagnostics.errors import BadInput, BadInputs

from ... import runtime
from . import refusals, secrets
from .tree import Entry, Tree, printable

MIB = 2**20
MOST_MIB = 250
"""Of all files together, before they are compressed: an archive is sent whole, and code is not data."""
_IN_MEMORY = 16 * MIB
_LARGEST = 3


@dataclass(frozen=True)
class Archive:
    """What was packed. `digest` is that of the content, since the same content may be compressed in several ways."""

    digest: str
    size: int
    """Bytes of the content, the tar archive."""
    data: IO[bytes]
    """The compressed archive."""
    packed: int
    """Its bytes."""
    files: int
    bytes: int
    largest: tuple[Entry, ...]
    warnings: tuple[str, ...] = ()
    """Of what was left out, and of secrets that were not."""

    @property
    def name(self) -> str:
        """Below a bucket, or a folder of this machine."""
        return f"{CODE}/{self.digest}.tar.gz"

    def summary(self) -> str:
        """Return what it has, in a line."""
        largest = ", ".join(f"{printable(each.name)} {_size(each.size)}" for each in self.largest)
        files = "1 file" if self.files == 1 else f"{self.files:,} files"
        return (
            f"code: {files}, {_size(self.bytes)}; with accel_runtime {_size(self.packed)} compressed, "
            f"SHA-256 {self.digest}; largest: {largest}"
        )


def pack(tree: Tree) -> Archive:
    """Raises BadInputs for what is refused, and BadInput for too much, or nothing, to send."""
    found = [(entry, *secrets.judged(tree, entry)) for entry in tree.entries]
    notes = [f"--code: {line}" for line in tree.left_out] + [note for _, _, note in found if note]
    going = [entry for entry, goes, _ in found if goes]
    if faults := refusals.faults(tree.folder, going):
        raise BadInputs(faults)
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
        # A stream: nothing is written twice, and the digest is that of what was written.
        with tarfile.open(fileobj=content, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for entry in going:
                body = None if entry.link is not None else _body(tree.folder, entry)
                goes, note = (True, None) if body is None else secrets.judged(tree, entry, body)
                notes += [note] if note else []
                if goes:
                    sent.append(entry)
                    tar.addfile(_of(entry), None if body is None else io.BytesIO(body))
            for member, body in _added():
                tar.addfile(member, body)
    if not sent:
        hidden = len(tree.entries)
        but = f", but for {hidden} that {'look' if hidden > 1 else 'looks'} like a secret" if hidden else ""
        raise BadInput(f"--code: {tree.folder} has no files that Git would add{but}", "see `git status --ignored`")
    digest, packed = content.digest.hexdigest(), data.tell()
    total = sum(each.size for each in sent)
    return Archive(digest, content.size, data, packed, len(sent), total, _largest(sent), tuple(notes))


def _largest(entries: list[Entry]) -> tuple[Entry, ...]:
    return tuple(sorted(entries, key=lambda each: (-each.size, each.name))[:_LARGEST])


class _Counted(io.RawIOBase):
    """Hands on what is written, with its size and SHA-256."""

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
    """Read once: what is judged is what is sent."""
    try:
        # Not through a link that has taken its place since.
        file = os.open(folder / entry.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(file, "rb") as opened:
            body = opened.read(entry.size + 1)
    except OSError as error:
        raise BadInput(f"--code: {printable(entry.name)}: {error.strerror}") from error
    if len(body) != entry.size:
        raise BadInput(f"--code: {printable(entry.name)}: changed while it was packed", "submit again")
    return body


def _added() -> Iterator[tuple[tarfile.TarInfo, IO[bytes]]]:
    """What training programs import: the runtime package, under the name that it has in jobs."""
    folder = Path(next(iter(runtime.__path__)))
    for path in sorted(folder.rglob("*.py")):
        body = path.read_bytes()
        name = f"{refusals.OURS}/accel_runtime/{path.relative_to(folder).as_posix()}"
        yield _member(name, len(body)), io.BytesIO(body)


def _member(name: str, size: int, *, executable: bool = False) -> tarfile.TarInfo:
    # Owner and time are 0 where nothing else is said.
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o755 if executable else 0o644
    return member


def _size(count: int) -> str:
    if count < 1024:
        return f"{count} B"
    return f"{count / MIB:,.1f} MiB" if count >= MIB else f"{count / 1024:,.1f} KiB"
