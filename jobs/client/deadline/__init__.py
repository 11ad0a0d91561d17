"""Jobs with a deadline that run on Spot while there is time, and then on demand. model/deadline.py has the policy,
plan.py the two jobs, record.py the record of a move, and follow.py a look at such a job and what follows."""
