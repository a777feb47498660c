"""Conversations for tests and benchmarks, each of which states five facts, and what a model makes of them.

A conversation names its number, so that a model of ours knows which one it reads.
"""

import json
from typing import Final

DIFFERENT_ANSWERS: Final = 512

_CITIES: Final = ("Lisbon", "Porto", "Gdansk", "Turin", "Leeds", "Bergen", "Ghent", "Split")
_JOBS: Final = ("nurse", "welder", "librarian", "pilot", "baker", "surveyor", "luthier", "chemist")
_PETS: Final = ("cat", "dog", "parrot", "tortoise", "ferret", "pony", "rabbit", "gecko")
_NAMES: Final = ("Biscuit", "Mochi", "Pixel", "Juno", "Olive", "Ziggy", "Clover", "Otis")


def benchmark_facts(number: int) -> list[dict[str, str]]:
    """Return the five facts that conversation ``number`` states, with the words that state them."""
    number %= DIFFERENT_ANSWERS
    one, two = number % 8, number // 8 % 8
    three = number // 64 % 8
    street = f"{number % 97 + 1} Harbour Lane, flat {number}"
    pet = f"{_PETS[three]} called {_NAMES[one]} {number}"
    rows = (
        ("home_city", _CITIES[one], "personal_info", f"I live in {_CITIES[one]}"),
        ("job_title", _JOBS[two], "work", f"I work as a {_JOBS[two]}"),
        ("pet", pet, "relationship", f"I have a {pet}"),
        ("address", street, "personal_info", f"my address is {street}"),
        ("goal", f"to read {number + 3} books this year", "goal",
         f"my goal is to read {number + 3} books this year"),
    )  # fmt: skip
    return [
        {"key": key, "value": value, "category": category, "said": said}
        for key, value, category, said in rows
    ]


def benchmark_conversation(number: int) -> list[tuple[str, str]]:
    """Return the eight messages of conversation ``number`` as (role, text)."""
    said = [fact["said"] for fact in benchmark_facts(number)]
    return [
        ("user", f"Hello, it is about file QX-{number}. {said[0]}."),
        ("assistant", "Good to hear from you. What do you do there?"),
        ("user", f"Well, {said[1]} and I like it a lot."),
        ("assistant", "Is there somebody at home who keeps you company?"),
        ("user", f"Yes, {said[2]}. For the delivery, {said[3]}."),
        ("assistant", "Noted. Anything you look forward to?"),
        ("user", f"Could be more time to read: {said[4]}."),
        ("assistant", "Then let us get you there."),
    ]


def benchmark_answer(number: int) -> str:
    """Return the answer of the model to conversation ``number``."""
    memories: list[dict[str, object]] = [
        {
            "category": fact["category"],
            "fact_key": fact["key"],
            "fact_value": fact["value"],
            "content": f"The user says: {fact['said']}.",
            "importance": 7,
            "confidence": 0.95,
            "memory_type": "long",
            "expires_at": None,
            "valid_from": None,
            "source_message_ids": [],
            "source_excerpt": fact["said"],
            "reasoning": "said in plain words",
        }
        for fact in benchmark_facts(number)
    ]
    return json.dumps({"memories": memories, "nothing_to_extract": False, "extraction_notes": ""})
