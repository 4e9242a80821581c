package body

import (
	"net/http"
	"slices"

	"lieudit/schemas/body/openapi"
	"lieudit/schemas/refusal"
)

// FailureOf is the body of the answer to a refusal, one of the structs of this file. The row of its code in package refusal names
// the form. nil: the answer has no body.
func FailureOf(r refusal.Error) any {
	row, code := r.Code.Row(), string(r.Code)
	text := ""
	if row.Text != nil {
		text = row.Text(r.Details)
	}
	switch row.Form {
	case refusal.CodeForm:
		return CodeFailure{Code{code, text}}
	case refusal.SitesForm:
		return SitesFailure{SitesOverCapacity{code, r.Active, r.Capacity, r.Ceiling}}
	case refusal.ReferentialsForm:
		return ReferentialsFailure{ReferentialsOverCapacity{code, r.Active, r.Ceiling}}
	case refusal.ReductionForm:
		return ReductionFailure{Reduction{code, r.Before, r.After, text}}
	case refusal.KeysForm:
		return KeysFailure{KeysOverCapacity{code, r.Ceiling, r.Active, text}}
	case refusal.ParseForm:
		return ParseFailure{"API_ERROR", text}
	case refusal.NoBody:
		return nil
	}
	return TextFailure{text}
}

// TextFailure is the error body most failures have.
type TextFailure struct {
	Detail string `json:"detail"`
}

// RuleFailure is the error body of requests that break rules.
type RuleFailure struct {
	Detail []Violation `json:"detail" max:"100"`
}

// Violation is one broken rule.
type Violation struct {
	Type  string `json:"type" doc:"The rule's name, as Pydantic names it"`
	Loc   []any  `json:"loc" items:"string integer" doc:"Where: query or body, then names and indexes"`
	Msg   string `json:"msg"`
	Input any    `json:"input" doc:"The object that holds the field; of a large one that field alone"`
}

// CodeFailure is the error body of refusals that a program tells apart by their code. The failures after it add numbers to that.
type CodeFailure struct {
	Detail Code `json:"detail"`
}

// Code is a refusal: its code for programs, its message for people.
type Code struct {
	Code    string `json:"code"`
	Message string `json:"message" doc:"French"`
}

// SitesFailure: the write would leave more active sites than the ceiling.
type SitesFailure struct {
	Detail SitesOverCapacity `json:"detail"`
}

// SitesOverCapacity is the state that does not admit a write of sites.
type SitesOverCapacity struct {
	Code     string `json:"code" enum:"capacite_sites_depassee"`
	Active   int    `json:"sites_actifs"`
	Capacity int    `json:"capacite"`
	Ceiling  int    `json:"plafond"`
}

// ReferentialsFailure: every active referential of the plan is in use.
type ReferentialsFailure struct {
	Detail ReferentialsOverCapacity `json:"detail"`
}

// ReferentialsOverCapacity is the state that does not admit a new referential.
type ReferentialsOverCapacity struct {
	Code    string `json:"code" enum:"capacite_referentiels_depassee"`
	Active  int    `json:"referentiels_actifs"`
	Maximum int    `json:"maximum"`
}

// ReductionFailure: a sync would deactivate more than half of the active sites.
type ReductionFailure struct {
	Detail Reduction `json:"detail"`
}

// Reduction is the suspicious reduction of a sync.
type Reduction struct {
	Code         string `json:"code" enum:"reduction_suspecte"`
	ActiveBefore int    `json:"actifs_avant"`
	ActiveAfter  int    `json:"actifs_apres"`
	Message      string `json:"message" doc:"French"`
}

// KeysFailure: every publishable key of the plan is in use.
type KeysFailure struct {
	Detail KeysOverCapacity `json:"detail"`
}

// KeysOverCapacity is the state that does not admit a new publishable key.
type KeysOverCapacity struct {
	Code    string `json:"code" enum:"capacite_cles_publiables_depassee"`
	Ceiling int    `json:"plafond" doc:"0: the plan includes none"`
	Active  int    `json:"actives"`
	Message string `json:"message" doc:"French"`
}

// ParseFailure is the error body for an address in which no part can be recognized.
type ParseFailure struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// apiFailures documents what every operation that asks for an API key may be refused for, and some more.
func apiFailures(more ...refusal.Code) []openapi.Failure {
	return slices.Concat(exampleFailures(refusal.RequestMalformed, refusal.KeyRequired, refusal.KeyInvalid, refusal.PlanInsufficient, refusal.KeyOutOfScope),
		[]openapi.Failure{brokenRule},
		exampleFailures(refusal.DiscoveryQuotaSpent, refusal.QuotaSpent, refusal.Internal, refusal.AuthUnavailable), exampleFailures(more...))
}

// areaFailures documents what every operation of the customer area may be refused for, and some more.
func areaFailures(more ...refusal.Code) []openapi.Failure {
	return slices.Concat(exampleFailures(refusal.RequestMalformed, refusal.KeyRequired, refusal.KeyInvalid, refusal.RoleForbidden),
		[]openapi.Failure{brokenRule}, exampleFailures(refusal.Internal, refusal.AuthUnavailable), exampleFailures(more...))
}

// publicAreaFailures documents what an operation of the customer area that needs no token may be refused for, and some more.
func publicAreaFailures(more ...refusal.Code) []openapi.Failure {
	return slices.Concat(exampleFailures(refusal.RequestMalformed), []openapi.Failure{brokenRule}, exampleFailures(refusal.Internal, refusal.AuthUnavailable), exampleFailures(more...))
}

// brokenRule is the example of a request that breaks rules of its form, which have no codes.
var brokenRule = openapi.Failure{Name: "regles", Status: 422, Body: RuleFailure{[]Violation{{
	"less_than_equal", []any{"query", "limit"}, "Input should be less than or equal to 100", map[string]any{"limit": "500"},
}}}}

// headersTooLarge is what net/http answers a request whose headers are too long, in plain text.
var headersTooLarge = openapi.Failure{Name: "entetes", Status: http.StatusRequestHeaderFieldsTooLarge}

// exampleFailures are the answers of codes as the documents show them, with the details of Row.Example.
func exampleFailures(codes ...refusal.Code) []openapi.Failure {
	all := make([]openapi.Failure, len(codes))
	for i, c := range codes {
		row := c.Row()
		all[i] = openapi.Failure{Name: string(c), Status: row.Status, Body: FailureOf(c.With(row.Example))}
	}
	return all
}
