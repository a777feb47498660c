"""Extraction by a language model, in one pass or two."""

import logging

from clients.llm.chain import ProviderChain
from clients.llm.prompt import ExtractionPrompt, OverviewPrompt
from domain.errors import ModelRefusedError, UnreadableAnswerError
from domain.model_answer import read_answer
from domain.model_candidates import Provenance, candidates_of
from domain.overview import Overview, deserves_overview, read_overview
from domain.ports import Usage, WindowCandidates
from domain.windows import Window

logger = logging.getLogger(__name__)


class ModelExtractor:
    """Puts each window to the chain; implements ``domain.ports.Extractor``.

    With ``overview``, a window that deserves it is first asked for who and what it speaks of.
    """

    def __init__(
        self, *, chain: ProviderChain, prompt: ExtractionPrompt, overview: OverviewPrompt | None = None
    ) -> None:
        self._chain = chain
        self._prompt = prompt
        self._overview = overview

    async def extract(self, window: Window) -> WindowCandidates:
        """Return what a model proposes for ``window``.

        Raises:
            ModelUnavailableError: no provider could be reached.
            UnreadableAnswerError: providers answered, none of them readably.
            ModelRefusedError: every provider refused for good.
        """
        hints, before = await self._first_pass(window)
        answered = await self._chain.ask(self._prompt.request(window, hints), read_answer)
        provenance = Provenance(model=answered.provider, spec_version=self._prompt.version)
        return WindowCandidates(
            candidates=candidates_of(answered.value, window, provenance),
            usage=before.plus(answered.usage),
            provider=answered.provider,
        )

    async def _first_pass(self, window: Window) -> tuple[Overview | None, Usage]:
        """Return hints and their cost; a pass that cannot be read costs hints, never the window."""
        if self._overview is None or not deserves_overview(window):
            return None, Usage()
        request = self._overview.request(window)
        try:
            answered = await self._chain.ask(request, lambda text: read_overview(text, window))
        except (UnreadableAnswerError, ModelRefusedError) as exc:
            logger.info("reading without hints: %s", exc)
            return None, Usage()
        return answered.value, answered.usage
