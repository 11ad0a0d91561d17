"""Allowances of teams: reserve what jobs may cost before they are sent, and settle it once they have ended. The
commands enter by submitter.py; reserve.py has the order of steps, and reservation.py what all ledgers promise."""
