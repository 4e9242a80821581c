// Package usage has the pages about requests that were counted: what an account used in a period, day by day and by key or endpoint, as a
// figure and as the table of the same numbers; and what each of these numbers is made of. What a page shows is in its path, so that it can
// be kept and sent: the period, the division, filters and order.
//
//	choice (of the path) ─┬─ GET /accounts/{id}/usage?by=day,key ─> report: columns, rows ─> chart.Bars, table
//	                      ├─ GET /accounts/{id}/usage?by=key,endpoint ─> parts: totals, and what can be chosen
//	                      └─ GET /accounts/{id}/usage/periods
package usage

import (
	"embed"
	"net/http"
	"net/url"
	"strings"

	"lieudit/http/pages/page"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
)

//go:embed *.html
var templates embed.FS

// Section is the pages.
func Section() page.Section {
	return page.Section{
		Templates: templates,
		Rows: []page.Row{
			{Method: http.MethodGet, Path: "/comptes/{account}/usage", Serve: showUsage},
			{Method: http.MethodGet, Path: "/comptes/{account}/usage/direct", Serve: followUsage},
			{Method: http.MethodGet, Path: "/comptes/{account}/usage.csv", Serve: exportUsage},
			{Method: http.MethodGet, Path: "/comptes/{account}/usage/lignes", Serve: listCounts},
		},
	}
}

// The divisions of the figure, and the orders of the table.
const (
	byKey      = "cle"
	byEndpoint = "endpoint"
	byDay      = "jour"
	byRequests = "requetes"
)

// choice is what a page is asked to show.
type choice struct {
	Account       string
	Period        string // first day; "" is the running one
	By            string // byKey or byEndpoint
	Order         string // byDay or byRequests
	Key, Endpoint string // filters; "" is all
}

// readChoice reads the path. What is not one of the choices counts as not chosen.
func readChoice(q *page.Request) choice {
	values := q.URL.Query()
	c := choice{Account: q.Vars["account"], Period: values.Get("periode"), By: values.Get("par"), Order: values.Get("ordre"), Key: values.Get("cle"), Endpoint: values.Get("endpoint")}
	if c.By != byEndpoint {
		c.By = byKey
	}
	if c.Order != byRequests {
		c.Order = byDay
	}
	return c
}

// IsFiltered reports whether some of the lines are chosen.
func (c choice) IsFiltered() bool { return c.Key != "" || c.Endpoint != "" }

// query is the query of a path of these pages. Values that are the default are left out.
func (c choice) query() string {
	values := url.Values{}
	set := func(name, value, usual string) {
		if value != usual {
			values.Set(name, value)
		}
	}
	set("periode", c.Period, "")
	set("par", c.By, byKey)
	set("ordre", c.Order, byDay)
	set("cle", c.Key, "")
	set("endpoint", c.Endpoint, "")
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// Path is the path of the page with the choice, and Live that of its stream.
func (c choice) Path() string { return page.Path("/comptes/%s/usage", c.Account) + c.query() }
func (c choice) Live() string { return page.Path("/comptes/%s/usage/direct", c.Account) + c.query() }

// With returns the path with another filter.
func (c choice) With(key, endpoint string) string {
	c.Key, c.Endpoint = key, endpoint
	return c.Path()
}

// CSV is the path of the file of the same lines in a dialect.
func (c choice) CSV(dialect string) string {
	values := url.Values{"tableur": {dialect}}
	for name, value := range map[string]string{"periode": c.Period, "cle": c.Key, "endpoint": c.Endpoint} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return page.Path("/comptes/%s/usage.csv", c.Account) + "?" + values.Encode()
}

// Lines is the path of what a number is made of, from the page: that of a day, a key and an endpoint, of which each may be "".
func (c choice) Lines(day, key, endpoint string) string {
	values := url.Values{"periode": {c.Period}}
	for name, value := range map[string]string{"jour": day, "cle": key, "endpoint": endpoint} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return "usage/lignes?" + values.Encode()
}

// target is the operation for the lines of the choice.
func (c choice) target(filter bool, by ...string) string {
	values := url.Values{"by": {strings.Join(by, ",")}}
	if c.Period != "" {
		values.Set("period", c.Period)
	}
	if filter && c.Key != "" {
		values.Set("cle", c.Key)
	}
	if filter && c.Endpoint != "" {
		values.Set("endpoint", c.Endpoint)
	}
	return page.Path("/accounts/%s/usage", c.Account) + "?" + values.Encode()
}

func showUsage(q *page.Request) (page.View, error) {
	r, err := loadReport(q)
	return page.View{
		Template: "usage.html", Title: q.T("Usage", "Usage"), Current: page.Path("/comptes/%s/usage", q.Vars["account"]), Data: r,
	}, err
}

// followUsage sends the parts of the page as they change.
func followUsage(q *page.Request) (page.View, error) {
	return q.Live(func() ([]page.Fragment, error) {
		r, err := loadReport(q)
		return []page.Fragment{
			{ID: "usage-stats", Template: "usage-stats", Data: r}, {ID: "usage-figure", Template: "usage-figure", Data: r},
			{ID: "usage-table", Template: "usage-table", Data: r}, {ID: "usage-parts", Template: "usage-parts", Data: r},
			{ID: "usage-proof", Template: "usage-proof", Data: r},
		}, err
	}), nil
}

// exportUsage sends the lines as CSV, as fine as they are counted.
func exportUsage(q *page.Request) (page.View, error) {
	c, dialect := readChoice(q), q.URL.Query().Get("tableur")
	if dialect != "excel" {
		dialect = "standard"
	}
	target := c.target(true, "key", "endpoint", "day") + "&format=csv&tableur=" + dialect
	name := "usage-" + c.Account
	if _, err := plan.ParseDate(c.Period); err == nil {
		name += "-" + c.Period
	}
	return q.Send(target, name+".csv"), nil
}

// loadAccount returns the account of the path. Who may see its usage but not the account itself, as billing, gets its id alone.
func loadAccount(q *page.Request) (body.Account, error) {
	if id := q.Vars["account"]; !q.May(http.MethodGet, page.Path("/accounts/%s", id)) {
		return body.Account{ID: id}, nil
	}
	return q.Account()
}
