"""What a Cloud Run function does when a budget is crossed: its archive has these files, accel/budget, and nothing else.

The standard library and accel.budget alone. `stacks budget` pulls the same levers from here.
"""
