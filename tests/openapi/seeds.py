"""Hooks of schemathesis: generated requests of some operations are about sessions that exist.

SEEDS is a JSON object: by the identifier of an operation, the members of the path (`path`) and of the
body (`body`) that are put in the place of generated ones.
"""

import json
import os

import schemathesis

SEEDS = json.loads(os.environ["SEEDS"])


@schemathesis.hook
def before_call(context, case, kwargs):
    operation = case.operation.definition.raw.get("operationId")
    seeds = SEEDS.get(operation, {})
    if case.path_parameters:
        case.path_parameters.update(seeds.get("path", {}))
    if isinstance(case.body, dict):
        case.body.update(seeds.get("body", {}))
