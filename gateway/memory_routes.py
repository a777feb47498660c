"""The routes of the original memory service and of the gateway in front of it."""

from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

from domain.answer_query import MOST_ROWS, FactsQuery
from domain.conversation import NIL_AVATAR, UserRef
from domain.errors import InvalidInputError, NotFoundError
from domain.injection import InjectionRequest
from gateway.extract import ExtractRequest, ExtractTranscript
from gateway.parts import GatewayParts
from producers.wire_json import fact_body, fact_page_body, to_json
from schemas.fact import Fact, FactList
from schemas.wire import decode

_JSON: Final = "application/json"
_EXTRACT_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {_JSON: {"schema": ExtractRequest.model_json_schema()}},
    }
}


class MemoryInjectionBlock(BaseModel):
    """The text for a prompt."""

    text: str
    facts_count: int
    applied: bool


class Removed(BaseModel):
    """How many facts were forgotten."""

    removed: int


def memory_router(parts: GatewayParts) -> APIRouter:
    """Return the routes over the use cases in ``parts``."""
    router = APIRouter(tags=["memory"])
    _add_read_routes(router, parts)
    _add_write_routes(router, parts)
    return router


def _add_read_routes(router: APIRouter, parts: GatewayParts) -> None:
    @router.get("/get_injection_context")
    async def get_injection_context(
        request: Request, user_id: UUID, avatar_id: UUID = NIL_AVATAR
    ) -> MemoryInjectionBlock:
        """Give the memory block for a user and an avatar; empty for a user nobody knows."""
        wanted = InjectionRequest(
            tenant_id=_tenant(request), user=UserRef(user_id=user_id), avatar_id=avatar_id
        )
        injection = await parts.inject(wanted)
        return MemoryInjectionBlock(
            text=injection.text, facts_count=injection.facts_count, applied=injection.applied
        )

    @router.get("/api_lis/memory", response_model=FactList)
    async def list_memory(  # noqa: PLR0913 - one parameter a field of the query
        request: Request,
        *,
        user_id: UUID,
        avatar_id: UUID = NIL_AVATAR,
        status: Annotated[list[str] | None, Query()] = None,
        types: Annotated[list[str] | None, Query()] = None,
        cursor: str | None = None,
        limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 100,
    ) -> Response:
        """List the facts of a user and an avatar, the active ones unless ``status`` says others."""
        page = await parts.answers.facts(
            FactsQuery(
                tenant_id=_tenant(request),
                user=UserRef(user_id=user_id),
                avatar_id=avatar_id,
                statuses=frozenset(status or ("active",)),
                categories=frozenset(types or ()),
                cursor=cursor,
                limit=limit,
            )
        )
        return _json(fact_page_body(page))


def _add_write_routes(router: APIRouter, parts: GatewayParts) -> None:
    extract_transcript = ExtractTranscript(parts)

    @router.post("/extract", response_model=list[Fact], openapi_extra=_EXTRACT_BODY)
    async def extract(request: Request) -> Response:
        """Extract the facts of a transcript and give them once its job has ended; a repeat gives the same."""
        _needs_json(request)
        wanted = decode(ExtractRequest, await request.body())
        rows = await extract_transcript(
            wanted, tenant_id=_tenant(request), traceparent=request.state.traceparent
        )
        return _json([fact_body(row) for row in rows])

    @router.delete("/api_lis/memory/{fact_id}")
    async def forget(request: Request, fact_id: UUID, user_id: UUID | None = None) -> Removed:
        """Forget a fact: what was said for it up to now stays hidden, through every replay."""
        if not await parts.forget(_tenant(request), fact_id, user_id):
            raise NotFoundError("no such fact")
        return Removed(removed=1)


def _needs_json(request: Request) -> None:
    """Refuse what a page of another site could send from a browser without asking first."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
        raise InvalidInputError(f"content-type: expected {_JSON}", field="content-type")


def _json(body: object) -> Response:
    return Response(to_json(body), media_type=_JSON)


def _tenant(request: Request) -> str:
    return str(request.state.tenant_id)
