"""The A2A protocol, 1.0 and 0.3, on the tasks of the agents. Types and transports are the SDK's.

One application and one handler serve all agents of a host; the guard of each server adds the agent to the
request.
"""

import os

# Read when the SDK is imported. Its tracing spans fail on every stream that a client leaves.
os.environ.setdefault("OTEL_INSTRUMENTATION_A2A_SDK_ENABLED", "false")
