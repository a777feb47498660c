"""How many random histories a property is tried on: ``FOLD_PROFILE=long`` for many."""

import os

from hypothesis import HealthCheck, settings

_SLOW = [HealthCheck.too_slow]

settings.register_profile("quick", max_examples=120, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("long", max_examples=2000, deadline=None, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("FOLD_PROFILE", "quick"))  # noqa: TID251 - not a setting of the service
