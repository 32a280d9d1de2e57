"""Why did this model fail? What was seen of it and of the model beside it, as one analysis.

facts of both ─▶ what went wrong ─▶ findings, ranked ─▶ remedies, from a table ─▶ a sentence
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from upswing.contracts.analysis import (
    AnalysisSource,
    FailureAnalysis,
    FailureLabel,
    FailureShare,
    FailureSymptom,
)
from upswing.monitor.core.failures import LEAST, WENT_WRONG, compare_failures, symptoms_of
from upswing.monitor.core.remedies import remedies_for
from upswing.records import EpisodeFacts

_WORDS = {
    "error": "requests that it did not answer",
    "low_reward": "episodes that earned less than three in four of the baseline's",
    "complaint": "episodes that a user complained about",
    "any": "failed episodes",
    "regressed_task": "tasks that it does worse than the model before",
}


@dataclass(frozen=True, slots=True)
class AnalysisSubject:
    """Whom an analysis is about, and why it is made."""

    model_id: str
    baseline_id: str
    source: AnalysisSource
    label: FailureLabel
    rollout_id: str = ""
    about: str = ""
    since: datetime | None = None
    until: datetime | None = None
    made: datetime | None = None


def analyse_failures(
    subject: AnalysisSubject, facts: Sequence[EpisodeFacts], notes: Sequence[str] = ()
) -> FailureAnalysis:
    """The whole."""
    candidate = [each for each in facts if each.candidate]
    baseline = [each for each in facts if not each.candidate]
    seen, beside = _share(candidate), _share(baseline)
    found, symptoms = compare_failures(candidate, baseline), symptoms_of(candidate, baseline)
    enough = LEAST <= seen.failed < seen.seen
    analysis = FailureAnalysis(
        subject.model_id,
        subject.baseline_id,
        subject.source,
        subject.label,
        seen,
        beside,
        symptoms,
        found.findings,
        remedies_for(symptoms, found.findings) if seen.failed else (),
        found.looks,
        "",
        (*notes, *(() if enough else (_too_little(seen),))),
        subject.rollout_id,
        subject.about,
        subject.since,
        subject.until,
        subject.made,
    )
    return replace(analysis, summary=_summary(analysis))


def _share(facts: Sequence[EpisodeFacts]) -> FailureShare:
    return FailureShare(sum(each.failed for each in facts), len(facts))


def _too_little(seen: FailureShare) -> str:
    if seen.failed and seen.failed == seen.seen:
        return "Everything that is known of it failed: there is no success to compare with."
    return f"{seen.failed} failures are known; {LEAST} are needed before they are compared with successes."


def _summary(analysis: FailureAnalysis) -> str:
    seen, beside = analysis.candidate, analysis.baseline
    what = _WORDS[analysis.label]
    said = (
        f"{analysis.model_id}: {seen.failed} of {seen.seen} ({seen.share:.1%}) are {what}; "
        f"{beside.failed} of {beside.seen} ({beside.share:.1%}) of {analysis.baseline_id}'s."
    )
    own = [each for each in analysis.findings if not each.shared and not each.goes_with]
    places = [each for each in own if each.feature != WENT_WRONG]
    kind = _leading(analysis.symptoms)
    if places:
        cause = f"{kind} at " if kind else ""
        return f"{said} They have in common: {cause}{places[0].feature} {places[0].value}."
    if kind and seen.failed >= LEAST:
        return f"{said} Most are {kind}; nothing else sets them apart."
    return f"{said} Nothing sets them apart." if seen.failed else said


def _leading(symptoms: Sequence[FailureSymptom]) -> str:
    """What went wrong in most of them, in words."""
    return symptoms[0].kind.replace("_", " ") if symptoms and symptoms[0].share > 0.5 else ""


def analysis_lines(analysis: FailureAnalysis) -> Iterator[str]:
    """The analysis in a terminal."""
    yield analysis.summary
    if analysis.symptoms:
        yield "\nwhat went wrong"
    for each in analysis.symptoms:
        yield f"  {each.kind:<18} {each.count:>5} ({each.share:.0%}), {each.baseline} of the baseline's"
    if analysis.findings:
        yield f"\nwhat they have in common ({analysis.looks} looks, exact tests, corrected)"
    for number, finding in enumerate(analysis.findings, 1):
        marks = [f"{finding.lift:g} times as often, p {finding.adjusted:.2g}"]
        marks += ["the baseline fails there, too"] if finding.shared else []
        marks += [f"goes with {finding.goes_with}"] if finding.goes_with else []
        yield f"  {number}. {finding.sentence} [{'; '.join(marks)}]"
        if finding.examples:
            yield f"     such as {', '.join(finding.examples)}"
    if analysis.remedies:
        yield "\nwhat to do"
    for remedy in analysis.remedies:
        yield f"  {remedy.text}"
        yield f"    because of {remedy.because}"
    for note in analysis.notes:
        yield f"\n{note}"
