"""What one commit writes is the difference of the fold to the rows, whatever the split of the work."""

from dataclasses import replace
from random import Random
from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.events import FactChanged, MemoryNoticed
from domain.memory.assertions import (
    Corrects,
    Judgement,
    Mode,
    Retraction,
    RetractionKind,
    Rivals,
    Same,
)
from domain.memory.changes import Kind
from domain.memory.fold import ConflictingEvidenceError, Opinion, fold
from domain.memory.projection import Status
from domain.memory.slots import slot_of
from tests.unit.memory.builders import SCOPE, at, claim, command, said
from tests.unit.memory.histories import COMMANDS, OPINIONS, Taken, Told, statements
from tests.unit.memory.scoped import Scoped, all_at_once, sessions_of


@given(statements(), OPINIONS, COMMANDS, st.randoms(use_true_random=False))
def test_commits_in_any_order_write_the_rows_of_one_fold(
    told: Told, opinions: list[Opinion], commands: Taken, random: Random
) -> None:
    sessions = list(sessions_of(told).items())
    random.shuffle(sessions)
    scoped = Scoped(opinions=opinions, commands=commands)

    for name, rows in [*sessions, *sessions[:1]]:
        scoped.commit(name, rows)

    whole = all_at_once(told, opinions, commands)
    assert scoped.facts == whole.facts
    assert scoped.pending == whole.pending
    assert scoped.clarifications == whole.clarifications
    assert scoped.contradictions == whole.contradictions


@given(statements(), OPINIONS, COMMANDS)
def test_the_same_session_again_writes_nothing_and_sends_nothing(
    told: Told, opinions: list[Opinion], commands: Taken
) -> None:
    scoped = Scoped(opinions=opinions, commands=commands)
    for name, rows in sessions_of(told).items():
        scoped.commit(name, rows)
    revisions = {key: row.revision for key, row in scoped.facts.items()}

    again = [scoped.commit(name, rows) for name, rows in sessions_of(told).items()]

    assert all(one.is_empty and not one.events and not one.versions for one in again)
    assert revisions == {key: row.revision for key, row in scoped.facts.items()}


@given(statements(), OPINIONS, COMMANDS)
def test_an_erased_scope_has_no_rows_and_every_event_its_own_id(
    told: Told, opinions: list[Opinion], commands: Taken
) -> None:
    scoped = Scoped(opinions=opinions, commands=commands)
    for name, rows in [*sessions_of(told).items(), *sessions_of(told).items()]:
        scoped.commit(name, rows)
    for name in sessions_of(told):
        scoped.commit(name, ())
    for name, rows in sessions_of(told).items():
        scoped.commit(name, rows)
        scoped.commit(name, ())

    ids = [one.event_id for one in scoped.events]
    assert not scoped.facts
    assert not scoped.pending
    assert not scoped.clarifications
    assert not scoped.contradictions
    assert len(set(ids)) == len(ids) == scoped.counter


@given(statements(), OPINIONS, COMMANDS)
def test_every_row_change_has_one_version_and_one_event(
    told: Told, opinions: list[Opinion], commands: Taken
) -> None:
    scoped = Scoped(opinions=opinions, commands=commands)
    for name, rows in sessions_of(told).items():
        done = scoped.commit(name, rows)

        changed = [one for one in done.events if isinstance(one, FactChanged)]
        assert [(one.change, one.fact) for one in changed] == [
            (one.change, one.fact) for one in done.versions
        ]
        assert {one.fact_id for one in done.versions} == {r.fact_id for r in done.facts} | set(
            done.facts_removed
        )


def test_a_reworded_revision_raises_the_revision_by_one() -> None:
    scoped = Scoped()
    scoped.commit("s1", [said("2023-01-01", "home_city", "Porto", session="s1")])

    scoped.commit("s2", [said("2024-01-01", "home_city", "porto", session="s2")])
    done = scoped.commit("s3", [said("2025-01-01", "home_city", "Lyon", session="s3")])

    assert sorted((row.fact_value, row.status, row.revision) for row in scoped.facts.values()) == [
        ("Lyon", Status.ACTIVE, 1),
        ("porto", Status.SUPERSEDED, 3),
    ]
    assert done.counts == {Kind.CREATED: 1, Kind.SUPERSEDED: 1}


