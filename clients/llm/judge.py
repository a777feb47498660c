"""Judgements by a language model: all questions of a session in one call."""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Final

from clients.llm.chain import ProviderChain
from clients.llm.provider import Request
from domain.judgement_answer import read_judgements
from domain.memory.questions import Question
from domain.memory.slots import SELF
from domain.ports import Judged

_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {
        "judgements": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "n": {"type": "integer", "minimum": 1},
                    "verdict": {"type": "string", "enum": ["same", "rivals", "compatible", "merge"]},
                    "text": {"type": ["string", "null"], "maxLength": 200},
                },
                "required": ["n", "verdict", "text"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["judgements"],
    "additionalProperties": False,
}
_TOKENS_A_QUESTION: Final = 48


class ModelJudge:
    """Puts questions to the chain; implements ``domain.ports.Judge``.

    An answer has ``max_tokens``, or more where many questions need it.
    """

    def __init__(self, *, chain: ProviderChain, temperature: float = 0.1, max_tokens: int = 256) -> None:
        self._chain = chain
        self._fixed = (files("domain") / "judging_spec.md").read_text(encoding="utf-8")
        self._temperature = temperature
        self._max_tokens = max_tokens

    async def judge(self, questions: Sequence[Question]) -> Judged:
        """Answer ``questions``.

        Raises:
            ModelUnavailableError: no provider could be reached.
            UnreadableAnswerError: providers answered, none of them readably.
            ModelRefusedError: every provider refused for good.
        """
        request = Request(
            fixed=self._fixed,
            varying="\n".join(("# Questions", *(_line(n, one) for n, one in enumerate(questions, 1)))),
            schema=_SCHEMA,
            schema_name="judgements",
            temperature=self._temperature,
            max_tokens=max(self._max_tokens, _TOKENS_A_QUESTION * len(questions)),
        )
        answered = await self._chain.ask(request, lambda text: read_judgements(text, questions))
        return Judged(verdicts=answered.value, usage=answered.usage, judge=answered.provider)


def _line(number: int, asked: Question) -> str:
    """Write one question: the slot and the two values in their canonical order, without times."""
    slot = asked.left.slot
    fields: dict[str, object] = {"n": number, "key": slot.key}
    if slot.about != SELF:
        fields["about"] = slot.about
    if slot.qualifier:
        fields["kind"] = slot.qualifier
    return json.dumps({**fields, "values": [asked.left.norm, asked.right.norm]}, ensure_ascii=False)
