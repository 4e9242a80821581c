// Package overview has the first page of an account: what is left of its quota and until when that lasts, which
// keys need care, what happened lately, and the first steps of a newcomer as lines to copy.
package overview

import (
	"embed"
	"net/http"
	"time"

	"lieudit/http/pages/forecast"
	"lieudit/http/pages/history"
	"lieudit/http/pages/page"
	"lieudit/schemas/body"
)

//go:embed *.html
var templates embed.FS

// Section is the pages.
func Section() page.Section {
	return page.Section{
		Templates: templates,
		Rows: []page.Row{
			{Method: http.MethodGet, Path: "/comptes/{account}", Serve: showAccount},
			{Method: http.MethodGet, Path: "/comptes/{account}/direct", Serve: followAccount},
		},
	}
}

// overview is the data of overview.html.
type overview struct {
	Account body.Account
	Quota   *forecast.Quota
	Keys    []careKey      // that need care
	HasKeys bool           // some are valid
	Events  []history.Line // the newest
	Steps   steps
}

// steps are what a newcomer does first.
type steps struct {
	HasKey, HasUsed bool
	API             string
}

func showAccount(q *page.Request) (page.View, error) {
	data, err := loadOverview(q)
	if err != nil {
		return page.View{}, err
	}
	title := data.Account.Name
	if title == "" {
		title = data.Account.ID
	}
	return page.View{Template: "overview.html", Title: title, Current: page.Path("/comptes/%s", data.Account.ID), Data: data}, nil
}

// followAccount sends the figures of the page as they change.
func followAccount(q *page.Request) (page.View, error) {
	return q.Live(func() ([]page.Fragment, error) {
		data, err := loadOverview(q)
		return []page.Fragment{{ID: "quota", Template: "quota", Data: data}, {ID: "steps", Template: "steps", Data: data}, {ID: "events", Template: "events", Data: data}}, err
	}), nil
}

func loadOverview(q *page.Request) (overview, error) {
	account, err := q.Account()
	if err != nil {
		return overview{}, err
	}
	data := overview{Account: account, Steps: steps{API: q.Site.API().String() + "/services/v1"}}
	if target := page.Path("/accounts/%s/usage?by=day", account.ID); q.May(http.MethodGet, target) {
		usage, err := page.Read[body.Usage](q, target)
		if err != nil {
			return overview{}, err
		}
		data.Quota = forecast.New(usage, q.Site.Now())
		data.Steps.HasUsed = usage.Total > 0
	}
	if target := page.Path("/accounts/%s/keys?limit=1000", account.ID); q.May(http.MethodGet, target) {
		keys, err := page.Read[body.Keys](q, target)
		if err != nil {
			return overview{}, err
		}
		data.Keys, data.HasKeys = keysInCare(keys.Results, q.Site.Now())
		data.Steps.HasKey = data.HasKeys
	}
	data.Events, err = loadEvents(q, account.ID)
	return data, err
}

// loadEvents returns the five newest events of an account, or none for whoever may not read its history.
func loadEvents(q *page.Request, account string) ([]history.Line, error) {
	target := page.Path("/accounts/%s/history", account) + "?ordre=recent&limit=5&resume=true&langue=" + string(q.Print.Lang)
	if !q.May(http.MethodGet, target) {
		return nil, nil
	}
	found, err := page.Read[body.History](q, target)
	if err != nil {
		return nil, err
	}
	return history.Lines(q, account, found.Results)
}

// careKey is a key with why it needs care.
type careKey struct {
	body.Key
	NeverUsed, Idle bool
}

// idleAfter is how long a key may be without a request before it is called idle.
const idleAfter = 30 * 24 * time.Hour

// keysInCare are the valid keys that nobody has used for a while, and those with warnings. hasValid reports whether there is any valid key.
func keysInCare(all []body.Key, now time.Time) (care []careKey, hasValid bool) {
	for _, k := range all {
		if !k.Revoked.IsZero() {
			continue
		}
		hasValid = true
		c := careKey{Key: k, NeverUsed: k.LastUsed.IsZero() && now.Sub(k.Created) > idleAfter, Idle: !k.LastUsed.IsZero() && now.Sub(k.LastUsed) > idleAfter}
		if c.NeverUsed || c.Idle || len(k.Warnings) > 0 {
			care = append(care, c)
		}
	}
	return care, hasValid
}
