package history

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"lieudit/http/pages/i18n"
	"lieudit/http/pages/page"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// state is the data of state.html.
type state struct {
	ID, Name  string
	Form      *page.Form
	Typed     time.Time // the instant of the form, which may be refused
	At        time.Time // zero: now is shown alone
	Then, Now body.State
	Facts     []comparison
	Keys      []keyComparison
	Changed   int   // how many facts and keys differ
	Last      *Line // the last event by then
	Earlier   string
	Later     string // paths of the state at the event before and after
	MayChoose bool
}

// comparison is a fact at the instant and now.
type comparison struct {
	Label, Then, Now string
	IsChanged        bool
}

// keyComparison is a key that was valid at the instant or is valid now.
type keyComparison struct {
	body.Key
	Then, Now *body.Key // nil: it was not valid
	IsChanged bool
}

// showState shows an account as it was at an instant next to what it is now, or now alone.
func showState(q *page.Request) (page.View, error) {
	target := page.Path("/accounts/%s/state", q.Vars["account"])
	now, err := page.Read[body.State](q, target)
	if err != nil {
		return page.View{}, err
	}
	q.NameAccount(cmp.Or(now.Name, now.Account))
	data := state{ID: now.Account, Name: now.Name, Form: &page.Form{Values: q.URL.Query()}, Now: now, Then: now, MayChoose: q.Principal.Role == grant.RoleAuditor}
	view := page.View{Template: "state.html", Title: q.T("État du compte", "State of the account"), Current: page.Path("/comptes/%s/historique", now.Account)}
	at := data.parseInstant(q)
	if !at.IsZero() {
		data.Then, err = page.Read[body.State](q, target+"?as_of="+url.QueryEscape(at.Format(time.RFC3339Nano)))
		switch r, ok := refusal.FromError(err); {
		case err == nil:
			data.At = at
			err = data.loadNeighbours(q)
		case ok && r.Code == refusal.NotFound:
			data.Then, err = now, nil
			data.Form.AddError("le", q.T("Le compte n’était pas encore ouvert : il l’a été le %s.", "The account was not open yet: it was opened on %s.", q.Print.DateTime(now.Created)))
		}
		if err != nil {
			return page.View{}, err
		}
	}
	if data.Form.HasErrors() {
		view.Status = http.StatusUnprocessableEntity
	}
	data.compare(q.Print)
	view.Data = data
	return view, nil
}

// instantForms are how an instant may be written: as in a link from the history, or as browsers write what was chosen, in Paris time.
var instantForms = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

// parseInstant reads the instant of the form. It is zero if there is none; a text that is not an instant, or is in the future, is an error of the form.
func (s *state) parseInstant(q *page.Request) time.Time {
	text := s.Form.Value("le")
	if text == "" {
		return time.Time{}
	}
	for _, form := range instantForms {
		at, err := time.ParseInLocation(form, text, plan.Paris)
		if err != nil {
			continue
		}
		s.Typed = at
		if at.After(q.Site.Now()) && at.After(s.Now.AsOf) {
			s.Form.AddError("le", q.T("Cet instant est encore à venir.", "This instant is still to come."))
			return time.Time{}
		}
		return at
	}
	s.Form.AddError("le", q.T("Écrivez un instant comme 2026-11-21 12:25.", "Enter an instant such as 2026-11-21 12:25."))
	return time.Time{}
}

// loadNeighbours reads the last event by the instant, and the ones before and after it.
func (s *state) loadNeighbours(q *page.Request) error {
	read := func(bound string, at time.Time, order string) ([]body.Incident, error) {
		query := url.Values{
			"ordre": {order}, "langue": {string(q.Print.Lang)}, "limit": {"2"}, "resume": {"true"}, bound: {at.UTC().Format(time.RFC3339Nano)},
		}
		found, err := page.Read[body.History](q, page.Path("/accounts/%s/history", s.ID)+"?"+query.Encode())
		return found.Results, err
	}
	after := s.At.Add(time.Microsecond) // the log knows no finer instant
	until, err := read("to", after, "recent")
	if err != nil {
		return err
	}
	since, err := read("from", after, "ancien")
	if err != nil {
		return err
	}
	before, err := Lines(q, s.ID, until)
	if err != nil {
		return err
	}
	if len(before) > 0 {
		s.Last = &before[0]
	}
	if len(before) > 1 {
		s.Earlier = before[1].AsOf
	}
	if len(since) > 0 {
		s.Later = newLine(q.Print, s.ID, since[0], nil).AsOf
	}
	return nil
}

