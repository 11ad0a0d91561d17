"""What jobs may cost, held against their team's allowance before they are sent, and settled once they have ended.

Where what is: reservation.py the hold and the ledger's protocol; files.py, dynamodb.py and firestore.py the ledgers;
price.py what is held for a job and what an ended one has cost; reserve.py a submit under an allowance; settlement.py
holds of jobs that have ended, or were never made; submitter.py what the commands call.
"""
