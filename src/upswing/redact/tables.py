"""A column is called *password*: which cells below it, or beside it, hold one?

Tables are lines: Markdown and psql (`|`), CSV (`,` `;` tab), columns of spaces, rows of HTML. A name in
the first line heads a column; a name in the first cell of a later line names the next cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice

from .layer import Span
from .rule import Anchor, Rule
from .rules_named import word_anchors
from .values import is_dummy, is_label, random_looking
from .words import (
    IDENTIFIERS,
    PASSWORD_NAMES,
    PASSWORD_WORDS,
    PIN_NAMES,
    PIN_WORDS,
    SECRET_NAMES,
    SECRET_WORDS,
    describes_password,
)
from .words_people import BIRTH_COLUMNS, IDENTITY_COLUMNS, PEOPLE_WORDS, PHONE_COLUMNS

_LONGEST_LINE = 2000
_MOST_ROWS = 500
_MOST_TEXT = 40_000
_PREFIX = r"(?:[A-Za-z]{1,16}[ _-]){0,3}"
_NAME = re.compile(
    rf"[\"'`*_ ]{{0,4}}{_PREFIX}(?:(?P<password>{PASSWORD_NAMES})|(?P<secret>{SECRET_NAMES})(?:[_ -](?:key|token))?|(?P<pin>{PIN_NAMES})|(?P<phone>{PHONE_COLUMNS})|(?P<birth>{BIRTH_COLUMNS})|(?P<identity>{IDENTITY_COLUMNS}))s?[\"'`*_ :]{{0,4}}"
)
_DATE_LIKE = re.compile(
    r"[0-9]{1,4}[^0-9A-Za-z]{1,3}[0-9]{1,2}[^0-9A-Za-z]{1,3}[0-9]{1,4}[^0-9A-Za-z]?|[0-9]{8}|[0-9]{1,2}\.?(?: de| of)? [^\W\d]{3,14}\.?,?(?: de| del)? [0-9]{4}(?: [^\W\d]{1,4}\.?)?"
)
_RULE_LINE = re.compile(r"[ \t|+:=\-]{3,}")
_HEAD = re.compile(r"[^\W\d\x0e-\x14]?[\w .()/#'\x0e-\x14?\-]{1,40}")
_ROW = re.compile(r"(?s)<tr\b[^<>]{0,80}>(.{0,4000}?)(?=</tr>|<tr\b)")
_CELL = re.compile(
    r"(?s)<t[hd]\b[^<>]{0,80}>\s{0,8}(?:<[a-z]{1,6}>)?(?P<v>[^<>]{0,256}?)\s{0,8}(?=</)"
)
_SIGNS = {sign: re.compile(re.escape(sign)) for sign in "|\t;,"} | {"  ": re.compile("[ ]{2,}")}


def _cell_spans(text: str, start: int, end: int, sign: str) -> list[Span]:
    """The cells of a line, without blanks and quotes around them."""
    cells, at = [], start
    stops = [m.span() for m in _SIGNS[sign].finditer(text, start, end)]
    for low, high in [*stops, (end, end)]:
        a, b = at, low
        while a < b and text[a] in " \t\"'`*":
            a += 1
        while b > a and text[b - 1] in " \t\r\"'`*":
            b -= 1
        cells.append((a, b))
        at = high
    if sign == "|" and text[start:end].strip().startswith("|"):
        cells = cells[1:]
    if sign == "|" and text[start:end].rstrip().endswith("|"):
        cells = cells[:-1]
    return cells


def _line_spans_from(
    text: str, position: int, search_start: int, search_end: int
) -> Iterator[Span]:
    """The line around `position` and those after it."""
    start = max(text.rfind("\n", search_start, position) + 1, search_start)
    for _ in range(_MOST_ROWS):
        end = text.find("\n", start, min(search_end, position + _MOST_TEXT))
        stop = end if end >= 0 else min(search_end, position + _MOST_TEXT)
        yield start, stop
        if end < 0:
            return
        start = end + 1


def _is_value(value: str, kind: str) -> bool:
    if kind in ("phone", "birth", "identity"):
        return _is_personal_value(value, kind)
    if len(value) < 3 or is_dummy(value) or is_label(value):
        return False
    if kind == "pin":
        return value.isdigit() and 3 <= len(value) <= 8
    if kind == "secret":
        return random_looking(value) or (
            len(value) >= 8
            and any(ch.isdigit() for ch in value)
            and any(ch.isalpha() for ch in value)
            and " " not in value
        )
    return (
        value.count(" ") < 6
        and value.lower() not in IDENTIFIERS
        and not describes_password(value.split(maxsplit=1)[0])
    )


def _is_personal_value(value: str, kind: str) -> bool:
    """Could this cell hold what its column is called?"""
    count = sum(ch.isdigit() for ch in value)
    if kind == "phone":
        return 6 <= count <= 15 and not any(ch.isalpha() for ch in value)
    if kind == "birth":
        return _DATE_LIKE.fullmatch(value) is not None
    return 5 <= count <= 34 and len(value) <= 42 and not _DATE_LIKE.fullmatch(value)


def _kinds_of_columns(text: str, cells: list[Span]) -> dict[int, str]:
    """Which columns have a name of ours, and of which kind?"""
    named = {}
    for i, (a, b) in enumerate(cells):
        if b - a < 60 and (match := _NAME.fullmatch(text, a, b)):
            named[i] = match.lastgroup or "password"
    return named


def find_table_values(
    text: str, position: int, search_start: int, search_end: int
) -> tuple[list[Span], int]:
    """The values of the table at whose head, or beside whose name, `position` stands; and how far it goes.

    A line is read once, whatever it holds, so that many names in it cost no more than one.
    """
    low = max(text.rfind("\n", search_start, position) + 1, search_start)
    end = text.find("\n", position, search_end)
    high = end if end >= 0 else search_end
    if high - low > _LONGEST_LINE:
        return [], high
    line = text[low:high]
    if "<t" in line:
        return _find_html_table_values(text, position, search_start, search_end)
    for sign in ("|", "\t", ";", ",", "  "):
        if sign in line.strip():
            if not _is_name_cell(line, position - low, sign):
                return [], position + 1
            return _find_delimited_values(text, (low, high), search_start, search_end, sign)
    return [], high


def _is_name_cell(line: str, position: int, sign: str) -> bool:
    """Is the cell around this place of a line a name, and nothing else?"""
    left, right = line.rfind(sign, 0, position), line.find(sign, position)
    cell = line[left + len(sign) if left >= 0 else 0 : right if right >= 0 else len(line)]
    return len(cell) < 90 and _NAME.fullmatch(cell.strip(" \t\r\"'`*")) is not None


def _find_delimited_values(
    text: str, first: Span, search_start: int, search_end: int, sign: str
) -> tuple[list[Span], int]:
    line, rows = text[slice(*first)], _line_spans_from(text, first[0], search_start, search_end)
    next(rows)
    second = next(rows, None)
    below = text[slice(*second)] if second else ""
    ruled = bool(_RULE_LINE.fullmatch(below))
    paired = line.count(sign) <= 3 or sign == "|"
    if not (ruled or paired or below.count(sign) == line.count(sign)):
        return [], first[1]
    head = _cell_spans(text, *first, sign)
    heads = ruled or all(_HEAD.fullmatch(text, a, b) for a, b in head)
    if not heads and len(head) > 2 and sign != "|":
        return [], first[1]
    named = _kinds_of_columns(text, head)
    if not named or len(head) < 2:
        return [], first[1]
    beside = 0 in named and named[0] and head[1]
    if (
        sign == "|"
        and not ruled
        and beside
        and (len(head) == 2 or _is_under_dashed_line(text, first[0], search_start))
    ):
        return [head[1]] if _is_value(text[slice(*head[1])], named[0]) else [], first[1]
    if not heads:
        odd = (
            beside
            and len(head) == 2
            and sign != "  "
            and _is_nonalphabetic_value(text[slice(*head[1])], named[0])
        )
        return [head[1]] if odd else [], first[1]
    return _values_below_head(text, second, rows, head, named, sign)


def _values_below_head(
    text: str,
    second: Span | None,
    rows: Iterator[Span],
    head: list[Span],
    named: dict[int, str],
    sign: str,
) -> tuple[list[Span], int]:
    found: list[Span] = []
    end = head[-1][1]
    for span in chain([second] if second else [], rows):
        if _RULE_LINE.fullmatch(text, *span):
            continue
        cells = _cell_spans(text, *span, sign)
        if len(cells) != len(head) or not text[slice(*span)].strip():
            break
        found += [cells[i] for i, kind in named.items() if _is_value(text[slice(*cells[i])], kind)]
        end = span[1]
    return found, end


def _is_nonalphabetic_value(value: str, kind: str) -> bool:
    return _is_value(value, kind) and any(not ch.isalpha() for ch in value)


def _is_under_dashed_line(text: str, start: int, search_start: int) -> bool:
    """Does a line of dashes stand above this one, in the same table?"""
    for _ in range(20):
        end = start - 1
        start = max(text.rfind("\n", search_start, max(end, search_start)) + 1, search_start)
        line = text[start:end]
        if end <= search_start or "|" not in line:
            return False
        if _RULE_LINE.fullmatch(line):
            return True
    return False


def _find_html_table_values(
    text: str, position: int, search_start: int, search_end: int
) -> tuple[list[Span], int]:
    start = max(text.rfind("<tr", max(search_start, position - 2000), position), search_start)
    matches = list(
        islice(_ROW.finditer(text, start, min(search_end, position + _MOST_TEXT)), _MOST_ROWS)
    )
    rows = [[c.span("v") for c in _CELL.finditer(text, m.start(), m.end())] for m in matches]
    named = _kinds_of_columns(text, rows[0]) if rows else {}
    if not named:
        return [], position + 1
    end = matches[-1].end()
    if _is_name_value_row(text, rows, named):
        value = rows[0][1]
        return [value] if _is_value(text[slice(*value)], named[0]) else [], value[1]
    found = []
    for row in rows[1:]:
        if len(row) == len(rows[0]):
            found += [row[i] for i, kind in named.items() if _is_value(text[slice(*row[i])], kind)]
    return found, end


def _is_name_value_row(text: str, rows: list[list[Span]], named: dict[int, str]) -> bool:
    """A name and its value in one row, and not two heads of columns?"""
    if 0 not in named or 1 in named or len(rows[0]) != 2:
        return False
    alone = len(rows) < 2 or len(rows[1]) != 2 or bool(_kinds_of_columns(text, rows[1]))
    return alone or not _HEAD.fullmatch(text, *rows[0][1])


_INSERT = re.compile(
    r"(?is)insert\s{1,4}(?:or \w{1,8} )?into\s{1,4}[\w.\"`\[\]]{1,80}\s{0,4}\(([^()\x00]{1,600})\)\s{0,8}values?\s{0,8}(?=\()"
)
_TUPLE = re.compile(
    r"\s{0,8},?\s{0,8}\(((?:'(?:[^'\x00]|''){0,256}'|\"[^\"\x00]{0,256}\"|[^()'\"\x00]|\([^()\x00]{0,60}\)){1,2000}?)\)"
)
_ITEM = re.compile(
    r"\s*(?:[NE]?'(?P<v>(?:[^'\x00]|''){0,256})'|\"(?P<w>[^\"\x00]{0,256})\"|(?P<u>[^,'\"]*(?:\([^()]*\))?[^,'\"]*))\s*(?:,|$)"
)


def find_inserted_values(
    text: str, position: int, _search_start: int, search_end: int
) -> tuple[list[Span], int]:
    """The values of INSERT statements whose columns have a name of ours."""
    head = _INSERT.match(text, position, min(search_end, position + 1200))
    if head is None:
        return [], position + 6
    columns, low = [], head.start(1)
    for name in head.group(1).split(","):
        lead = len(name) - len(name.lstrip(' \n\t\r"`['))
        columns.append((low + lead, low + len(name.rstrip(' \n\t\r"`]'))))
        low += len(name) + 1
    named, found, end = _kinds_of_columns(text, columns), [], head.end()
    for _ in range(_MOST_ROWS if named else 0):
        row = _TUPLE.match(text, end, min(search_end, end + 2400))
        if row is None:
            break
        end = row.end()
        items = list(_ITEM.finditer(row.group(1)))
        for i, kind in named.items():
            name = items[i].lastgroup if i < len(items) else None
            if name in ("v", "w") or (name == "u" and kind != "password"):
                a, b = items[i].span(name)
                value = items[i].group(name).strip()
                if _is_value(value, kind):
                    found.append((row.start(1) + a, row.start(1) + b))
    return found, end


_BEFORE = r"(?:[ _-][A-Za-z]{1,16}){0,2}[\"'`*_]{0,3}(?:\Z|[|,;\t>\n]|[ ]{1,2}(?:\Z|[|,;\t>\n ]))"
"""What stands before the name of a column, read from behind."""
_FOLLOW = r"[\x0e-\x14]{0,8}[A-Za-z0-9_\-]{0,12}[\"'`*]{0,3}[ ]{0,12}(?:[|,;\t\n\r<]|[ ]{2}|$)"
_PEOPLE_FOLLOW = _FOLLOW.replace("{0,12}[", "{0,12}(?: [A-Za-z]{1,12})?[", 1)
_PEOPLE_BEFORE = _BEFORE.replace("{0,2}[", "{0,3}[", 1)
RULES = (
    Rule(
        "column",
        rf"(?:{PASSWORD_NAMES}|{SECRET_NAMES}|{PIN_NAMES})",
        anchors=word_anchors((*PASSWORD_WORDS, *SECRET_WORDS, *PIN_WORDS), _FOLLOW, 40, _BEFORE),
        spans=find_table_values,
        kind="password",
        priority=41,
        trusted=True,
        about="cells below or beside the name of a secret, in tables and CSV",
        example="x\nuser,password,role\nbob," + "swordfish" + ",admin\n",
    ),
    Rule(
        "column-of-people",
        rf"(?:{PHONE_COLUMNS}|{BIRTH_COLUMNS}|{IDENTITY_COLUMNS})",
        anchors=word_anchors(PEOPLE_WORDS, _PEOPLE_FOLLOW, 60, _PEOPLE_BEFORE),
        spans=find_table_values,
        kind="personal-number",
        priority=19,
        trusted=True,
        about="cells below the name of a phone, a birth date or a person's number, in tables and CSV",
        example="x\nname,phone,city\nbob," + "5550132" + ",Ulm\n",
    ),
    Rule(
        "inserted",
        r"(?i:insert)\s",
        anchors=(Anchor("insert into", "", 11, caseless=True),),
        spans=find_inserted_values,
        kind="password",
        priority=18,
        trusted=True,
        about="values of INSERT statements whose column has the name of a secret or a person's number",
        example="INSERT INTO users (name, password) VALUES ('bob', '" + "swordfish" + "');",
    ),
)
