"""Machines of the sandbox's Google: they have a metadata server and SSH, and really run their startup script here.
`world.guests.start(Machine(...))` boots one. Every method of Guests returns at once, and may be called with the world's
lock held; `running` tells when a machine that was stopped, preempted or switched off by itself has ended."""
