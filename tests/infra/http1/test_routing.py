"""Every path finds its endpoint, whatever its names hold, and a method that it does not take is told which it does."""

import re
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from upswing.infra.http1.routing import NoRoute, RouteMatch, RouteTable

SEGMENTS = st.sampled_from(["models", "admin", "{name}", "v1", "{other}"])
TEMPLATES = st.lists(SEGMENTS, min_size=1, max_size=4, unique=True).map(lambda s: "/" + "/".join(s))
METHODS = st.sampled_from(["GET", "POST", "PUT", "DELETE"])
NAMES = st.text(min_size=1, max_size=12).filter(lambda text: text not in {".", ".."})


@given(st.data(), TEMPLATES, METHODS, NAMES, NAMES)
def test_what_a_path_names_comes_back_as_it_was(data, template, method, name, other):
    values = {"name": name, "other": other}
    table = RouteTable([(method, template, "it")])
    path = re.sub(r"\{(\w+)\}", lambda found: quote(values[found[1]], safe=""), template)
    wanted = {each: values[each] for each in re.findall(r"\{(\w+)\}", template)}
    assert table.find(method, path) == RouteMatch("it", wanted)
    another = data.draw(METHODS.filter(lambda each: each != method))
    allowed = {method, "OPTIONS", *(["HEAD"] if method == "GET" else [])}
    assert table.find(another, path) == NoRoute(", ".join(sorted(allowed)))
    assert table.find(method, path + "/more") == NoRoute()


def test_a_rest_takes_slashes_and_is_not_empty():
    table = RouteTable([("GET", "/api/{path...}", 1)])
    assert table.find("GET", "/api/a/b%20c") == RouteMatch(1, {"path": "a/b c"})
    assert table.find("GET", "/api/") == NoRoute()


def test_head_is_get_and_a_fixed_path_comes_before_a_template():
    table = RouteTable([("GET", "/models/{name}", 1), ("GET", "/models/all", 2)])
    assert table.find("HEAD", "/models/all") == RouteMatch(2)
    assert table.find("HEAD", "/models/one") == RouteMatch(1, {"name": "one"})