def test_event_ids_are_made_of_the_fact_and_the_counter_of_the_scope() -> None:
    scoped = Scoped(counter=7)

    done = scoped.commit("s1", [said("2023-01-01", "home_city", "Porto", session="s1")])

    (row,) = scoped.facts.values()
    assert [one.event_id for one in done.events] == [uuid5(row.fact_id, "8")]
    assert done.event_counter == 8


def test_a_gateway_delete_is_told_once_although_the_row_already_says_deleted() -> None:
    scoped = Scoped()
    scoped.commit("s1", [said("2023-01-01", "home_city", "Porto", session="s1")])
    (row,) = scoped.facts.values()
    scoped.facts[row.fact_id] = replace(row, status=Status.DELETED, deleted_at=at("2023-02-01"))
    scoped.commands += [Retraction(target=name, at=at("2023-02-01"), source="gateway") for name in row.names]

    first, second = scoped.fold({slot_of("home_city")}), scoped.fold({slot_of("home_city")})

    assert [one.change for one in first.versions] == [Kind.DELETED]
    assert first.facts[0].status is Status.DELETED
    assert first.facts[0].deleted_at == at("2023-02-01")
    assert second.is_empty


def test_a_gateway_undelete_is_told_as_restored() -> None:
    scoped = Scoped()
    scoped.commit("s1", [said("2023-01-01", "home_city", "Porto", session="s1")])
    (row,) = scoped.facts.values()
    scoped.commands += [Retraction(target=name, at=at("2023-02-01")) for name in row.names]
    scoped.fold({slot_of("home_city")})
    scoped.facts[row.fact_id] = replace(scoped.facts[row.fact_id], status=Status.ACTIVE)
    scoped.commands += [
        Retraction(target=name, at=at("2023-03-01"), kind=RetractionKind.RESTORE) for name in row.names
    ]

    done = scoped.fold({slot_of("home_city")})

    assert [one.change for one in done.versions] == [Kind.RESTORED]
    assert scoped.facts[row.fact_id].deleted_at is None


def test_a_late_session_does_not_undo_a_gateway_delete() -> None:
    scoped = Scoped()
    scoped.commit("s1", [said("2023-01-01", "home_city", "Porto", session="s1")])
    (row,) = scoped.facts.values()
    scoped.commands += [Retraction(target=name, at=at("2023-02-01")) for name in row.names]

    scoped.commit("s0", [said("2022-01-01", "home_city", "Porto", session="s0")])

    assert [one.status for one in scoped.facts.values()] == [Status.DELETED]


def test_what_the_sweep_expired_stays_so_until_it_is_given_more_time() -> None:
    scoped = Scoped()
    scoped.commit("s1", [said("2024-01-01", "current_task", "a leak", session="s1", expires="2024-01-02")])
    (row,) = scoped.facts.values()
    scoped.facts[row.fact_id] = replace(row, status=Status.EXPIRED, told_status=Status.EXPIRED)

    quiet = scoped.fold({slot_of("current_task")})
    longer = scoped.commit(
        "s2", [said("2024-01-03", "current_task", "a leak", session="s2", expires="2024-01-09")]
    )

    assert quiet.is_empty
    assert [one.change for one in longer.versions] == [Kind.RESTORED]


def test_a_late_older_wording_renames_the_row_and_says_where_it_went() -> None:
    scoped = Scoped(
        opinions=[
            Judgement(left=claim("home_city", "nyc"), right=claim("home_city", "new york"), verdict=Same())
        ]
    )
    scoped.commit("s1", [said("2024-01-01", "home_city", "NYC", session="s1")])
    (old,) = scoped.facts

    done = scoped.commit("s0", [said("2023-01-01", "home_city", "New York", session="s0")])

    (new,) = scoped.facts
    assert [one.change for one in done.versions] == [Kind.RENAMED, Kind.CREATED]
    assert done.versions[0].fact.merged_into == new != old
    assert [one.gone for one in done.events if isinstance(one, FactChanged)] == [True, False]


