"""The program of a template that replaces one that has died. It is a script, not a module with a main().

The loop of a worker is called from the first line of code on purpose. A CPU profile reads every frame of the stack in
each sample, while the worker stands still; below `python -m`, main(), uvloop.run() and Runner.run() the same six Python
frames and a dozen C frames would be in all of them.
"""

import gc

gc.disable()

from headgate.server.template import run_from_arguments  # noqa: E402 (nothing that is imported is garbage)
from headgate.server.worker import begin  # noqa: E402

if __name__ == "__main__":
    RUNNER, LIFE = begin(run_from_arguments())
    with RUNNER:
        RUNNER.get_loop().run_forever()
        LIFE.result()
