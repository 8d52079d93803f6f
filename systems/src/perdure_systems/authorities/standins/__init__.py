"""Four authorities on this machine, over real HTTP and real TLS, that are as slow and as moody as you ask them to be.

They issue real certificates from a real chain, which no browser trusts. Run them alone:
`python -m perdure_systems.authorities.standins /tmp/standins` writes an env file for the system.
"""

from perdure_systems.authorities.standins.authority import StandIn
from perdure_systems.authorities.standins.behaviour import Behaviour, Reply, Seen
from perdure_systems.authorities.standins.pki import new_request
from perdure_systems.authorities.standins.serving import StandIns, serving

__all__ = ["Behaviour", "Reply", "Seen", "StandIn", "StandIns", "new_request", "serving"]
