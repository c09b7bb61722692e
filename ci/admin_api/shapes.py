"""JSON schemas of what the admin API reads and answers (docs/schema/admin.openapi.json)."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
INTEGER: Schema = {"type": "integer"}
TRUTH: Schema = {"type": "boolean"}
ANY: Schema = {}
OBJECT: Schema = {"type": "object"}
TIME: Schema = {"type": "string", "format": "date-time"}


def maybe(schema: Schema) -> Schema:
    """Or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def listed(items: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": items}


def mapped(values: Schema) -> Schema:
    """An object with names that are not known beforehand."""
    return {"type": "object", "additionalProperties": values}


def record(_optional: str = "", _more: bool = False, **properties: Schema) -> Schema:
    """An object with these members; those of `_optional` may be missing. `_more`: it may have others."""
    required = [name for name in properties if name not in _optional.split()]
    found: Schema = {"type": "object", "properties": properties, "required": required}
    return found if _more else found | {"additionalProperties": False}


def named(name: str) -> Schema:
    """One of SCHEMAS."""
    return {"$ref": f"#/components/schemas/{name}"}


TRAFFIC = record(
    name=TEXT, protocol=TEXT, requests=NUMBER, clientErrors=NUMBER, serverErrors=NUMBER, bytes=NUMBER,
    latency=record(counts=listed(NUMBER), sum=NUMBER),
)  # fmt: skip
PLACE = {"bind": TEXT, "port": INTEGER, "tls": ANY, "host": TEXT, "path": TEXT}
USED = record(ends=INTEGER, requests=INTEGER, tokens=INTEGER, dollars=INTEGER)
KEY = {
    "name": TEXT, "owner": TEXT, "team": TEXT, "tags": mapped(TEXT), "metadata": OBJECT, "allowedModels": listed(TEXT),
    "allowedTools": listed(TEXT), "allowedRoutes": listed(TEXT), "expires": TEXT, "revoked": TRUTH,
    "limits": listed(OBJECT), "owned": {"const": "file"}, "createdAt": TIME, "updatedAt": TIME,
}  # fmt: skip
TEAM = {
    "name": TEXT, "limits": listed(OBJECT), "keyLimits": listed(OBJECT), "allowedModels": listed(TEXT),
    "allowedTools": listed(TEXT), "allowedRoutes": listed(TEXT), "owned": {"const": "file"}, "createdAt": TIME,
    "updatedAt": TIME,
}  # fmt: skip
USAGE = record(
    minute=USED,
    day=USED,
    month=USED,
    reserved=record(requests=INTEGER, tokens=INTEGER, dollars=INTEGER, _optional="requests"),
)
ALL_BUT_NAME = " ".join((*KEY, *TEAM)).replace("name ", "", 1)


def one_key(**more: Schema) -> Schema:
    """A virtual key, as lists have it, and more."""
    return record(ALL_BUT_NAME.replace(" name", ""), **KEY, **more)


def one_team(**more: Schema) -> Schema:
    """A team, as lists have it, and more."""
    return record(ALL_BUT_NAME.replace(" name", ""), **TEAM, **more)


SCHEMAS: dict[str, Schema] = {
    "Error": record(error=TEXT),
    "Reason": {"type": "string", "description": "The reason, for people."},
    "Written": record(status={"const": "success"}, message=TEXT, revision=TEXT),
    "Done": record("message", status={"const": "success"}, message=TEXT),
    "Build": record(version=TEXT, gitRevision=TEXT, rustVersion=TEXT, buildProfile=TEXT, buildTarget=TEXT),
    "Fault": record(path=TEXT, problem=TEXT, message=TEXT, line=INTEGER, column=INTEGER),
    "Traffic": TRAFFIC,
    "Worker": record(
        index=INTEGER, answers=TRUTH, pid=maybe(INTEGER), generation=maybe(INTEGER), connections=maybe(INTEGER),
        idle=maybe(INTEGER), requests=maybe(NUMBER), cpu_seconds=maybe(NUMBER),
    ),
    "State": record(
        time=INTEGER, started=INTEGER, version=TEXT, generation=INTEGER, synchronized=TRUTH, level=TEXT,
        watchers=INTEGER,
        restarts=INTEGER, connections=NUMBER, refused=NUMBER, workers=listed(named("Worker")), bounds=listed(NUMBER),
        all=named("Traffic"), routes=listed(named("Traffic")), backends=listed(named("Traffic")),
        rows=record(routes=INTEGER, backends=INTEGER), endpoints=listed(OBJECT),
        models=listed(
            record(provider=TEXT, model=TEXT, requests=NUMBER, inputTokens=NUMBER, outputTokens=NUMBER,
                   costUsd=maybe(NUMBER), calls=NUMBER, errors=NUMBER, firstToken=listed(NUMBER),
                   durations=listed(NUMBER))
        ),
        modelBounds=record(firstToken=listed(NUMBER), durations=listed(NUMBER)),
        sessions=listed(record(backend=TEXT, count=NUMBER)),
        mcp=listed(record(method=TEXT, server=TEXT, resource_type=TEXT, resource=TEXT, count=NUMBER)),
        guardrails=listed(record(phase=TEXT, action=TEXT, guard=TEXT, count=NUMBER)),
        targets=record(
            ports=listed(record(listener=TEXT, **PLACE)),
            models=listed(record(route=TEXT, models=listed(TEXT), **PLACE)),
            mcp=listed(record(
                route=TEXT, backend=TEXT, targets=listed(TEXT),
                servers=listed(record(name=TEXT, kind=TEXT, address=TEXT)), **PLACE,
            )),
            served=listed(record(name=TEXT, provider=TEXT, address=TEXT, upstream=maybe(TEXT))),
        ),
        requestLog=TRUTH, offers=listed(TEXT),
    ),
    "Expression": record("data", expression=TEXT, data=OBJECT, _more=True),
    "Evaluated": record(result=ANY, error=maybe(TEXT)),
    "RelayRequest": record("method path host headers body", bind=TEXT, method=TEXT, path=TEXT, host=TEXT,
                           headers=mapped(TEXT), body=TEXT),
    "Configuration": {"type": "object", "description": "The document of config.schema.json."},
    "ConfigurationText": record("revision", text=TEXT, revision=TEXT, _more=True),
    "ShownText": record(file=TEXT, mode=TEXT, text=TEXT, revision=TEXT),
    "Checked": record(errors=listed(named("Fault")), warnings=listed(TEXT)),
    "Faults": record(errors=listed(named("Fault"))),
    "Resource": record("revision createdAt updatedAt", kind=TEXT, id=TEXT, value=ANY, revision=INTEGER,
                       createdAt=TIME, updatedAt=TIME),
    "Resources": record(resources=listed(named("Resource"))),
    "ResourceItem": record("id kind revision createdAt updatedAt", value=ANY, id=TEXT, kind=TEXT, revision=INTEGER,
                           createdAt=TEXT, updatedAt=TEXT),
    "ResourceItems": record(resources=listed(named("ResourceItem"))),
    "WrittenResources": record(status={"const": "success"}, message=TEXT, resources=listed(named("Resource"))),
    "Key": one_key(),
    "UsedKey": one_key(usage=named("Usage")),
    "MadeKey": one_key(key={"type": "string", "description": "The key itself, which is in no other answer."}),
    "Keys": record(keys=listed(named("Key"))),
    "Team": one_team(),
    "UsedTeam": one_team(usage=named("Usage")),
    "Teams": record(teams=listed(named("Team"))),
    "Usage": USAGE | {"description": "Dollars are 1e-12 of one; `ends` is in seconds since 1970."},
    "Spend": {"type": "object", "properties": {
        "from": {"type": "string", "format": "date"}, "to": {"type": "string", "format": "date"}, "more": TRUTH,
        "rows": listed(record(
            "day key team model", day=TEXT, key=TEXT, team=TEXT, model=TEXT, requests=INTEGER, calls=INTEGER,
            inputTokens=INTEGER, outputTokens=INTEGER, costPicos=INTEGER, cost=TEXT,
        )),
    }, "required": ["from", "to", "rows", "more"], "additionalProperties": False},
    "Prices": record(
        models=listed(record(provider=TEXT, model=TEXT, rates=mapped(TEXT), tags=ANY,
                             tiers=listed(record(contextOver=INTEGER, rates=mapped(TEXT))))),
        version=maybe(TEXT), files=listed(TEXT), baseFile=maybe(TEXT),
    ),
    "Refreshed": record(status={"const": "success"}, message=TEXT, file=TEXT, models=INTEGER, providers=INTEGER,
                        unpriced=INTEGER),
    "Runtime": record(build=named("Build"), ui=record(gatewayMode=TEXT, configStoreMode=TEXT)),
    "Dump": {"type": "object", "required": ["workers"], "description": "The running configuration, without secrets."},
    "Memory": record(
        captured_at_unix_ms=INTEGER, capture_mode=TEXT, allocation_stats=OBJECT, pprof=ANY, allocator=ANY, cgroup=ANY,
        smaps=ANY, processes=listed(record("index numbers", role=TEXT, pid=INTEGER, index=INTEGER, smaps=ANY,
                                            numbers=ANY, _more=True)),
    ),
    "Upgraded": record(pid=INTEGER),
    "Same": record(same=TRUTH),
    "History": record(everySeconds=NUMBER, points=listed(record(
        time=INTEGER, requests=NUMBER, clientErrors=NUMBER, serverErrors=NUMBER, tokens=NUMBER, costUsd=maybe(NUMBER),
        counts=listed(NUMBER), routes=mapped(listed(maybe(NUMBER))), backends=mapped(listed(maybe(NUMBER))),
        models=mapped(listed(maybe(NUMBER))), cut=listed({"enum": ["routes", "backends", "models"]}),
    ))),
    "McpTargets": record(targets=listed(record(
        backend=TEXT, target=TEXT, kind=TEXT, address=TEXT, state={"enum": ["up", "down", "unknown"]},
        name=maybe(TEXT), version=maybe(TEXT), protocol=maybe(TEXT), opened=maybe(INTEGER), answered=maybe(INTEGER),
        failed=maybe(INTEGER), error=maybe(TEXT), erred=maybe(INTEGER), calls=INTEGER, errors=INTEGER, failures=INTEGER,
        p50Ms=maybe(NUMBER), p95Ms=maybe(NUMBER),
    ))),
    "Coverage": record(rows=listed(record(
        "why", route=TEXT, model=TEXT, side=TEXT, number=INTEGER, guard=TEXT, shape=TEXT, text=TEXT,
        formats=listed(TEXT), seen={"enum": ["yes", "refusals", "no"]}, why=TEXT,
    )), cut=TRUTH),
    "Schema": {"type": "object", "description": "The JSON schema of the configuration file."},
    "Tasks": mapped(listed(TEXT)),
}  # fmt: skip
