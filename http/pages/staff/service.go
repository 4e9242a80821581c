package staff

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"lieudit/http/pages/i18n"
	"lieudit/http/pages/page"
	"lieudit/schemas/body"
	"lieudit/schemas/refusal"
)

// service is the data of service.html.
type service struct {
	IsReady  bool
	Failing  []body.ReadinessPart // the required ones first
	Fine     []body.ReadinessPart
	Tables   []tableStatus
	Position uint64 // the last place of the log that a table has reached
	Vintages body.ServedVintages
	Networks body.ServedNetworks
	Upgrade  body.Upgrade
}

// tableStatus is a copy of tables that lists are read from, in words.
type tableStatus struct {
	body.Projection
	Title, About string
	StateName    string
	Tone         string // of the badge
	IsServing    bool
	IsEarlier    bool // earlier programs read it
}

// MayRebuild reports whether this program reads the copy, and can fill another one.
func (t tableStatus) MayRebuild() bool { return t.IsServing && !t.IsEarlier }

func showService(q *page.Request) (page.View, error) {
	data, err := loadService(q)
	return page.View{Template: "service.html", Title: q.T("Service", "Service"), Current: "/service", Data: data}, err
}

// checkInterval is how often an open page has the parts of the instance checked: some checks write and read a file.
const checkInterval = 3 * time.Second

// followService sends the parts of the page as they change.
func followService(q *page.Request) (page.View, error) {
	return q.LiveEvery(checkInterval, func() ([]page.Fragment, error) {
		data, err := loadService(q)
		var all []page.Fragment
		for _, name := range []string{"readiness", "tables", "data"} {
			all = append(all, page.Fragment{ID: name, Template: name, Data: data})
		}
		return all, err
	}), nil
}

func loadService(q *page.Request) (data service, err error) {
	readiness, err := page.Read[body.Readiness](q, "/readiness?langue="+string(q.Print.Lang))
	if err != nil {
		return data, err
	}
	data.IsReady = readiness.IsReady
	for _, p := range readiness.Results {
		if p.IsFine {
			data.Fine = append(data.Fine, p)
			continue
		}
		data.Failing = append(data.Failing, p)
	}
	slices.SortStableFunc(data.Failing, func(x, y body.ReadinessPart) int { return boolRank(y.IsRequired) - boolRank(x.IsRequired) })
	if err = data.loadTables(q); err != nil {
		return data, err
	}
	if data.Vintages, err = page.Read[body.ServedVintages](q, "/vintages"); err != nil {
		return data, err
	}
	if data.Networks, err = page.Read[body.ServedNetworks](q, "/networks"); err != nil {
		return data, err
	}
	data.Upgrade, err = page.Read[body.Upgrade](q, "/upgrade")
	return data, err
}

func boolRank(holds bool) int {
	if holds {
		return 1
	}
	return 0
}

// tableTexts are the words for read models, by their names.
var tableTexts = map[string][2]i18n.Text{
	"register": {{FR: "Comptes, clés et accès", EN: "Accounts, keys and access"}, {FR: "Les listes de comptes, de clés et de jetons.", EN: "The lists of accounts, keys and tokens."}},
	"history":  {{FR: "Historique", EN: "History"}, {FR: "Ce qui est arrivé à chaque compte, en phrases.", EN: "What happened to each account, in sentences."}},
	"places":   {{FR: "Sites et référentiels", EN: "Sites and referentials"}, {FR: "Les sites des clients, leurs listes et leurs exports.", EN: "The sites of customers, their lists and exports."}},
	"usage":    {{FR: "Usage", EN: "Usage"}, {FR: "Ce qui a été compté, par jour, clé et endpoint ; la facturation.", EN: "What was counted, by day, key and endpoint; billing."}},
}

// stateTexts are the words for the states of copies, with the tone of their badge.
var stateTexts = map[string]struct {
	text i18n.Text
	tone string
}{
	"fresh":    {i18n.Text{FR: "en préparation", EN: "being prepared"}, "accent"},
	"building": {i18n.Text{FR: "en cours de remplissage", EN: "being filled"}, "accent"},
	"serving":  {i18n.Text{FR: "en service", EN: "serving"}, "good"},
	"retired":  {i18n.Text{FR: "remplacée", EN: "replaced"}, ""},
}

// loadTables reads the copies of the tables. Those that are gone are left out.
func (s *service) loadTables(q *page.Request) error {
	found, err := page.Read[body.Projections](q, "/projections")
	latest := map[string]int{}
	for _, p := range found.Results {
		latest[p.Name] = max(latest[p.Name], p.Version)
	}
	for _, p := range found.Results {
		if p.State == "dropped" {
			continue
		}
		shown := newTableStatus(q.Print, p)
		if shown.IsEarlier = p.Version < latest[p.Name]; shown.IsEarlier && shown.IsServing {
			shown.StateName, shown.Tone = q.T("version antérieure", "earlier version"), ""
		}
		s.Tables = append(s.Tables, shown)
		s.Position = max(s.Position, p.Position)
	}
	slices.SortStableFunc(s.Tables, func(x, y tableStatus) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), y.Version-x.Version, boolRank(y.IsServing)-boolRank(x.IsServing))
	})
	return err
}

func newTableStatus(p i18n.Printer, status body.Projection) tableStatus {
	shown := tableStatus{Projection: status, Title: status.Name, StateName: status.State, IsServing: status.State == "serving"}
	if texts, ok := tableTexts[status.Name]; ok {
		shown.Title, shown.About = p.Text(texts[0]), p.Text(texts[1])
	}
	if known, ok := stateTexts[status.State]; ok {
		shown.StateName, shown.Tone = p.Text(known.text), known.tone
	}
	if shown.IsServing && (status.Reason != "" || len(status.Stopped) > 0) {
		shown.Tone = "bad"
	}
	return shown
}

// LagText is how far the copy is behind the log.
func (t tableStatus) LagText(p i18n.Printer) string {
	switch {
	case t.Lag == nil:
		return p.T("retard inconnu", "lag unknown")
	case *t.Lag == 0:
		return p.T("à jour", "up to date")
	case *t.Lag >= maxCountedLag:
		return p.T("plus de %s événements de retard", "more than %s events behind", p.Number(maxCountedLag))
	}
	return p.Count(int64(*t.Lag), "%s événement de retard", "%s événements de retard", "%s event behind", "%s events behind")
}

// maxCountedLag is up to where the service counts a lag.
const maxCountedLag = 10_000

// rebuilding is the data of rebuild.html.
type rebuilding struct{ Name, Title, About string }

func showRebuild(q *page.Request) (page.View, error) {
	name := q.Vars["table"]
	texts, ok := tableTexts[name]
	if !ok {
		return page.View{}, refusal.NotFound
	}
	if !q.May(http.MethodPost, page.Path("/projections/%s:rebuild", name)) {
		return page.View{}, refusal.RoleForbidden
	}
	data := rebuilding{name, q.Print.Text(texts[0]), q.Print.Text(texts[1])}
	return page.View{Template: "rebuild.html", Title: q.T("Reconstruire", "Rebuild"), Current: "/service", Data: data}, nil
}

func rebuild(q *page.Request) (page.View, error) {
	if err := q.Do(http.MethodPost, page.Path("/projections/%s:rebuild", q.Vars["table"]), struct{}{}, nil); err != nil {
		return page.View{}, err
	}
	return page.Redirect("/service?fait=reconstruction")
}
