"""Commands in a script's body, each with its position, so that some of them can be rewritten. The reader knows shells'
grammar as far as that requires (quotes, comments, here-documents, commands inside of `$(...)`), and takes anything else
for a command of no interest."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

DEPTH_MAX = 40
_KEYWORDS = ("then", "do", "else", "elif", "if", "while", "until", "{", "!", "time", "exec", "nohup", "command")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_HEREDOC = re.compile(r"<<(-?)\s*(?:'([^'\n]+)'|\"([^\"\n]+)\"|\\?([A-Za-z_][\w.-]*))")


@dataclass(frozen=True)
class Word:
    """Word as it is written, including quotes."""

    text: str
    start: int
    end: int


@dataclass
class Statement:
    """Simple command: its words, without keywords and assignments before its program."""

    words: list[Word]
    line: int
    before: list[Word] = field(default_factory=list[Word])
    """Assignments before the program, and words such as exec."""

    @property
    def start(self) -> int:
        return self.words[0].start

    @property
    def end(self) -> int:
        return self.words[-1].end

    @property
    def texts(self) -> list[str]:
        return [word.text for word in self.words]


@dataclass(frozen=True)
class Edit:
    """Replacement for a part of the text."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with the edits applied. If two overlap, the first one in the text counts."""
    out: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda each: (each.start, -each.end)):
        if edit.start < at:
            continue
        out += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*out, text[at:]])


def statements(text: str) -> list[Statement]:
    """Return the simple commands of a script, in the order of their ends."""
    reader = _Reader(text)
    reader.read(0, "", 0)
    return reader.found


def outside_quotes(text: str) -> str:
    """Return the text with blanks in place of single-quoted text and comments, which a shell does not expand."""
    reader = _Reader(text)
    reader.read(0, "", 0)
    out = list(text)
    for start, end in reader.blind:
        out[start:end] = re.sub(r"[^\n]", " ", text[start:end])
    return "".join(out)


_FOLDER = re.compile(
    r"(?<![\w$}:/.@{])/(?!bin/|usr/|dev/|proc/|sys/|tmp\b|etc/|opt/|lib|var/|run/|root/)[\w.-]+/[\w./-]+"
)


def folders_in(text: str) -> list[str]:
    """Return a few of the cluster's folders that a script names."""
    found = dict.fromkeys("/".join(each.split("/")[:4]) for each in _FOLDER.findall(text))
    return list(found)[:3]


_PLACE = re.compile(r"<[A-Za-z][\w-]*>(?![\w(])")


def places(text: str) -> list[str]:
    """Return a page's places to be filled in, such as <BUCKET>, which a shell takes for a file to read."""
    found = (
        _PLACE.search(word.text)
        for statement in statements(text)
        for word in (*statement.before, *statement.words)
        if not re.search("[\"'`]", word.text)
    )
    return list(dict.fromkeys(each[0] for each in found if each))


