"""The job systems a user might pick instead, each in its best documented configuration.

Each module drives one peer and runs in an environment of its own, so these modules import
packages that the project itself does not depend on; the type checker leaves them out.
"""
