"""Facts and jobs as JSON of the wire (``schemas/fact.py``, ``schemas/jobs.py``), written without detours."""

from collections.abc import Sequence
from typing import Any, Final

import orjson

from domain.build_injection import fingerprint
from domain.gather_context import Gathered
from domain.injection import RankedFact
from domain.jobs import Job, JobError, JobOrder, JobOutcome
from domain.listings import FactStory
from domain.memory.facts import FactRow
from domain.search_memory import FoundFact
from domain.stores import FactPage

_OPTIONS: Final = orjson.OPT_UTC_Z


def to_json(body: object) -> bytes:
    """Write ``body`` as JSON; times are in RFC 3339."""
    return orjson.dumps(body, option=_OPTIONS)


def fact_body(row: FactRow) -> dict[str, Any]:
    """Return ``row`` as others see it."""
    return {
        "fact_id": row.fact_id,
        "tenant_id": row.tenant_id,
        "user_id": row.user_id,
        "avatar_id": row.avatar_id,
        "category": row.category,
        "fact_key": row.fact_key,
        "fact_value": row.fact_value,
        "content": row.content,
        "polarity": row.polarity,
        "status": row.status,
        "mode": row.mode,
        "confidence": row.confidence,
        "importance": row.importance,
        "memory_type": row.memory_type,
        "shared": False,
        "valid_from": row.valid_from,
        "valid_to": row.valid_to,
        "intervals": row.intervals,
        "expires_at": row.expires_at,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "last_said_at": row.last_said_at,
        "last_seen_at": row.last_seen_at,
        "deleted_at": row.deleted_at,
        "reinforced": row.reinforced,
        "revision": row.revision,
        "merged_into": row.merged_into,
        "previous_version_id": None,
        "source_session_id": row.source_session_id,
        "source_excerpt": row.source_excerpt or None,
        "dedup_hash": row.dedup_hash,
        "asserted_by": row.asserted_by,
        "extraction_method": row.extraction_method,
        "model": row.model,
        "spec_version": row.spec_version,
        "reasoning": row.reasoning or None,
    }


def fact_page_body(page: FactPage) -> dict[str, Any]:
    """Return one page of facts as others see it."""
    return {"items": [fact_body(row) for row in page.items], "next_cursor": page.next_cursor}


def found_page_body(found: Sequence[FoundFact]) -> dict[str, Any]:
    """Return what was found, best first, each fact with its score; there is no further page."""
    return {
        "items": [{"fact": fact_body(one.fact), "score": round(one.score, 4)} for one in found],
        "next_cursor": None,
    }


def fact_with_evidence(story: FactStory) -> dict[str, Any]:
    """Return a fact with the places where it was said."""
    return {**fact_body(story.fact), "evidence": story.evidence}


def story_body(story: FactStory) -> dict[str, Any]:
    """Return a fact with its evidence, and each version of it, oldest first."""
    versions = [{**told, "fact": fact_body(fact)} for told, fact in story.versions]
    return {"fact": fact_with_evidence(story), "versions": versions}


def context_body(gathered: Gathered, chosen: Sequence[RankedFact], text: str) -> dict[str, Any]:
    """Return a context: the text of those ``chosen`` for the budget, and the facts that it was made of."""
    ids = {fact.fact_id for fact in chosen}
    relevant = [one for one in gathered.relevant if one.fact.fact_id in ids]
    return {
        "text": text,
        "core": [fact_body(fact) for fact in gathered.core if fact.fact_id in ids],
        "relevant": [{"fact": fact_body(one.fact), "score": round(one.score, 4)} for one in relevant],
        "preferences": [],
        "summary": None,
        "fingerprint": fingerprint(text),
    }


def job_body(job: Job) -> dict[str, Any]:
    """Return ``job`` as others see it."""
    return {
        "job_id": job.job_id,
        "tenant_id": job.tenant_id,
        "user_id": job.user_id,
        "avatar_id": job.avatar_id,
        "session_id": job.session_id,
        "generation": job.generation,
        "status": job.status,
        "duplicate": job.duplicate,
        "revision": job.revision,
        "gate": job.gate,
        "plan": job.plan,
        "attempts": job.attempts,
        "queued_at": job.queued_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "next_attempt_at": job.next_attempt_at,
        "processing_eta_seconds": None,
        "result": _result(job.outcome),
        "error": _error(job.error),
    }


def order_body(order: JobOrder) -> dict[str, Any]:
    """Return ``order`` as the record of a jobs topic."""
    return {
        "kind": order.kind,
        "tenant_id": order.tenant_id,
        "user_id": order.user_id,
        "avatar_id": order.avatar_id,
        "job_id": order.job_id,
        "session_id": order.session_id,
        "generation": order.generation,
    }


def _result(outcome: JobOutcome | None) -> dict[str, Any] | None:
    if outcome is None:
        return None
    return {
        "facts_created": outcome.facts_created,
        "facts_reinforced": outcome.facts_reinforced,
        "facts_superseded": outcome.facts_superseded,
        "candidates_held": outcome.candidates_held,
        "candidates_dropped": dict(outcome.candidates_dropped),
        "windows": outcome.windows,
        "model_calls": outcome.model_calls,
        "questions_asked": outcome.questions_asked,
        "judgements": outcome.judgements,
        "tokens_in": outcome.tokens_in,
        "tokens_out": outcome.tokens_out,
        "provider": outcome.provider,
    }


def _error(error: JobError | None) -> dict[str, Any] | None:
    return None if error is None else {"code": error.code, "message": error.message}
