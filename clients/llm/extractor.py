"""Extraction by a language model."""

from clients.llm.chain import ProviderChain
from clients.llm.prompt import ExtractionPrompt
from domain.model_answer import read_answer
from domain.model_candidates import Provenance, candidates_of
from domain.ports import WindowCandidates
from domain.windows import Window


class ModelExtractor:
    """Puts each window to the chain; implements ``domain.ports.Extractor``."""

    def __init__(self, *, chain: ProviderChain, prompt: ExtractionPrompt) -> None:
        self._chain = chain
        self._prompt = prompt

    async def extract(self, window: Window) -> WindowCandidates:
        """Return what a model proposes for ``window``.

        Raises:
            ModelUnavailableError: no provider could be reached.
            UnreadableAnswerError: providers answered, none of them readably.
            ModelRefusedError: every provider refused for good.
        """
        answered = await self._chain.ask(self._prompt.request(window), read_answer)
        provenance = Provenance(model=answered.provider, spec_version=self._prompt.version)
        return WindowCandidates(
            candidates=candidates_of(answered.value, window, provenance),
            usage=answered.usage,
            provider=answered.provider,
        )
