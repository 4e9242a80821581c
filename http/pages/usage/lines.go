package usage

import (
	"net/http"
	"net/url"
	"strconv"

	"lieudit/http/pages/i18n"
	"lieudit/http/pages/page"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
)

// countsPerPage is how many entries a page lists.
const countsPerPage = 100

// countList is the data of lines.html.
type countList struct {
	choice
	Account   body.Account
	Day       plan.Date // zero: all days
	Kind      string    // "" is all
	Usage     body.Usage
	Counts    []body.UsageCount
	Cursor    string // of this page
	Next      string // path of the page after it
	Sum       int64  // of this page
	Total     int64  // of all entries, unless a kind is chosen
	HasPlaces bool   // on the log
	names     report
}

// KeyName is what a key is called.
func (l countList) KeyName(id string) string { return l.names.KeyName(id) }

// IsWhole reports whether all entries are on this page.
func (l countList) IsWhole() bool { return l.Cursor == "" && l.Next == "" }

// values are the parameters that choose the entries.
func (l countList) values() url.Values {
	values := url.Values{}
	set := func(name, value string) {
		if value != "" {
			values.Set(name, value)
		}
	}
	set("periode", l.Period)
	set("cle", l.Key)
	set("endpoint", l.Endpoint)
	set("nature", l.Kind)
	if l.Day != (plan.Date{}) {
		set("jour", l.Day.String())
	}
	return values
}

// Without is the path of the entries without one of the filters.
func (l countList) Without(name string) string {
	values := l.values()
	values.Del(name)
	return page.Path("/comptes/%s/usage/lignes", l.choice.Account) + "?" + values.Encode()
}

// Back is the path of the usage of the same period.
func (l countList) Back() string {
	return choice{Account: l.choice.Account, Period: l.Period, By: byKey, Order: byDay}.Path()
}

// listCounts shows what figures are made of.
func listCounts(q *page.Request) (page.View, error) {
	l, err := loadCounts(q)
	return page.View{
		Template: "lines.html", Title: q.T("D’où viennent ces chiffres", "Where these figures come from"), Current: page.Path("/comptes/%s/usage", q.Vars["account"]), Data: l,
	}, err
}

func loadCounts(q *page.Request) (l countList, err error) {
	given := q.URL.Query()
	l = countList{choice: readChoice(q), Kind: given.Get("nature"), Cursor: given.Get("curseur")}
	if _, isKind := kindTexts[body.CountKind(l.Kind)]; !isKind {
		l.Kind = ""
	}
	if l.Day, err = plan.ParseDate(given.Get("jour")); err != nil { // no day is chosen
		l.Day = plan.Date{}
	}
	if l.Account, err = loadAccount(q); err != nil {
		return l, err
	}
	if l.Usage, l.Total, err = l.loadTotal(q); err != nil {
		return l, err
	}
	if !l.Usage.Start.IsZero() {
		l.Period = l.Usage.Period.String()
	}
	l.names.choice = l.choice
	if err := l.names.loadLabels(q); err != nil {
		return l, err
	}
	return l, l.load(q)
}

// loadTotal asks for what the entries add up to. Whoever may not know that, as auditors, gets the zero Usage.
func (l countList) loadTotal(q *page.Request) (u body.Usage, total int64, err error) {
	target := l.choice.target(true)
	if l.Day != (plan.Date{}) {
		target += "&jour=" + l.Day.String()
	}
	if !q.May(http.MethodGet, target) {
		return body.Usage{}, 0, nil
	}
	u, err = page.Read[body.Usage](q, target)
	for _, line := range u.Lines {
		total += line.Requests
	}
	return u, total, err
}

// load asks for the entries.
func (l *countList) load(q *page.Request) error {
	values := url.Values{"limit": {strconv.Itoa(countsPerPage)}}
	for name, value := range l.values() {
		if name == "periode" {
			name = "period"
		}
		values[name] = value
	}
	if l.Cursor != "" {
		values.Set("curseur", l.Cursor)
	}
	found, err := page.Read[body.UsageCounts](q, page.Path("/accounts/%s/usage/lines", l.choice.Account)+"?"+values.Encode())
	if err != nil {
		return err
	}
	l.Counts = found.Results
	for _, c := range l.Counts {
		l.Sum += c.Requests
		l.HasPlaces = l.HasPlaces || c.Position != 0
	}
	if found.Cursor != "" {
		next := l.values()
		next.Set("curseur", found.Cursor)
		l.Next = page.Path("/comptes/%s/usage/lignes", l.choice.Account) + "?" + next.Encode()
	}
	return nil
}

// kindTexts are what the kinds of entries are called.
var kindTexts = map[body.CountKind]i18n.Text{
	body.CountTicked:   {FR: "comptées", EN: "counted"},
	body.CountRefunded: {FR: "reprises, sans réponse", EN: "taken back, not answered"},
	body.CountAdjusted: {FR: "correction", EN: "correction of a closed period"},
}

// KindName is what a kind of entries is called.
func (l countList) KindName(q *page.Request, kind body.CountKind) string {
	return q.Print.Text(kindTexts[kind])
}

// KindOf is the kind that is chosen.
func (l countList) KindOf() body.CountKind { return body.CountKind(l.Kind) }
