"""The Python interface: what `import eyas` offers, one small file a subject. docs/api.md is its page, and promises what stays.

    configure   load: RUN.toml, or a dict of the same shape, checked
    running     run, run_async: one session of a run; ending says how it ended
    planning    plan, plan_async: what it will cost and take
    opened      open_run: answers, rows and figures of run directories; table is what goes into a data frame
    exporting   export: the training set
    reporting   report: the offline page
    keys        whose key goes where; the commands ask here too

Sessions and plans are coroutines; `run` and `plan` start a loop for them and do nothing else. The names of the package
are loaded when they are first used, so `import eyas` costs nothing.
"""
