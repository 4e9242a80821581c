// Package problem is section 7 of the specification: every error answer, its status, its shape and its text. An
// error answer is a value made by one of the constructors; Write sends it, and turns an error that is none of
// them into a 500 that tells nothing.
package problem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"lieudit/http/answer"
	"lieudit/schemas/body"
)

// Problem is an error answer. It is an error, so that what fails can return it.
type Problem struct {
	Status int
	allow  string // of a 405
	body   any    // nil: none
}

func (p Problem) Error() string { return fmt.Sprintf("%d %v", p.Status, p.body) }

// MarshalDetail is the detail of the error body, as it is sent.
func (p Problem) MarshalDetail() (json.RawMessage, error) {
	var wrapper struct {
		Detail json.RawMessage `json:"detail"`
	}
	text, err := json.Marshal(p.body)
	if err == nil {
		err = json.Unmarshal(text, &wrapper)
	}
	return wrapper.Detail, err
}

func newTextProblem(status int, text string) Problem {
	return Problem{Status: status, body: body.TextFailure{Detail: text}}
}

// Write answers with err: as it is when it is a Problem or one of the domain's known errors, else with
// 'Internal error'. Only then is it logged, once: the client learns nothing of the cause. log must redact tokens.
func Write(w http.ResponseWriter, log *slog.Logger, err error) {
	p, known := FromError(err)
	if !known {
		logCause(log, err)
	}
	if p.allow != "" {
		w.Header().Set("Allow", p.allow)
	}
	if p.body == nil {
		w.WriteHeader(p.Status)
		return
	}
	if err := answer.WriteJSON(w, p.Status, p.body); err != nil {
		log.Error("error answer not written", "error", err)
	}
}

// FromError is the answer an error gets, and whether it is one a client may learn of.
func FromError(err error) (Problem, bool) {
	if p, ok := errors.AsType[Problem](err); ok {
		return p, true
	}
	if p, ok := fromDomainError(err); ok {
		return p, true
	}
	return Internal(), false
}

// logCause logs the cause of a 500. A client that went away is no incident.
func logCause(log *slog.Logger, err error) {
	if errors.Is(err, context.Canceled) {
		log.Debug("request abandoned", "error", err)
		return
	}
	log.Error("request failed", "error", err)
}
