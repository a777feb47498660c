"""The contract as JSON Schema and as an AsyncAPI document."""

from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from schemas.conversation import ConversationEnded, MessagePosted
from schemas.events import FactEvent, JobEvent, NoticeEvent
from schemas.fact import Fact, FactList
from schemas.injection import InjectionReply, InjectionRequest
from schemas.jobs import ExtractionJob, Job
from schemas.queries import FactsList, JobsGet
from schemas.replies import ErrorReply, Reply
from schemas.topics import LANES, Topics

Model = type[BaseModel]

REPLY_CHANNEL: Final = "replies"
_RESULTS: Final[tuple[Model, ...]] = (InjectionReply, FactList, Job, Reply, ErrorReply)


def received(topics: Topics) -> dict[str, tuple[Model, ...]]:
    """Return the topics that the service reads, and what it expects there."""
    return {
        topics.messages: (MessagePosted,),
        topics.ended: (ConversationEnded,),
        topics.replay: (ConversationEnded,),
        **{topics.jobs(lane): (ExtractionJob,) for lane in LANES},
        topics.injection_requests: (InjectionRequest,),
        topics.queries: (JobsGet, FactsList),
    }


def sent(topics: Topics) -> dict[str, tuple[Model, ...]]:
    """Return the topics that the service writes, and what is found there."""
    return {
        topics.events: (FactEvent, JobEvent, NoticeEvent),
        topics.facts: (Fact,),
        REPLY_CHANNEL: _RESULTS,
    }


def json_schemas(topics: Topics) -> dict[str, Any]:
    """Return the JSON Schema of every message by its name."""
    models = {model for kinds in (*received(topics).values(), *sent(topics).values()) for model in kinds}
    ordered = sorted(models, key=lambda model: model.__name__)
    _, schema = models_json_schema(
        [(model, "validation") for model in ordered], ref_template="#/components/schemas/{model}"
    )
    definitions: dict[str, Any] = schema["$defs"]
    return definitions


def asyncapi(topics: Topics, *, version: str) -> dict[str, Any]:
    """Return the AsyncAPI 3 document of every topic that the service reads or writes."""
    reads, writes = received(topics), sent(topics)
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Afterword",
            "version": version,
            "description": "Long-term memory that is written after a conversation ends.",
        },
        "defaultContentType": "application/json",
        "channels": {name: _channel(name, models) for name, models in {**reads, **writes}.items()},
        "operations": {
            **{f"receive {name}": _operation("receive", name) for name in reads},
            **{f"send {name}": _operation("send", name) for name in writes},
        },
        "components": {"schemas": json_schemas(topics)},
    }


def _channel(name: str, models: tuple[Model, ...]) -> dict[str, Any]:
    return {
        # A reply goes where its request says.
        "address": None if name == REPLY_CHANNEL else name,
        "messages": {
            model.__name__: {
                "name": model.__name__,
                "payload": {"$ref": f"#/components/schemas/{model.__name__}"},
            }
            for model in models
        },
    }


def _operation(action: str, channel: str) -> dict[str, Any]:
    return {"action": action, "channel": {"$ref": f"#/channels/{channel}"}}
