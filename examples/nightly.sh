#!/bin/sh
# What a schedule runs: one job for a day, however often it is run. docs/schedules.md
# nightly.sh JOB.yaml TARGET [DAY]    DAY: a date such as 2026-11-22; without it, today's in UTC
set -eu
exec accel-jobs submit "$1" --to "$2" --key "${3:-$(date -u +%F)}" -o id
