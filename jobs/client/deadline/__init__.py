"""Jobs with a deadline that run on Spot while there is time, and then on demand: policy, plan, and who moves them.

policy.py    when to move: arithmetic on plain numbers of seconds
progress.py  how much work is left, by what the job prints
plan.py      the two jobs that one job file means, and how the first carries the second with it
record.py    where it is kept that a job was moved, on platforms that keep no reason of a cancel
follow.py    one look at such a job, and what is to be done then
"""
