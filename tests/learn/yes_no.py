"""A world for a real language model: one question, and the reply's first word decides."""

from dataclasses import dataclass

from upswing.worlds.world import Observation, Outcome, Task

YES = ("phone", "laptop", "camera", "printer")
NO = ("lamp", "radio", "watch", "chair")
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
COLOURS = ("red", "blue", "green", "black", "white", "brown")


@dataclass(frozen=True, slots=True)
class Question(Task):
    text: str
    answer: str


@dataclass(frozen=True)
class YesNo:
    """Whether the workshop repairs a thing: electronics yes, the rest no. The prompt does not tell."""

    name = "yes-no"
    max_turns = 1

    @property
    def _all(self):
        return [
            Question(
                f"yes-no-{colour}-{thing}-{day}", "Answer yes or no.",
                f"Should we repair the {colour} {thing} that broke on {day}?", "yes" if thing in YES else "no",
            )
            for day in DAYS for colour in COLOURS for pair in zip(YES, NO, strict=True) for thing in pair
        ]  # fmt: skip

    @property
    def training(self):
        return [each for each in self._all if not each.text.endswith("sunday?")]

    @property
    def held_out(self):
        return [each for each in self._all if each.text.endswith("sunday?")]

    def reset(self, task):
        return (task, None)

    def observe(self, state):
        return Observation(state[0].text)

    def step(self, state, reply):
        return (state[0], reply)

    def outcome(self, state):
        task, reply = state
        if reply is None:
            return None
        words = reply.lower().replace(",", " ").replace(".", " ").split()
        right = words[:1] == [task.answer]
        return Outcome(right, float(right), "Right." if right else "Wrong.")
