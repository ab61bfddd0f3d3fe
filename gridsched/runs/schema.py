"""The reference of study files, made from their models: tables for people, a schema for editors."""

from __future__ import annotations

from typing import Any, Union

from pydantic import create_model

from gridsched.model.records import keys_of
from gridsched.runs.run_spec import SECTION_GENERATORS, PlatformTable, Settings, generated_workload, section_models
from gridsched.runs.study_document import Content
from gridsched.scenario import Scenario
from gridsched.workloads.generators import GENERATORS

_WORDS = {
    "integer": "whole number",
    "number": "number",
    "boolean": "`true` or `false`",
    "string": "text",
    "array": "list",
    "object": "table",
}
#: Between these lines docs/campaigns.md holds `study_keys`.
BEGIN, END = "<!-- study keys -->", "<!-- end of study keys -->"
_HEAD = ["| key | value | meaning |", "|---|---|---|"]


def study_schema() -> dict[str, Any]:
    """Return the JSON Schema of study files; every key of a run may be a list of values."""
    schema = _plain_schema()
    for name in Settings.model_fields:
        schema["properties"][name] = _or_list(schema["properties"][name])
    for section in (each for part in SECTION_GENERATORS for each in section_models(part)):
        # a group may set what is required
        schema["$defs"][section.__name__].pop("required", None)
        properties = schema["$defs"][section.__name__]["properties"]
        for name in properties:
            if name != "generator":
                properties[name] = _or_list(properties[name])
    # the study that is extended may say what is required
    schema["required"].remove("schedulers")
    figure = schema["$defs"]["DeclaredFigure"]
    figure["required"] = figure["required"][:1]
    for name in SECTION_GENERATORS:
        schema["properties"][name]["anyOf"].append(_or_list({"type": "string"}))
    schema["properties"]["schedulers"] |= _or_list({"type": ["string", "object"]})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Study file of gridsched",
        "description": "A campaign of simulated runs; see docs/campaigns.md.",
    }


def study_keys() -> str:
    """Return the reference of all keys as Markdown tables."""
    schema = _plain_schema()
    lines = [*_HEAD, *(_row(schema, name) for name in Content.model_fields)]
    lines += ["", "The next keys set how a run is done, as for `gridsched run`; here, too, a list is an axis.", ""]
    rules_first = dict.fromkeys((*keys_of(Scenario), *Settings.model_fields))
    lines += [*_HEAD, *(_row(schema, name) for name in rules_first if name in Settings.model_fields)]
    lines += ["", "| generator | keys |", "|---|---|"]
    lines.append(f'| `platform.generator = "table"` | {_listed(PlatformTable.model_fields)} |')
    for name, generator in GENERATORS.items():
        document = generator.declared.document
        keys = _listed(generated_workload(name).model_fields)
        if document:
            keys = f"[{document}]({document.removeprefix('docs/')}) lists them"
        lines.append(f'| `workload.generator = "{name}"` | {keys} |')
    return "\n".join(lines)


def _plain_schema() -> dict[str, Any]:
    """Return the schema of a study file in which nothing varies."""
    sections: dict[str, Any] = {
        name: (Union[tuple(section_models(name))], Content.model_fields[name])  # noqa: UP007 - as many as there are
        for name in SECTION_GENERATORS
    }
    settings: dict[str, Any] = {name: (field.annotation, field) for name, field in Settings.model_fields.items()}
    model = create_model("StudyFile", __base__=Content, **sections, **settings)
    return model.model_json_schema()


def _or_list(schema: dict[str, Any]) -> dict[str, Any]:
    words = {key: schema[key] for key in ("description", "default") if key in schema}
    return {"anyOf": [schema, {"type": "array", "items": schema}], **words}


def _row(schema: dict[str, Any], name: str) -> str:
    entry = schema["properties"][name]
    inner = entry.get("$ref") or entry.get("items", {}).get("$ref")
    for choice in entry.get("anyOf", ()):
        inner = inner or (None if name in SECTION_GENERATORS else choice.get("$ref"))
    meaning = entry["description"]
    if inner:
        properties = schema["$defs"][inner.rpartition("/")[2]]["properties"]
        meaning += f" Keys: {_listed(properties)}."
    value = "file or table" if name in SECTION_GENERATORS else _value(entry)
    if entry.get("default") not in (None, "", [], {}) and not inner:
        value += f"; default `{str(entry['default']).lower()}`"
    return f"| `{name}` | {value} | {meaning} |"


def _value(entry: dict[str, Any]) -> str:
    """Return in words what kind of value is allowed."""
    if "anyOf" in entry:
        words = [_value(each) for each in entry["anyOf"] if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(words))
    if "enum" in entry:
        return ", ".join(f"`{each}`" for each in entry["enum"])
    if "items" in entry and "type" in entry["items"]:
        return f"list of {_WORDS[entry['items']['type']]}s"
    if "$ref" in entry:
        return "table"
    if "items" in entry:
        return "list of tables"
    return _WORDS[entry["type"]] if "type" in entry else "text or table, or a list of them"


def _listed(names: Any) -> str:
    return f"`{', '.join(name for name in names if name != 'generator')}`"
