"""Does a model's card say what a person should know, whatever the names on it are?"""

import math
import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from markdown_it import MarkdownIt

from upswing.dataset.snapshot import Snapshot, SnapshotEntry
from upswing.train.core.card import ModelCard, render_card
from upswing.train.core.recipe import Recipe
from upswing.train.core.report import StepReport, TrainingStarted
from upswing.train.core.spec import JobSpec

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SNAPSHOT = Snapshot(
    source="local",
    algorithm="grpo",
    sample_size=200,
    seed=0,
    holdout=0.1,
    min_agents=5,
    filter={},
    balance={},
    entries=[SnapshotEntry(f"t{n}", 1, held_out=n % 10 == 0) for n in range(200)],
    domains={"coding": 120, "research": 80},
    groups={f"w{n}/s": 5 for n in range(40)},
    tasks=20,
    held_out_tasks=2,
    left_out={"erased": 3, "infra_error": 11},
    policies={},
    off_policy=0.0,
    sources={},
    reused=0.25,
    earliest=datetime(2026, 2, 1, tzinfo=UTC),
    latest=datetime(2026, 2, 27, 8, tzinfo=UTC),
    notes=["Tasks were held out, not rows."],
    made=AT,
    sha256="5" * 64,
)
BEGAN = TrainingStarted(
    total_steps=40,
    total_epochs=2,
    first_step=0,
    examples=180,
    groups=36,
    flat_groups=4,
    trained_tokens=120_000,
    off_policy_tokens=30_000,
    masked_trajectories=7,
    dropped={"has no turn that fits": 2, "erased": 1},
    versions={"torch": "2.13.0", "peft": "0.21.2"},
)


def steps(count=40):
    return [
        StepReport(
            step=n,
            epoch=0,
            loss=-n / 100,
            reward_mean=0.4 + n / 100,
            reward_std=0.2,
            entropy=1.0,
            kl=0.01,
            clipped=0.05,
            grad_norm=1.0,
            learning_rate=1e-5,
            tokens=n * 3000,
            seconds=1.0,
        )
        for n in range(1, count + 1)
    ]


def card(**changes):
    spec = JobSpec("job-7", Recipe(learning_rate=3e-4), "smollm2", parent="m-3", cost_per_hour=1.5)
    facts = {
        "spec": spec,
        "snapshot": SNAPSHOT,
        "began": BEGAN,
        "steps": steps(),
        "kind": "adapter",
        "created": AT,
        "code_version": "0.1.0",
        "checkpoint_sha256": "c" * 64,
        "base_sha256": "b" * 64,
        "holdout_before": 0.41,
        "holdout_after": 0.72,
        "seconds": 1800.0,
        "peak_rss_bytes": 3_100_000_000,
    }
    return ModelCard(**{**facts, **changes})


def section(told, title):
    return told.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(told):
    """First cell → the others, of every table row."""
    cells = [
        re.split(r"(?<!\\)\|", line)[1:-1] for line in told.splitlines() if line.startswith("|")
    ]
    return {first.strip(): [each.strip() for each in rest] for first, *rest in cells}


def test_the_data_is_named_counted_and_dated():
    told = rows(section(render_card(card()), "Data"))
    assert told["snapshot"] == [f"`{'5' * 64}`, from local"]
    assert told["trajectories"] == ["200 in 40 groups"]
    assert told["by domain"] == ["coding 120, research 80"]
    assert told["ended between"] == ["2026-02-01 00:00 UTC and 2026-02-27 08:00 UTC"]
    assert told["held out"] == ["10.0%: 2 of 20 tasks"]
    assert told["reused"] == ["25.0% had trained an ancestor of this model"]
    assert told["off-policy"] == ["25.0% of the trained tokens"]
    assert told["weights of off-policy tokens"] == [
        "1 on the mean, 0.0% cut at the cap, worth 100.0% of the tokens"
    ]
    assert told["serving beside training"] == ["nothing that the start policy said was recorded"]
    assert told["too long to train, masked"] == ["7"]
    assert told["left out"] == ["infra_error 11, erased 4, has no turn that fits 2"]
    assert "Tasks were held out, not rows." in render_card(card())


def test_the_configuration_names_what_was_changed_and_holds_the_whole_recipe():
    told = section(render_card(card()), "Configuration")
    assert rows(told)["learning_rate"] == ["`0.0003`"]
    assert "batch_size" not in rows(told)
    raw = told.partition("```json\n")[2].partition("```")[0].encode()
    assert msgspec.json.decode(raw, type=Recipe) == Recipe(learning_rate=3e-4)


def test_the_results_stand_before_and_after():
    told = section(render_card(card()), "Results")
    assert rows(told)["reward on held-out tasks"] == ["0.41", "0.72", "+0.31"]
    assert rows(told)["reward"] == ["0.425", "0.785", "0.41", "0.8"]
    assert "(curves.png)" in told
    assert "went from 0.41 to 0.72" in render_card(card())


