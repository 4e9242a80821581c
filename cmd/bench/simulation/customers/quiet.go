package customers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// CheckQuiet compares all that is known with what every instance answers, while nothing fails and nobody else asks. What was unknown
// is known after that, and must stay so. today is the true wall time.
func (c *Customers) CheckQuiet(ctx context.Context, today time.Time) {
	token, ok := c.world.OperatorToken()
	if !ok {
		c.world.Report(EveryoneAnswered, "there is no operator's token")
		return
	}
	q := &quietCheck{Customers: c, operator: &client{world: c.world, token: token}, today: today}
	q.checkBooks(ctx)
	for i := range c.accounts {
		if a := c.accounts[i]; a.isOpen.allows(true) {
			q.checkAccount(ctx, a)
		}
	}
}

// quietCheck is one such comparison.
type quietCheck struct {
	*Customers
	operator *client
	today    time.Time
}

// get asks every instance and returns the one answer that all give; false where they differ, or one fails.
func (q *quietCheck) get(ctx context.Context, c *client, s Surface, r Request, allowed ...int) (Answer, bool) {
	var first Answer
	for i := range q.world.Instances() {
		a := c.once(ctx, i, s, r)
		if !slices.Contains(allowed, a.Status) {
			q.world.Report(EveryoneAnswered, "instance %d, %s %s: %d %s", i, r.Method, r.Path, a.Status, shorten(a.Body))
			return a, false
		}
		if i > 0 && (a.Status != first.Status || !bytes.Equal(a.Body, first.Body)) {
			q.world.Report(InstancesAgree, "%s %s: instance 0 says %s, instance %d %s", r.Method, r.Path, shorten(first.Body), i, shorten(a.Body))
			return a, false
		}
		if i == 0 {
			first = a
		}
	}
	return first, true
}

// billedLine is a line of an invoice, see the export of usage.
type billedLine struct {
	Account  string `json:"compte"`
	Period   string `json:"periode"`
	Key      string `json:"cle"`
	Requests int64  `json:"requetes"`
}

// checkBooks compares what is billed with what was served, key by key, and what was billed for earlier periods with what it was.
func (q *quietCheck) checkBooks(ctx context.Context) {
	ans, ok := q.get(ctx, q.operator, Area, Request{Method: "GET", Path: "/customer-area/v1/usage?format=json"}, http.StatusOK)
	var billed struct{ Results []billedLine }
	if !ok || !ans.read(&billed) {
		return
	}
	byKey, byPeriod := map[string]map[string]int64{}, map[string]map[string]int64{}
	for _, l := range billed.Results {
		addTo(byKey, l.Account, l.Key, l.Requests)
		addTo(byPeriod, l.Account, l.Period, l.Requests)
	}
	for _, a := range q.accounts {
		for id, n := range byKey[a.ID] {
			if !a.usedBy(id).allows(n) {
				q.world.Report(ServedIsCounted, "%s, key %s: %d requests are billed, %d were served and %d have no answer", a.ID, id, n, a.used[id].served, a.used[id].unknown)
			}
			a.used[id] = &count{served: n}
		}
		for id, n := range a.used {
			if _, isBilled := byKey[a.ID][id]; !isBilled {
				if !n.allows(0) {
					q.world.Report(ServedIsCounted, "%s, key %s: nothing is billed, %d were served", a.ID, id, n.served)
				}
				a.used[id] = &count{}
			}
		}
		q.checkPeriods(a, byPeriod[a.ID])
	}
	q.checkReconciliation(ctx)
}

func addTo(sums map[string]map[string]int64, account, of string, n int64) {
	if sums[account] == nil {
		sums[account] = map[string]int64{}
	}
	sums[account][of] += n
}

// checkPeriods checks that what a period counted grew by what was asked since, and by nothing for the periods before the last.
func (q *quietCheck) checkPeriods(a *account, billed map[string]int64) {
	names := slices.Sorted(maps.Keys(billed))
	for i, name := range names {
		if before := a.counted[name]; billed[name] < before || i < len(names)-2 && billed[name] != before {
			q.world.Report(CountedStays, "%s, period %s: %d requests are billed, and %d were at the last quiet moment", a.ID, name, billed[name], before)
		}
	}
	a.counted, a.today = billed, count{}
}

// checkReconciliation has the log folded again.
func (q *quietCheck) checkReconciliation(ctx context.Context) {
	r := Request{Method: "POST", Path: "/customer-area/v1/usage:reconcile", Body: []byte("{}")}
	ans := q.operator.once(ctx, 0, Area, r)
	var found struct {
		Differences []json.RawMessage `json:"differences"`
	}
	if !ans.read(&found) {
		q.world.Report(EveryoneAnswered, "%s: %d %s", r.Path, ans.Status, shorten(ans.Body))
	} else if len(found.Differences) > 0 {
		q.world.Report(ReconcileAgrees, "%d differences, the first is %s", len(found.Differences), found.Differences[0])
	}
}

