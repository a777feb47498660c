"""Stories about commands, weak words, time and judgements."""

from domain.memory.assertions import (
    Authority,
    Corrects,
    InsteadOf,
    Judgement,
    Merge,
    RetractionKind,
    Rivals,
    Same,
)
from domain.memory.slots import about_of, slot_of
from tests.unit.memory.builders import claim, command, said
from tests.unit.memory.story import BADGE, DENIES, HELD, PLANS, SISTER_NAME, Story, judged

STORIES = [
    Story(
        name="Home address A, work address B, home address C.",
        told=[
            said("2023-01-01", "home_address", "12 Elm Row"),
            said("2023-01-01", "work_address", "1 Dock St", position=1),
            said("2024-01-01", "home_address", "9 Oak Ave"),
        ],
        active={"address.home: 9 Oak Ave", "address.work: 1 Dock St"},
        superseded={"address.home: 12 Elm Row"},
    ),
    Story(
        name="The user deletes 'lives in Lyon'. (Porto does not come back)",
        told=[said("2022-01-01", "home_city", "Porto"), said("2023-01-01", "home_city", "Lyon")],
        commands=[command("2024-01-01", "home_city", "Lyon")],
        active=set(),
        superseded={"home_city: Porto"},
        deleted={"home_city: Lyon"},
    ),
    Story(
        name="... deletes it as wrong. (Porto comes back)",
        told=[said("2022-01-01", "home_city", "Porto"), said("2023-01-01", "home_city", "Lyon")],
        commands=[command("2024-01-01", "home_city", "Lyon", RetractionKind.DISOWN)],
        active={"home_city: Porto"},
    ),
    Story(
        name="... deletes it, and says it again later.",
        told=[said("2023-01-01", "home_city", "Lyon"), said("2025-01-01", "home_city", "Lyon")],
        commands=[command("2024-01-01", "home_city", "Lyon")],
        active={"home_city: Lyon"},
    ),
    Story(
        name="... deletes it; an older session that says the same arrives late. (stays forgotten)",
        told=[said("2023-01-01", "home_city", "Lyon"), said("2022-01-01", "home_city", "Lyon")],
        commands=[command("2024-01-01", "home_city", "Lyon")],
        active=set(),
        deleted={"home_city: Lyon"},
    ),
    Story(
        name="... deletes it; a later session seems to say it again, weakly. (stays forgotten)",
        told=[
            said("2023-01-01", "home_city", "Lyon"),
            said("2025-01-01", "home_city", "Lyon", confidence=0.5),
        ],
        commands=[command("2024-01-01", "home_city", "Lyon")],
        active=set(),
        deleted={"home_city: Lyon"},
    ),
    Story(
        name="... deletes it and restores it.",
        told=[said("2023-01-01", "home_city", "Lyon")],
        commands=[
            command("2024-01-01", "home_city", "Lyon"),
            command("2024-01-02", "home_city", "Lyon", RetractionKind.RESTORE),
        ],
        active={"home_city: Lyon"},
    ),
    Story(
        name="Maybe she is vegetarian. (0.5, once)",
        told=[said("2024-01-01", "diet", "vegetarian", confidence=0.5)],
        active=set(),
        pending={"diet: vegetarian"},
    ),
    Story(
        name="Maybe vegetarian, said weakly in two sessions.",
        told=[said(day, "diet", "vegetarian", confidence=0.5) for day in ("2024-01-01", "2024-02-01")],
        active={"diet: vegetarian"},
    ),
    Story(
        name="I eat everything. / Maybe vegetarian. (weak words retire nothing)",
        told=[
            said("2023-01-01", "diet", "everything"),
            said("2024-01-01", "diet", "vegetarian", confidence=0.5),
        ],
        active={"diet: everything"},
        pending={"diet: vegetarian"},
    ),
    Story(
        name="Maybe in Rome. / I live in Oslo. / Maybe in Rome. (a firm word between: they start anew)",
        told=[
            said("2023-01-01", "home_city", "Rome", confidence=0.5),
            said("2024-01-01", "home_city", "Oslo"),
            said("2025-01-01", "home_city", "Rome", confidence=0.5),
        ],
        active={"home_city: Oslo"},
        pending={"home_city: Rome"},
    ),
    Story(
        name="I live in Oslo. / Maybe in Rome. / Oslo, it seems. / Maybe in Rome. (no defence)",
        told=[
            said("2022-01-01", "home_city", "Oslo"),
            said("2023-01-01", "home_city", "Rome", confidence=0.5),
            said("2024-01-01", "home_city", "Oslo", confidence=0.5),
            said("2025-01-01", "home_city", "Rome", confidence=0.5),
        ],
        active={"home_city: Rome"},
        superseded={"home_city: Oslo"},
    ),
    Story(
        name="Two sessions on one day: I live in Kyiv. / I live in Berlin.",
        told=[
            said("2024-01-01T09:00", "home_city", "Kyiv", session="s1"),
            said("2024-01-01T15:00", "home_city", "Berlin", session="s2"),
        ],
        active={"home_city: Berlin"},
        superseded={"home_city: Kyiv"},
        questions=1,
    ),
    Story(
        name="... and the user answers: Kyiv, Berlin was never right.",
        told=[
            said("2024-01-01T09:00", "home_city", "Kyiv", session="s1"),
            said("2024-01-01T15:00", "home_city", "Berlin", session="s2"),
            said(
                "2024-01-02", "home_city", "Kyiv", method="manual", amends=Corrects("Berlin", everywhere=True)
            ),
        ],
        active={"home_city: Kyiv"},
    ),
    Story(
        name="Two sessions on one day, but the second says 'moved from Kyiv to Berlin'.",
        told=[
            said("2024-01-01T09:00", "home_city", "Kyiv", session="s1"),
            said("2024-01-01T15:00", "home_city", "Berlin", session="s2", amends=InsteadOf("Kyiv")),
        ],
        active={"home_city: Berlin"},
        superseded={"home_city: Kyiv"},
    ),
    Story(
        name="I'm vegetarian. / I love steak. (judged to contradict)",
        told=[said("2023-01-01", "diet", "vegetarian"), said("2024-01-01", "likes", "steak")],
        opinions=[
            Judgement(
                left=claim("diet", "vegetarian"), right=claim("likes", "steak"), verdict=Rivals(), note="meat"
            )
        ],
        active={"likes: steak"},
        superseded={"diet: vegetarian"},
        notes=1,
    ),
    Story(
        name="I'm debugging a leak. (for two hours)",
        told=[said("2024-01-01", "current_task", "debugging a leak", expires="2024-01-01T02:00")],
        active=set(),
        expired={"current_task: debugging a leak"},
    ),
    Story(
        name="I live in Porto. / This month I live in Lima. (a short fact retires no long one)",
        told=[
            said("2023-01-01", "home_city", "Porto"),
            said("2024-01-01", "home_city", "Lima", expires="2024-02-01"),
        ],
        active={"home_city: Porto"},
        expired={"home_city: Lima"},
    ),
    Story(
        name="I plan to move to Lisbon in June. / I live in Lisbon.",
        told=[
            said("2024-01-01", "home_city", "Lisbon", stance=PLANS, since="2024-06-01"),
            said("2024-07-01", "home_city", "Lisbon", since="2024-06-15"),
        ],
        active={"home_city: Lisbon"},
        superseded={"home_city: plan Lisbon"},
    ),
    Story(
        name="I live in Porto. / I plan to move to Lisbon in June. (it lapses)",
        told=[
            said("2023-01-01", "home_city", "Porto"),
            said("2024-01-01", "home_city", "Lisbon", since="2024-06-01"),
        ],
        active={"home_city: Porto"},
        expired={"home_city: plan Lisbon"},
    ),
    Story(
        name="I ran the Boston marathon in 2022. / ... in 2023. / I ran the Boston marathon.",
        told=[
            said("2022-05-01", "event", "ran Boston", since="2022-04-18"),
            said("2023-05-01", "event", "ran Boston", since="2023-04-17", stance=HELD),
        ],
        active={"event: ran Boston"},
    ),
    Story(
        name="My sister's name is Ana. / My sister's name is Bea. (there may be two)",
        told=[said("2023-01-01", SISTER_NAME, "Ana"), said("2024-01-01", SISTER_NAME, "Bea")],
        active={"sister.name: Ana", "sister.name: Bea"},
    ),
    Story(
        name="My sister Ana lives in Rome. / My sister Ana lives in Oslo. / I live in Lyon.",
        told=[
            said("2023-01-01", slot_of("city", about_of("sister", "Ana")), "Rome"),
            said("2024-01-01", slot_of("city", about_of("sister", "Ana")), "Oslo"),
            said("2024-01-01", "city", "Lyon", position=1),
        ],
        active={"sister/ana.home_city: Oslo", "home_city: Lyon"},
        superseded={"sister/ana.home_city: Rome"},
    ),
    Story(
        name="My wife is Mia. / My husband is Tom. (one partner)",
        told=[
            said("2023-01-01", slot_of("name", about_of("wife")), "Mia"),
            said("2024-01-01", slot_of("name", about_of("husband")), "Tom"),
        ],
        active={"partner.name: Tom"},
        superseded={"partner.name: Mia"},
    ),
    Story(
        name="I cannot open portal attachments. / Portal attachments won't open. (a judge: the same)",
        told=[
            said("2023-01-01", "issue", "cannot open portal attachments"),
            said("2024-01-01", "issue", "portal attachments won't open"),
        ],
        opinions=[judged("issue", "cannot open portal attachments", "portal attachments won't open", Same())],
        active={"issue: portal attachments won't open"},
    ),
    Story(
        name="Badge 7741. / Badge 7742. (a judge says the same; numbers forbid it)",
        told=[said("2023-01-01", BADGE, "badge 7741"), said("2024-01-01", BADGE, "badge 7742")],
        opinions=[judged(BADGE, "badge 7741", "badge 7742", Same())],
        active={"badge: badge 7742"},
        superseded={"badge: badge 7741"},
    ),
    Story(
        name="Plays chess. / Plays go. (a judge: show as one)",
        told=[said("2023-01-01", "hobby", "chess"), said("2024-01-01", "hobby", "go")],
        opinions=[judged("hobby", "chess", "go", Merge("chess and go"))],
        active={"hobby: chess and go"},
        superseded={"hobby: go"},
    ),
    Story(
        name="... / I no longer play chess. (go comes out of the merge)",
        told=[
            said("2023-01-01", "hobby", "chess"),
            said("2024-01-01", "hobby", "go"),
            said("2025-01-01", "hobby", "chess", stance=DENIES),
        ],
        opinions=[judged("hobby", "chess", "go", Merge("chess and go"))],
        active={"hobby: go", "hobby: not chess"},
        superseded={"hobby: chess"},
    ),
    Story(
        name="Judges disagree: a = b, b = c, a rivals c. (the user's word holds, one edge is left out)",
        told=[said(f"202{n}-01-01", "hobby", value) for n, value in enumerate("abc")],
        opinions=[
            judged("hobby", "a", "b", Same()),
            judged("hobby", "b", "c", Same()),
            Judgement(
                left=claim("hobby", "a"),
                right=claim("hobby", "c"),
                verdict=Rivals(),
                authority=Authority.USER,
            ),
        ],
        active={"hobby: c"},
        superseded={"hobby: b"},
    ),
    Story(
        name="The same, and an operator said b = c: the stronger edge is followed.",
        told=[said(f"202{n}-01-01", "hobby", value) for n, value in enumerate("abc")],
        opinions=[
            judged("hobby", "a", "b", Same()),
            Judgement(
                left=claim("hobby", "b"),
                right=claim("hobby", "c"),
                verdict=Same(),
                authority=Authority.OPERATOR,
            ),
            Judgement(
                left=claim("hobby", "a"),
                right=claim("hobby", "c"),
                verdict=Rivals(),
                authority=Authority.USER,
            ),
        ],
        active={"hobby: c"},
        superseded={"hobby: a"},
    ),
    Story(
        name="I'm single. / I'm married. (a type marked ask)",
        told=[
            said("2022-01-01", "marital_status", "single"),
            said("2024-01-01", "marital_status", "married"),
        ],
        active={"marital_status: married"},
        superseded={"marital_status: single"},
        questions=1,
    ),
]
