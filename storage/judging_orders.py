"""What a judge said as rows, and when it is asked again."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from domain.events import JobOrdered
from domain.jobs import JobKind, JobOrder
from domain.judging import Judging
from domain.memory.assertions import Scope
from domain.memory.questions import is_judged, judged_claim
from domain.memory.slots import slot_text
from domain.stores import Extracted
from storage.commit_reads import Reading
from storage.evidence_rows import assertion_from_row, judgement_row
from storage.job_rows import ordered
from storage.json_text import Row

_JUDGED_AFTER: Final = timedelta(seconds=30)
_RARELY: Final = timedelta(hours=1)


def judgement_rows(scope: Scope, judging: Judging) -> list[Row]:
    """Return what was judged, for ``ADD_JUDGEMENTS``."""
    return [judgement_row(scope, one, judging.judge) for one in judging.judgements]


def judging_cost(order: JobOrder, judging: Judging) -> dict[str, object]:
    """Return what it cost, for ``COUNT_JUDGING``."""
    return {
        "tenant_id": order.tenant_id,
        "user_id": order.user_id,
        "job_id": order.job_id,
        "model_calls": judging.usage.model_calls,
        "asked": judging.asked,
        "judgements": len(judging.judgements),
        "tokens_in": judging.usage.tokens_in,
        "tokens_out": judging.usage.tokens_out,
    }


def judged_later(held: Mapping[str, Any], extracted: Extracted, reading: Reading) -> JobOrdered | None:
    """Order what the session leaves open: the judge was away, or others spoke in the meantime."""
    judging = extracted.judging
    if judging.seen is None:
        return None
    slots = {slot_text(one.slot) for one in extracted.assertions}
    unseen = (
        claim
        for row in reading.said
        if row["slot"] in slots and row["session_id"] != reading.touched.session_id
        if is_judged(claim := assertion_from_row(reading.touched.scope, row).claim)
        and judged_claim(claim) not in judging.seen
    )
    if not judging.is_owed and next(unseen, None) is None:
        return None
    due = held["now"] + _JUDGED_AFTER if judging.is_away else None
    return ordered(held, kind=JobKind.JUDGE, at=due)


def judged_again(job: Mapping[str, Any], judging: Judging) -> JobOrdered:
    """Order again; a judge that stays away is asked ever more rarely, by how long ago the job was done."""
    if not judging.is_away:
        return ordered(job, kind=JobKind.JUDGE)
    waited: timedelta = job["now"] - (job["finished_at"] or job["now"])
    return ordered(job, kind=JobKind.JUDGE, at=job["now"] + min(max(waited, _JUDGED_AFTER), _RARELY))
