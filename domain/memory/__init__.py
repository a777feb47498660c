"""The memory of a scope as a pure fold over what was said (docs/architecture/memory-model.md)."""
