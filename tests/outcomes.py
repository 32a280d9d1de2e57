"""The table of docs/your-own-agent.md: what an outcome may be, and what it counts as."""

import json
import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "your-own-agent.md"


def _table():
    part = re.search(r"<!-- outcomes -->\n(.*?)<!-- /outcomes -->", PAGE.read_text(), re.DOTALL)[1]
    for line in part.splitlines()[2:]:
        cells = line.strip("| ").split(" | ")
        forms = re.findall(r"`([^`]+)`", cells[0])
        for form in forms:
            yield json.loads(form), None if cells[1].startswith("refused") else float(cells[1])


TABLE = list(_table())
UNDERSTOOD = [(form, value) for form, value in TABLE if value is not None]
REFUSED = [form for form, value in TABLE if value is None]