def reads_input(text: str, statement: Statement, start: int) -> bool:
    """Return whether a command that begins at a position has a pipe, a file or a here-document as standard input."""
    begins = min([start, *(word.start for word in statement.before)])
    ends = [word.start for word in statement.words[1:]] + [statement.end + 10]
    between = [text[word.end : end] for word, end in zip(statement.words, ends, strict=True)]
    return bool(
        re.search(r"(?<!\|)\|&?\s*$", text[max(0, begins - 20) : begins])
        or any(re.match(r"[ \t\\\n]*<<", each) for each in between)
        or any(re.match(r"0?<(?![&(])", word.text) for word in statement.words)
    )


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Statement] = []
        self.blind: list[tuple[int, int]] = []
        self._words: list[Word] = []
        self._breaks = [found.start() for found in re.finditer("\n", text)]

    def read(self, at: int, end: str, depth: int) -> int:
        """Read commands up to `end`, a bracket or a backtick. Return its position, or the text's end."""
        text, outer = self.text, self._words
        self._words = []
        waiting: list[tuple[str, bool]] = []
        brackets = 0
        while at < len(text):
            letter = text[at]
            if letter == end and not brackets:
                break
            if letter == "\n":
                self._finish()
                at += 1
                for word, tabs in waiting:
                    at = self._heredoc(at, word, tabs)
                waiting = []
            elif letter.isspace():
                at += 1
            elif text.startswith("\\\n", at):
                at += 2
            elif letter == "#":
                stop = text.find("\n", at)
                stop = len(text) if stop < 0 else stop
                self.blind.append((at, stop))
                at = stop
            elif letter in ";|()" or (letter == "&" and text[at : at + 2] != "&>"):
                self._finish()
                brackets = max(0, brackets + (letter == "(") - (letter == ")"))
                at += 1
            elif (here := _HEREDOC.match(text, at)) and not text.startswith("<<<", at):
                waiting.append((here[2] or here[3] or here[4], bool(here[1])))
                at = here.end()
            else:
                stop = self._word(at, end, depth)
                self._words.append(Word(text[at:stop], at, stop))
                at = stop
        self._finish()
        self._words = outer
        return at

    def _finish(self) -> None:
        words, self._words = self._words, []
        before: list[Word] = []
        while words and (words[0].text in _KEYWORDS or _ASSIGNMENT.match(words[0].text)):
            before.append(words.pop(0))
        if words:
            self.found.append(Statement(words, self._line(words[0].start), before))

    def _line(self, at: int) -> int:
        return bisect_left(self._breaks, at) + 1

    def _heredoc(self, at: int, word: str, tabs: bool) -> int:
        text = self.text
        while at < len(text):
            stop = text.find("\n", at)
            stop = len(text) if stop < 0 else stop
            line = text[at:stop]
            at = min(stop + 1, len(text))
            if (line.lstrip("\t") if tabs else line).rstrip("\r") == word:
                break
        return at

    def _word(self, at: int, end: str, depth: int) -> int:
        """Return the position at which the word that begins at `at` ends."""
        text = self.text
        while at < len(text):
            letter = text[at]
            if letter == "\\":
                at += 2
            elif letter == "'":
                stop = text.find("'", at + 1)
                stop = len(text) if stop < 0 else stop + 1
                self.blind.append((at, stop))
                at = stop
            elif letter == '"':
                at = self._double(at + 1, depth)
            elif letter == "$" or letter == "`":
                if letter == end:
                    return at
                at = self._dollar(at, depth)
            elif letter.isspace() or letter in ";|()" or letter == end:
                return at
            elif letter == "&":
                if at and text[at - 1] in "<>":
                    at += 1
                elif text[at : at + 2] == "&>":
                    at += 2
                else:
                    return at
            elif letter == "<" and _HEREDOC.match(text, at) and not text.startswith("<<<", at):
                return at
            elif text.startswith("<<<", at):
                at += 3
            else:
                at += 1
        return min(at, len(text))

    def _double(self, at: int, depth: int) -> int:
        text = self.text
        while at < len(text):
            letter = text[at]
            if letter == "\\":
                at += 2
            elif letter == '"':
                return at + 1
            elif letter in "$`":
                at = self._dollar(at, depth)
            else:
                at += 1
        return min(at, len(text))

    def _dollar(self, at: int, depth: int) -> int:
        text = self.text
        if depth >= DEPTH_MAX:
            return at + 1
        if text.startswith("$((", at):
            stop = text.find("))", at)
            return len(text) if stop < 0 else stop + 2
        if text.startswith("$(", at):
            return min(self.read(at + 2, ")", depth + 1) + 1, len(text))
        if text[at] == "`":
            return min(self.read(at + 1, "`", depth + 1) + 1, len(text))
        if text.startswith("${", at):
            stop = text.find("}", at)
            return len(text) if stop < 0 else stop + 1
        return at + 1


def name_of(words: Sequence[str]) -> str:
    """Return the name of the program that words call, without its folder."""
    return words[0].rpartition("/")[2].strip("\"'") if words else ""
