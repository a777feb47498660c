"""From files to chats: what a file is, is guessed from what is in it, or said."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zipfile import BadZipFile, ZipFile, is_zipfile

from domain.errors import InvalidInputError
from producers.chat_formats import chatgpt, claude, plain, role_messages, sharegpt, slack, whatsapp
from producers.chat_formats.chats import Reading
from producers.chat_formats.dates import DateOrder
from producers.chat_formats.values import items, table

FORMATS: Final = (
    chatgpt.NAME,
    claude.NAME,
    slack.NAME,
    whatsapp.NAME,
    sharegpt.NAME,
    role_messages.NAME,
    role_messages.TABLE_NAME,
    plain.NAME,
)

_BOMS: Final = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))
_MOST_BYTES: Final = 2_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the person says about the files: the format and the order of dates, where they know them."""

    format: str | None = None
    date_order: DateOrder | None = None


def read_chats(path: Path, wish: Wish) -> Reading:
    """Read the chats of a file, of a folder, or of a ZIP archive.

    Raises:
        InvalidInputError: it is none of the formats, or not the one that was named.
        OSError: it cannot be read.
    """
    if path.is_dir():
        return _of_archive(
            {str(one.relative_to(path)): one.read_bytes for one in _files(path)}, wish, path.name
        )
    if path.suffix.lower() == ".zip" and is_zipfile(path):
        try:
            with ZipFile(path) as archive:
                names = [info for info in archive.infolist() if not info.is_dir()]
                if sum(info.file_size for info in names) > _MOST_BYTES:
                    raise InvalidInputError(f"{path}: unpacked it would be larger than 2 GB")
                loads = {info.filename: _opener(archive, info.filename) for info in names}
                return _of_archive(loads, wish, path.stem)
        except BadZipFile as error:
            raise InvalidInputError(f"{path}: not a ZIP archive that can be read") from error
    return _of_bytes(path.read_bytes(), wish, path.name)


def decoded(raw: bytes) -> tuple[str, str]:
    """Return the text of ``raw`` and its encoding: by its mark, else UTF-8, else Latin-1."""
    for mark, encoding in _BOMS:
        if raw.startswith(mark):
            return raw.decode(encoding, "replace"), encoding
    try:
        return raw.decode(), "utf-8"
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace"), "latin-1"


def _files(folder: Path) -> Iterator[Path]:
    return (one for one in sorted(folder.rglob("*")) if one.is_file())


def _opener(archive: ZipFile, name: str) -> Callable[[], bytes]:
    return lambda: archive.read(name)


def _of_archive(loads: Mapping[str, Callable[[], bytes]], wish: Wish, name: str) -> Reading:
    """Read an export of several files: the conversations of a chat program, or the days of a workspace."""
    found = {place: load for place, load in loads.items() if place.endswith(".json")}
    main = [place for place in sorted(found) if Path(place).name.startswith("conversations")]
    if main:
        readings = [_of_bytes(found[place](), wish, place) for place in main]
        return _joined(readings)
    days = [place for place in sorted(found) if "/" in place.replace("\\", "/").strip("/")]
    values = [value for place in days if slack.is_slack(value := _json(found[place]()))]
    if values:
        users = next((place for place in found if Path(place).name == "users.json"), None)
        people = slack.people_of(_json(found[users]())) if users is not None else {}
        return slack.read_slack(values, people)
    texts = [place for place in loads if place.endswith(".txt")]
    if len(texts) == 1:
        return _of_bytes(loads[texts[0]](), wish, name)
    raise InvalidInputError(f"{name}: no export that is known; name its files one by one")


def _joined(readings: Sequence[Reading]) -> Reading:
    whole = Reading(format=readings[0].format)
    for reading in readings:
        whole.chats += reading.chats
        whole.skipped += reading.skipped
        whole.failed += reading.failed
        whole.assumed += reading.assumed
    return whole


def _of_bytes(raw: bytes, wish: Wish, name: str) -> Reading:
    written, encoding = decoded(raw)
    reading = _of_json(written) or _of_json_lines(written) or _of_table(written) or _of_lines(written, wish)
    if reading is None:
        raise InvalidInputError(f"{name}: none of the formats {', '.join(FORMATS)}")
    if wish.format is not None and wish.format != reading.format:
        raise InvalidInputError(f"{name}: looks like {reading.format}, not like {wish.format}")
    if encoding == "latin-1":
        reading.assumed.append("the text is Latin-1")
    return reading


def _of_json(written: str) -> Reading | None:
    value = _json(written.encode())
    return _of_value(value) if value is not None else None


def _of_value(value: object) -> Reading | None:
    if chatgpt.is_chatgpt(value):
        return chatgpt.read_chatgpt(value)
    if claude.is_claude(value):
        return claude.read_claude(value)
    if sharegpt.is_sharegpt(value):
        return sharegpt.read_sharegpt(value)
    if slack.is_slack(value):
        return slack.read_slack([value], {})
    if not role_messages.is_role_messages(value):
        return None
    return role_messages.read_role_messages(items(value) or [value])


def _of_json_lines(written: str) -> Reading | None:
    lines = [(number, line) for number, line in enumerate(written.splitlines(), start=1) if line.strip()]
    if not lines or not lines[0][1].lstrip().startswith("{"):
        return None
    values: list[object] = []
    failed: list[tuple[str, str]] = []
    for number, line in lines:
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError):
            failed.append((f"line {number}", "not JSON"))
    is_export = values and ("mapping" in table(values[0]) or "chat_messages" in table(values[0]))
    reading = _of_value(values) if is_export else None
    if reading is None and any(map(role_messages.is_role_messages, values)):
        reading = role_messages.read_role_messages(values)
    if reading is not None:
        reading.failed += failed
    return reading


def _of_table(written: str) -> Reading | None:
    head = written.partition("\n")[0]
    if "message" not in head.split(",") and '"message"' not in head:
        return None
    rows = [
        {key or "": str(value) for key, value in row.items()} for row in csv.DictReader(io.StringIO(written))
    ]
    return role_messages.read_message_table(rows) if rows else None


def _of_lines(written: str, wish: Wish) -> Reading | None:
    lines = written.splitlines()
    if whatsapp.is_whatsapp(lines):
        return whatsapp.read_whatsapp(lines, order=wish.date_order)
    return plain.read_plain(lines) if plain.is_plain(lines) else None


def _json(raw: bytes) -> object:
    try:
        value: object = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value
