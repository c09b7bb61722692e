"""Durations and timestamps: https://protobuf.dev/reference/protobuf/google.protobuf/#timestamp and RFC 3339."""

import datetime

from headgate_engine.expr.values cimport Duration, Timestamp

from headgate_engine.expr.values import NS, EvaluationError, no_overload
from headgate_engine.lazy_pattern import lazy_pattern

UNIT_NS = {"h": 3600 * NS, "m": 60 * NS, "s": NS, "ms": 10**6, "us": 10**3, "\u00b5s": 10**3, "\u03bcs": 10**3, "ns": 1}
_PART = lazy_pattern(r"([0-9]*)(?:\.([0-9]*))?(h|ms|m|s|us|\u00b5s|\u03bcs|ns)")
_WHOLE = lazy_pattern(r"[+-]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:h|ms|m|s|us|\u00b5s|\u03bcs|ns))+)")
_STAMP = lazy_pattern(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?(Z|z|[+-][0-9]{2}:[0-9]{2})")
_OFFSET = lazy_pattern(r"([+-]?)([0-9]{2}):([0-9]{2})")
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def parse_duration(text):
    """Return the duration of a string such as `1h30m` or `-1.5s`. Raises EvaluationError if it is not one."""
    if len(text) > 128 or not _WHOLE.fullmatch(text):
        raise EvaluationError("not a duration")
    total = 0
    for whole, fraction, unit in _PART.findall(text):
        total += int(whole or "0") * UNIT_NS[unit]
        if fraction:
            # A power of two C integers would be a double.
            total += int(fraction) * UNIT_NS[unit] // int("1" + "0" * len(fraction))
    return Duration(-total if text.startswith("-") else total)


def duration_text(value):
    """Return a duration in seconds, with as many decimals as needed and the suffix `s`."""
    return repr(value)


def parse_timestamp(text):
    """Return the timestamp of an RFC 3339 date-time. Raises EvaluationError if the string is not one."""
    found = _STAMP.fullmatch(text)
    if found is None:
        raise EvaluationError("not a timestamp")
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        moment = datetime.datetime(int(year), int(month), int(day), int(hour), int(minute), int(second))
    except ValueError:
        raise EvaluationError("not a timestamp") from None
    since = moment.replace(tzinfo=datetime.UTC) - EPOCH
    ns = (since.days * 86400 + since.seconds) * NS + int((fraction or "0").ljust(9, "0"))
    if zone not in "Zz":
        ns -= _offset_seconds(zone) * NS
    return Timestamp(ns)


def _offset_seconds(text):
    found = _OFFSET.fullmatch(text)
    if found is None or int(found[2]) > 23 or int(found[3]) > 59:
        raise EvaluationError("not a time zone")
    seconds = int(found[2]) * 3600 + int(found[3]) * 60
    return -seconds if found[1] == "-" else seconds


def timestamp_text(value):
    """Return a timestamp as an RFC 3339 date-time in UTC, with as many decimals as needed."""
    seconds, rest = divmod((<Timestamp?>value).ns, NS)
    moment = EPOCH + datetime.timedelta(seconds=seconds)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}{fraction}Z"


def _local(value, zone):
    if not isinstance(value, Timestamp):
        raise no_overload("a timestamp is wanted")
    seconds = (<Timestamp>value).ns // NS
    name = zone[0] if zone else "UTC"
    if not isinstance(name, str):
        raise no_overload("a time zone is a string")
    if name[:1] in "+-" or name[:1].isdigit():
        seconds += _offset_seconds(name)
        where = datetime.UTC
    elif name in ("UTC", ""):
        where = datetime.UTC
    else:
        import zoneinfo        # costs a start 6 ms, which few need

        try:
            where = zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            raise EvaluationError(f"unknown time zone {name!r}") from None
    try:
        return (EPOCH + datetime.timedelta(seconds=seconds)).astimezone(where)
    except OverflowError:
        raise EvaluationError("timestamp out of range") from None


def _calendar(part):
    def read(value, *zone):
        return part(_local(value, zone))
    return read


def _whole(ns, unit):
    return abs(ns) // unit * (-1 if ns < 0 else 1)


def _clock(unit, part):
    """Return a reader: for a duration its whole number of units, for a timestamp that part of the time of day."""
    def read(value, *zone):
        if isinstance(value, Duration):
            if zone:
                raise no_overload("a duration has no time zone")
            return _whole((<Duration>value).ns, unit)
        return part(_local(value, zone))
    return read


def _milliseconds(value, *zone):
    if isinstance(value, Duration):
        ns = (<Duration>value).ns
        return _whole(ns, 10**6) - _whole(ns, NS) * 1000
    if not isinstance(value, Timestamp):
        raise no_overload("getMilliseconds")
    return (<Timestamp>value).ns % NS // 10**6


FUNCTIONS = {
    ("getFullYear", True): (_calendar(lambda moment: moment.year), 0, 1),
    ("getMonth", True): (_calendar(lambda moment: moment.month - 1), 0, 1),
    ("getDate", True): (_calendar(lambda moment: moment.day), 0, 1),
    ("getDayOfMonth", True): (_calendar(lambda moment: moment.day - 1), 0, 1),
    ("getDayOfWeek", True): (_calendar(lambda moment: moment.isoweekday() % 7), 0, 1),
    ("getDayOfYear", True): (_calendar(lambda moment: moment.timetuple().tm_yday - 1), 0, 1),
    ("getHours", True): (_clock(3600 * NS, lambda moment: moment.hour), 0, 1),
    ("getMinutes", True): (_clock(60 * NS, lambda moment: moment.minute), 0, 1),
    ("getSeconds", True): (_clock(NS, lambda moment: moment.second), 0, 1),
    ("getMilliseconds", True): (_milliseconds, 0, 1),
}
