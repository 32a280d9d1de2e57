"""What a person sees while the demo runs fits, tells the whole, and leaves the terminal in order."""

import io
import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from rich.cells import cell_len
from rich.console import Console
from tests.demo import pictured
from tests.demo.pictured import BAD, FIRST, NAMES, SECOND

from upswing.demo.bars import draw_trace, stack_widths
from upswing.demo.lines import EVERY, PlainOutput, result_lines
from upswing.demo.screen import Screen, make_output, render_screen
from upswing.demo.view import CanaryView, JobView, Line, ModelScores, Stage, ValidationView, View

SIZES = [(80, 24), (100, 30), (120, 36), (160, 45), (200, 60)]
MOMENTS = {
    "early": pictured.early,
    "training": pictured.training,
    "ramp": pictured.view,
    "late": pictured.late,
}


class Terminal(io.StringIO):
    """Whatever is written to a terminal, its control codes too."""

    encoding = "utf-8"

    def isatty(self):
        return True


def drawn(view, size, **options):
    """The lines that a terminal of this size shows."""
    out = io.StringIO()
    console = Console(file=out, width=size[0], height=size[1], **options)
    console.print(render_screen(view, *size))
    return out.getvalue().splitlines()


# ── the picture ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_picture_fits_the_terminal(moment, size):
    lines = drawn(MOMENTS[moment](), size)
    assert len(lines) <= size[1]
    assert max(map(cell_len, lines)) <= size[0]


words = some.text(max_size=90)
numbers = some.floats() | some.floats(0, 1)
views = some.builds(
    View,
    title=words,
    second=some.floats(0, 1e5),
    clock=some.text(max_size=12),
    speed=some.integers(1, 9999),
    chapter=words,
    stages=some.lists(
        some.builds(
            Stage,
            name=some.sampled_from(NAMES),
            state=some.sampled_from(["waiting", "working", "done", "refused"]),
            count=some.integers(0, 10**7),
            note=words,
            seconds=some.none() | some.floats(0, 1e4),
        ),
        max_size=8,
    ).map(tuple),
    earned=some.lists(
        some.builds(
            ModelScores,
            model_id=words,
            points=some.lists(some.tuples(numbers, numbers), max_size=20).map(tuple),
            mean=some.floats(0, 1),
            count=some.integers(0, 10**5),
        ),
        max_size=12,
        unique_by=lambda each: each.model_id,
    ).map(tuple),
    traffic=some.dictionaries(words, some.floats(0, 100), max_size=5),
    job=some.none()
    | some.builds(JobView, job_id=words, status=words, percent=numbers, doing=words, loss=numbers),
    proof=some.none()
    | some.builds(
        ValidationView,
        model_id=words,
        verdict=words,
        done=some.integers(0, 900),
        of=some.integers(0, 900),
        sentence=words,
    ),
    canary=some.none()
    | some.builds(
        CanaryView,
        model_id=words,
        state=words,
        percent=some.floats(0, 100),
        steps=some.just((5, 10, 25, 50, 100)),
        sentence=words,
    ),
    log=some.lists(
        some.builds(Line, second=some.floats(0, 1e5), stage=words, kind=words, sentence=words),
        max_size=9,
    ).map(tuple),
)


@settings(max_examples=60, deadline=None)
@given(views, some.integers(80, 200), some.integers(24, 60))
def test_no_view_breaks_the_picture(view, width, height):
    lines = drawn(view, (width, height))
    assert len(lines) <= height
    assert max(map(cell_len, lines)) <= width
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_everything_that_is_promised_is_on_the_picture(size):
    text = "\n".join(drawn(pictured.view(), size))
    assert all(name in text for name in NAMES)
    for said in (
        "1,312",
        "1:41",
        "Tue 14:20",
        "×600",
        "tiny",
        FIRST,
        "0.31",
        "0.74",
        "step 120/120",
        "200/200",
        "●50",
        "ramping",
        "From 25 % to 50 %",
    ):
        assert said in text, said


def test_the_newest_decision_is_below_and_whole_even_on_the_smallest_terminal():
    lines = drawn(pictured.late(), (80, 24))
    text = " ".join(" ".join(lines).split())
    assert text.endswith("more than 0.05, and not by chance (odds of 48,211 to 1).")


def test_a_better_model_starts_where_the_worse_one_ends_and_stands_higher():
    rows = {line.split()[0]: line for line in drawn(pictured.late(), (80, 24)) if line.strip()}
    base, better = rows["tiny"], rows[SECOND]
    assert rows[BAD].count("▁") > 0
    assert max(map(base.find, "▂▃")) < better.find("▇")
    assert not set("▆▇█") & set(base)


def test_without_colour_models_are_told_apart_by_their_texture():
    (line,) = [
        line
        for line in drawn(pictured.view(), (80, 24), no_color=True)
        if line.strip().startswith("traffic")
    ]
    assert "█ tiny 50 %" in line
    assert f"▒ {FIRST} 50 %" in line
    assert line.count("█") == line.count("▒") > 5


