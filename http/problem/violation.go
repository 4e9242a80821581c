package problem

import (
	"net/http"

	"lieudit/schemas/body"
)

// MaxViolations is the most violations one answer tells.
const MaxViolations = 100

// Violation is one broken rule. Loc begins with "query" or "body"; Input is always an object.
type Violation = body.Violation

// Violations is the 422 of broken rules.
func Violations(all ...Violation) Problem {
	return Problem{
		Status: http.StatusUnprocessableEntity,
		body:   body.RuleFailure{Detail: all[:min(len(all), MaxViolations)]},
	}
}
