// Package history has the pages about what happened: the history of an account in sentences, the newest first, and the account as it was
// at an instant next to what it is now. Customers read them of their account, auditors of every account, which they choose by its id.
//
//	/audit ─> /comptes/{account}/historique ─> GET /accounts/{id}/history ─> Line
//	                       │ "as of this event"
//	                       v
//	          /comptes/{account}/etat ─> GET /accounts/{id}/state, at the instant and now ─> difference
//
// Auditors may not read an account itself, so that its name comes from its state.
package history

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"lieudit/http/pages/i18n"
	"lieudit/http/pages/page"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

//go:embed *.html
var templates embed.FS

// Section is the pages.
func Section() page.Section {
	return page.Section{
		Templates: templates,
		Rows: []page.Row{
			{Method: http.MethodGet, Path: "/audit", Serve: chooseAccount},
			{Method: http.MethodGet, Path: "/comptes/{account}/historique", Serve: showHistory},
			{Method: http.MethodGet, Path: "/comptes/{account}/historique/{position:[0-9]{1,19}}", Serve: showEvent},
			{Method: http.MethodGet, Path: "/comptes/{account}/etat", Serve: showState},
		},
	}
}

// chooseAccount leads to the history of the account whose id was typed. There is no list of accounts for auditors.
func chooseAccount(q *page.Request) (page.View, error) {
	form := &page.Form{Values: q.URL.Query()}
	view := page.View{Template: "audit.html", Title: q.T("Audit", "Audit"), Current: "/audit", Data: form}
	if !q.May(http.MethodGet, "/accounts/x/history") { // of any account
		return page.View{}, refusal.RoleForbidden
	}
	id := strings.ToLower(form.Value("compte"))
	if id == "" {
		return view, nil
	}
	err := q.Do(http.MethodGet, page.Path("/accounts/%s/history?limit=1", id), nil, nil)
	if r, ok := refusal.FromError(err); ok && r.Code == refusal.NotFound {
		form.AddError("compte", q.T("Aucun compte n’a cet identifiant.", "No account has this id."))
		view.Status = http.StatusNotFound
		return view, nil
	}
	if err != nil {
		return page.View{}, err
	}
	return page.Redirect(page.Path("/comptes/%s/historique", id))
}

// history is the data of history.html.
type history struct {
	ID, Name  string
	Position  uint64 // of the account's last event on the log
	Form      *page.Form
	IsPartial bool // filters leave something out
	IsLater   bool // it is not the first page
	Lines     []Line
	Older     string // path of the page after
	Newest    string // path of the first page
	IsStaff   bool   // technical names are shown
	MayChoose bool   // the reader may read the history of any account
}

// pageLines is how many events a page shows: a page stays within its budget with the longest texts of each.
const pageLines = 30

func showHistory(q *page.Request) (page.View, error) {
	id := q.Vars["account"]
	now, err := page.Read[body.State](q, page.Path("/accounts/%s/state", id))
	if err != nil {
		return page.View{}, err
	}
	q.NameAccount(cmp.Or(now.Name, now.Account))
	data := history{ID: now.Account, Name: now.Name, Position: now.Position, Form: &page.Form{Values: q.URL.Query()}, IsStaff: q.Principal.Account == "", MayChoose: q.Principal.Role == grant.RoleAuditor}
	view := page.View{Template: "history.html", Title: q.T("Historique", "History"), Current: page.Path("/comptes/%s/historique", id)}
	query := data.query(q)
	if !data.Form.HasErrors() {
		var found body.History
		if found, err = page.Read[body.History](q, page.Path("/accounts/%s/history", id)+"?"+query.Encode()); err == nil {
			data.Lines, err = Lines(q, id, found.Results)
			data.Older = data.pathOf(found.Cursor)
		} else if _, ok := data.Form.Refuse(q, err, nil); ok {
			err = nil
		}
		if err != nil {
			return page.View{}, err
		}
	}
	if data.Form.HasErrors() {
		view.Status = http.StatusUnprocessableEntity
	}
	data.Newest = page.Path("/comptes/%s/historique", id)
	view.Data = data
	return view, nil
}

// filterFields are the fields of the form that filters.
var filterFields = []string{"kind", "sujet", "du", "au", "sites"}

// query is the query of the operation for the fields of the form.
func (h *history) query(q *page.Request) url.Values {
	query := url.Values{"ordre": {"recent"}, "langue": {string(q.Print.Lang)}, "limit": {strconv.Itoa(pageLines)}}
	for _, name := range filterFields {
		h.IsPartial = h.IsPartial || name != "sites" && h.Form.Value(name) != ""
	}
	for field, name := range map[string]string{"kind": "kind", "sujet": "sujet", "curseur": "curseur"} {
		if value := h.Form.Value(field); value != "" {
			query.Set(name, value)
		}
	}
	h.IsLater = h.Form.Value("curseur") != ""
	if h.Form.Value("sites") == "" && h.Form.Value("sujet") == "" {
		query.Set("resume", "true")
	}
	from, hasFrom := h.parseDay(q, "du")
	to, hasTo := h.parseDay(q, "au")
	if hasFrom {
		query.Set("from", from.Start().Format(time.RFC3339))
	}
	if hasTo {
		query.Set("to", to.Start().AddDate(0, 0, 1).Format(time.RFC3339)) // that day is included
	}
	if hasFrom && hasTo && to.Start().Before(from.Start()) {
		h.Form.AddError("au", q.T("Ce jour est avant le premier.", "This day is before the first one."))
	}
	return query
}

// parseDay reads the day of a field. What is no day is an error of the form.
func (h *history) parseDay(q *page.Request, field string) (plan.Date, bool) {
	text := h.Form.Value(field)
	if text == "" {
		return plan.Date{}, false
	}
	day, err := plan.ParseDate(text)
	if err != nil {
		h.Form.AddError(field, q.T("Écrivez une date comme 2026-11-21.", "Enter a date such as 2026-11-21."))
		return plan.Date{}, false
	}
	return day, true
}