// checkAccount compares one account with what is known of it.
func (q *quietCheck) checkAccount(ctx context.Context, a *account) {
	area := func(path string) Request {
		return Request{Method: "GET", Path: "/customer-area/v1/accounts/" + a.ID + path}
	}
	ans, ok := q.get(ctx, q.operator, Area, area(""), http.StatusOK, http.StatusNotFound)
	var shown struct {
		Name   string `json:"nom"`
		Quota  int64  `json:"quota"`
		Closed string `json:"ferme_le"`
	}
	if !ok {
		return
	}
	isThere := ans.read(&shown)
	if !a.isOpen.allows(isThere) {
		q.world.Report(WrittenIsThere, "%s: opened is %v, and the answer %s", a.ID, a.isOpen.possible, shorten(ans.Body))
	}
	a.isOpen = known(isThere)
	if !isThere {
		return
	}
	q.settleQuota(a, shown.Quota)
	settle(q, "that "+a.ID+" is closed", &a.isClosed, shown.Closed != "")
	settle(q, "that "+a.ID+" is erased", &a.isErased, shown.Name == "")
	if shown.Name != "" && shown.Name != a.Name {
		q.world.Report(WrittenIsThere, "%s is called %q", a.ID, shown.Name)
	}
	if a.isClosed.is(true) && a.closedAt == 0 {
		a.closedAt = q.elapsed()
	}
	q.checkKeys(ctx, a, area)
	q.checkUsage(ctx, a, area)
	q.checkHistory(ctx, a, area)
	if k := a.firstActiveKey(); k != nil && a.isClosed.is(false) {
		q.checkPlaces(ctx, a, k)
	}
}

// settleQuota settles the quota. One that was raised today, by a clock that was ahead, may be in force tomorrow only.
func (q *quietCheck) settleQuota(a *account, shown int64) {
	if a.quotaIsNew && a.quota.allows(shown) && shown != slices.Max(a.quota.possible) {
		a.quotaIsNew = false
		return
	}
	if to := a.quotaRaisedTo; to != 0 && shown != to {
		q.world.Report(WrittenIsThere, "%s: the quota is %d, and %d was acknowledged", a.ID, shown, to)
	}
	settle(q, "the quota of "+a.ID, &a.quota, shown)
	a.quotaIsNew, a.quotaRaisedTo = false, 0
}

// settle makes a fact what is shown, and reports what it cannot be.
func settle[T comparable](q *quietCheck, what string, f *fact[T], shown T) {
	if !f.allows(shown) {
		q.world.Report(WrittenIsThere, "%s: %v is shown, %v was acknowledged or is possible", what, shown, f.possible)
	}
	*f = known(shown)
}

func (a *account) firstActiveKey() *key {
	for _, k := range a.keys {
		if k.isRevoked.is(false) {
			return k
		}
	}
	return nil
}

// checkKeys compares the list of keys. It may hold as many more as were issued without an answer.
func (q *quietCheck) checkKeys(ctx context.Context, a *account, area func(string) Request) {
	ans, ok := q.get(ctx, q.operator, Area, area("/keys?limit=1000"), http.StatusOK)
	var list struct {
		Results []struct {
			ID      string `json:"id"`
			Revoked string `json:"revoque_le"`
		}
	}
	if !ok || !ans.read(&list) {
		return
	}
	shown := map[string]bool{}
	for _, k := range list.Results {
		shown[k.ID] = k.Revoked != ""
	}
	for _, k := range a.keys {
		isRevoked, isThere := shown[k.ID]
		if !isThere {
			q.world.Report(WrittenIsThere, "%s: the key %s is not listed", a.ID, k.ID)
			continue
		}
		settle(q, "that the key "+k.ID+" is revoked", &k.isRevoked, isRevoked)
		if isRevoked && k.revokedAt == 0 {
			k.revokedAt = q.elapsed()
		}
	}
	if more := len(list.Results) - len(a.keys); more > a.unknownKeys {
		q.world.Report(WrittenIsThere, "%s: %d keys are listed, %d were issued and %d issues have no answer", a.ID, len(list.Results), len(a.keys), a.unknownKeys)
	}
}

