"""`make run`: start the sample services and the gateway on examples/quickstart.yaml, and print commands to try."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

WAIT_SECONDS = 15.0

TRY = """
Headgate is ready. Try, in another terminal:

  curl http://localhost:3000/http/hello

  curl http://localhost:3000/v1/chat/completions -H 'content-type: application/json' \\
    -d '{{"model": "sample", "messages": [{{"role": "user", "content": "Hello there"}}]}}'

  curl http://localhost:3000/mcp -H 'content-type: application/json' -H 'accept: application/json, text/event-stream' \\
    -d '{{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {{"protocolVersion": "2025-06-18",
         "capabilities": {{}}, "clientInfo": {{"name": "curl", "version": "1"}}}}}}'

Configuration: {config} (edit it: it is reloaded). Metrics: http://localhost:15020/metrics
Admin page: http://localhost:15000/ui . Stop with Ctrl-C.
"""


def sample(module: str, environment_name: str) -> subprocess.Popen[str]:
    """Start a sample service on a free port and set the environment variable to that port."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"headgate.sample.{module}", "--port", "0", "--end-with-parent"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline().split()
    if len(line) != 2:
        raise SystemExit(f"quickstart: the sample {module} did not start")
    os.environ[environment_name] = line[1]
    return process


def wait_ready(gateway: subprocess.Popen[bytes], told: int, config: Path) -> None:
    """Return once the gateway says over the descriptor `told` that it is ready; if it ends first, exit with its status.

    A gateway of somebody else may answer at the ports that this one wants, so that they are not asked.
    """
    with open(told, "rb", buffering=0) as pipe:
        if not select.select([pipe], [], [], WAIT_SECONDS)[0]:
            raise SystemExit("quickstart: the gateway did not become ready")
        if not pipe.read(1):
            why = f"the gateway has not started, for the reason above. Its ports are in {config}"
            print(f"quickstart: {why}", file=sys.stderr)
            raise SystemExit(gateway.wait() or 1)


def main() -> int:
    """Run until the gateway ends; return its status."""
    config = Path(sys.argv[1] if len(sys.argv) > 1 else "examples/quickstart.yaml")
    os.environ.setdefault("HEADGATE_PYTHON", sys.executable)
    services = [
        sample("llm_provider", "HEADGATE_SAMPLE_LLM_PORT"),
        sample("http_service", "HEADGATE_SAMPLE_HTTP_PORT"),
    ]
    told, tells = os.pipe()
    gateway = subprocess.Popen(
        [sys.executable, "-m", "headgate.cli.main", "-f", str(config)],
        pass_fds=(tells,),
        env={**os.environ, "READY_FD": str(tells)},
    )
    os.close(tells)
    for sig in (signal.SIGTERM, signal.SIGINT):
        # The terminal sends Ctrl-C to the gateway too, and this process waits for its drain.
        signal.signal(sig, lambda number, _frame: gateway.send_signal(number) if number == signal.SIGTERM else None)
    try:
        wait_ready(gateway, told, config)
        print(TRY.format(config=config), flush=True)
        return gateway.wait()
    finally:
        everything: list[subprocess.Popen[bytes] | subprocess.Popen[str]] = [gateway, *services]
        for process in everything:
            if process.poll() is None:
                process.terminate()


if __name__ == "__main__":
    sys.exit(main())
