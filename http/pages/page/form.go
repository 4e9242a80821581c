package page

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"lieudit/http/pages/i18n"
	"lieudit/http/pages/refusals"
	"lieudit/http/problem"
	"lieudit/schemas/body"
	"lieudit/schemas/refusal"
)

// Form is a form as it was typed, with what it was refused for. Its fields have the names of the members of the operation's body, so that
// a violation finds its field. The zero Form is one that nobody has filled in.
type Form struct {
	Values  url.Values
	Errors  map[string][]string // by field
	General []string            // of no single field
}

// Form returns what was typed.
func (q *Request) Form() *Form { return &Form{Values: q.PostForm} }

// Value returns what was typed in a field, without spaces around it.
func (f *Form) Value(field string) string {
	if f == nil {
		return ""
	}
	return strings.TrimSpace(f.Values.Get(field))
}

// Lines returns the lines that were typed in a field, without empty ones.
func (f *Form) Lines(field string) (lines []string) {
	for line := range strings.Lines(f.Values.Get(field)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// AddError adds an error to a field; an empty name is the form as a whole.
func (f *Form) AddError(field, text string) {
	if field == "" {
		f.General = append(f.General, text)
		return
	}
	if f.Errors == nil {
		f.Errors = map[string][]string{}
	}
	f.Errors[field] = append(f.Errors[field], text)
}

// HasErrors reports whether the form was refused.
func (f *Form) HasErrors() bool { return f != nil && len(f.Errors)+len(f.General) > 0 }

// ErrorsOf returns the errors of a field.
func (f *Form) ErrorsOf(field string) []string {
	if f == nil {
		return nil
	}
	return f.Errors[field]
}

// Refuse adds what an operation was refused for to the form and returns the status of the answer. fields has the field of each refusal that
// is about one. Other refusals that a reader can do something about are of the form as a whole. ok is false for every other error: the
// row returns it, and it becomes a page.
func (f *Form) Refuse(q *Request, err error, fields map[refusal.Code]string) (status int, ok bool) {
	if p, isProblem := errors.AsType[problem.Problem](err); isProblem {
		rules, hasRules := p.Body.(body.RuleFailure)
		if !hasRules {
			return 0, false
		}
		for _, v := range rules.Detail {
			f.AddError(fieldOf(v), explainViolation(q.Print, v))
		}
		return http.StatusUnprocessableEntity, true
	}
	r, isRefusal := refusal.FromError(err)
	row := r.Code.Row()
	if !isRefusal || r.Code == refusal.RoleForbidden || row.Status == http.StatusNotFound || row.Status >= 500 || row.Status == http.StatusUnauthorized && r.Code != refusal.LinkInvalid {
		return 0, false
	}
	f.AddError(fields[r.Code], ExplainRefusal(q.Print, r))
	return row.Status, true
}

// fieldOf is the field that a violation is about: the last name of its location.
func fieldOf(v problem.Violation) string {
	for _, part := range v.Loc[min(1, len(v.Loc)):] {
		if name, ok := part.(string); ok {
			return name
		}
	}
	return ""
}

// violationTexts are the rules of forms by the names that the API has for them.
var violationTexts = map[string]i18n.Text{
	"missing":                 {FR: "Ce champ est à remplir.", EN: "Please fill in this field."},
	"string_too_short":        {FR: "Ce champ est à remplir.", EN: "Please fill in this field."},
	"string_too_long":         {FR: "Ce texte est trop long.", EN: "This text is too long."},
	"string_pattern_mismatch": {FR: "Ce texte n’a pas la forme attendue.", EN: "This text does not have the expected form."},
	"literal_error":           {FR: "Choisissez l’une des valeurs proposées.", EN: "Choose one of the values offered."},
	"less_than_equal":         {FR: "Ce nombre est trop grand.", EN: "This number is too large."},
	"greater_than_equal":      {FR: "Ce nombre est trop petit.", EN: "This number is too small."},
	"int_parsing":             {FR: "Écrivez un nombre entier.", EN: "Enter a whole number."},
	"int_type":                {FR: "Écrivez un nombre entier.", EN: "Enter a whole number."},
	"date_parsing":            {FR: "Écrivez une date comme 2026-11-21.", EN: "Enter a date such as 2026-11-21."},
	"extra_forbidden":         {FR: "Ce champ n’est pas permis ici.", EN: "This field is not allowed here."},
}

// explainViolation is a broken rule in the language of the reader. A limit that the API names is kept.
func explainViolation(p i18n.Printer, v problem.Violation) string {
	text, ok := violationTexts[v.Type]
	if !ok {
		return strings.TrimPrefix(v.Msg, "Value error, ")
	}
	if limit := strings.TrimLeft(v.Msg, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz "); v.Type == "string_too_long" && limit != "" {
		return p.T("Au plus %s caractères.", "At most %s characters.", strings.Fields(limit)[0])
	}
	return p.Text(text)
}

// ExplainRefusal is a refusal in the language of the reader. The French texts of the API name what was typed, so they are shown to readers
// of French; some of its texts are English.
func ExplainRefusal(p i18n.Printer, r refusal.Error) string {
	isFrench := r.Code.Row().Text != nil && r.Code.Row().Form != refusal.TextForm && r.Code.Row().Form != refusal.ParseForm
	if known, ok := refusals.For(r.Code); ok && (p.Lang == i18n.English || !isFrench) {
		text := p.Text(known.What())
		if isFrench && r.Typed != "" {
			text += " — " + r.Error() // it names what was typed
		}
		return text
	}
	return r.Error()
}
