"""`python -m synapse_tui.daemon`: the host of one session; started by a client, which hands it the socket."""

import gc

# Nothing that is imported becomes garbage; looking for it takes a tenth of the time to the first frame. From
# then on `synapse_tui.collector` collects.
gc.disable()

from .process import main  # noqa: E402

if __name__ == "__main__":
    main()
