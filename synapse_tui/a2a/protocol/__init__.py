"""The A2A protocol, 1.0 and 0.3, on the tasks of the agents; types and transports are those of the a2a-sdk.

One application and one handler serve all agents of a host: the guard of each server says whose a request is.
"""

import os

# Read when the SDK is imported: its spans fail on every stream that a client leaves.
os.environ.setdefault("OTEL_INSTRUMENTATION_A2A_SDK_ENABLED", "false")
