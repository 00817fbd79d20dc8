"""What holds for every test here?"""

from hypothesis import settings

# A slow machine is not a failing law: no wall clock decides whether a test passes.
settings.register_profile("holdfast", deadline=None, print_blob=True)
settings.load_profile("holdfast")
