"""From `JobFilter(where=…)` to conditions in SQL: fixed pieces of text; paths and values are parameters.

They mean what `policy.matching` says. A document that PostgreSQL cannot hold as jsonb meets no condition but `!=`.
"""

from __future__ import annotations

import json
from typing import Final

from perdure.domain.operate.condition import Condition
from perdure.engines.postgres.database.arrays import text_array
from perdure.policy.secrets.redaction import masks_of_json

_DOCUMENTS: Final = {"args": "j.args", "meta": "j.meta", "result": "p.result"}
_ERRORS: Final = {
    (): "e.error_type || ': ' || e.message",
    ("type",): "e.error_type",
    ("message",): "e.message",
}


def where_params(where: tuple[Condition, ...]) -> dict[str, object]:
    """The parameters of all conditions."""
    params: dict[str, object] = {}
    for number, condition in enumerate(where):
        params.update(_values(f"where_{number}", condition))
    return params


def where_conditions(where: tuple[Condition, ...], json_of: str, *, has_result: bool = True) -> list[str]:
    """One condition in SQL for each; `json_of` is the name of the function that reads documents."""
    pieces = []
    for number, condition in enumerate(where):
        name = f"where_{number}"
        if condition.field == "tags":
            pieces.append(_of_tags(name, condition))
        elif condition.field == "error":
            pieces.append(_of_text(f"({_ERRORS[condition.path]})", name, condition))
        else:
            stored = _DOCUMENTS[condition.field]
            document = "NULL::jsonb" if condition.field == "result" and not has_result else f"{json_of}({stored})"
            compared = _of_json(f"({document} #> %({name}_path)s::text[])", name, condition)
            if condition.needle is not None:  # asked first: to look for a text costs less than to read a document
                held = "false" if document == "NULL::jsonb" else f"strpos(lower({stored}), %({name}_needle)s::text) > 0"
                compared = f"CASE WHEN {held} THEN {compared} ELSE false END"
            pieces.append(compared)
    return pieces


def _values(name: str, condition: Condition) -> dict[str, object]:
    values: dict[str, object] = {}
    is_json = condition.field not in {"tags", "error"}
    if is_json:
        values[f"{name}_path"] = text_array(condition.path)
    if condition.needle is not None and is_json:
        values[f"{name}_needle"] = condition.needle
    if condition.op in {"=", "!="} and is_json:
        values[f"{name}_any"] = text_array([json.dumps(value) for value in condition.candidates])
    elif condition.op in {">", "<"} and is_json and condition.number is not None:
        values[f"{name}_number"] = json.dumps(condition.number)
    elif condition.op != "exists":
        values[f"{name}_text"] = condition.value
        if condition.op == "~" and is_json:
            for place, (pattern, mask) in enumerate(masks_of_json()):
                values |= {f"{name}_secret_{place}": pattern, f"{name}_mask_{place}": mask}
    return values


def _of_json(node: str, name: str, condition: Condition) -> str:
    match condition.op:
        case "exists":
            return f"{node} IS NOT NULL"
        case "=" | "!=":
            no = "NOT " if condition.op == "!=" else ""
            return f"{no}coalesce({node} = ANY (%({name}_any)s::jsonb[]), false)"
        case "~":
            text = f"coalesce({node} #>> '{{}}', {node}::text)"  # a null has no text of its own
            masked = text
            for place, _ in enumerate(masks_of_json()):
                masked = f"regexp_replace({masked}, %({name}_secret_{place})s, %({name}_mask_{place})s, 'gi')"
            held, shown = (f"strpos(lower({each}), lower(%({name}_text)s::text)) > 0" for each in (text, masked))
            return f"CASE WHEN {held} THEN {shown} ELSE false END"
    if condition.number is not None:
        compared = f"({node} #>> '{{}}')::numeric {condition.op} %({name}_number)s::numeric"
        return f"CASE WHEN jsonb_typeof({node}) = 'number' THEN {compared} ELSE false END"
    compared = f'({node} #>> \'{{}}\') COLLATE "C" {condition.op} %({name}_text)s::text COLLATE "C"'
    return f"CASE WHEN jsonb_typeof({node}) = 'string' THEN {compared} ELSE false END"


def _of_text(text: str, name: str, condition: Condition) -> str:
    match condition.op:
        case "exists":
            return f"{text} IS NOT NULL"
        case "=":
            return f"{text} = %({name}_text)s::text"
        case "!=":
            return f"{text} IS DISTINCT FROM %({name}_text)s::text"
        case "~":
            return f"strpos(lower({text}), lower(%({name}_text)s::text)) > 0"
    return f'{text} COLLATE "C" {condition.op} %({name}_text)s::text COLLATE "C"'


def _of_tags(name: str, condition: Condition) -> str:
    match condition.op:
        case "exists":
            return "cardinality(j.tags) > 0"
        case "=":
            return f"%({name}_text)s::text = ANY (j.tags)"
        case "!=":
            return f"coalesce(%({name}_text)s::text <> ALL (j.tags), true)"
    found = f"SELECT FROM unnest(j.tags) AS t (tag) WHERE strpos(lower(t.tag), lower(%({name}_text)s::text)) > 0"
    return f"EXISTS ({found})"
