"""`python -m synapse_tui.daemon`: the host of one session, started by a client that passes it the socket."""

import gc

# Imported objects never become garbage, and collecting would take a tenth of the time to the first frame.
# `synapse_tui.system.collector` takes over later.
gc.disable()

from .process import main  # noqa: E402

if __name__ == "__main__":
    main()
