"""What both engines share: SQL files, migrations, and values as they are stored."""
