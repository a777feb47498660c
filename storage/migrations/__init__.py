"""Numbered SQL migrations, applied in order by ``storage.migrate``."""
