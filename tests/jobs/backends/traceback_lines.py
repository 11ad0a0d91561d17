"""A program that fails after it has printed more at once than `explain` looks at."""

TRACEBACK = """python3 - <<'END'
import sys
for number in range(300):
    print('line', number)
sys.stdout.flush()
def inner():
    raise ValueError('bad')
inner()
END"""
UPRIGHT = ["Traceback (most recent call last):", 'File "<stdin>"', 'File "<stdin>"', "ValueError: bad"]
"""How it ends, without line numbers."""
