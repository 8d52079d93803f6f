"""Searches as typed: `kind:charge_card state:dead args.user.id=42 error~timeout since:1h`."""

from perdure.operate.search.format import format_search
from perdure.operate.search.parse import parse_condition, parse_search
from perdure.operate.search.suggest import Suggestion, suggest

__all__ = ["Suggestion", "format_search", "parse_condition", "parse_search", "suggest"]
