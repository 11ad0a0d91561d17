"""Cloud Run function for a crossed budget. Its archive has these files, accel/budget, and nothing else.

They use only the standard library and accel.budget. `stacks budget` pulls the same levers from here.
"""
