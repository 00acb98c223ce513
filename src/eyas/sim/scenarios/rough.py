"""An ordinary evening: a few percent of everything that leaves a generation id behind, and no silence above a second."""

from eyas.sim.scenarios.base import Faults, Scenario

ROUGH = Scenario(
    name="rough",
    generation_delay=1.5,
    comments=0.01,
    faults=Faults(
        rate_limit=0.03,
        unavailable=0.01,
        server_error=0.006,
        error_200=0.006,
        early_cut=0.005,
        error_chunk=0.005,
        finish_error=0.005,
        empty_choices=0.003,
        empty_answer=0.003,
        cut_close=0.01,
        cut_reset=0.01,
        stall=0.02,
        no_usage=0.02,
        no_done=0.01,
    ),
)
