package event

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"lieudit/schemas/plan"
)

// The sentences of the catalog with the values of an event, as people read them. The English ones are made when an entry is written
// to the audit trail, the French ones when it is read: from the JSON of the event that the entry holds.

var placeholder = regexp.MustCompile(`\{(\w+)\}`)

// Sentence is the catalog's sentence with the event's values, as an auditor reads it. A missing or empty value reads as "–",
// and an instant is in Paris time. For an event that is not in the catalog the sentence is its wire name. No sentence shows
// personal text, so sealed events have the same sentences as others.
func Sentence(e Event) string {
	t, ok := byName[e.EventType()]
	if !ok {
		return e.EventType()
	}
	data, err := json.Marshal(e)
	if err != nil {
		data = nil
	}
	return fillIn(t.Sentence, data, func(_ string, v any) string { return formatValue(v) })
}

// FrenchSentence is the catalog's French sentence of a wire name with the values of the event's JSON, which may lack what the sentence
// does not show. Days and instants, in Paris time, and numbers are written as in French; so are the words of roles and actions.
func FrenchSentence(name string, data []byte) string {
	t, ok := byName[name]
	if !ok {
		return name
	}
	return fillIn(t.French, data, formatFrenchValue)
}

// fillIn replaces the fields in a sentence by their values.
func fillIn(sentence string, data []byte, format func(field string, value any) string) string {
	fields := decodeFields(data)
	return placeholder.ReplaceAllStringFunc(sentence, func(p string) string {
		field := p[1 : len(p)-1]
		return format(field, fields[field])
	})
}

// siteVerbs are the operations of a SiteRow in French.
var siteVerbs = map[string]string{SiteCreated: "créé", SiteUpdated: "modifié", SiteReactivated: "réactivé", SiteDeactivated: "désactivé"}

// Sentence is what happened to the site, in the referential of a code.
func (r SiteRow) Sentence(code string) string {
	return r.Operation + " site " + r.ExternalID + " of " + code + " (version " + strconv.FormatInt(r.Version, 10) + ")"
}

// FrenchSentence is Sentence in French.
func (r SiteRow) FrenchSentence(code string) string {
	verb, ok := siteVerbs[r.Operation]
	if !ok {
		verb = r.Operation
	}
	return "a " + verb + " le site " + r.ExternalID + " de " + code + " (version " + strconv.FormatInt(r.Version, 10) + ")"
}

// decodeFields returns the values of an event's JSON members. Numbers keep their digits: a large float64 would be shown with
// an exponent.
func decodeFields(data []byte) map[string]any {
	var fields map[string]any
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if d.Decode(&fields) != nil {
		return nil
	}
	return fields
}

// formatValue writes a JSON value as an auditor reads it; the values of an array are separated by commas.
func formatValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "–"
	case []any:
		words := make([]string, len(v))
		for i, w := range v {
			words[i] = formatValue(w)
		}
		return strings.Join(words, ", ")
	case string:
		if v == "" {
			return "–"
		}
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return at.In(plan.Paris).Format(time.RFC3339Nano) // as the times of the entries
		}
		return v
	default:
		return fmt.Sprint(v)
	}
}

// frenchWords are the values of some fields in French: the roles of tokens, what was asked of an account and was refused, how sites were
// written, and the kinds of data.
var frenchWords = map[string]map[string]string{
	"role": {"operator": "opérateur", "customer": "client", "agency": "agence", "billing": "facturation", "auditor": "audit"},
	"action": {
		"issue-secret-key": "créer une clé secrète", "issue-publishable-key": "créer une clé publiable", "change-origins": "changer les origines",
		"change-plan": "changer l’offre", "activate-agency": "activer le mode agence", "join-agency": "rejoindre une agence", "leave-agency": "quitter une agence",
		"erase": "effacer le compte",
		"sync":  "synchronisation", "upsert": "ajout ou mise à jour", "put": "remplacement", "patch": "modification", "deactivate": "désactivation",
		"reactivate": "réactivation", "archive": "archivage",
	},
	"kind": {"vintage": "les adresses", "network": "le réseau routier"},
}

// formatFrenchValue is formatValue in French.
func formatFrenchValue(field string, v any) string {
	switch v := v.(type) {
	case []any:
		words := make([]string, len(v))
		for i, w := range v {
			words[i] = formatFrenchValue(field, w)
		}
		if len(words) > 0 {
			return strings.Join(words, ", ")
		}
	case string:
		if word, ok := frenchWords[field][v]; ok {
			return word
		}
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return formatFrenchInstant(at.In(plan.Paris))
		}
		if day, err := time.Parse(time.DateOnly, v); err == nil {
			return day.Format("02/01/2006")
		}
	case json.Number:
		return groupDigits(v.String())
	}
	return formatValue(v)
}

// formatFrenchInstant writes the day alone for the beginning of a day, from which on terms hold.
func formatFrenchInstant(at time.Time) string {
	if at.Equal(plan.DateOf(at).Start()) {
		return at.Format("02/01/2006")
	}
	return at.Format("02/01/2006 à 15\u00a0h\u00a004")
}

// groupDigits separates the thousands of a whole number by narrow no-break spaces.
func groupDigits(number string) string {
	digits, sign := number, ""
	if rest, isNegative := strings.CutPrefix(number, "-"); isNegative {
		digits, sign = rest, "−"
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return sign + digits
}
