"""Everything that goes onto a topic: outbox relay, replies, and the client for engines."""