def test_the_provenance_leads_back_to_base_parent_data_and_code():
    told = rows(section(render_card(card()), "Provenance"))
    assert told["base"] == [f"smollm2, sha256 `{'b' * 64}`"]
    assert told["parent"] == ["m-3"]
    assert told["checkpoint"] == [f"`{'c' * 64}`, the seal in its manifest.json"]
    assert told["data snapshot"] == [f"`{'5' * 64}`"]
    assert told["code"] == ["upswing 0.1.0"]
    assert told["with"] == ["peft 0.21.2, torch 2.13.0"]


def test_the_cost_is_told_in_dollars_only_when_a_price_is_known():
    told = rows(section(render_card(card()), "Cost"))
    assert told["time"] == ["1,800 s in 1 process"]
    assert told["peak memory"] == ["3.10 GB"]
    assert told["price"] == ["0.75 USD at 1.5 USD an hour"]
    free = msgspec.structs.replace(card().spec, cost_per_hour=0.0, processes=2)
    assert rows(section(render_card(card(spec=free)), "Cost"))["price"][0].startswith(
        "none is set in `[train] cost_per_hour`"
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "Only 2 tasks were held out"),
        ({}, "25% of its tokens were not recorded exactly"),
        ({}, "It saw coding, research only"),
        ({"holdout_after": None}, "nothing here shows that it generalises"),
        ({"began": msgspec.structs.replace(BEGAN, flat_groups=30)}, "30 of 36 groups"),
        ({"snapshot": msgspec.structs.replace(SNAPSHOT, reused=0.9)}, "90% of its data"),
    ],
)
def test_the_limits_are_said(changes, sentence):
    assert sentence in section(render_card(card(**changes)), "Limits")


def test_what_is_fine_is_no_limit():
    fine = card(
        began=msgspec.structs.replace(BEGAN, off_policy_tokens=0, flat_groups=0),
        snapshot=msgspec.structs.replace(SNAPSHOT, held_out_tasks=40, tasks=400, reused=0.0),
    )
    assert section(render_card(fine), "Limits").count("\n- ") == 4


def test_a_job_without_numbers_has_a_card_too():
    nothing = card(
        steps=[],
        holdout_before=math.nan,
        holdout_after=None,
        base_sha256=None,
        began=TrainingStarted(0, 0, 0, 0, 0, 0, 0, 0, 0, {}, {}),
        snapshot=msgspec.structs.replace(
            SNAPSHOT,
            entries=[],
            domains={},
            groups={},
            earliest=None,
            latest=None,
            left_out={},
            notes=[],
        ),
    )
    told = render_card(nothing)
    assert "It was not measured on held-out data." in told
    assert rows(section(told, "Results"))["reward"] == ["–", "–", "–", "–"]
    assert " nan" not in told


def test_names_of_others_do_not_break_out_of_their_place():
    evil = "a|b\n# x\n<script>alert(1)</script> `c` [d](http://e) ```"
    bad = card(
        spec=JobSpec(evil, Recipe(), evil, parent=evil),
        snapshot=msgspec.structs.replace(
            SNAPSHOT, domains={evil: 1}, left_out={evil: 2}, notes=[evil], source=evil
        ),
        began=msgspec.structs.replace(BEGAN, dropped={evil: 3}, versions={evil: evil}),
    )
    parser = MarkdownIt("commonmark").enable("table")
    good_tokens, bad_tokens = (
        parser.parse(render_card(each).partition("\n---\n")[2]) for each in (card(), bad)
    )

    def shape(tokens):
        kinds = ("heading_open", "table_open", "fence", "html_block", "td_open")
        return [sum(token.type == kind for token in tokens) for kind in kinds]

    assert shape(bad_tokens)[:4] == shape(good_tokens)[:4]
    inline = [child.type for token in bad_tokens for child in token.children or ()]
    assert "html_inline" not in inline
    assert "link_open" not in inline


@pytest.mark.parametrize("kind", ["adapter", "full"])
def test_the_way_to_load_it_that_the_card_shows_works(tmp_path, kind):
    from checkpoint_cases import make_base, make_checkpoint

    base = make_base(tmp_path / "base")
    checkpoint = make_checkpoint(tmp_path, "final", base, kind)
    told = section(render_card(card(kind=kind)), "How to load it")
    code = "\n".join(re.findall(r"```python\n(.*?)```", told, re.DOTALL))
    code = code.replace('"BASE"', repr(str(base))).replace('"CHECKPOINT"', repr(str(checkpoint)))
    names = {}
    exec(code, names)
    assert names["model"].config.vocab_size == len(names["tokenizer"]) == 64
    assert isinstance(names["base"], str)
    assert Path(names["checkpoint"]) == checkpoint