// FieldValue is the instant as a field of the form has it: to the second, in Paris time. What was typed and is no instant stays.
func (s state) FieldValue() string {
	if s.Typed.IsZero() {
		return s.Form.Value("le")
	}
	return s.Typed.In(plan.Paris).Format("2006-01-02T15:04:05")
}

// FieldType is the type of that field. Only a field of text can hold what is no instant.
func (s state) FieldType() string {
	if s.Typed.IsZero() && s.Form.Value("le") != "" {
		return "text"
	}
	return "datetime-local"
}

// AtText is the instant to the second.
func (s state) AtText(p i18n.Printer) string {
	return p.DateTime(s.At) + p.T("\u00a0min\u00a0%02d\u00a0s", ":%02d", s.At.Second())
}

// compare fills in the facts and keys at the instant and now.
func (s *state) compare(p i18n.Printer) {
	then, now := factsOf(p, s.Then), factsOf(p, s.Now)
	for i, f := range now {
		c := comparison{Label: f.label, Then: then[i].value, Now: f.value, IsChanged: then[i].value != f.value}
		if c.Then == "" && c.Now == "" {
			continue
		}
		s.Facts = append(s.Facts, c)
		s.count(c.IsChanged)
	}
	find := func(keys []body.Key, id string) *body.Key {
		if i := slices.IndexFunc(keys, func(k body.Key) bool { return k.ID == id }); i >= 0 {
			return &keys[i]
		}
		return nil
	}
	add := func(k body.Key) {
		c := keyComparison{Key: k, Then: find(s.Then.Keys, k.ID), Now: find(s.Now.Keys, k.ID)}
		c.IsChanged = c.Then == nil || c.Now == nil || !slices.Equal(c.Then.Origins, c.Now.Origins)
		s.Keys = append(s.Keys, c)
		s.count(c.IsChanged)
	}
	for _, k := range s.Then.Keys {
		add(k)
	}
	for _, k := range s.Now.Keys {
		if find(s.Then.Keys, k.ID) == nil {
			add(k)
		}
	}
}

func (s *state) count(isChanged bool) {
	if isChanged {
		s.Changed++
	}
}

// KindName is what a key is, for people.
func (k keyComparison) KindName(lang i18n.Lang) string {
	if k.Kind == token.Publishable {
		return i18n.Text{FR: "publiable", EN: "publishable"}.In(lang)
	}
	return i18n.Text{FR: "secrète", EN: "secret"}.In(lang)
}

type fact struct{ label, value string }

// factsOf are the facts of a state in one order. The value of a fact that does not hold is "".
func factsOf(p i18n.Printer, s body.State) []fact {
	date := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return p.DateTime(t)
	}
	nextTerms, nextAgency := "", ""
	if n := s.NextTerms; n != nil {
		nextTerms = p.T("%s, %s requêtes par mois, le %s", "%s, %s requests a month, on %s", string(n.Plan), p.Number(n.Quota), p.Date(n.Effective))
	}
	if n := s.NextAgency; n != nil && n.Agency != "" {
		nextAgency = p.T("rejoint %s le %s", "joins %s on %s", n.Agency, p.Date(n.Effective))
	} else if n != nil {
		nextAgency = p.T("part le %s", "leaves on %s", p.Date(n.Effective))
	}
	isAgency := p.T("non", "no")
	if s.IsAgency {
		isAgency = p.T("oui", "yes")
	}
	return []fact{
		{p.T("Nom", "Name"), s.Name},
		{p.T("Offre", "Plan"), string(s.Plan)},
		{p.T("Quota par mois", "Quota a month"), p.T("%s requêtes", "%s requests", p.Number(s.Quota))},
		{p.T("Début de la première période", "Start of the first period"), p.Date(s.Anchor.Start())},
		{p.T("Client de l’agence", "Customer of the agency"), s.Agency},
		{p.T("Est une agence", "Is an agency"), isAgency},
		{p.T("Prochaine offre", "Next plan"), nextTerms},
		{p.T("Prochaine agence", "Next agency"), nextAgency},
		{p.T("Ouvert le", "Opened on"), date(s.Created)},
		{p.T("Fermé le", "Closed on"), date(s.Closed)},
		{p.T("Clés valables", "Valid keys"), fmt.Sprint(len(s.Keys))},
	}
}
