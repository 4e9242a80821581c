package usage

import (
	"cmp"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"lieudit/http/pages/chart"
	"lieudit/http/pages/forecast"
	"lieudit/http/pages/page"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
)

// report is the data of usage.html.
type report struct {
	choice
	Account body.Account
	Usage   body.Usage // its lines are those of the figure
	Quota   *forecast.Quota
	Periods []body.UsagePeriod
	Columns []column
	Rows    []row
	Sum     int64  // of all rows
	Parts   []part // of the period, whatever is filtered
	Keys    []part // that can be chosen
	Ends    []part // endpoints that can be chosen
	Now     time.Time
	API     string
	labels  map[string]body.Key
	figure  chart.Bars
}

// column is a part of each bar: a key, an endpoint, or the rest of them.
type column struct {
	ID     string // "" if it is the rest
	Name   string
	Values []int64 // by day of the period
	Total  int64
}

// row is a day of the table.
type row struct {
	Day    plan.Date
	Values []int64 // of each column
	Total  int64
}

// part is what a key or an endpoint comes to.
type part struct {
	ID, Name, Hint string
	Requests       int64
	Share          float64
	IsRevoked      bool
}

// Percent is the share as a whole number from 0 to 100.
func (p part) Percent() string { return strconv.Itoa(int(p.Share * 100)) }

// IsRunning reports whether more is counted in the period.
func (r report) IsRunning() bool { return r.Usage.State == body.PeriodRunning }

// LastDay is the last day of the period.
func (r report) LastDay() time.Time { return r.Usage.End.Add(-time.Hour) }

// Before is the last day before the end of a period.
func (choice) Before(end time.Time) time.Time { return end.Add(-time.Hour) }

// IsListed reports whether the period is among those that can be chosen.
func (r report) IsListed() bool {
	return slices.ContainsFunc(r.Periods, func(p body.UsagePeriod) bool { return p.Period == r.Usage.Period })
}

// HasKey and HasEnd report whether a key or an endpoint is among those that can be chosen.
func (r report) HasKey(id string) bool { return hasPart(r.Keys, id) }
func (r report) HasEnd(id string) bool { return hasPart(r.Ends, id) }

func hasPart(all []part, id string) bool {
	return slices.ContainsFunc(all, func(p part) bool { return p.ID == id })
}

// Corrections is the path of the corrections of a closed period.
func (r report) Corrections() string {
	return r.Lines("", r.Key, r.Endpoint) + "&nature=" + string(body.CountAdjusted)
}

// loadReport asks for everything on the page.
func loadReport(q *page.Request) (report, error) {
	r := report{choice: readChoice(q), Now: q.Site.Now(), API: q.Site.API().String() + "/services/v1"}
	account, err := loadAccount(q)
	if err != nil {
		return report{}, err
	}
	r.Account = account
	if r.Usage, err = page.Read[body.Usage](q, r.target(true, "day", dimensions[r.By])); err != nil {
		return report{}, err
	}
	r.Period = r.Usage.Period.String()
	totals, err := page.Read[body.Usage](q, r.target(false, "key", "endpoint"))
	if err != nil {
		return report{}, err
	}
	periods, err := page.Read[body.UsagePeriods](q, page.Path("/accounts/%s/usage/periods", r.choice.Account))
	if err != nil {
		return report{}, err
	}
	r.Periods = periods.Results
	if err := r.loadLabels(q); err != nil {
		return report{}, err
	}
	r.divide(totals.Lines)
	r.arrange(q)
	if r.IsRunning() {
		r.Quota = forecast.New(r.Usage, r.Now)
	}
	r.figure = r.bars(q)
	return r, nil
}

// dimensions are the names that the operation has for divisions.
var dimensions = map[string]string{byKey: "key", byEndpoint: "endpoint"}

// loadLabels loads the account's keys, which the page shows by their labels.
func (r *report) loadLabels(q *page.Request) error {
	r.labels = map[string]body.Key{}
	for cursor := ""; ; {
		target := page.Path("/accounts/%s/keys?limit=1000", r.choice.Account)
		if cursor != "" {
			target += "&curseur=" + cursor
		}
		if !q.May(http.MethodGet, target) {
			return nil
		}
		found, err := page.Read[body.Keys](q, target)
		if err != nil {
			return err
		}
		for _, k := range found.Results {
			r.labels[k.ID] = k
		}
		if cursor = found.Cursor; cursor == "" {
			return nil
		}
	}
}

// KeyName is what a key is called: its label, else what is shown of its text, else its id.
func (r report) KeyName(id string) string {
	k := r.labels[id]
	return cmp.Or(k.Label, k.Hint, id)
}

// name is what a column is called: a key that is revoked says so.
func (r report) name(q *page.Request, id string) string {
	switch {
	case r.By != byKey:
		return id
	case !r.labels[id].Revoked.IsZero():
		return r.KeyName(id) + " " + q.T("(révoquée)", "(revoked)")
	}
	return r.KeyName(id)
}