def test_a_canary_that_was_taken_back_stands_on_no_step():
    (line,) = [
        line for line in drawn(pictured.late(), (100, 30)) if line.strip().startswith("canary")
    ]
    assert "rolled back 0 %" in line
    assert "●" not in line


def test_sixteen_colours_are_enough():
    out = io.StringIO()
    console = Console(file=out, width=100, height=30, force_terminal=True, color_system="truecolor")
    console.print(render_screen(pictured.late(), 100, 30))
    assert "\x1b[38;" not in out.getvalue()
    assert ";38;" not in out.getvalue()
    assert "\x1b[1;31m" in out.getvalue()


# ── its parts ────────────────────────────────────────────────────────────────────────────────


@given(some.lists(some.floats(0, 100), max_size=6), some.integers(6, 80))
def test_a_stack_fills_its_width_and_hides_nobody(shares, width):
    cells = stack_widths(shares, width)
    assert sum(cells) == (width if any(shares) else 0)
    assert all((count > 0) == (share > 0) for count, share in zip(cells, shares, strict=True))


def test_a_trace_skips_what_is_no_number_and_shows_a_zero():
    points = [(2.0, math.nan), (4.0, 0.0), (6.0, math.inf), (8.0, 1.0)]
    assert draw_trace(points, 8, (4, 1)) == [" ▁ █"]


# ── the terminal ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def terminal(monkeypatch):
    for name, value in (("COLUMNS", "100"), ("LINES", "30"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    return Terminal()


def test_the_terminal_is_given_back_with_the_last_picture_on_it(terminal):
    with Screen(terminal) as screen:
        screen.show(pictured.view())
        screen.show(pictured.late())
    during, after = terminal.getvalue().split("\x1b[?1049l")
    assert "\x1b[?1049h" in during
    assert during.count("\x1b[?25l") == 1
    assert "\x1b[?25h" in during + after
    assert BAD in after
    assert after.count("seed 7") == 1


def test_an_error_gives_the_terminal_back_too(terminal):
    def interrupted():
        with Screen(terminal) as screen:
            screen.show(pictured.view())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert "\x1b[?1049l" in terminal.getvalue()


def test_closing_twice_is_closing_once(terminal):
    with Screen(terminal) as screen:
        screen.show(pictured.view())
        screen.close()
    assert terminal.getvalue().count("\x1b[?1049l") == 1


def test_a_terminal_that_cannot_draw_gets_lines(terminal, monkeypatch):
    assert isinstance(make_output(terminal), Screen)
    assert isinstance(make_output(io.StringIO()), PlainOutput)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(make_output(terminal), PlainOutput)


# ── plain lines ──────────────────────────────────────────────────────────────────────────────


def told(*views):
    out = io.StringIO()
    with PlainOutput(out) as lines:
        for view in views:
            lines.show(view)
    return out.getvalue().splitlines()


def test_a_line_tells_of_every_decision_once():
    said = told(*(pictured.view(float(second)) for second in range(1, 300)))
    for line in pictured.LOG:
        assert sum(line.sentence in each and line.stage in each for each in said) == sum(
            line.sentence == other.sentence for other in pictured.LOG
        )
    assert len(said) == len(set(said))


def test_there_is_a_line_every_five_seconds_even_when_nothing_happens():
    quiet = [pictured.early()]
    quiet += [pictured.view(9 + half / 2, **_of(quiet[0])) for half in range(1, 120)]
    out, times = io.StringIO(), []
    lines = PlainOutput(out)
    for view in quiet:
        before = out.tell()
        lines.show(view)
        if out.tell() > before:
            times.append(view.second)
    assert max(after - before for before, after in pairwise(times)) <= EVERY
    assert len(times) < 20


def test_a_view_that_brings_nothing_new_is_not_told():
    assert told(pictured.view(), pictured.view()) == told(pictured.view())


def test_a_stage_that_changes_its_state_is_told_of():
    said = told(pictured.early(), pictured.view(10.0))
    assert "0:10 trigger: done (61 of 300 new)" in said


def test_a_chapter_that_the_log_tells_of_is_not_told_twice():
    line = Line(8.0, "demo", "chapter", "Agents work on the base model.")
    view = pictured.view(9.0, chapter=line.sentence, log=(line,))
    assert sum(line.sentence in each for each in told(view)) == 1


def test_lines_have_no_control_codes_and_bow_to_the_encoding():
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    PlainOutput(out).show(
        pictured.view(log=(Line(1, "deploy", "hold", "\x1b[31m50 % → 100 %\nnow"),))
    )
    written = raw.getvalue().decode("ascii")
    assert "deploy hold:  [31m50 % ? 100 % now" in written
    assert "\x1b" not in written


def test_the_ending_tells_the_result_and_where_things_are():
    text = "\n".join(result_lines(pictured.summary()))
    for said in (
        "0.312",
        "0.861",
        "+0.549",
        "(+0.470 to +0.631)",
        BAD,
        "upswing-demo/demo/report.html",
        "first_improved",
    ):
        assert said in text, said


def _of(view):
    return {
        name: getattr(view, name)
        for name in ("stages", "earned", "traffic", "job", "proof", "canary", "log", "chapter")
    }
