"""The examples of docs/recording.md run as they stand, one after the other."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "recording.md"


def test_the_examples_run(loop, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("AGENTGYM_RL_URL", loop.url)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 4
    assert names["recorder"].stats.errors == 0
    assert names["recorder"].stats.sent == 5
    assert not capsys.readouterr().out