// divide adds the lines up by key and by endpoint.
func (r *report) divide(lines []body.UsageLine) {
	keys, ends := map[string]int64{}, map[string]int64{}
	for _, l := range lines {
		keys[l.Key] += l.Requests
		ends[l.Endpoint] += l.Requests
	}
	toParts := func(sums map[string]int64, toPart func(id string) part) (all []part) {
		for id, n := range sums {
			p := toPart(id)
			p.ID, p.Requests, p.Share = id, n, max(0, min(float64(n)/float64(max(r.Usage.Total, 1)), 1))
			all = append(all, p)
		}
		slices.SortFunc(all, func(a, b part) int { return cmp.Or(cmp.Compare(b.Requests, a.Requests), strings.Compare(a.ID, b.ID)) })
		return all
	}
	r.Keys = toParts(keys, func(id string) part {
		k := r.labels[id]
		p := part{Name: r.KeyName(id), Hint: k.Hint, IsRevoked: !k.Revoked.IsZero()}
		if p.Name == p.Hint {
			p.Hint = ""
		}
		return p
	})
	r.Ends = toParts(ends, func(id string) part { return part{Name: id} })
	if r.Parts = r.Keys; r.By == byEndpoint {
		r.Parts = r.Ends
	}
}

// days are the days of the period.
func (r report) days() (all []plan.Date) {
	for d := r.Usage.Period; d.Start().Before(r.Usage.End); d = plan.DateOf(d.Start().Add(36 * time.Hour)) {
		all = append(all, d)
	}
	return all
}

// arrange makes columns and rows of the lines.
func (r *report) arrange(q *page.Request) {
	days := r.days()
	index := make(map[plan.Date]int, len(days))
	for i, d := range days {
		index[d] = i
	}
	byID := map[string]*chart.Series{}
	var ids []string
	for _, l := range r.Usage.Lines {
		id := l.Key + l.Endpoint // one of them is ""
		if byID[id] == nil {
			byID[id] = &chart.Series{Name: id, Values: make([]int64, len(days))}
			ids = append(ids, id)
		}
		if day, ok := index[l.Day]; ok { // a correction of another day would not be of this period
			byID[id].Values[day] += l.Requests
		}
		r.Sum += l.Requests
	}
	slices.Sort(ids)
	var all []chart.Series
	for _, id := range ids {
		all = append(all, *byID[id])
	}
	for _, s := range chart.Merge(all, "") {
		c := column{ID: s.Name, Name: r.name(q, s.Name), Values: s.Values, Total: s.Total()}
		if c.ID == "" {
			c.Name = q.T("autres", "others")
		}
		r.Columns = append(r.Columns, c)
	}
	r.arrangeRows(days)
}

// arrangeRows makes a row of each day that has begun, or has requests.
func (r *report) arrangeRows(days []plan.Date) {
	for i, day := range days {
		line := row{Day: day, Values: make([]int64, len(r.Columns))}
		for n, c := range r.Columns {
			line.Values[n] = c.Values[i]
			line.Total += c.Values[i]
		}
		if line.Total != 0 || !day.Start().After(r.Now) {
			r.Rows = append(r.Rows, line)
		}
	}
	if r.Order == byRequests {
		slices.SortStableFunc(r.Rows, func(a, b row) int { return cmp.Compare(b.Total, a.Total) })
	}
}

// Figure draws the bars.
func (r report) Figure() template.HTML { return r.figure.SVG() }

// Legend lists what the colours and lines of the figure mean.
func (r report) Legend(q *page.Request) template.HTML { return r.figure.Legend(q.Print.Number) }

// longestTitle is how many letters of a name stand in the title of a bar.
const longestTitle = 32

func (r report) bars(q *page.Request) chart.Bars {
	b := chart.Bars{
		ID: "figure", Number: q.Print.Number,
		Name: q.T("Requêtes par jour, du %s au %s", "Requests a day, from %s to %s", q.Print.Date(r.Usage.Start), q.Print.Date(r.LastDay())),
	}
	for _, c := range r.Columns {
		b.Series = append(b.Series, chart.Series{Name: c.Name, Values: c.Values})
	}
	for i, d := range r.days() {
		b.Days = append(b.Days, r.chartDay(q, i, d))
	}
	b.Summary = r.summary(q)
	if r.Quota == nil || r.IsFiltered() {
		return b
	}
	beyond := q.T("(au-dessus de la figure)", "(above the figure)")
	if r.Quota.Remaining > 0 {
		b.Lines = append(b.Lines, chart.Line{
			Name: q.T("Rythme qui tient jusqu’au bout : %s par jour", "Pace that lasts to the end: %s a day", q.Print.Number(r.Quota.PaceToEnd)),
			Kind: chart.LinePace, Value: float64(r.Quota.PaceToEnd), Beyond: beyond,
		})
	}
	share := r.Usage.Limit / int64(max(len(b.Days), 1))
	b.Lines = append(b.Lines, chart.Line{
		Name: q.T("Quota réparti sur la période : %s par jour", "Quota spread over the period: %s a day", q.Print.Number(share)),
		Kind: chart.LineCap, Value: float64(share), Beyond: beyond,
	})
	return b
}

