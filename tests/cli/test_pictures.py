"""The README's picture is the one that its script draws."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_picture_of_the_three_ways_is_what_its_script_draws():
    script = runpy.run_path(str(ROOT / "scripts" / "joining"))
    assert (ROOT / "docs" / "images" / "joining.svg").read_text() == script["drawing"]()
    assert "docs/images/joining.svg" in (ROOT / "README.md").read_text()


def test_the_readme_tells_every_extra():
    from upswing.serve.prerequisites import EXTRAS

    text = (ROOT / "README.md").read_text()
    assert [name for name in EXTRAS if f"| `{name}` |" not in text] == []
