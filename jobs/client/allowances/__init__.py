"""What jobs may cost, held against their team's allowance before they are sent, and settled once they have ended.

Where what is: hold.py the hold and the ledger's protocol; files.py, dynamodb.py and firestore.py the ledgers; price.py
what is held for a job and what an ended one has cost; holding.py a submit under an allowance; settling.py holds of
jobs that have ended, or were never made.
"""
