"""Does docs/api.md name every endpoint as it is? `python -m tests.api.test_api_docs` writes its table anew."""

import asyncio
import json
import re
import sys
import tempfile
from pathlib import Path

import pytest
from tests.conftest import running_loop
from tests.support import Client

from upswing.api.deployment import DeploymentRoutes
from upswing.api.events import TOPICS
from upswing.api.openapi import openapi_document
from upswing.api.validation import ValidationRoutes

pytestmark = pytest.mark.live
PAGE = Path(__file__).parents[2] / "docs" / "api.md"
BEGIN, END = "<!-- endpoints: generated -->", "<!-- end of endpoints -->"
GROUPS = {
    "Look": lambda method, scopes: method == "GET" and "reader" in scopes,
    "Hand over": lambda _, scopes: "agent" in scopes,
    "Operate": lambda _, scopes: True,
}
"""In this order: the first that fits has the endpoint."""


def documents(loop_document):
    """Of a loop without models, and of what serving models adds."""
    adds = [
        *DeploymentRoutes(None, None).routes(),
        *ValidationRoutes(None, None, None, None, compare=None, current=None, known=None).routes(),
    ]
    yield "", loop_document
    yield " ¹", openapi_document(adds)


def endpoints(loop_document):
    for mark, document in documents(loop_document):
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                scopes = re.findall(
                    r"agent|assistant|gateway|operator|reader", operation.get("description", "")
                )
                query = [
                    each["name"]
                    for each in operation.get("parameters", ())
                    if each["in"] == "query"
                ]
                about = operation["summary"].rstrip(".")
                yield method.upper(), path, mark, tuple(scopes), about, tuple(query)


def table(loop_document):
    found = sorted(endpoints(loop_document), key=lambda row: (row[1], row[0]))
    lines, told = [], set()
    for group, fits in GROUPS.items():
        lines += ["", f"### {group}", "", "| endpoint | key | what | query |", "|---|---|---|---|"]
        for method, path, mark, scopes, about, query in found:
            if (method, path) in told or not fits(method, scopes):
                continue
            told.add((method, path))
            keys = ", ".join(scopes) or "none"
            names = " ".join(f"`{name}`" for name in query)
            lines.append(f"| `{method} {path}`{mark} | {keys} | {about} | {names} |")
    return "\n".join([*lines, ""])


async def read_document():
    with tempfile.TemporaryDirectory() as folder:
        async with (
            running_loop(Path(folder) / "data") as loop,
            Client(loop.running.http_url) as client,
        ):
            return (await client("GET", "/openapi.json"))[1]


def written():
    return PAGE.read_text().split(BEGIN)[1].split(END)[0].strip()


async def test_the_page_names_every_endpoint_as_it_is():
    expected = table(await read_document()).strip()
    assert written() == expected, "python -m tests.api.test_api_docs writes it anew"


def test_the_page_names_every_event():
    text = PAGE.read_text()
    assert [name for name in TOPICS if f"`{name}`" not in text] == []


def test_examples_of_the_page_are_json():
    for block in re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL):
        json.loads(block)


if __name__ == "__main__":
    before, rest = PAGE.read_text().split(BEGIN)
    made = table(asyncio.run(read_document()))
    PAGE.write_text(f"{before}{BEGIN}\n{made}\n{END}{rest.split(END)[1]}")
    sys.stdout.write(f"{PAGE} is written.\n")