// chartDay is the place of a bar, with what it shows as text.
func (r report) chartDay(q *page.Request, i int, d plan.Date) chart.Day {
	day := chart.Day{Label: strconv.Itoa(d.Day), IsToday: d == plan.DateOf(r.Now)}
	if i == 0 || d.Day == 1 {
		day.Group = q.Print.Month(d.Start())
	}
	var title strings.Builder
	total := int64(0)
	for _, c := range r.Columns {
		if v := c.Values[i]; v != 0 {
			total += v
			title.WriteString("\n" + shorten(c.Name) + q.T(" : ", ": ") + q.Print.Number(v))
		}
	}
	day.Title = q.Print.Date(d.Start()) + q.T(" : ", ": ") + q.Print.Count(total, "%s requête", "%s requêtes", "%s request", "%s requests") + title.String()
	return day
}

// shorten cuts a long name.
func shorten(name string) string {
	if letters := []rune(name); len(letters) > longestTitle {
		return string(letters[:longestTitle-1]) + "…"
	}
	return name
}

// summary says what the figure shows to whoever cannot see it.
func (r report) summary(q *page.Request) string {
	if r.Sum == 0 {
		return q.T("Aucune requête n’est comptée.", "No requests are counted.")
	}
	highest := slices.MaxFunc(r.Rows, func(a, b row) int { return cmp.Compare(a.Total, b.Total) })
	return q.T("%s en tout ; le plus le %s, avec %s. Le tableau qui suit a les mêmes chiffres.", "%s in all; most on %s, with %s. The table below has the same figures.",
		q.Print.Count(r.Sum, "%s requête", "%s requêtes", "%s request", "%s requests"), q.Print.Date(highest.Day.Start()), q.Print.Number(highest.Total))
}

// Growth draws how the sum has come to meet the cap, for the whole account.
func (r report) Growth(q *page.Request) template.HTML {
	c := chart.Cumulative{
		ID: "somme", Days: r.figure.Days, Cap: r.Usage.Limit, Number: q.Print.Number, Elapsed: r.Now.Sub(r.Usage.Start).Hours() / 24,
		Name:    q.T("Requêtes depuis le début de la période, et le quota", "Requests since the beginning of the period, and the quota"),
		Summary: q.T("%s sur %s.", "%s of %s.", q.Print.Number(r.Usage.Total), q.Print.Number(r.Usage.Limit)),
	}
	sum, today := int64(0), plan.DateOf(r.Now)
	for i, d := range r.days() {
		if d.Start().After(today.Start()) {
			break
		}
		for _, column := range r.Columns {
			sum += column.Values[i]
		}
		c.Sums = append(c.Sums, sum)
	}
	if r.Quota != nil {
		c.Pace = r.Quota.Pace
	}
	return c.SVG()
}

// GrowthKey is the legend of Growth.
func (r report) GrowthKey(q *page.Request) template.HTML {
	keys := chart.Key(chart.LineCap, q.T("Quota : %s", "Quota: %s", q.Print.Number(r.Usage.Limit)))
	if r.Quota != nil && r.Quota.Pace > 0 {
		keys += chart.Key(chart.LineAhead, q.T("Suite au rythme actuel", "What follows at the present pace"))
	}
	return template.HTML(`<ul class="legend">`) + keys + template.HTML(`</ul>`)
}

// CellPath is the path of what a number of the table is made of: of a day and a column. The zero day stands for all days.
func (r report) CellPath(day plan.Date, c column) string {
	key, endpoint, text := r.Key, r.Endpoint, ""
	if r.By == byKey {
		key = cmp.Or(c.ID, key)
	} else {
		endpoint = cmp.Or(c.ID, endpoint)
	}
	if day != (plan.Date{}) {
		text = day.String()
	}
	return r.Lines(text, key, endpoint)
}

// RowPath is the path of what the total of a day is made of; the zero day stands for all days.
func (r report) RowPath(day plan.Date) string { return r.CellPath(day, column{}) }

// PartPath is the path of what a part is made of, and PartFilter that of the page with this part alone.
func (r report) PartPath(p part) string {
	return r.Lines("", r.filterOf(p).Key, r.filterOf(p).Endpoint)
}

// PartFilter is the path of the page with one part alone.
func (r report) PartFilter(p part) string { return r.filterOf(p).Path() }

func (r report) filterOf(p part) choice {
	c := r.choice
	if c.Key, c.Endpoint = "", ""; r.By == byKey {
		c.Key, c.By = p.ID, byEndpoint
	} else {
		c.Endpoint, c.By = p.ID, byKey
	}
	return c
}
