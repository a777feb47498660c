"""The watermark: never above a record that is not done, whatever order work ends in."""

from collections.abc import Hashable

from hypothesis import given
from hypothesis import strategies as st

from consumers.partitions import Partition, PartitionState
from domain.outbox import RawRecord


def record(offset: int, key: str) -> RawRecord:
    return RawRecord(topic="t", partition=0, offset=offset, key=key.encode(), value=b"", headers=())


def key_of(record: RawRecord) -> Hashable:
    return record.key


@given(
    offsets=st.lists(st.integers(0, 60), min_size=1, max_size=30, unique=True).map(sorted),
    keys=st.lists(st.sampled_from("abcd"), min_size=30, max_size=30),
    data=st.data(),
)
def test_the_watermark_is_the_lowest_offset_that_is_not_done(
    offsets: list[int], keys: list[str], data: st.DataObject
) -> None:
    partition = Partition(key_of)
    for offset, key in zip(offsets, keys, strict=False):
        partition.add(record(offset, key))
    lanes = {key.encode() for key in keys[: len(offsets)]}
    done: set[int] = set()

    while lanes:
        lane = data.draw(st.sampled_from(sorted(lanes)))
        waiting = partition.next_of(lane)
        if waiting is None:
            lanes.discard(lane)
            continue
        partition.finished(lane)
        done.add(waiting.offset)

        left = [offset for offset in offsets if offset not in done]
        below = [offset for offset in offsets if not left or offset < left[0]]
        assert partition.watermark == (below[-1] + 1 if below else None)
        assert partition.uncommitted == len([offset for offset in offsets if offset not in below])

    assert done == set(offsets)


def test_a_record_that_comes_again_is_taken_once() -> None:
    partition = Partition(key_of)

    assert partition.add(record(5, "a")) == b"a"
    assert partition.add(record(5, "a")) is None
    partition.finished(b"a")

    assert partition.next_of(b"a") is None
    assert partition.to_commit == 6


def test_a_stalled_partition_starts_nothing_and_holds_no_places() -> None:
    partition = Partition(key_of)
    partition.add(record(1, "a"))
    partition.add(record(2, "b"))

    partition.stall()

    assert partition.state is PartitionState.STALLED
    assert partition.next_of(b"b") is None
    assert partition.add(record(3, "c")) is None
    assert partition.waiting == 0
    assert partition.to_commit is None
