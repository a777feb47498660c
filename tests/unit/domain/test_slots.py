"""How long what found no slot waits."""

from hypothesis import given
from hypothesis import strategies as st

from domain.slots import SHORTEST_WAIT_S, Pace, Queue

SECONDS = st.floats(min_value=0, max_value=1_000)


@given(waiting=st.integers(1, 20_000), slots=st.integers(1, 1_000), seconds=SECONDS)
def test_what_waits_comes_back_no_faster_than_the_slots_take_it(
    waiting: int, slots: int, seconds: float
) -> None:
    span = Queue(waiting=waiting, slots=slots).seconds(job_seconds=seconds)

    assert SHORTEST_WAIT_S <= span <= 600
    if SHORTEST_WAIT_S < span < 600:
        assert waiting / span <= slots / seconds * 1.001


@given(taken=st.lists(SECONDS, min_size=1, max_size=50))
def test_the_pace_lies_between_the_quickest_and_the_slowest_job(taken: list[float]) -> None:
    pace = Pace()
    for seconds in taken:
        pace.note(seconds)

    assert min(taken) - 1e-6 <= pace.seconds <= max(taken) + 1e-6


def test_a_model_that_is_quick_again_is_noticed_within_a_few_jobs() -> None:
    pace = Pace()
    for seconds in [30.0] * 20 + [1.0] * 40:
        pace.note(seconds)

    assert pace.seconds < 2
