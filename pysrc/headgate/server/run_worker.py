"""The program of a worker: a script, not a module with a main().

The loop is called from its first line of code on purpose. A CPU profile reads every frame of the stack in each sample,
while the worker stands still; below `python -m`, main(), uvloop.run() and Runner.run() the same six Python frames and
a dozen C frames would be in all of them.
"""

from headgate.server.worker import prepare

if __name__ == "__main__":
    RUNNER, LIFE = prepare()
    with RUNNER:
        RUNNER.get_loop().run_forever()
        LIFE.result()
