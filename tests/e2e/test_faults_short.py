"""Two short rounds of the fault runner, always the same two; `make faults` plays longer ones of any seed."""

from typing import Final

import pytest

from tests.faults.rounds import Plan, Rounds
from tests.faults.scene import WHOLE, Ground
from tests.support.kafka import KafkaServer
from tests.support.postgres import PostgresServer

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

_SEEDS: Final = (2, 12)
_BLOWS: Final = 4


async def test_two_short_rounds_of_kills_break_no_promise(
    apache_kafka: KafkaServer, own_kafka: KafkaServer, own_postgres: PostgresServer
) -> None:
    assert apache_kafka is own_kafka
    plan = Plan(sessions=40, roles=2, brokers=1, databases=1, corpora=1, roles_of=WHOLE)
    rounds = Rounds(await Ground.of(own_kafka, own_postgres), plan)

    results = [await rounds.play(seed) for seed in _SEEDS]

    assert [(result.line(), result.broken) for result in results if result.broken] == []
    assert sum(len(result.blows) for result in results) == _BLOWS * len(_SEEDS)
