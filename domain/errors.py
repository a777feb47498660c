"""Errors of the domain.

Hierarchy::

    AfterwordError
      TransientError               the cause may pass
        InfrastructureError        nobody's fault: wait in place, no attempt is counted
          StorageUnavailableError  the database did not take the statement
            ReadOnlyStoreError     it takes no writes now, as one that is failing over
          BrokerUnavailableError   the broker did not take or give a record
        ModelUnavailableError      a language model did not answer, or is not to be asked now
        EmbedderUnavailableError   an embedder did not answer
        UnreadableAnswerError      no provider gave an answer that can be read: a failed attempt
      PermanentError               the same input will fail again
        InvalidInputError          a message, request or command breaks its contract
          UndecodableError         its bytes are no JSON at all
        NotFoundError              what is asked about does not exist in this tenant
        ConflictError              the same id came with other content
        ModelRefusedError          a provider refused the request for good (its 400)
      ClaimLostError               another worker holds the job now; nothing may be written
      SlotsTakenError              the tenant has as many jobs running as it may
"""


class AfterwordError(Exception):
    """Base of every error that this service raises on purpose."""


class TransientError(AfterwordError):
    """The cause may pass; the work is worth another attempt."""


class InfrastructureError(TransientError):
    """The database or the broker is away; the work waits and no attempt is counted."""


class StorageUnavailableError(InfrastructureError):
    """The database did not take the statement."""


class ReadOnlyStoreError(StorageUnavailableError):
    """The database takes no writes, as one that is failing over; nothing was written."""


class BrokerUnavailableError(InfrastructureError):
    """The broker did not take or give a record."""


class ModelUnavailableError(TransientError):
    """A language model did not answer in time, or is not to be asked now."""


class EmbedderUnavailableError(TransientError):
    """An embedder did not answer in time."""


class UnreadableAnswerError(TransientError):
    """No provider gave an answer that can be read; a failed attempt, never "nothing to remember"."""


class PermanentError(AfterwordError):
    """The same input will fail again."""


class InvalidInputError(PermanentError):
    """A message, request or command breaks its contract; ``field`` names where."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class UndecodableError(InvalidInputError):
    """The bytes of a message are no JSON at all."""


class NotFoundError(PermanentError):
    """What is asked about does not exist in this tenant."""


class ConflictError(PermanentError):
    """The same id came with other content."""


class ModelRefusedError(PermanentError):
    """A provider refused the request for good."""


class ClaimLostError(AfterwordError):
    """Another worker holds the job now; nothing may be written."""


class SlotsTakenError(AfterwordError):
    """The tenant has as many jobs running as it may; this one has not begun, and waits for its time."""
