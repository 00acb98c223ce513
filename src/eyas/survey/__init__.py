"""What a report tells, gathered from run directories: nothing in them is changed, and they may still be going on.

history     every event of the journals once → State, and the course in bins (course)
judged      export's own pass over the answers, without shards: yield, labels, lengths, coverage
choose      which answers are shown · reading: one of them with its tokens, mask and channels
endpoints   what each endpoint did · books: days, how costs became known, what went wrong, the tail
activity    what the API says was used · together: several runs' status as one
gather      all of it: a Report
tables      a Report as CSV tables
"""

from __future__ import annotations

from eyas.survey.gather import Survey, Wanted

__all__ = ["Survey", "Wanted"]
