"""The desk for agents: tools, resources and prompts of the Model Context Protocol, over stdio and HTTP.

`toolbox.py` lists the tools with their scopes. `tools/` reads, `commands/` acts, `answers/` are the schemas of what
they return. `ground.py` is the base of every tool: the caller, the desk in the agent's name, and errors that an agent
can read. Text that comes from jobs passes through `quoting.py`: marked, cleaned and cut.
"""
