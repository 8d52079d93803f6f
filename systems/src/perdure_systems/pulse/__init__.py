"""Pulse: documents are split, each piece is analysed by a model that costs money, and the findings are joined."""
