"""Notes for a person about an adopted resource, one line each."""

from dataclasses import dataclass, field
from typing import Any, Literal

from accel.diagnostics import messages

from .documents import Json

Word = Literal["kept", "lost", "left out", "set", "translated", "warning"]


@dataclass(frozen=True)
class Note:
    """`kept`: unchanged; `lost`: without counterpart; `left out`: a whole resource; `set`: a value of ours."""

    word: Word
    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.word}: {self.place}: {self.text}"


@dataclass
class Part:
    """One resource as the author's values of it, and its notes."""

    key: str
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    notes: list[Note] = field(default_factory=list[Note])
    keeps: list[str] = field(default_factory=list[str])

    def note(self, word: Word, field: str, text: str) -> None:
        self.notes.append(Note(word, f"{self.key}.{field}" if field else self.key, text))

    def keep(self, part: str, field: str, text: str) -> None:
        self.keeps.append(part)
        self.note("kept", field, text)

    def rest(self, document: Json, known: set[str], prefix: str = "") -> list[str]:
        """Note the non-empty fields without a counterpart, and return their names."""
        lost = [name for name in document if name not in known and document[name] not in (False, 0)]
        for name in lost:
            self.note("lost", f"{prefix}{name}", f"is {messages.display(document[name])}, and has no counterpart here")
        return lost
