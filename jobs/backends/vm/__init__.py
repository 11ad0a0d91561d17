"""Jobs on machines that are made for them: what TPU VMs and VMs of Compute Engine have in common."""
