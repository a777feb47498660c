import pytest

from domain.errors import InvalidInputError
from service.roles import ALL_ROLES, Role, roles_of, split


def test_no_names_mean_every_role() -> None:
    assert roles_of("") == ALL_ROLES


def test_names_may_have_spaces_and_empty_parts() -> None:
    assert roles_of("intake, relay,") == {Role.INTAKE, Role.RELAY}


def test_an_unknown_role_is_named_with_those_that_are_known() -> None:
    with pytest.raises(InvalidInputError, match=r"no such role: intakes; known are intake, extraction"):
        roles_of("intakes")


def test_the_responder_runs_apart_from_whatever_else_there_is() -> None:
    assert split(ALL_ROLES) == (ALL_ROLES - {Role.RESPONDER}, frozenset({Role.RESPONDER}))


def test_the_responder_alone_needs_no_further_process() -> None:
    assert split({Role.RESPONDER}) == (frozenset({Role.RESPONDER}), frozenset[Role]())
