package docs

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"lieudit/http/pages/docs/reference"
	"lieudit/http/pages/i18n"
	"lieudit/http/pages/page"
	"lieudit/http/pages/refusals"
	"lieudit/schemas/body"
	"lieudit/schemas/refusal"
)

// failure is an error answer with what it means.
type failure struct {
	Anchor      string // of its entry among the errors
	Status      int
	Code        string // empty: it has none
	Cause, Cure i18n.Text
	Body        string // as JSON; empty: none
	Operations  []*reference.Operation
}

// StatusText is the name of the status, as HTTP has it.
func (f failure) StatusText() string { return http.StatusText(f.Status) }

// ruleAdvice and headerAdvice are about the two error answers that are no refusals.
var (
	ruleAdvice = refusals.Advice{
		Cause: i18n.Text{FR: "Un paramètre ou un champ enfreint une règle : mauvais type, valeur hors limites, nom inconnu, champs qui ne vont pas ensemble", EN: "A parameter or a member breaks a rule: a wrong type, a value out of bounds, an unknown name, members that do not go together"},
		Cure:  i18n.Text{FR: "Chaque élément de la liste nomme la règle (type), l’endroit (loc) et l’objet reçu (input) ; au plus 100 à la fois. Corrigez-les tous, puis renvoyez.", EN: "Each item of the list names the rule (type), the place (loc) and the object that was received (input); at most 100 at once. Correct them all, then send again."},
	}
	headerAdvice = refusals.Advice{
		Cause: i18n.Text{FR: "Les en-têtes de la requête sont trop longs", EN: "The headers of the request are too long"},
		Cure:  i18n.Text{FR: "Envoyez moins d’en-têtes ; un long texte va dans le corps d’un POST.", EN: "Send fewer headers; a long text goes into the body of a POST."},
	}
)

// ruleBody is the example of broken rules.
var ruleBody = body.RuleFailure{Detail: []body.Violation{{
	Type: "less_than_equal", Loc: []any{"query", "limit"}, Msg: "Input should be less than or equal to 20", Input: map[string]any{"q": "mende", "limit": "500"},
}}}

func newFailure(f reference.Failure) failure {
	out := failure{Anchor: f.Name, Status: f.Status, Code: string(f.Code)}
	advice, isRefusal := refusals.For(f.Code)
	switch {
	case isRefusal:
		if content := body.FailureOf(f.Code.With(f.Code.Row().Example)); content != nil {
			out.Body = indent(content)
		}
	case f.Status == http.StatusUnprocessableEntity:
		advice, out.Body = ruleAdvice, indent(ruleBody)
	default:
		advice = headerAdvice
	}
	out.Cause, out.Cure = advice.Cause, advice.Cure
	return out
}

func indent(v any) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic(err) // the structs of answers always encode
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// statusGroup is the errors of one status.
type statusGroup struct {
	Status   int
	Retry    refusals.Retry
	Failures []failure
}

// errorList is the data of errors.html.
type errorList struct {
	frame
	API, Area []statusGroup
}

func showErrors(q *page.Request) (page.View, error) {
	api, area := listFailures()
	data := errorList{frame: frame{Document: reference.API(), Here: "erreurs"}, API: groupByStatus(api), Area: groupByStatus(area)}
	return page.View{Template: "errors.html", Title: q.T("Erreurs", "Errors"), IsWide: true, Data: data}, nil
}

// listFailures are all error answers: those of the API, and those that only the customer area gives.
func listFailures() (api, area []failure) {
	usedIn := func(d *reference.Document, name string) (all []*reference.Operation) {
		for _, op := range d.All() {
			if slices.ContainsFunc(op.Failures, func(f reference.Failure) bool { return f.Name == name }) {
				all = append(all, op)
			}
		}
		return all
	}
	add := func(f reference.Failure) {
		entry := newFailure(f)
		entry.Operations = usedIn(reference.API(), f.Name)
		if inArea := usedIn(reference.Area(), f.Name); len(entry.Operations) == 0 && (len(inArea) > 0 || f.Code == refusal.Misdirected) {
			entry.Operations = inArea
			area = append(area, entry)
			return
		}
		api = append(api, entry)
	}
	for _, row := range refusal.Table() {
		add(reference.Failure{Name: string(row.Code), Code: row.Code, Status: row.Status})
	}
	add(reference.Failure{Name: "regles", Status: http.StatusUnprocessableEntity})
	add(reference.Failure{Name: "entetes", Status: http.StatusRequestHeaderFieldsTooLarge})
	return api, area
}

func groupByStatus(all []failure) (groups []statusGroup) {
	for _, f := range all {
		i := slices.IndexFunc(groups, func(g statusGroup) bool { return g.Status == f.Status })
		if i < 0 {
			i = len(groups)
			groups = append(groups, statusGroup{Status: f.Status, Retry: refusals.RetryOf(f.Status)})
		}
		groups[i].Failures = append(groups[i].Failures, f)
	}
	slices.SortStableFunc(groups, func(a, b statusGroup) int { return a.Status - b.Status })
	return groups
}
