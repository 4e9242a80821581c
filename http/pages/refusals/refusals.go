// Package refusals has what people need to know about every refusal of package refusal, in both languages: why it happens, and what to do
// about it. The web pages show it in place of the API's own texts, and the documentation lists it next to them.
//
//	refusal.Code ──> For ──> Advice ─┬─ Cause, Cure: in the documentation, for whoever calls the API
//	                                 └─ What, Do: on a page, for whoever reads it
//
// A test demands an advice for each code. RetryOf is the rule of section 7.5 of the specification: which answers are worth a second try.
package refusals

import (
	"net/http"
	"time"

	"lieudit/http/pages/i18n"
	"lieudit/schemas/refusal"
)

// Advice is about one refusal. Cause and Cure are for the client of an API.
type Advice struct {
	Cause, Cure i18n.Text
	what, do    i18n.Text // on a page, if it is not the same
}

// What is what happened, on a page.
func (a Advice) What() i18n.Text {
	if a.what.IsZero() {
		return a.Cause
	}
	return a.what
}

// Do is what the reader of a page can do.
func (a Advice) Do() i18n.Text {
	if a.what.IsZero() {
		return a.Cure
	}
	return a.do
}

// For returns the advice about a code. ok is false for a code that has none, which a test prevents.
func For(code refusal.Code) (a Advice, ok bool) {
	a, ok = table[code]
	return a, ok
}

// Retry is how a client sends a request again that was answered with a status. Without Pauses it does not.
type Retry struct {
	Pauses []time.Duration // before each attempt, plus or minus some of it at random
	Text   i18n.Text
}

// RetryOf is how to go on after an answer.
func RetryOf(status int) Retry {
	switch {
	case status == http.StatusServiceUnavailable:
		return Retry{[]time.Duration{5 * time.Second, 15 * time.Second, 45 * time.Second}, i18n.Text{
			FR: "Réessayez après environ 5 s, 15 s, puis 45 s, avec un peu de hasard.", EN: "Try again after about 5 s, 15 s and 45 s, with some randomness."}}
	case status >= 500:
		return Retry{[]time.Duration{time.Second, 3 * time.Second, 9 * time.Second, 27 * time.Second}, i18n.Text{
			FR: "Réessayez après environ 1 s, 3 s, 9 s, puis 27 s, avec un peu de hasard.", EN: "Try again after about 1 s, 3 s, 9 s and 27 s, with some randomness."}}
	case status == http.StatusTooManyRequests:
		return Retry{nil, i18n.Text{
			FR: "Ne réessayez pas aussitôt : attendez que la limite se lève.", EN: "Do not try again at once: wait until the limit is lifted."}}
	}
	return Retry{nil, i18n.Text{
		FR: "Ne réessayez pas telle quelle : corrigez la requête.", EN: "Do not send the same again: correct the request."}}
}
