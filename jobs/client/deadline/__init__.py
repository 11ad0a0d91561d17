"""Jobs with a deadline that run on Spot while there is time, and then on demand. model/deadline.py has the policy.

plan.py    the two jobs that one job file stands for, and how the first carries the second with it
record.py  the record of a move, on platforms that keep no reason of a cancel
follow.py  one look at such a job, the work that it has left, and the action that follows
"""
