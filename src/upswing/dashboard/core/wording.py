"""How are numbers, times and states said? The same everywhere on the page."""

from __future__ import annotations

from datetime import UTC, datetime

NOTHING = "–"
_UUID = [8, 4, 4, 4, 12]
Tone = str
"""`good`, `warn`, `bad`, `accent`, or nothing."""

TONES: dict[str, Tone] = {
    # models and rollouts
    "deployed": "good",
    "promoted": "good",
    "passed": "good",
    "canary": "accent",
    "ramping": "accent",
    "awaiting_approval": "warn",
    "paused": "warn",
    "validating": "accent",
    "queued": "",
    "undecided": "warn",
    "failed": "bad",
    "rolled_back": "bad",
    "aborted": "",
    "retired": "",
    "succeeded": "",
    "replaced": "",
    "cancelled": "",
    "trained": "",
    "base": "",
    # jobs and validations
    "running": "accent",
    "completed": "good",
    "done": "good",
    "pass": "good",
    "fail": "bad",
    "inconclusive": "warn",
    # outcomes
    "success": "good",
    "failure": "bad",
    "partial": "warn",
    "unknown": "",
    # alerts
    "firing": "bad",
    "acknowledged": "warn",
    "resolved": "good",
    "urgent": "bad",
    "warning": "warn",
    "info": "",
    # settings and keys
    "default": "",
    "upswing.toml": "accent",
    "environment": "warn",
    "operator": "accent",
    "reader": "",
    "revoked": "bad",
}


def tone_of(word: str) -> Tone:
    return TONES.get(word, "")


def spoken(word: str) -> str:
    """A fixed word as a person says it.

    >>> spoken("awaiting_approval"), spoken("rolled_back")
    ('awaiting approval', 'rolled back')
    """
    return word.replace("_", " ")


def count(number: float | None) -> str:
    """A number with its thousands apart.

    >>> count(1234567), count(999), count(None)
    ('1,234,567', '999', '–')
    """
    return NOTHING if number is None else f"{number:,.0f}"


def short_count(number: float | None) -> str:
    """A large number in a few characters.

    >>> [short_count(n) for n in (0, 999, 12_345, 1_250_000)]
    ['0', '999', '12.3 k', '1.25 M']
    """
    if number is None:
        return NOTHING
    if number < 10_000:
        return f"{number:,.0f}"
    return f"{number / 1000:.1f} k" if number < 1_000_000 else f"{number / 1_000_000:.2f} M"


def score(number: float | None, digits: int = 3) -> str:
    """A reward or score.

    >>> score(0.61234), score(None), score(-0.0001)
    ('0.612', '–', '0.000')
    """
    if number is None:
        return NOTHING
    text = f"{number:.{digits}f}"
    return text.removeprefix("-") if not float(text) else text


def signed(number: float | None, digits: int = 3) -> str:
    """A difference, with its sign.

    >>> signed(0.0512), signed(-0.2), signed(-0.0001), signed(None)
    ('+0.051', '−0.200', '0.000', '–')
    """
    if number is None:
        return NOTHING
    text = f"{number:+.{digits}f}"
    return text.replace("-", "−") if float(text) else text[1:]


def interval(lower: float | None, upper: float | None, digits: int = 3) -> str:
    """Between which two differences something lies.

    >>> interval(-0.01, 0.08), interval(None, 1.0)
    ('−0.010 to +0.080', '–')
    """
    if lower is None or upper is None:
        return NOTHING
    return f"{signed(lower, digits)} to {signed(upper, digits)}"


def percent(number: float | None, digits: int = 0) -> str:
    """A share of a hundred.

    >>> percent(12.5), percent(0.5, 1), percent(None)
    ('12 %', '0.5 %', '–')
    """
    return NOTHING if number is None else f"{number:.{digits}f} %"


def money(usd: float | None) -> str:
    """US dollars.

    >>> money(1234.5), money(0.0042), money(0), money(None)
    ('$1,234.50', '$0.0042', '$0.00', '–')
    """
    if usd is None:
        return NOTHING
    return f"${usd:,.4f}" if 0 < abs(usd) < 0.01 else f"${usd:,.2f}"


def span(seconds: float | None) -> str:
    """How long.

    >>> [span(s) for s in (0.4, 59, 61, 3700, 90_000, None)]
    ['0 s', '59 s', '1 min', '1 h 1 min', '1 d 1 h', '–']
    """
    if seconds is None:
        return NOTHING
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"


def ago(then: datetime | None, now: datetime | None) -> str:
    """How long before the loop's own now.

    >>> at = datetime(2026, 1, 1, tzinfo=UTC)
    >>> ago(at, at.replace(minute=5)), ago(at, at), ago(None, at)
    ('5 min ago', 'just now', '–')
    >>> ago(at, at.replace(hour=3, minute=5))
    '3 h ago'
    """
    if then is None:
        return NOTHING
    if now is None:
        return moment(then)
    seconds = (now - then).total_seconds()
    return "just now" if seconds < 5 else f"{' '.join(span(seconds).split()[:2])} ago"


def moment(at: datetime | None) -> str:
    """A time as a date, in UTC.

    >>> moment(datetime(2026, 3, 9, 14, 5, 7, tzinfo=UTC)), moment(None)
    ('9 Mar 2026, 14:05 UTC', '–')
    """
    return NOTHING if at is None else f"{at.astimezone(UTC):%-d %b %Y, %H:%M} UTC"


def clock_time(at: datetime | None) -> str:
    """The time of day, in UTC.

    >>> clock_time(datetime(2026, 3, 9, 14, 5, 7, tzinfo=UTC))
    '14:05:07'
    """
    return NOTHING if at is None else f"{at.astimezone(UTC):%H:%M:%S}"


def lasted(began: datetime | None, ended: datetime | None) -> str:
    """How long it took.

    >>> at = datetime(2026, 1, 1, tzinfo=UTC)
    >>> lasted(at, at.replace(minute=1, second=30))
    '1 min'
    """
    return NOTHING if began is None or ended is None else span((ended - began).total_seconds())


def short_id(text: str) -> str:
    """An id without most of its uuid; others as they are.

    >>> short_id("0b6f2a9e-1111-4222-8333-444455556666"), short_id("m7")
    ('0b6f2a9e', 'm7')
    >>> short_id("manual-0b6f2a9e-1111-4222-8333-444455556666")
    'manual-0b6f2a9e'
    """
    uuid = text[-36:]
    return text[:-28] if len(uuid) == 36 and [len(p) for p in uuid.split("-")] == _UUID else text


def noun(number: int, one: str, many: str = "") -> str:
    """What is counted, without the number.

    >>> noun(1, "job"), noun(2, "job"), noun(0, "reply", "replies")
    ('job', 'jobs', 'replies')
    """
    return one if number == 1 else many or f"{one}s"


def plural(number: int, one: str, many: str = "") -> str:
    """A number and what it counts.

    >>> plural(1, "job"), plural(2, "job"), plural(0, "reply", "replies")
    ('1 job', '2 jobs', '0 replies')
    """
    return f"{number:,} {noun(number, one, many)}"


def spelled_list(names: list[str]) -> str:
    """Names as a person lists them.

    >>> spelled_list(["a", "b", "c"]), spelled_list([])
    ('a, b and c', '–')
    """
    if len(names) < 2:
        return names[0] if names else NOTHING
    return f"{', '.join(names[:-1])} and {names[-1]}"
