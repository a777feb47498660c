import logging

import pytest

from telemetry.notices import Notice


def test_a_trouble_is_told_of_once_until_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    notice = Notice(logging.getLogger("consumers.failures"))

    for _ in range(3):
        notice.begins("the database is %s", "away")
    notice.is_over()
    notice.begins("the database is %s", "away again")

    assert [record.getMessage() for record in caplog.records] == [
        "the database is away",
        "the database is away again",
    ]
