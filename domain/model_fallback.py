"""What happens to a window when no model can be reached: rules stand in, or the job waits."""

from dataclasses import replace
from enum import StrEnum

from domain.errors import ModelUnavailableError
from domain.ports import Extractor, WindowCandidates
from domain.windows import Window


class ModelFallback(StrEnum):
    """What stands in for a model that cannot be reached."""

    RULES = "rules"
    WAIT = "wait"


class FallbackExtractor:
    """Asks a model, and rules where it cannot be reached; what those gave is marked, to be done again."""

    def __init__(
        self, *, model: Extractor, rules: Extractor, mode: ModelFallback = ModelFallback.RULES
    ) -> None:
        self._model = model
        self._rules = rules
        self._mode = mode

    async def extract(self, window: Window) -> WindowCandidates:
        """Return the candidates of the model, or those of the rules with ``degraded`` set.

        Raises:
            ModelUnavailableError: no model could be reached, and the job is to wait for one.
            UnreadableAnswerError: models answered, none of them readably; rules do not hide that.
            ModelRefusedError: every model refused for good.
        """
        try:
            return await self._model.extract(window)
        except ModelUnavailableError:
            if self._mode is ModelFallback.WAIT:
                raise
        return replace(await self._rules.extract(window), degraded=True)
