"""What the end of a test run says: the servers it ran on, and every skipped test by name."""

from typing import Final

import pytest

SERVERS: Final = pytest.StashKey[dict[str, str]]()


def write_servers(reporter: pytest.TerminalReporter, servers: dict[str, str]) -> None:
    for role, kind in sorted(servers.items()):
        reporter.write_line(f"{role}: {kind}")


def write_skipped(reporter: pytest.TerminalReporter) -> None:
    """Name and count the skipped tests; a run without any says so too."""
    reports = reporter.getreports("skipped")
    reporter.write_line(f"{len(reports)} skipped" + (":" if reports else ""))
    for report in reports:
        reporter.write_line(f"  {report.nodeid} – {_reason(report)}")


def _reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(report.longrepr)
