"""Random conversations about few things, so that histories meet."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, LiteralString
from uuid import NAMESPACE_URL, UUID, uuid5

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from domain.arrivals import EndedConversation
from domain.candidates import Candidate
from domain.conversation import NIL_AVATAR, Message, UserRef
from domain.memory.assertions import Amendment, Claim, Corrects, InsteadOf, Scope, Stance, claim_id
from domain.memory.slots import EVERYWHERE, Slot, slot_of, slot_text
from domain.ports import Usage, WindowCandidates
from domain.windows import Window
from tests.integration.storage.stores import ANA, MARCH, TENANT, Stores, candidate, ended

SESSIONS: Final = 30
#: When a gateway deletes: after everything that is said, so that it means the same at any moment of a run.
DELETED_AT: Final = MARCH + timedelta(days=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose memory it is."""

    tenant: str = TENANT
    user: UserRef = ANA
    avatar: UUID = NIL_AVATAR

    @property
    def scope(self) -> Scope:
        return Scope(tenant=self.tenant, user=str(self.user.user_id), avatar=str(self.avatar))

    @property
    def columns(self) -> dict[str, object]:
        return {"tenant_id": self.tenant, "user_id": self.user.user_id, "avatar_id": self.avatar}


_OWN: Final = Owner()
_NEIGHBOURS: Final = (
    Owner(avatar=uuid5(NAMESPACE_URL, "another avatar")),
    Owner(user=UserRef(user_id=uuid5(NAMESPACE_URL, "bea"))),
    Owner(tenant="another tenant"),
)
# Most is about one: only there histories meet.
_OWNERS: Final = (_OWN, _OWN, _OWN, _OWN, *_NEIGHBOURS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """A sentence, and what a model reads in it; without a ``key`` nothing."""

    key: str = ""
    value: str = ""
    about: str = "self"
    stance: Stance = Stance.HOLDS
    amends: Amendment | None = None
    confidence: float = 0.9


_SAYINGS: Final[Mapping[str, Saying]] = {
    "Hm, hello.": Saying(),
    "I live in Porto.": Saying(key="home_city", value="Porto"),
    "I live in Lyon.": Saying(key="home_city", value="Lyon"),
    "I live in Lisbon.": Saying(key="home_city", value="Lisbon"),
    "I live in Lisboa.": Saying(key="home_city", value="Lisboa"),
    "Perhaps I live in Lyon.": Saying(key="home_city", value="Lyon", confidence=0.5),
    "Perhaps I live in Lisboa.": Saying(key="home_city", value="Lisboa", confidence=0.5),
    "I no longer live in Porto.": Saying(key="home_city", value="Porto", stance=Stance.DENIES),
    "I used to live in Lyon.": Saying(key="home_city", value="Lyon", stance=Stance.HELD),
    "I shall move to Lyon.": Saying(key="home_city", value="Lyon", stance=Stance.PLANS),
    "I moved from Porto to Lyon.": Saying(key="home_city", value="Lyon", amends=InsteadOf("Porto")),
    "No, not Lyon, I live in Porto.": Saying(key="home_city", value="Porto", amends=Corrects("Lyon")),
    "I never lived in Porto, I live in Lisbon.": Saying(
        key="home_city", value="Lisbon", amends=Corrects("Porto", everywhere=True)
    ),
    "Forget where I live.": Saying(key="home_city", value="*", stance=Stance.FORGETS),
    "I like tea.": Saying(key="likes", value="tea"),
    "I like coffee.": Saying(key="likes", value="coffee"),
    "Perhaps I like coffee.": Saying(key="likes", value="coffee", confidence=0.5),
    "I do not like tea.": Saying(key="likes", value="tea", stance=Stance.DENIES),
    "Forget that I like coffee.": Saying(key="likes", value="coffee", stance=Stance.FORGETS),
    "I work as a nurse.": Saying(key="job_title", value="nurse"),
    "I work as a welder.": Saying(key="job_title", value="welder"),
    "My sister lives in Porto.": Saying(key="home_city", value="Porto", about="sister"),
    "My sister lives in Lyon.": Saying(key="home_city", value="Lyon", about="sister"),
    "The shop runs on Postgres 15.": Saying(key="shop_runs_on", value="Postgres 15"),
    "The shop runs on Postgres 17.": Saying(key="shop_runs_on", value="Postgres 17"),
    "Forget everything.": Saying(key=EVERYWHERE.key, value="*", stance=Stance.FORGETS),
}

_CITY, _LIKES, _JOB = map(slot_of, ("home_city", "likes", "job_title"))
# What somebody judged beforehand: one city in two languages, two values of one set that exclude each other,
# and two of different slots, which leave a note.
_JUDGEMENTS: Final = (
    (Claim(_CITY, "lisboa"), Claim(_CITY, "lisbon"), "same"),
    (Claim(_LIKES, "coffee"), Claim(_LIKES, "tea"), "rivals"),
    (Claim(_CITY, "porto"), Claim(_JOB, "welder"), "rivals"),
)
_ADD_JUDGEMENT: Final[LiteralString] = """
INSERT INTO lis.judgements
       (user_id, tenant_id, avatar_id, left_claim, right_claim, authority, verdict, left_slot, right_slot,
        judge, decided_at)
VALUES (%(user_id)s, %(tenant_id)s, %(avatar_id)s, %(left)s, %(right)s, 2, %(verdict)s, %(left_slot)s,
        %(right_slot)s, 'somebody', %(at)s)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A conversation with its versions, the last one being what it came to.

    Each version ends later than the one before and is at least as long: what a session comes to is then the
    same in any order of their arrival (docs/architecture/intake.md, "The same session again").
    """

    owner: Owner
    half_day: int
    versions: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """A gateway's soft delete of a value of the first owner, perhaps taken back.

    Only of values that have no other wording: a gateway names the wordings that its row has at that moment.
    """

    slot: Slot
    norm: str
    is_lifted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Conversations in the order of their names, and what a gateway does."""

    talks: tuple[Talk, ...]
    deletions: tuple[Deletion, ...]

    def final(self) -> list[EndedConversation]:
        """Return each session as it came to be, by day."""
        numbered = sorted(enumerate(self.talks), key=lambda one: one[1].half_day)
        return [_ended(number, talk, len(talk.versions) - 1) for number, talk in numbered]

    def arrivals(self) -> list[EndedConversation]:
        """Return all versions of all sessions."""
        return [
            _ended(number, talk, version)
            for number, talk in enumerate(self.talks)
            for version in range(len(talk.versions))
        ]


def _ended(number: int, talk: Talk, version: int) -> EndedConversation:
    owner, at = talk.owner, MARCH + timedelta(hours=12 * talk.half_day)
    one = ended(
        f"session {number}",
        *talk.versions[version],
        user=owner.user,
        at=at,
        tenant=owner.tenant,
        avatar_id=owner.avatar,
    )
    return replace(one, ended_at=at + timedelta(hours=1, minutes=version))


@st.composite
def _talks(draw: DrawFn) -> Talk:
    texts = tuple(draw(st.lists(st.sampled_from(list(_SAYINGS)), min_size=1, max_size=3)))
    versions = [texts]
    if draw(st.booleans()):
        shorter = texts[: draw(st.integers(1, len(texts)))]
        other = draw(st.sampled_from(list(_SAYINGS)))
        # Said less, or something else at first.
        versions.insert(0, draw(st.sampled_from([shorter, (other, *shorter[1:])])))
    return Talk(
        owner=draw(st.sampled_from(_OWNERS)), half_day=draw(st.integers(0, 9)), versions=tuple(versions)
    )


_DELETIONS: Final = st.builds(
    lambda claim, is_lifted: Deletion(slot=claim[0], norm=claim[1], is_lifted=is_lifted),
    st.sampled_from([(_CITY, "porto"), (_CITY, "lyon"), (_LIKES, "coffee"), (_JOB, "nurse")]),
    st.booleans(),
)


def histories() -> SearchStrategy[History]:
    """Draw thirty sessions of four scopes, and up to two deletes."""
    return st.builds(
        lambda talks, deletions: History(talks=tuple(talks), deletions=tuple(deletions)),
        st.lists(_talks(), min_size=SESSIONS, max_size=SESSIONS),
        st.lists(_DELETIONS, max_size=2, unique_by=lambda one: (one.slot, one.norm)),
    )


class ReadsSayings:
    """A model that reads each sentence in the same way wherever it stands."""

    async def extract(self, window: Window) -> WindowCandidates:
        read = (_read(message) for message in window.new_messages)
        candidates = tuple(one for one in read if one is not None)
        usage = Usage(model_calls=1, tokens_in=10, tokens_out=10)
        return WindowCandidates(candidates=candidates, usage=usage, provider="scripted")


def _read(message: Message) -> Candidate | None:
    saying = _SAYINGS[message.content]
    if not saying.key:
        return None
    return candidate(
        saying.key,
        saying.value,
        at=message.sent_at,
        about=saying.about,
        stance=saying.stance,
        amends=saying.amends,
        confidence=saying.confidence,
        message_ids=(message.message_id,),
        excerpt=message.content,
    )


async def judge(stores: Stores) -> None:
    """Store the judgements of every owner."""
    for owner in (_OWN, *_NEIGHBOURS):
        for one, other, verdict in _JUDGEMENTS:
            left, right = sorted((one, other), key=lambda claim: claim_id(owner.scope, claim))
            params = {
                **owner.columns,
                "left": claim_id(owner.scope, left),
                "right": claim_id(owner.scope, right),
                "left_slot": slot_text(left.slot),
                "right_slot": slot_text(right.slot),
                "verdict": verdict,
                "at": MARCH,
            }
            async with stores.database.connection() as conn:
                await conn.execute(_ADD_JUDGEMENT, params)
