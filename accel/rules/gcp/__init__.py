"""What Google Cloud allows: Compute Engine, networks, accounts, TPUs."""
