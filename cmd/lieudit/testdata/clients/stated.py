"""Hooks of schemathesis: which refusals of a request that fits its schema the document states.

A failure that is dropped here is a 400 or a 422 for a reason that stands in the document where its schemas cannot say it, or that
lies in what the request says: an address, a cursor, a file. Any other stays a failure, and so does every wrong status, type or
form of an answer.
"""

import json

import jsonschema_rs
import schemathesis

REFUSED = "Schema-valid request rejected"
ACCEPTED = "Schema-violating request accepted"


TEXTS = {}


def document_text(raw):
    """All words of the document, in lower case."""
    if id(raw) not in TEXTS:
        TEXTS[id(raw)] = json.dumps(raw, ensure_ascii=False).lower()
    return TEXTS[id(raw)]


def plain(value):
    """A value of a query as the schema of its parameter has it."""
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def breaks_stated_rule(case):
    """Whether the query breaks a rule that the operation states as an extension, because OpenAPI has no word for it."""
    sent = {name: plain(value) for name, value in (case.query or {}).items()}
    rules = case.operation.definition.raw.get("x-rules", [])
    return any("breaks" in rule and jsonschema_rs.is_valid(rule["breaks"], sent) for rule in rules)


def leaves_out(case):
    """Whether the query holds an empty parameter that counts as left out."""
    schemas = {p["name"]: p["schema"] for p in case.operation.definition.raw.get("parameters", []) if p["in"] == "query"}
    return any(value == "" and not {"enum", "pattern"} & schemas.get(name, {}).keys() for name, value in (case.query or {}).items())


def is_form(case):
    return (case.media_type or "").startswith("multipart/")


def is_stated(case, violation):
    """Whether the document states in words what a violation is about. Only rules that no schema can say have this type."""
    if violation["type"] != "value_error":
        return False
    rule = violation["msg"].removeprefix("Value error, ")
    if rule.lower() in document_text(case.operation.schema.raw_schema):
        return True
    return len(violation["loc"]) > 1 and isinstance(violation["loc"][-1], str)  # the description of that member


def is_stated_refusal(case, response):
    if response.status_code == 400:
        return breaks_stated_rule(case) or is_form(case)  # a form that is no CSV file
    if response.status_code != 422:
        return False
    answer = response.json()
    detail = answer.get("detail")
    if answer.get("status") == "API_ERROR" or isinstance(detail, str):
        return True
    if not isinstance(detail, list):
        return isinstance(detail, dict) and detail["code"].startswith(("origine_", "trop_d_origines"))
    return breaks_stated_rule(case) or all(is_stated(case, violation) for violation in detail)


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """False drops a failure."""
    if failure.title == REFUSED:
        return not is_stated_refusal(case, response)
    if failure.title == ACCEPTED:
        return not (is_form(case) or leaves_out(case))  # an empty field of a form counts as left out too
    return True
