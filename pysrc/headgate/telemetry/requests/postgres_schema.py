"""The tables of the request log and of stored resources in PostgreSQL, each version made from the one before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

# Keys of advisory locks: any numbers that other programs at the same server are unlikely to use.
LOCK_TABLES: Final = 0x4865_6164_0001
LOCK_ROWS: Final = 0x4865_6164_0002
LOCK_BUDGETS: Final = 0x4865_6164_0004

# The columns are those of SQLite; `bytes` is what the texts of a record take, which `totals` sums up. Texts compare by
# their bytes, as they do there.
_MIGRATIONS: Final = (
    """
CREATE TABLE headgate.requests (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, completed_us bigint NOT NULL, started_us bigint NOT NULL,
  status int NOT NULL, provider text COLLATE "C", request_model text COLLATE "C", response_model text COLLATE "C",
  input_tokens bigint, output_tokens bigint, cost_picos bigint, error text, trace_id text COLLATE "C", span_id text,
  attributes jsonb NOT NULL, prompt text, completion text, bytes bigint NOT NULL);
CREATE INDEX requests_completed ON headgate.requests (completed_us, id);
CREATE INDEX requests_trace ON headgate.requests (trace_id) WHERE trace_id IS NOT NULL;
CREATE TABLE headgate.totals (records bigint NOT NULL, bytes bigint NOT NULL);
INSERT INTO headgate.totals VALUES (0, 0);
CREATE TABLE headgate.writers (writer text PRIMARY KEY, batch bigint NOT NULL, at timestamptz NOT NULL);
""",
    # Configuration that is stored (headgate.config.resources). Names compare by their bytes.
    """
CREATE TABLE headgate.resources (
  kind text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, value text NOT NULL, revision bigint NOT NULL,
  place bigint NOT NULL, created_us bigint NOT NULL, updated_us bigint NOT NULL, PRIMARY KEY (kind, id));
CREATE TABLE headgate.resource_version (version bigint NOT NULL);
INSERT INTO headgate.resource_version VALUES (0);
""",
    # What virtual keys have spent (headgate.telemetry.spend).
    """
CREATE TABLE headgate.spend (
  day text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, team text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL, requests bigint NOT NULL, calls bigint NOT NULL, input_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL, cost_picos bigint NOT NULL, PRIMARY KEY (day, key, team, model));
""",
    # What gateways have leased of limits (headgate.telemetry.spend.budgets_postgres), and which of them have warned.
    """
CREATE TABLE headgate.budgets (
  scope text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, span text COLLATE "C" NOT NULL,
  unit text COLLATE "C" NOT NULL, start_s bigint NOT NULL, end_s bigint NOT NULL, taken numeric NOT NULL,
  PRIMARY KEY (scope, name, span, unit, start_s));
CREATE INDEX budgets_ended ON headgate.budgets (end_s);
CREATE TABLE headgate.alerts (
  scope text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, span text COLLATE "C" NOT NULL,
  unit text COLLATE "C" NOT NULL, start_s bigint NOT NULL, end_s bigint NOT NULL,
  PRIMARY KEY (scope, name, span, unit, start_s));
ALTER TABLE headgate.spend ALTER COLUMN cost_picos TYPE numeric;
""",
    # What is taken back of a gateway that is not heard any more: of each limit what it has told last.
    """
CREATE TABLE headgate.lease_holders (holder text COLLATE "C" PRIMARY KEY, heard timestamptz NOT NULL);
CREATE TABLE headgate.lent (
  holder text COLLATE "C" NOT NULL, scope text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
  span text COLLATE "C" NOT NULL, unit text COLLATE "C" NOT NULL, start_s bigint NOT NULL, lent numeric NOT NULL,
  PRIMARY KEY (holder, scope, name, span, unit));
""",
)
VERSION: Final = len(_MIGRATIONS)
_VERSION_TABLE: Final = "CREATE TABLE headgate.version (version int NOT NULL)"
# These read the catalogue's rows. Functions like to_regclass() may answer from what the session knew before it waited
# for the lock: that another gateway has no tables yet.
_HAS_SCHEMA: Final = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'headgate')"
_HAS_VERSION: Final = (
    "SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = 'headgate' AND c.relname = 'version')"
)


def migrate(value: Callable[..., Any], refused: type[Exception]) -> None:
    """Bring the tables to VERSION. `value` runs statements and returns the first value.

    Gateways that start at once do it one after the other. A user without the right to make a schema needs one that is
    called `headgate`. Raises `refused` if the tables have a newer version, and what `value` raises.
    """
    value("BEGIN")
    value(f"SELECT pg_advisory_xact_lock({LOCK_TABLES})")
    version = 0
    if value(_HAS_VERSION):
        version = value("SELECT max(version) FROM headgate.version")
    else:
        if not value(_HAS_SCHEMA):
            value("CREATE SCHEMA headgate")
        value(_VERSION_TABLE)
    if version > VERSION:
        raise refused(f"its tables have version {version}, but this gateway only supports {VERSION}")
    for at in range(version, VERSION):
        for statement in _MIGRATIONS[at].split(";\n"):
            if statement.strip():
                value(statement)
        value("INSERT INTO headgate.version VALUES ($1)", at + 1)
    value("COMMIT")
