"""Jobs on machines created for them: the common part of TPU VMs and VMs of Compute Engine."""
