"""Removal of a compute environment whose deletion is stuck."""