def test_a_candidate_is_held_then_promoted_and_a_question_opens() -> None:
    scoped = Scoped()

    held = scoped.commit("s1", [said("2024-01-01", "home_city", "Kyiv", session="s1", confidence=0.5)])
    promoted = scoped.commit("s2", [said("2024-01-02", "home_city", "Kyiv", session="s2")])
    asked = scoped.commit("s3", [said("2024-01-02T05:00", "home_city", "Lviv", session="s3")])

    kinds = [
        [one.kind for one in done.events if isinstance(one, MemoryNoticed)]
        for done in (held, promoted, asked)
    ]
    assert kinds == [["candidate.held"], ["candidate.promoted"], ["clarification.opened"]]
    assert held.held == 1


def test_a_contradiction_is_noted_and_goes_with_its_evidence() -> None:
    scoped = Scoped(
        opinions=[
            Judgement(
                left=claim("diet", "vegetarian"), right=claim("likes", "steak"), verdict=Rivals(), note="meat"
            )
        ]
    )
    scoped.commit("s1", [said("2023-01-01", "diet", "vegetarian", session="s1")])

    found = scoped.commit("s2", [said("2024-01-01", "likes", "steak", session="s2")])
    gone = scoped.commit("s2", [])

    assert [one.note for one in found.contradictions] == ["meat"]
    assert gone.contradictions_removed == found.contradictions


def test_a_correction_within_the_slot_leaves_no_row_behind() -> None:
    scoped = Scoped()
    scoped.commit("s1", [said("2024-01-01", "home_city", "Bern", session="s1")])

    done = scoped.commit(
        "s2", [said("2024-02-01", "home_city", "Basel", session="s2", amends=Corrects("Bern"))]
    )

    assert [one.change for one in done.versions] == [Kind.ERASED, Kind.CREATED]
    assert [row.fact_value for row in scoped.facts.values()] == ["Basel"]


def test_a_forgotten_slot_is_deleted_by_a_command_about_the_slot() -> None:
    scoped = Scoped()
    scoped.commit("s1", [said("2023-01-01", "home_city", "Porto", session="s1")])
    scoped.commands.append(command("2023-02-01", "home_city"))

    done = scoped.fold({slot_of("home_city")})

    assert [one.change for one in done.versions] == [Kind.DELETED]
    assert done.versions[0].fact.mode is Mode.HOLDS


@given(statements(), OPINIONS, COMMANDS)
def test_reprocessing_with_the_same_outcome_writes_nothing(
    told: Told, opinions: list[Opinion], commands: Taken
) -> None:
    scoped = all_at_once(told, opinions, commands)

    done = [
        scoped.commit(name, [replace(one, generation="g2") for one in rows])
        for name, rows in sessions_of(told).items()
    ]

    assert all(one.is_empty for one in done)


def test_erasing_the_second_session_discards_and_resolves_what_it_raised() -> None:
    scoped = Scoped()
    scoped.commit("s1", [said("2024-01-02", "home_city", "Kyiv", session="s1")])
    scoped.commit("s2", [said("2024-01-02T05:00", "home_city", "Lviv", session="s2")])
    scoped.commit("s3", [said("2024-01-03", "likes", "tea", session="s3", confidence=0.5)])

    resolved, discarded = scoped.commit("s2", []), scoped.commit("s3", [])

    kinds = [
        [one.kind for one in done.events if isinstance(one, MemoryNoticed)] for done in (resolved, discarded)
    ]
    assert kinds == [["clarification.resolved"], ["candidate.discarded"]]
    assert [one.change for one in resolved.versions] == [Kind.ERASED, Kind.RESTORED]


def test_a_row_that_was_imported_keeps_its_id() -> None:
    known = UUID(int=7)
    scoped = Scoped()
    scoped.commit("s1", [replace(said("2024-01-01", "home_city", "Kyiv", session="s1"), known_as=known)])
    scoped.commands.append(Retraction(target=known, at=at("2024-02-01")))

    scoped.fold({slot_of("home_city")})

    assert [(key, row.status) for key, row in scoped.facts.items()] == [(known, Status.DELETED)]


def test_one_id_with_two_contents_and_two_scopes_are_refused() -> None:
    one = said("2024-01-01", "home_city", "Kyiv", session="s1")
    stranger = replace(one, scope=replace(SCOPE, user="u2"))

    with pytest.raises(ConflictingEvidenceError, match="two contents"):
        fold([one, replace(one, confidence=0.7)])
    with pytest.raises(ConflictingEvidenceError, match="one scope"):
        fold([one, stranger])
