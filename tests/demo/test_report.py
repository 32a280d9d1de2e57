"""The report of a demo holds everything, loads nothing, and trusts no text."""

import runpy
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from tests.demo import pictured
from tests.demo.pictured import BAD, FIRST, LOG, SECOND

from upswing.demo.charts import draw_charts
from upswing.demo.record import DemoHistory, join_starts, read_views
from upswing.demo.report import Picture, report_html, write_report
from upswing.demo.summary import ModelLine
from upswing.demo.view import Line

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "screenshots"
PNG = b"\x89PNG\r\n\x1a\n"
EMPTY = {"area", "br", "hr", "img", "link", "meta", "source"}


class Page(HTMLParser):
    """What a browser makes of a page: its elements, balanced or not, and its text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.words = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture
def run(tmp_path):
    """The folder of a run that was stopped at second 100 and went on, and was cut off once more."""
    folder = tmp_path / "demo"
    folder.mkdir()
    first = [msgspec.json.encode(pictured.view(float(at))) for at in range(1, 101, 3)]
    second = [
        msgspec.json.encode(pictured.view(float(at), traffic=shares(at))) for at in range(1, 300, 3)
    ]
    (folder / "views.jsonl").write_bytes(b"\n".join([*first, first[-1][:300], *second]) + b"\n")
    return folder


def shares(second):
    return [each for each in pictured.shares() if each.second <= second][-1].traffic


def test_the_report_tells_the_result_its_reasons_and_how_to_go_on(run):
    page = Page(write_report(run, pictured.summary()).read_text())
    assert not page.open
    for said in (
        "0.31",
        "0.86",
        "+0.55",
        "+0.47 to +0.63",
        "first improved",
        FIRST,
        SECOND,
        BAD,
        "13.2 seconds",
        "upswing up --data upswing-demo",
        "upswing explain ID",
    ):
        assert said in page.text, said
    for line in LOG:
        assert line.sentence in page.text
        assert line.decision_id is None or line.decision_id in page.text


def test_the_report_loads_nothing_from_anywhere(run):
    text = write_report(run, pictured.summary()).read_text()
    page = Page(text)
    links = [
        value
        for _, attributes in page.elements
        for name, value in attributes.items()
        if name in {"src", "srcset", "href"}
    ]
    assert len(links) == 6
    assert all(link.startswith("data:image/png;base64,") for link in links)
    assert not {tag for tag, _ in page.elements} & {"script", "link", "iframe"}
    assert "http:" not in text
    assert "https:" not in text


def test_no_text_of_a_run_becomes_markup():
    nasty = "</code><script>alert('x')</script><img src=x onerror=y>"
    summary = pictured.summary(
        sentence=nasty,
        world=nasty,
        model=nasty,
        rolled_back=(nasty,),
        files={"data": nasty, nasty: nasty},
        models=(ModelLine(nasty, nasty, nasty, nasty),),
        stages={nasty: 1.0},
        decisions=(Line(1, nasty, nasty, nasty, nasty),),
    )
    page = Page(report_html(summary, DemoHistory(), [Picture('"><b>', PNG)]))
    assert not page.open
    assert "script" not in {tag for tag, _ in page.elements}
    assert not any("onerror" in attributes for _, attributes in page.elements)
    assert [tag for tag, _ in page.elements].count("img") == 1
    assert page.text.count("alert('x')") >= 12


def test_a_run_without_success_says_so():
    summary = pictured.summary(
        improved=False,
        difference=-0.02,
        difference_interval=(-0.1, 0.06),
        rolled_back=(),
        taken_back_seconds=None,
        stages={},
        sentence="Training did not help.",
    )
    text = report_html(summary, DemoHistory())
    assert "Training did not help." in text
    assert '<b class="bad">−0.02</b>' in text
    assert "No model was rolled back." in text


def test_a_run_that_was_stopped_and_went_on_is_one_story(run):
    told = join_starts(read_views(run / "views.jsonl"))
    assert told.seconds == pytest.approx(100 + 298)
    assert told.log[-1].second == pytest.approx(100 + 275)
    assert {each.model_id for each in told.scored} == {"tiny", FIRST, SECOND, BAD}
    assert max(each.second for each in told.scored) > 300
    assert [each.traffic for each in told.shares][-3:] == [
        {SECOND: 100},
        {SECOND: 75, BAD: 25},
        {SECOND: 100},
    ]


def test_charts_are_drawn_for_light_and_dark_pages(tmp_path):
    told = DemoHistory(tuple(pictured.scored()), tuple(pictured.shares()), LOG, 300.0)
    made = draw_charts(tmp_path, pictured.summary(), told)
    assert [path.name for path in made] == ["scores.png", "heldout.png", "traffic.png"]
    for path in made:
        light, dark = (path.read_bytes(), path.with_stem(f"{path.stem}-dark").read_bytes())
        assert light.startswith(PNG)
        assert dark.startswith(PNG)
        assert light != dark


def test_charts_of_nothing_are_drawn_too(tmp_path):
    made = draw_charts(
        tmp_path, pictured.summary(measured=(), rolled_back=("$x_{", "模型")), DemoHistory()
    )
    assert all(path.read_bytes().startswith(PNG) for path in made)


def test_charts_take_any_name(tmp_path):
    nasty = "$\\frac{模型\x00"
    told = DemoHistory(
        tuple(msgspec.structs.replace(each, model_id=nasty) for each in pictured.scored(40.0)),
        (msgspec.structs.replace(pictured.shares()[0], traffic={nasty: 100.0}),),
        LOG,
        300.0,
    )
    assert len(draw_charts(tmp_path, pictured.summary(), told)) == 3


def test_the_screenshots_show_the_most_telling_view(run, tmp_path, capsys):
    write_report(run, pictured.summary())
    script = runpy.run_path(str(SCRIPT))
    script["main"]([str(run.parent), "--out", str(tmp_path / "images"), "--size", "80x24"])
    assert (tmp_path / "images" / "demo-screen.png").read_bytes().startswith(PNG)
    assert "demo-report.png" in capsys.readouterr().out
    assert script["chosen"](read_views(run / "views.jsonl"), None).traffic == {SECOND: 75, BAD: 25}
