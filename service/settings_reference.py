"""The page of settings, made from the settings themselves: ``python -m service.settings_reference``."""

import sys
from collections.abc import Iterator
from typing import Final

from pydantic import AliasChoices
from pydantic.fields import FieldInfo

from service.settings import Settings

_HEAD: Final = """# Settings

Read from the environment, and from a file `.env` in the working folder for what is not set there. An
empty value counts as unset. A wrong value stops the start with one line that names the setting and never
shows its value. Names in brackets are read when the first one is not set. What is written here is made
by `python -m service.settings_reference`; a test compares the two.

No default sends a conversation to another machine: with no model and no embeddings service set, rules
and an embedder in the same process do the work. `OPENAI_…`, `ANTHROPIC_…` and `GEMINI_…` are looked at
only when `LLM_PROVIDER_ORDER` names `openai`, `anthropic` or `gemini`. `MEMORY_LLM_ENDPOINT` alone is
enough for `generate`:

```
MEMORY_LLM_ENDPOINT=http://llm.internal/api/generate
MEMORY_LLM_API_TOKEN=…
```

Two models, the second one asked when the first cannot be reached or read:

```
LLM_PROVIDER_ORDER=openai,generate
OPENAI_BASE_URL=http://vllm.internal:8000/v1
OPENAI_MODEL=qwen2.5-7b-instruct
MEMORY_LLM_ENDPOINT=http://llm.internal/api/generate
```

`AFTERWORD_CORPORA`, `AFTERWORD_TEST_KAFKA` and `AFTERWORD_TEST_DATABASE_URL` are of tests and benchmarks
alone (`CONTRIBUTING.md`).
"""
_SECTIONS: Final = {
    "afterword_kafka": "Kafka",
    "afterword_database_url": "Database",
    "llm_provider_order": "Extraction",
    "afterword_embedder": "Embeddings",
    "memory_injection_char_budget": "Reading",
    "afterword_ended_grace_sec": "Work",
    "memory_port": "HTTP and logs",
}
_BY_USER: Final = {"afterword_data_dir": "`/var/lib/afterword` as root, else `~/.local/share/afterword`"}


def settings_page() -> str:
    """Return the page as Markdown."""
    return "\n".join([*_lines(), ""])


def _lines() -> Iterator[str]:
    yield _HEAD.rstrip()
    for name, field in Settings.model_fields.items():
        if name in _SECTIONS:
            yield from (
                "",
                f"## {_SECTIONS[name]}",
                "",
                "| setting | default | meaning |",
                "| --- | --- | --- |",
            )
        meaning = " ".join((field.description or "").split())
        yield f"| {_names(name, field)} | {_BY_USER.get(name) or _default(field)} | {meaning} |"


def _names(name: str, field: FieldInfo) -> str:
    if isinstance(field.validation_alias, AliasChoices):
        first, *others = (str(choice) for choice in field.validation_alias.choices)
        return f"`{first}` ({', '.join(f'`{other}`' for other in others)})"
    return f"`{name.upper()}`"


def _default(field: FieldInfo) -> str:
    value = field.default
    match value:
        case None | () | "":
            return "–"
        case bool():
            return f"`{str(value).lower()}`"
        case tuple():
            return f"`{','.join(str(part) for part in value)}`"
        case float():
            return f"`{value:g}`"
        case _:
            return f"`{value}`"


if __name__ == "__main__":
    sys.stdout.write(settings_page())
