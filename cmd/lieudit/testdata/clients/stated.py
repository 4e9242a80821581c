"""Hooks of schemathesis: which refusals of a request that fits its schema the document states.

A failure that is dropped here is a 400 or a 422 for a reason that stands in the document where its schemas cannot say it, or that
lies in what the request says: an address, a cursor, a file. Any other stays a failure, and so does every wrong status, type or
form of an answer.
"""

import jsonschema_rs
import schemathesis

REFUSED = "Schema-valid request rejected"
ACCEPTED = "Schema-violating request accepted"


def plain(value):
    """A value of a query as the schema of its parameter has it."""
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def breaks_stated_rule(case):
    """Whether the query breaks a rule that the operation states as an extension, because OpenAPI has no word for it."""
    sent = {name: plain(value) for name, value in (case.query or {}).items()}
    rules = case.operation.definition.raw.get("x-rules", [])
    return any("breaks" in rule and jsonschema_rs.is_valid(rule["breaks"], sent) for rule in rules)


def is_form(case):
    return (case.media_type or "").startswith("multipart/")


def is_stated(case, violation):
    """Whether the document states in words what a violation is about. Only rules that no schema can say have this type."""
    if violation["type"] != "value_error":
        return False
    rule = violation["msg"].removeprefix("Value error, ").lower()
    texts = (case.operation.definition.raw["description"], case.operation.schema.raw_schema["info"]["description"])
    if any(rule in text.lower() for text in texts):
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
    return not (failure.title == ACCEPTED and is_form(case))  # an empty field of a form counts as left out
