"""Compute Engine: instances, templates and groups of them, disks, images, networks."""
