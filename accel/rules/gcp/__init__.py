"""Rules of Google Cloud: Compute Engine, networks, accounts, TPUs."""
