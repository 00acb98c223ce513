"""Everything that can go wrong does, and the cheapest provider is away for half a minute."""

from eyas.sim.scenarios.base import Faults, Outage, Scenario

STORM = Scenario(
    name="storm",
    generation_delay=4.0,
    comments=0.02,
    stall_seconds=5.0,
    outages=(Outage("chutes/int4", 15.0, 45.0),),
    faults=Faults(
        rate_limit=0.06,
        unavailable=0.03,
        server_error=0.03,
        budget_402=0.02,
        html=0.01,
        reset=0.01,
        error_200=0.03,
        early_cut=0.01,
        error_chunk=0.01,
        finish_error=0.01,
        empty_choices=0.01,
        empty_answer=0.01,
        cut_close=0.015,
        cut_reset=0.015,
        hang=0.01,
        stall=0.03,
        no_usage=0.03,
        no_done=0.02,
        misserved=0.005,
        wrong_mode=0.005,
    ),
)
