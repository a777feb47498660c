"""What every group of settings has: how it is read, and a way to say what does not fit together."""

from collections.abc import Iterable

from pydantic_settings import BaseSettings, SettingsConfigDict

Conflict = tuple[str, bool, str]


class SettingsGroup(BaseSettings):
    """A part of the settings; each field is read from the variable of its name."""

    model_config = SettingsConfigDict(
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )

    def conflicts(self) -> Iterable[Conflict]:
        """Yield what may not be: the setting to name, whether it is so, and what is wished."""
        return ()
