#!/usr/bin/env bash
# Runs the tests of examples/booking at the hours and on the days at which calendars are odd, each in
# another time zone:
#   scripts/test-hours.sh [TEST...]
# For a machine that is busy as well, run it beside `stress --cpu $(nproc)`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=()
while read -r now zone; do
    printf '\n== %s, TZ=%s\n' "$now" "$zone"
    BOOKING_TEST_NOW=$now TZ=$zone cargo test --quiet -p booking --all-features --test it -- "$@" </dev/null ||
        failed+=("$now")
done <<'HOURS'
2027-06-15T23:06:00Z Pacific/Kiritimati
2027-06-15T23:30:00Z America/St_Johns
2027-06-16T00:00:00Z Pacific/Niue
2028-02-28T23:30:00Z Asia/Kathmandu
2028-02-29T12:00:00Z Australia/Lord_Howe
2028-02-29T23:59:50Z <-03:30>3:30
2027-12-31T23:30:00Z Europe/London
2027-12-31T23:59:50Z Nowhere/Unknown
2028-01-01T00:00:00Z UTC
HOURS

if [ ${#failed[@]} != 0 ]; then
    printf '\n== FAILED at: %s\n' "${failed[*]}"
    exit 1
fi
printf '\n== All passed\n'
