"""The demonstration: an engine's days with one user, over Kafka."""
