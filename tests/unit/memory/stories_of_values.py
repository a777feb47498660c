"""Stories about values: what replaces what, and what stands side by side."""

from domain.memory.assertions import (
    Also,
    Compatible,
    Corrects,
    InsteadOf,
    Judgement,
    Rivals,
    SlotLink,
)
from domain.memory.slots import slot_of
from tests.unit.memory.builders import claim, said
from tests.unit.memory.story import DENIES, FORGETS, HELD, Story, judged

STORIES = [
    Story(
        name="I live in Porto. / I live in Lyon now.",
        told=[said("2023-01-01", "lives_in", "Porto"), said("2024-01-01", "city", "Lyon")],
        active={"home_city: Lyon"},
        superseded={"home_city: Porto"},
    ),
    Story(
        name="I work on project Apollo. / I work on project Zephyr. / Moved from Porto to Lyon.",
        told=[
            said("2023-01-01", "project", "Apollo"),
            said("2024-01-01", "project", "Zephyr"),
            said("2023-01-01", "home_city", "Porto", position=1),
            said("2024-01-01", "home_city", "Lyon", position=1, amends=InsteadOf("Porto")),
        ],
        active={"project: Zephyr", "home_city: Lyon"},
        superseded={"project: Apollo", "home_city: Porto"},
    ),
    Story(
        name="An old session arrives late: in 2021 she lived in Oslo.",
        told=[said("2024-01-01", "home_city", "Lyon"), said("2021-01-01", "home_city", "Oslo")],
        active={"home_city: Lyon"},
        superseded={"home_city: Oslo"},
    ),
    Story(
        name="I'm the controller at Corvid. / I also administer Corvid's wiki. (two keys)",
        told=[
            said("2023-01-01", "job_title", "controller at Corvid"),
            said("2024-01-01", "administers", "Corvid's wiki"),
        ],
        active={"job_title: controller at Corvid", "responsibility: Corvid's wiki"},
    ),
    Story(
        name="The same, but a model gave both the key job_title and the sentence says 'also'.",
        told=[
            said("2023-01-01", "job_title", "controller at Corvid"),
            said("2024-01-01", "job_title", "administers Corvid's wiki", amends=Also()),
            said("2024-06-01", "job_title", "controller at Corvid"),
        ],
        active={"job_title: controller at Corvid", "job_title: administers Corvid's wiki"},
    ),
    Story(
        name="The same, without 'also': a judge said both may hold.",
        told=[
            said("2023-01-01", "job_title", "controller at Corvid"),
            said("2024-01-01", "job_title", "administers Corvid's wiki"),
        ],
        opinions=[judged("job_title", "controller at Corvid", "administers Corvid's wiki", Compatible())],
        active={"job_title: controller at Corvid", "job_title: administers Corvid's wiki"},
    ),
    Story(
        name="I'm a Polish citizen. / I became a Canadian citizen. (both may hold)",
        told=[said("2023-01-01", "citizenship", "Poland"), said("2024-01-01", "nationality", "Canada")],
        active={"citizenship: Poland", "citizenship: Canada"},
    ),
    Story(
        name="... / I gave up my Polish citizenship.",
        told=[
            said("2023-01-01", "citizenship", "Poland"),
            said("2024-01-01", "citizenship", "Canada"),
            said("2025-01-01", "citizenship", "Poland", stance=DENIES),
        ],
        active={"citizenship: Canada", "citizenship: not Poland"},
        superseded={"citizenship: Poland"},
    ),
    Story(
        name="The invoice job runs on Postgres 15. / ... on Postgres 17. (a free key)",
        told=[
            said("2023-01-01", slot_of("runs_on", "invoice job"), "Postgres 15"),
            said("2024-01-01", slot_of("runs_on", "invoice job"), "Postgres 17"),
        ],
        active={"invoice job.runs_on: Postgres 17"},
        superseded={"invoice job.runs_on: Postgres 15"},
    ),
    Story(
        name="It runs on Postgres 15. / It runs on Linux. (a free key, nothing is retired by a guess)",
        told=[
            said("2023-01-01", slot_of("runs_on", "invoice job"), "Postgres 15"),
            said("2024-01-01", slot_of("runs_on", "invoice job"), "Linux"),
        ],
        active={"invoice job.runs_on: Postgres 15", "invoice job.runs_on: Linux"},
    ),
    Story(
        name="My favourite editor is Vim. / My favourite editor is Helix. (free, single by its name)",
        told=[said("2023-01-01", "favourite_editor", "Vim"), said("2024-01-01", "favourite_editor", "Helix")],
        active={"favourite_editor: Helix"},
        superseded={"favourite_editor: Vim"},
    ),
    Story(
        name="Our store is DuckDB. / Our database is SQLite now. (two linked free keys, judged rivals)",
        told=[said("2023-01-01", "data_store", "DuckDB"), said("2024-01-01", "database", "SQLite")],
        opinions=[
            SlotLink(left=slot_of("data_store"), right=slot_of("database")),
            Judgement(
                left=claim("data_store", "DuckDB"), right=claim("database", "SQLite"), verdict=Rivals()
            ),
        ],
        active={"database: SQLite"},
        superseded={"data_store: DuckDB"},
    ),
    Story(
        name="My favourite editor is Vim. / My preferred editor is Helix. (two linked free keys)",
        told=[said("2023-01-01", "favourite_editor", "Vim"), said("2024-01-01", "preferred_editor", "Helix")],
        opinions=[SlotLink(left=slot_of("favourite_editor"), right=slot_of("preferred_editor"))],
        active={"preferred_editor: Helix"},
        superseded={"favourite_editor: Vim"},
    ),
    Story(
        name="I live in Porto. / I'm a cook. (a judge links city and job through a free key: refused)",
        told=[
            said("2023-01-01", "home_city", "Porto"),
            said("2024-01-01", "whereabouts", "Porto"),
            said("2024-01-01", "job_title", "cook", position=1),
        ],
        opinions=[
            SlotLink(left=slot_of("home_city"), right=slot_of("whereabouts")),
            SlotLink(left=slot_of("whereabouts"), right=slot_of("job_title")),
        ],
        active={"home_city: Porto", "job_title: cook"},
    ),
    Story(
        name="I lead Tern, 4 people, Porto. / I lead Tern.",
        told=[
            said("2023-01-01", "role", "leads Tern, 4 people, Porto"),
            said("2024-01-01", "role", "leads Tern"),
        ],
        active={"job_title: leads Tern, 4 people, Porto"},
        superseded={"job_title: leads Tern"},
    ),
    Story(
        name="... / I lead Tern, 6 people, Porto.",
        told=[
            said("2023-01-01", "role", "leads Tern, 4 people, Porto"),
            said("2024-01-01", "role", "leads Tern"),
            said("2025-01-01", "role", "leads Tern, 6 people, Porto"),
        ],
        active={"job_title: leads Tern, 6 people, Porto"},
        superseded={"job_title: leads Tern, 4 people, Porto", "job_title: leads Tern"},
    ),
    Story(
        name="I lead Tern, 4 people. / I lead Kite now.",
        told=[
            said("2023-01-01", "role", "leads Tern, 4 people"),
            said("2023-06-01", "role", "leads Tern"),
            said("2024-01-01", "role", "leads Kite"),
        ],
        active={"job_title: leads Kite"},
        superseded={"job_title: leads Tern, 4 people", "job_title: leads Tern"},
    ),
    Story(
        name="My name is Pell. (five sessions, three times in one of them)",
        told=[said(f"2023-0{n}-01", "name", "Pell") for n in range(1, 6)]
        + [said("2023-05-01", "name", "PELL ", position=n) for n in (1, 2)],
        active={"name: PELL "},
    ),
    Story(
        name="I adore aubergine. / I can't stand aubergine.",
        told=[
            said("2023-01-01", "likes", "aubergine"),
            said("2024-01-01", "dislikes", "aubergine", stance=DENIES),
        ],
        active={"likes: not aubergine"},
        superseded={"likes: aubergine"},
    ),
    Story(
        name="I like tea. / I can't stand tea. / I like tea again.",
        told=[
            said("2023-01-01", "likes", "tea"),
            said("2024-01-01", "likes", "tea", stance=DENIES),
            said("2025-01-01", "likes", "tea"),
        ],
        active={"likes: tea"},
        superseded={"likes: not tea"},
    ),
    Story(
        name="I'm 34. / I'm 35. / I'm 36.",
        told=[
            said("2023-05-01", "age", "34"),
            said("2024-05-01", "age", "35"),
            said("2025-06-01", "age", "36"),
        ],
        active={"age: 36"},
        superseded={"age: 34", "age: 35"},
    ),
    Story(
        name="Our daughter Ida was born. / Our son Olaf was born.",
        told=[said("2021-01-01", "daughter", "Ida"), said("2024-01-01", "son", "Olaf")],
        active={"child: Ida", "child: Olaf"},
    ),
    Story(
        name="We have a dog, Rex. / We have no pets. ",
        told=[said("2022-01-01", "pet", "dog Rex"), said("2024-01-01", "pets", "*", stance=DENIES)],
        active={"pet: not *"},
        superseded={"pet: dog Rex"},
    ),
    Story(
        name="We have no pets. / We got a cat.",
        told=[said("2022-01-01", "pets", "*", stance=DENIES), said("2024-01-01", "pet", "cat")],
        active={"pet: cat"},
        superseded={"pet: not *"},
    ),
    Story(
        name="I live in Bern, no wait, Basel.",
        told=[
            said("2024-01-01", "home_city", "Bern", position=0),
            said("2024-01-01", "home_city", "Basel", position=1, amends=Corrects("Bern")),
        ],
        active={"home_city: Basel"},
    ),
    Story(
        name="I live in Bern. (2022) / I live in Bern, no wait, Basel. (2024: only the slip is taken back)",
        told=[
            said("2022-01-01", "home_city", "Bern"),
            said("2024-01-01", "home_city", "Bern", position=0),
            said("2024-01-01", "home_city", "Basel", position=1, amends=Corrects()),
        ],
        active={"home_city: Basel"},
        superseded={"home_city: Bern"},
    ),
    Story(
        name="My name is Daniel. (twice misheard) / It's Daniela, not Daniel.",
        told=[
            said("2022-01-01", "name", "Daniel"),
            said("2023-01-01", "name", "Daniel"),
            said("2024-01-01", "name", "Daniela", amends=Corrects("Daniel")),
        ],
        active={"name: Daniela"},
    ),
    Story(
        name="I live in Porto. / I live in Lima. / I was wrong about Lima, still Porto.",
        told=[
            said("2022-01-01", "home_city", "Porto"),
            said("2023-01-01", "home_city", "Lima"),
            said("2024-01-01", "home_city", "Porto", amends=Corrects("Lima")),
        ],
        active={"home_city: Porto"},
    ),
    Story(
        name="I used to live in Rome.",
        told=[said("2024-01-01", "home_city", "Rome", stance=HELD), said("2023-01-01", "home_city", "Lyon")],
        active={"home_city: Lyon"},
        superseded={"home_city: Rome"},
    ),
    Story(
        name="I work at Acme. / I worked at Acme until last year. (nothing known since)",
        told=[
            said("2022-01-01", "employer", "Acme"),
            said("2024-02-01", "employer", "Acme", stance=HELD, until="2024-01-01"),
        ],
        active=set(),
        superseded={"employer: Acme"},
    ),
    Story(
        name="I smoke. / I no longer smoke.",
        told=[said("2022-01-01", "habit", "smoking"), said("2024-01-01", "habit", "smoking", stance=DENIES)],
        active={"habit: not smoking"},
        superseded={"habit: smoking"},
    ),
    Story(
        name="I work at Globex. / I don't work at Acme any more. (Globex stays)",
        told=[
            said("2022-01-01", "employer", "Globex"),
            said("2024-01-01", "employer", "Acme", stance=DENIES),
        ],
        active={"employer: Globex"},
        superseded={"employer: not Acme"},
    ),
    Story(
        name="My address is 12 Elm Row. I keep bees. / Please forget my address.",
        told=[
            said("2024-01-01", "home_address", "12 Elm Row"),
            said("2024-01-01", "keeps", "bees", position=1),
            said("2024-02-01", "home_address", "*", stance=FORGETS),
        ],
        active={"keeps: bees"},
        deleted={"address.home: 12 Elm Row"},
    ),
]