// pathOf is the path of the page that a cursor begins, with the filters of this one; "" without a cursor.
func (h *history) pathOf(cursor string) string {
	if cursor == "" {
		return ""
	}
	query := url.Values{"curseur": {cursor}}
	for _, name := range filterFields {
		if value := h.Form.Value(name); value != "" {
			query.Set(name, value)
		}
	}
	return page.Path("/comptes/%s/historique", h.ID) + "?" + query.Encode()
}

// Line is an event as a page shows it.
type Line struct {
	body.Incident
	Author Author
	Text   string // the sentence, which begins with a capital letter; a very long one is cut
	Whole  string // the whole sentence
	Path   string // of the page about the event
	AsOf   string // path of the account's state at that event
}

// Record is the event itself, for people.
func (l Line) Record() string {
	var text bytes.Buffer
	if json.Indent(&text, l.Data, "", "  ") != nil {
		return string(l.Data)
	}
	return text.String()
}

// Author is who did something, for people.
type Author struct {
	Name string // what the token or key is for
	Role string // of a token
}

// Lines shows events of an account. Ids of keys and tokens in their sentences are replaced by what these are called, where that is known.
func Lines(q *page.Request, account string, events []body.Incident) ([]Line, error) {
	names, err := loadNames(q, account, events)
	lines := make([]Line, len(events))
	for i, e := range events {
		lines[i] = newLine(q.Print, account, e, names)
	}
	return lines, err
}

func newLine(p i18n.Printer, account string, e body.Incident, names map[string]string) Line {
	whole, at := capitalize(writeInstants(p, nameIDs(p, e.Sentence, names))), e.Time.UTC().Format(time.RFC3339Nano)
	return Line{
		Incident: e, Author: newAuthor(p, e), Text: cut(whole), Whole: whole,
		Path: page.Path("/comptes/%s/historique/%s", account, strconv.FormatUint(e.Position, 10)) + "?" + url.Values{"le": {at}, "sujet": {e.Subject}}.Encode(),
		AsOf: page.Path("/comptes/%s/etat", account) + "?le=" + url.QueryEscape(at),
	}
}

// loadNames returns the labels of the keys and tokens that events are about, by their ids.
func loadNames(q *page.Request, account string, events []body.Incident) (map[string]string, error) {
	names := map[string]string{}
	for _, e := range events {
		if id, ok := strings.CutPrefix(e.Author, "token:"); ok && e.AuthorName != "" {
			names[id] = e.AuthorName
		}
		var issued struct{ Token, Label string }
		if json.Unmarshal(e.Data, &issued) == nil && issued.Label != "" && strings.HasPrefix(e.Type, "token.") {
			names[issued.Token] = issued.Label
		}
	}
	target := page.Path("/accounts/%s/keys", account) + "?limit=1000"
	if !q.May(http.MethodGet, target) {
		return names, nil
	}
	keys, err := page.Read[body.Keys](q, target)
	for _, k := range keys.Results {
		if k.Label != "" {
			names[k.ID] = k.Label
		}
	}
	return names, err
}

var anyID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

var anyInstant = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

// writeInstants replaces the instants in a sentence by what people read. The beginning of a day, from which on terms hold, is that day.
func writeInstants(p i18n.Printer, sentence string) string {
	return anyInstant.ReplaceAllStringFunc(sentence, func(text string) string {
		at, err := time.Parse(time.RFC3339Nano, text)
		switch {
		case err != nil:
			return text
		case at.Equal(plan.DateOf(at).Start()):
			return p.Date(at)
		}
		return p.DateTime(at)
	})
}

// nameIDs replaces the ids in a sentence by names. Of others it keeps the end, which tells them apart.
func nameIDs(p i18n.Printer, sentence string, names map[string]string) string {
	return anyID.ReplaceAllStringFunc(sentence, func(id string) string {
		if name, ok := names[id]; ok {
			return p.T("« %s »", "“%s”", isolate(name))
		}
		return "…" + id[len(id)-6:]
	})
}

// isolate returns a name that leaves the direction of the text around it alone. It drops the characters that only turn the direction:
// with one of them a label could make the rest of its sentence read backwards. A name in a script that runs from right to left is
// enclosed.
func isolate(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, name)
	if strings.ContainsFunc(name, func(r rune) bool {
		return unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko)
	}) {
		return "\u2068" + name + "\u2069"
	}
	return name
}

// newAuthor names the author of an event. An author whose label is gone, or was never known here, is named by the id.
func newAuthor(p i18n.Printer, e body.Incident) Author {
	kind, id, _ := strings.Cut(e.Author, ":")
	switch {
	case kind == "system":
		return Author{Name: p.T("Le service", "The service")}
	case kind == "key" && e.AuthorName != "":
		return Author{Name: p.T("Clé « %s »", "Key “%s”", isolate(e.AuthorName))}
	case kind == "key":
		return Author{Name: p.T("Clé %s", "Key %s", id)}
	case e.AuthorRole == "":
		return Author{Name: e.Author}
	case e.AuthorName == "":
		return Author{Name: id, Role: page.RoleText(e.AuthorRole).In(p.Lang)}
	}
	return Author{Name: isolate(e.AuthorName), Role: page.RoleText(e.AuthorRole).In(p.Lang)}
}

func capitalize(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// maxSentence is how much of a sentence a list shows, in characters.
const maxSentence = 400

func cut(text string) string {
	if utf8.RuneCountInString(text) <= maxSentence {
		return text
	}
	return string([]rune(text)[:maxSentence]) + " …"
}
