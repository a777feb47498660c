"""PostgreSQL with pgvector and a Kafka broker as children of this process, for one machine."""
