"""Commands for whoever runs the service."""

import asyncio

import typer

from producers.topics_admin import TopicsAdmin
from schemas.topics import Topics
from service.cli.output import Json, out, print_json, print_table
from service.doctor import Finding, examine
from service.settings import load_settings
from service.wiring import broker_of, database_of, topic_settings
from storage.migrate import migrate as apply_migrations


def migrate(as_json: Json = False) -> None:
    """Bring the database up to date; many may do so at once.

    Example: `AFTERWORD_DATABASE_URL=postgresql://… afterword migrate`
    """
    settings = load_settings()
    direct = database_of(settings).direct_url.get_secret_value()
    applied = asyncio.run(apply_migrations(direct, topic_prefix=settings.afterword_topic_prefix))
    if as_json:
        print_json({"applied": [f"{one.version:04}_{one.name}" for one in applied]})
        return
    for one in applied:
        out().print(f"applied {one.version:04}_{one.name}")
    out().print("The database is up to date.")


def topics(as_json: Json = False) -> None:
    """Create the topics that are missing; one that exists is never changed.

    Example: `AFTERWORD_KAFKA=localhost:9092 afterword topics`
    """
    settings = load_settings()
    names = Topics(settings.afterword_topic_prefix)
    created = asyncio.run(TopicsAdmin(broker_of(settings), names, topic_settings(settings)).create_missing())
    if as_json:
        print_json({"created": sorted(created), "topics": sorted(names.every)})
        return
    print_table(
        ("topic", ""),
        ((name, "created" if name in created else "was there") for name in sorted(names.every)),
        nothing="",
    )


def doctor(as_json: Json = False) -> None:
    """Check every connection and setting, and say what to do about what is wrong.

    Example: `afterword doctor`
    """
    findings = asyncio.run(examine(load_settings()))
    if as_json:
        for finding in findings:
            print_json(
                {"check": finding.check, "ok": finding.is_well, "found": finding.found, "do": finding.advice}
            )
    else:
        print_table(("check", "", "found", "what to do"), map(_row, findings), nothing="")
    if not all(finding.is_well for finding in findings):
        raise typer.Exit(1)


def _row(finding: Finding) -> tuple[str, str, str, str]:
    return finding.check, "ok" if finding.is_well else "WRONG", finding.found, finding.advice
