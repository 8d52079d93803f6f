"""SQL files, migrations, parameters, and times as they are stored."""
