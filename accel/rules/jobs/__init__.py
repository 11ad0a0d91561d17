"""Rules for jobs on any cloud: containers, images, launchers, documents of other tools."""
