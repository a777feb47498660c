"""Language models: one wire format a module, a chain with breakers over them, and the extractor on top."""
