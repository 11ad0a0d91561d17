"""Allowances of teams: reserve what jobs may cost before they are sent, and settle it once they have ended.

reservation.py has the reservation and the ledger's protocol; ledgers.py, dynamodb.py and firestore.py the ledgers;
price.py the reserved amount of a job and the cost of an ended one; reserve.py submission under an allowance;
settlement.py reservations of jobs that have ended or were never made; find_job.py the lookup of a job by its submission
key; submitter.py the entry points of the commands.
"""
