"""Driven side: language models, embedders and language helpers behind the ports of the domain."""
