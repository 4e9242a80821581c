package problem

import (
	"fmt"
	"net/http"
	"strings"

	"lieudit/schemas/body"
	"lieudit/schemas/plan"
)

// BadRequest: something required is missing, or the request cannot be read.
func BadRequest() Problem {
	return newTextProblem(http.StatusBadRequest, "Request too short or invalid")
}

// KeyRequired: there is no Authorization header of the form Bearer <token>.
func KeyRequired() Problem {
	return newTextProblem(http.StatusUnauthorized, "API key required. Please provide a valid API key in the Authorization header.")
}

// KeyInvalid: the token opens nothing: malformed, unknown, revoked, or of a closed account.
func KeyInvalid() Problem { return newTextProblem(http.StatusUnauthorized, "Invalid API key") }

// PlanInsufficient: the account's plan does not include the endpoint.
func PlanInsufficient(p plan.Name) Problem {
	return newTextProblem(http.StatusForbidden,
		fmt.Sprintf("Your plan (%s) does not have access to this service. Please upgrade your plan.", p))
}

// Forbidden: the customer-area token's role does not allow it.
func Forbidden() Problem { return newTextProblem(http.StatusForbidden, "Forbidden") }

// NotFound: there is no such route, or nothing by that id.
func NotFound() Problem { return newTextProblem(http.StatusNotFound, "Not found") }

// MethodNotAllowed: the route exists, for these methods.
func MethodNotAllowed(allowed ...string) Problem {
	p := newTextProblem(http.StatusMethodNotAllowed, "Method not allowed")
	p.allow = strings.Join(allowed, ", ")
	return p
}

// Conflict is a 409 whose detail is a text: code_deja_utilise, referentiel_archive.
func Conflict(text string) Problem { return newTextProblem(http.StatusConflict, text) }

// BodyTooLarge: the body is over the route's limit.
func BodyTooLarge() Problem {
	return newTextProblem(http.StatusRequestEntityTooLarge, "Request body too large")
}

// AddressUnresolved: a place as typed leads to no verified address.
func AddressUnresolved(typed string) Problem {
	return newTextProblem(http.StatusUnprocessableEntity, fmt.Sprintf("Unable to resolve %s to a verified match", typed))
}

// AddressUnparsable is the short 422 form: no number, street, postcode or commune can be made out.
func AddressUnparsable() Problem {
	return Problem{Status: http.StatusUnprocessableEntity, body: body.ParseFailure{Status: "API_ERROR", Message: "Unable to parse address"}}
}

// Unprocessable is a 422 whose detail is a text.
func Unprocessable(text string) Problem { return newTextProblem(http.StatusUnprocessableEntity, text) }

// QuotaExceeded: the account has used its requests of the period. limit is told on DISCOVERY alone.
func QuotaExceeded(p plan.Name, limit int64) Problem {
	if p == plan.Discovery {
		return newTextProblem(http.StatusTooManyRequests,
			fmt.Sprintf("Rate limit exceeded. Max allowed usage for plan %s is %d requests.", p, limit))
	}
	return newTextProblem(http.StatusTooManyRequests,
		fmt.Sprintf("Your plan (%s) has exceeded the rate limit for this service. Please upgrade your plan.", p))
}

// Throttled is the per-IP throttle of publishable keys: no body; the caller sees to it that no CORS header is set.
func Throttled() Problem { return Problem{Status: http.StatusTooManyRequests} }

// Internal is any failure of ours.
func Internal() Problem { return InternalWithText("Internal error") }

// InternalWithText is a 500 that names the part that failed, nothing more.
func InternalWithText(text string) Problem {
	return newTextProblem(http.StatusInternalServerError, text)
}

// RoutingUnavailable: no routing engine answers.
func RoutingUnavailable() Problem { return InternalWithText("Routing engine unavailable") }

// Overloaded: there was no room for the body of the request in time.
func Overloaded() Problem { return InternalWithText("Service overloaded") }

// AuthUnavailable: keys cannot be checked just now, so nothing is served.
func AuthUnavailable() Problem {
	return newTextProblem(http.StatusServiceUnavailable, "Authentication service unavailable")
}
