package staff

import (
	"net/http"
	"net/url"
	"regexp"

	"lieudit/http/pages/i18n"
	"lieudit/http/pages/page"
	"lieudit/schemas/body"
	"lieudit/schemas/refusal"
)

// billing is the data of billing.html.
type billing struct {
	Form    *page.Form
	Month   string // that periods begin in, 2026-11; "" for all
	Periods []billedPeriod
	Next    string // path of the page after
	Formats []exportFormat
}

// billedPeriod is a period in words.
type billedPeriod struct {
	body.Period
	Name      string // of the contract's account
	StateName string
	Tone      string
}

// stateNames are the words for the states of a period, with the tone of their badge.
var stateNames = map[body.PeriodState]struct {
	text i18n.Text
	tone string
}{
	body.PeriodRunning: {i18n.Text{FR: "en cours", EN: "running"}, "accent"},
	body.PeriodEnded:   {i18n.Text{FR: "à clore", EN: "to be closed"}, "warn"},
	body.PeriodClosed:  {i18n.Text{FR: "close", EN: "closed"}, "good"},
}

var monthPattern = regexp.MustCompile(`^\d{4}-\d{2}$`)

func showBilling(q *page.Request) (page.View, error) {
	data := billing{Form: &page.Form{Values: q.URL.Query()}, Formats: exportFormats}
	view := page.View{Template: "billing.html", Title: q.T("Facturation", "Billing"), Current: "/facturation"}
	if data.Month = data.Form.Value("mois"); data.Month != "" && !monthPattern.MatchString(data.Month) {
		data.Form.AddError("mois", q.T("Écrivez un mois comme 2026-11.", "Enter a month such as 2026-11."))
		view.Status, view.Data = http.StatusUnprocessableEntity, data
		return view, nil
	}
	query := url.Values{"limit": {"100"}}
	for field, name := range map[string]string{"mois": "period", "curseur": "curseur"} {
		if value := data.Form.Value(field); value != "" {
			query.Set(name, value)
		}
	}
	found, err := page.Read[body.Periods](q, "/usage/periods?"+query.Encode())
	if err != nil {
		return page.View{}, err
	}
	names, err := readNames(q)
	if err != nil {
		return page.View{}, err
	}
	for _, p := range found.Results {
		state := stateNames[p.State]
		data.Periods = append(data.Periods, billedPeriod{p, names[p.Contract], q.Print.Text(state.text), state.tone})
	}
	if found.Cursor != "" {
		next := url.Values{"curseur": {found.Cursor}}
		if data.Month != "" {
			next.Set("mois", data.Month)
		}
		data.Next = "/facturation?" + next.Encode()
	}
	view.Data = data
	return view, nil
}

// readNames reads the names of the first thousand accounts by their ids. Others are shown by their ids.
func readNames(q *page.Request) (map[string]string, error) {
	found, err := page.Read[body.Accounts](q, "/accounts?limit=1000")
	names := map[string]string{}
	for _, a := range found.Results {
		names[a.ID] = a.Name
	}
	return names, err
}

// exportFormat is a form in which lines of usage are exported.
type exportFormat struct {
	Value, Extension, query string
	Name, About             i18n.Text
}

// exportFormats are the formats of GET /usage.
var exportFormats = []exportFormat{
	{"excel", "csv", "format=csv&tableur=excel", i18n.Text{FR: "CSV pour Excel en français", EN: "CSV for a French Excel"}, i18n.Text{FR: "points-virgules, s’ouvre d’un double clic", EN: "semicolons, opens with a double click"}},
	{"csv", "csv", "format=csv&tableur=standard", i18n.Text{FR: "CSV standard", EN: "Standard CSV"}, i18n.Text{FR: "RFC 4180, virgules", EN: "RFC 4180, commas"}},
	{"ndjson", "ndjson", "format=ndjson", i18n.Text{FR: "NDJSON, ligne à ligne", EN: "NDJSON, line by line"}, i18n.Text{FR: "un objet par ligne, pour un programme", EN: "one object a line, for a program"}},
	{"json", "json", "format=json", i18n.Text{FR: "JSON, un seul document", EN: "JSON, one document"}, i18n.Text{FR: "les mêmes lignes dans un tableau", EN: "the same lines in one array"}},
}

// export sends the lines of the periods that begin in a month, or of all, as a file.
func export(q *page.Request) (page.View, error) {
	values := q.URL.Query()
	for _, f := range exportFormats {
		if f.Value != values.Get("format") {
			continue
		}
		target, name := "/usage?"+f.query, "usage."+f.Extension
		if month := values.Get("mois"); month != "" {
			target += "&period=" + url.QueryEscape(month)
			if monthPattern.MatchString(month) {
				name = "usage-" + month + "." + f.Extension
			}
		}
		return q.Send(target, name), nil
	}
	return page.View{}, refusal.NotFound
}

// reconciliation is the data of reconcile.html.
type reconciliation struct {
	Form   *page.Form
	Result *body.Reconciliation
}

func showReconciliation(q *page.Request) (page.View, error) {
	return viewReconciliation(q, reconciliation{Form: &page.Form{Values: url.Values{"period": {q.URL.Query().Get("mois")}}}}, http.StatusOK)
}

func viewReconciliation(q *page.Request, data reconciliation, status int) (page.View, error) {
	if !q.May(http.MethodPost, "/usage:reconcile") {
		return page.View{}, refusal.RoleForbidden
	}
	return page.View{Status: status, Template: "reconcile.html", Title: q.T("Rapprochement", "Comparison with the log"), Current: "/facturation", Data: data}, nil
}

// reconcile compares what is billed with the log, and shows the result in the answer: it is of that moment. That takes as long as it takes
// to read the log.
func reconcile(q *page.Request) (page.View, error) {
	form := q.Form()
	var result body.Reconciliation
	if err := q.Do(http.MethodPost, "/usage:reconcile", body.ReconcileUsage{Period: form.Value("period")}, &result); err != nil {
		status, ok := form.Refuse(q, err, nil)
		if !ok {
			return page.View{}, err
		}
		return viewReconciliation(q, reconciliation{Form: form}, status)
	}
	return viewReconciliation(q, reconciliation{form, &result}, http.StatusOK)
}

// kindTexts are the values that can differ, by their names in the answer.
var kindTexts = map[string]i18n.Text{
	"ligne":     {FR: "une ligne", EN: "a line"},
	"utilise":   {FR: "les requêtes comptées", EN: "the requests counted"},
	"limite":    {FR: "le plafond", EN: "the cap"},
	"total":     {FR: "le total de la clôture", EN: "the total at closing"},
	"lignes":    {FR: "le nombre de lignes", EN: "the number of lines"},
	"empreinte": {FR: "l’empreinte", EN: "the digest"},
	"solde":     {FR: "un solde", EN: "a balance"},
	"cloture":   {FR: "la clôture", EN: "the closing"},
	"periode":   {FR: "la période elle-même", EN: "the period itself"},
	"retard":    {FR: "un retard de lecture", EN: "a lag in reading"},
}

// KindName is what differs, in words.
func (r reconciliation) KindName(p i18n.Printer, kind string) string {
	if text, ok := kindTexts[kind]; ok {
		return p.Text(text)
	}
	return kind
}
