"""Real systems, rebuilt on perdure's public names: notifications, certificates, flags, pulse, authorities, audits."""
