"""What the recorder's tests share: the double of the loop, and recorders that send to it."""

import pytest
from loop_double import LoopDouble, PlainRedactor

from upswing.sdk import Recorder


@pytest.fixture
def loop():
    double = LoopDouble()
    yield double
    double.released.set()
    double.stop()


@pytest.fixture
def make(tmp_path, loop):
    """Recorders that send to the double, closed at the end."""
    made = []

    def recorder(**settings):
        given = {"url": loop.url, "spool": tmp_path / "spool", "redactor": PlainRedactor}
        made.append(Recorder(**(given | {"chance": lambda: 0.0} | settings)))
        return made[-1]

    yield recorder
    loop.released.set()
    for each in made:
        each.close(timeout=0.2)
        each._worker._thread.join(300)
