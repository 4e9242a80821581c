package keys

import (
	"cmp"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"lieudit/http/pages/chart"
	"lieudit/http/pages/page"
	"lieudit/http/problem"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

const (
	// idleAfter is how long a key may be without a request before it is called idle.
	idleAfter = 30 * 24 * time.Hour
	// lineDays is how many days a line shows, today included.
	lineDays = 30
	// rowsPerPage keeps a page with its lines within the budget of its size.
	rowsPerPage = 25
	// maxKeys is how many keys of an account are listed at most, the oldest first.
	maxKeys = 10_000
)

// shownKey is a key with what is reckoned about it.
type shownKey struct {
	body.Key
	NeverUsed, Idle bool
	Line            template.HTML // of the last days; empty if the reader may not see the usage
	Total           int64         // of the line
}

// Name is what people call the key: its label, unless the vault was away.
func (k shownKey) Name() string { return cmp.Or(k.Label, k.Hint) }

// IsValid reports whether the key is not revoked.
func (k shownKey) IsValid() bool { return k.Revoked.IsZero() }

// IsPublishable reports whether the key may stand in web pages.
func (k shownKey) IsPublishable() bool { return k.Kind == token.Publishable }

// newShownKey reckons whether somebody uses the key.
func newShownKey(k body.Key, now time.Time) shownKey {
	s := shownKey{Key: k}
	if k.Revoked.IsZero() {
		s.NeverUsed = k.LastUsed.IsZero() && now.Sub(k.Created) > idleAfter
		s.Idle = !k.LastUsed.IsZero() && now.Sub(k.LastUsed) > idleAfter
	}
	return s
}

// The filters of the list, as values of the parameter etat.
const (
	allKeys     = ""
	activeKeys  = "actives"
	idleKeys    = "inactives"
	revokedKeys = "revoquees"
)

// isIn reports whether a filter shows the key.
func (k shownKey) isIn(filter string) bool {
	switch filter {
	case activeKeys:
		return k.IsValid()
	case idleKeys:
		return k.NeverUsed || k.Idle
	case revokedKeys:
		return !k.IsValid()
	}
	return true
}

// filterTab is a filter with how many keys it shows.
type filterTab struct {
	Label, Path string
	Count       int
	IsCurrent   bool
}

// rotation is a key and the one that takes its place.
type rotation struct{ Old, New shownKey }

// keyList is the data of list.html.
type keyList struct {
	Account    body.Account
	Path       string
	Tabs       []filterTab
	Rows       []shownKey
	Count      int // that the filter shows
	Before     string
	After      string
	HasKeys    bool
	IdleCount  int
	Warned     []shownKey // with warnings about their origins
	Rotations  []rotation // under way
	HasLines   bool
	MayChange  bool
	IsComplete bool
}

func listKeys(q *page.Request) (page.View, error) {
	account, err := loadAccount(q)
	if err != nil {
		return page.View{}, err
	}
	lines, err := loadLines(q)
	if err != nil {
		return page.View{}, err
	}
	found, isComplete, err := loadKeys(q)
	if err != nil {
		return page.View{}, err
	}
	data := newKeyList(q, found)
	data.Account, data.IsComplete, data.HasLines = account, isComplete, lines != nil
	data.MayChange = mayChange(q) && account.Closed.IsZero()
	for i := range data.Rows {
		data.Rows[i].setLine(q, lines)
	}
	return page.View{Template: "list.html", Title: q.T("Clés", "Keys"), Current: data.Path, Data: data}, nil
}

// loadKeys reads all keys of the account. isComplete is false if there are more than maxKeys.
func loadKeys(q *page.Request) (all []shownKey, isComplete bool, err error) {
	now := q.Site.Now()
	for cursor := ""; len(all) < maxKeys; {
		found, err := page.Read[body.Keys](q, operation(q, "?limit=1000&curseur="+url.QueryEscape(cursor)))
		if err != nil {
			return nil, false, err
		}
		for _, k := range found.Results {
			all = append(all, newShownKey(k, now))
		}
		if cursor = found.Cursor; cursor == "" {
			return all, true, nil
		}
	}
	return all, false, nil
}

// newKeyList sorts, filters and pages the keys of an account.
func newKeyList(q *page.Request, all []shownKey) keyList {
	// Valid keys come first, and the newest of them.
	slices.SortStableFunc(all, func(x, y shownKey) int {
		if x.IsValid() != y.IsValid() {
			return map[bool]int{true: -1, false: 1}[x.IsValid()]
		}
		return y.Created.Compare(x.Created)
	})
	data := keyList{Path: listPath(q), HasKeys: len(all) > 0, Rotations: findRotations(all)}
	query := q.URL.Query()
	filter := query.Get("etat")
	data.Tabs = newTabs(q, data.Path, filter, all)
	var rows []shownKey
	for _, k := range all {
		if k.isIn(idleKeys) {
			data.IdleCount++
		}
		if k.IsValid() && len(k.Warnings) > 0 {
			data.Warned = append(data.Warned, k)
		}
		if k.isIn(filter) {
			rows = append(rows, k)
		}
	}
	begin, _ := strconv.Atoi(query.Get("debut"))
	begin = max(0, min(begin, len(rows)))
	end := min(begin+rowsPerPage, len(rows))
	data.Count, data.Rows = len(rows), rows[begin:end]
	pagePath := func(from int) string {
		return data.Path + "?" + url.Values{"etat": {filter}, "debut": {strconv.Itoa(from)}}.Encode()
	}
	if begin > 0 {
		data.Before = pagePath(max(0, begin-rowsPerPage))
	}
	if end < len(rows) {
		data.After = pagePath(end)
	}
	return data
}

func newTabs(q *page.Request, path, current string, all []shownKey) (tabs []filterTab) {
	for _, f := range []struct{ value, label string }{
		{allKeys, q.T("Toutes", "All")}, {activeKeys, q.T("Valables", "Valid")}, {idleKeys, q.T("Inactives", "Idle")}, {revokedKeys, q.T("Révoquées", "Revoked")},
	} {
		tab := filterTab{Label: f.label, Path: path, IsCurrent: f.value == current}
		if f.value != allKeys {
			tab.Path += "?etat=" + f.value
		}
		for _, k := range all {
			if k.isIn(f.value) {
				tab.Count++
			}
		}
		tabs = append(tabs, tab)
	}
	return tabs
}

// findRotations are the pairs of valid keys of which one takes the place of the other.
func findRotations(all []shownKey) (open []rotation) {
	byID := make(map[string]shownKey, len(all))
	for _, k := range all {
		byID[k.ID] = k
	}
	for _, k := range all {
		if old, ok := byID[k.Replaces]; ok && k.IsValid() && old.IsValid() {
			open = append(open, rotation{old, k})
		}
	}
	return open
}

// dayLines are the requests of keys by day.
type dayLines struct {
	days  []plan.Date // oldest first
	byKey map[string]map[plan.Date]int64
}

// loadLines reads what counted with each key in the last days, from the running period and the one before it. It is nil for a reader who
// may not see the usage.
func loadLines(q *page.Request) (*dayLines, error) {
	target := page.Path("/accounts/%s/usage?by=key,day", q.Vars["account"])
	if !q.May(http.MethodGet, target) {
		return nil, nil
	}
	running, err := page.Read[body.Usage](q, target)
	if err != nil {
		return nil, err
	}
	lines := &dayLines{days: lastDays(q.Site.Now()), byKey: map[string]map[plan.Date]int64{}}
	lines.add(running)
	if lines.days[0].Start().Before(running.Start) {
		before, err := page.Read[body.Usage](q, target+"&period="+previousMonth(running.Period))
		if p, ok := errors.AsType[problem.Problem](err); ok && p.Status == http.StatusUnprocessableEntity {
			return lines, nil // the account had no period then
		}
		if err != nil {
			return nil, err
		}
		lines.add(before)
	}
	return lines, nil
}

// lastDays are the days of a line.
func lastDays(now time.Time) []plan.Date {
	days := make([]plan.Date, lineDays)
	year, month, day := now.In(plan.Paris).Date()
	for i := range days {
		days[i] = plan.DateOf(time.Date(year, month, day-lineDays+1+i, 12, 0, 0, 0, plan.Paris))
	}
	return days
}

// previousMonth names the period before one that begins on a day: periods begin a month apart.
func previousMonth(first plan.Date) string {
	return time.Date(first.Year, first.Month-1, 1, 0, 0, 0, 0, time.UTC).Format("2006-01")
}

func (l *dayLines) add(u body.Usage) {
	for _, line := range u.Lines {
		if l.byKey[line.Key] == nil {
			l.byKey[line.Key] = map[plan.Date]int64{}
		}
		l.byKey[line.Key][line.Day] += line.Requests
	}
}

// setLine draws the line of a key.
func (k *shownKey) setLine(q *page.Request, lines *dayLines) {
	if lines == nil {
		return
	}
	values := make([]int64, len(lines.days))
	for i, day := range lines.days {
		values[i] = lines.byKey[k.ID][day]
		k.Total += values[i]
	}
	k.Line = chart.Sparkline(q.Print.Count(k.Total, "%s requête en 30 jours", "%s requêtes en 30 jours", "%s request in 30 days", "%s requests in 30 days"), values)
}