// checkUsage compares the usage that is shown with what is billed, and with the limit.
func (q *quietCheck) checkUsage(ctx context.Context, a *account, area func(string) Request) {
	ans, ok := q.get(ctx, q.operator, Area, area("/usage"), http.StatusOK)
	var shown struct {
		Period string `json:"periode"`
		End    string `json:"fin"`
		Limit  int64  `json:"limite"`
		Total  int64  `json:"total"`
		Lines  []struct {
			Requests int64 `json:"requetes"`
		} `json:"lignes"`
	}
	if !ok || !ans.read(&shown) {
		return
	}
	sum := int64(0)
	for _, l := range shown.Lines {
		sum += l.Requests
	}
	if sum != shown.Total || a.counted[shown.Period] != shown.Total {
		q.world.Report(UsageAgrees, "%s, period %s: the total is %d, the lines come to %d, and %d is billed", a.ID, shown.Period, shown.Total, sum, a.counted[shown.Period])
	}
	if shown.Total > shown.Limit {
		q.world.Report(CapKept, "%s, period %s: %d requests of %d", a.ID, shown.Period, shown.Total, shown.Limit)
	}
	a.periodTotal = shown.Total
	end, err := time.Parse(time.RFC3339, shown.End)
	a.periodMayEnd = err != nil || q.today.Add(3*24*time.Hour).After(end)
}

// checkHistory looks for each acknowledged key in the history, once.
func (q *quietCheck) checkHistory(ctx context.Context, a *account, area func(string) Request) {
	ans, ok := q.get(ctx, q.operator, Area, area("/history?kind=keys&limit=1000"), http.StatusOK)
	var history struct {
		Results []struct {
			Type    string `json:"type"`
			Subject string `json:"sujet"`
		}
	}
	if !ok || !ans.read(&history) {
		return
	}
	lines := map[string]int{}
	for _, l := range history.Results {
		for _, name := range []string{"key-issued", "key-revoked"} {
			if strings.Contains(l.Type, name) {
				lines[name+" "+l.Subject]++
			}
		}
	}
	for _, k := range a.keys {
		want := map[string]int{"key-issued": 1, "key-revoked": 0}
		if k.isRevoked.is(true) {
			want["key-revoked"] = 1
		}
		for name, n := range want {
			if got := lines[name+" "+k.ID]; got != n {
				q.world.Report(AuditComplete, "%s: %s of the key %s stands %d times in the history, want %d: %v", a.ID, name, k.ID, got, n, lines)
			}
		}
	}
	if a.isErased.is(true) && strings.Contains(string(ans.Body), a.Name) {
		q.world.Report(ErasedUnreadable, "%s: the history says %s", a.ID, shorten(ans.Body))
	}
}

// checkPlaces compares the sites of every referential. Each of these requests counts, and is booked.
func (q *quietCheck) checkPlaces(ctx context.Context, a *account, k *key) {
	customer := &client{world: q.world, token: k.Token, marker: a.ID}
	for _, code := range slices.Sorted(maps.Keys(a.referentials)) {
		ref := a.referentials[code]
		var first Answer
		for i := range q.world.Instances() {
			r := api("GET", fmt.Sprintf("/locations/referentiels/%s/sites?statut=tous&limit=1000", code), nil)
			ans := customer.once(ctx, i, API, r)
			a.countAnswer(k, ans)
			if ans.Status == http.StatusTooManyRequests {
				return // looked at another day
			}
			if ans.Status != http.StatusOK {
				q.world.Report(EveryoneAnswered, "instance %d, %s: %d %s", i, r.Path, ans.Status, shorten(ans.Body))
				return
			}
			if i > 0 && !bytes.Equal(ans.Body, first.Body) {
				q.world.Report(InstancesAgree, "%s of %s: instance 0 says %s, instance %d %s", r.Path, a.ID, shorten(first.Body), i, shorten(ans.Body))
				return
			}
			first = ans
		}
		q.settleSites(a, code, ref, first)
	}
}

// settleSites makes the sites that are shown the known ones, if they are among those that are possible.
func (q *quietCheck) settleSites(a *account, code string, ref *referential, ans Answer) {
	var list struct {
		Results []struct {
			ExternalID string `json:"external_id"`
			Name       string `json:"nom"`
			IsActive   bool   `json:"actif"`
		}
	}
	if !ans.read(&list) {
		return
	}
	shown := sites{}
	for _, s := range list.Results {
		shown[s.ExternalID] = site{s.Name, s.IsActive}
	}
	if !slices.ContainsFunc(ref.possible, func(s sites) bool { return maps.Equal(s, shown) }) {
		q.world.Report(WrittenIsThere, "%s, %s: the sites are\n%v, possible are\n%v", a.ID, code, shown, ref.possible)
	}
	ref.possible = []sites{shown}
}
