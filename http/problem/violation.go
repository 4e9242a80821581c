package problem

import "net/http"

// MaxViolations is the most violations one answer tells.
const MaxViolations = 100

// Violation is one broken rule: Pydantic's name of it, where, in words, and the object that holds the field.
type Violation struct {
	Type  string `json:"type"`
	Loc   []any  `json:"loc"` // "query" or "body", then names and indexes
	Msg   string `json:"msg"`
	Input any    `json:"input"` // always an object
}

// Violations is the 422 of broken rules.
func Violations(all ...Violation) Problem {
	return detail(http.StatusUnprocessableEntity, all[:min(len(all), MaxViolations)])
}
