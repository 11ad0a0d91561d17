"""A page about one job: what its platform, its log and the prices tell, as one HTML file that needs nothing else.

Plain values in, text out: no clock and no network, so that the same values give the same page.
"""
