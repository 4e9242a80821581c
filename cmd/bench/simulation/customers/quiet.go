package customers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"lieudit/cmd/bench/model"
)

// CheckQuiet checks everything while nobody acts and nothing fails, once refunds, projections and settlements have had their time. It reports
// whatever the model does not allow. From then on the model holds what CheckQuiet saw.
func (c *Customers) CheckQuiet(ctx context.Context, _ time.Time) {
	for i := range c.deaths {
		if n := c.world.Deaths(i); n != c.deaths[i] {
			c.deaths[i] = n
			c.Model.Died(i)
		}
	}
	for i, account := range c.Model.Accounts() {
		if !c.Model.IsUnreadable(account) {
			c.settleAccount(ctx, actDetails{Account: account, Instance: i % c.world.Instances()})
		}
	}
	var books struct{ Results []model.BilledLine }
	if c.lookEverywhere(ctx, actDetails{}, "GET /usage", "/usage?format=json").read(&books) {
		c.Model.SettleUsage(books.Results)
		c.checkExports(ctx, books.Results)
		c.checkPeriods(ctx, books.Results)
	}
	c.checkLists(ctx)
	c.checkReconciliation(ctx)
	c.checkProjections(ctx)
	for i, account := range c.Model.Accounts() {
		if c.Model.IsUnreadable(account) {
			continue
		}
		d := actDetails{Account: account, Instance: i % c.world.Instances(), Pick: 1}
		if c.checkAccount(ctx, d); c.Model.IsOpen(account) && (i+c.quietMoments)%spreadInterval == 0 {
			c.checkSpread(ctx, d)
		}
	}
	c.quietMoments++
}

// shown is an answer, and whether it is a success.
type shown struct {
	Answer
	isThere bool
}

func (s shown) read(into any) bool { return s.isThere && json.Unmarshal(s.Body, into) == nil }

// lookEverywhere asks the customer area of every instance as an operator. All must give the same answer.
func (c *Customers) lookEverywhere(ctx context.Context, d actDetails, endpoint, path string) (first shown) {
	for i := range c.world.Instances() {
		op := d.operation(d.Account)
		op.Instance, op.Endpoint = i, endpoint
		a := c.sendOnce(ctx, op, message{method: "GET", path: path})
		switch {
		case a.Status != http.StatusOK && a.Status != http.StatusNotFound:
			c.world.Report(model.EveryAccountAnswers, "instance %d, %s: %d %s", i, path, a.Status, a.Body)
			return shown{a, false}
		case i == 0:
			first = shown{a, a.Status == http.StatusOK}
		case a.Status != first.Status || !bytes.Equal(a.Body, first.Body):
			c.world.Report(model.InstancesAgree, "%s: instance 0 says %d %s, instance %d %d %s", path, first.Status, first.Body, i, a.Status, a.Body)
		}
	}
	return first
}

// checkReconciliation folds the log again.
func (c *Customers) checkReconciliation(ctx context.Context) {
	op := actDetails{}.operation("")
	op.Endpoint = "POST /usage:reconcile"
	a := c.sendOnce(ctx, op, message{method: "POST", path: "/usage:reconcile", body: map[string]any{}})
	found, ok := decode[struct {
		Differences []json.RawMessage `json:"differences"`
	}](a)
	switch {
	case !ok:
		c.world.Report(model.EveryAccountAnswers, "reconcile: %d %s", a.Status, a.Body)
	case len(found.Differences) > 0:
		c.world.Report(model.Reconciles, "%d differences, the first is %s", len(found.Differences), found.Differences[0])
	}
}

// closingTime is the longest until a read model holds the events of a closing, which happens when it is due, even while everything else rests.
const closingTime = time.Second

// checkProjections checks the state of the read models. One that is behind is checked again after closingTime.
func (c *Customers) checkProjections(ctx context.Context) {
	a, list := c.lookAtProjections(ctx)
	if slices.ContainsFunc(list.Results, projection.isBehind) {
		time.Sleep(closingTime)
		a, list = c.lookAtProjections(ctx)
	}
	serves := map[string]bool{}
	for _, p := range list.Results {
		serves[p.Name] = serves[p.Name] || p.State == "serving"
		if p.isBehind() || p.State == "serving" && p.Reason != "" {
			c.world.Report(model.ProjectionsMove, "%s has %s events to go, reason %q", p.Name, lagText(p.Lag), p.Reason)
		}
		for _, s := range p.Stopped {
			if !c.Model.IsUnreadable(s.Account) {
				c.world.Report(model.ProjectionsMove, "%s: account %s is stopped: %s", p.Name, s.Account, s.Reason)
			}
		}
	}
	for name, does := range serves {
		if !does {
			c.world.Report(model.ProjectionsMove, "%s does not serve: %s", name, a.Body)
		}
	}
	if len(serves) == 0 {
		c.world.Report(model.ProjectionsMove, "%d %s", a.Status, a.Body)
	}
}

func (c *Customers) lookAtProjections(ctx context.Context) (a Answer, list projections) {
	op := actDetails{}.operation("")
	op.Endpoint = "GET /projections"
	a = c.sendOnce(ctx, op, message{method: "GET", path: "/projections"})
	list, _ = decode[projections](a)
	return a, list
}

func lagText(lag *int) string {
	if lag == nil {
		return "nobody knows how many"
	}
	return strconv.Itoa(*lag)
}

// settleAccount compares an account and its keys with the possible states.
func (c *Customers) settleAccount(ctx context.Context, d actDetails) {
	account := c.lookEverywhere(ctx, d, "GET /accounts/{id}", d.accountPath())
	keys := c.lookEverywhere(ctx, d, "GET /accounts/{id}/keys", d.accountPath()+"/keys?limit=1000")
	c.Model.SettleAccount(d.Account, account.Answer, keys.Answer, c.world.Wall(d.Instance))
}

// checkAccount checks the rest of an account.
func (c *Customers) checkAccount(ctx context.Context, d actDetails) {
	if !c.Model.IsKnown(d.Account) {
		return
	}
	usage := c.lookEverywhere(ctx, d, "GET /accounts/{id}/usage", d.accountPath()+"/usage")
	c.Model.CheckUsage(d.Account, usage.Answer, c.world.Wall(d.Instance))
	if c.Model.IsOpen(d.Account) {
		c.checkWithKey(ctx, d)
	}
	c.checkHistory(ctx, d)
}

// checkHistory reads the whole history of an account.
func (c *Customers) checkHistory(ctx context.Context, d actDetails) {
	var all []model.Incident
	for path := "/history?limit=1000"; path != ""; {
		op := d.operation(d.Account)
		op.Endpoint = "GET /accounts/{id}/history"
		a := c.sendOnce(ctx, op, message{method: "GET", path: d.accountPath() + path})
		page, ok := decode[struct {
			Results []model.Incident
			Cursor  string `json:"curseur"`
		}](a)
		if !ok {
			c.world.Report(model.EveryAccountAnswers, "history of %s: %d %s", d.Account, a.Status, a.Body)
			return
		}
		if c.Model.IsErased(d.Account) && bytes.Contains(a.Body, []byte(accountName(d.Account))) {
			c.world.Report(model.ErasedUnreadable, "history of %s: %s", d.Account, a.Body)
		}
		all, path = append(all, page.Results...), ""
		if page.Cursor != "" {
			path = "/history?limit=1000&curseur=" + pathEscape(page.Cursor)
		}
	}
	c.Model.CheckAudit(d.Account, all)
}

// checkWithKey asks with a key of the account: every instance for /me, and one after another for everything about sites. These requests count.
// An account whose quota is used up is checked another day.
func (c *Customers) checkWithKey(ctx context.Context, d actDetails) {
	for i := range c.world.Instances() {
		d.Instance = i
		switch a := c.ask(ctx, d, model.Addresses, "GET /me", "/me", 1); a.Status {
		case http.StatusOK:
		case http.StatusTooManyRequests:
			return
		default:
			c.world.Report(model.EveryAccountAnswers, "instance %d, GET /me of %s: %d %s", i, d.Account, a.Status, a.Body)
			return
		}
	}
	if !c.readPlaces(ctx, d) {
		return
	}
	d.Instance = (d.Instance + 1) % c.world.Instances()
	c.checkSearch(ctx, d)
	d.Instance = (d.Instance + 1) % c.world.Instances()
	c.checkChanges(ctx, d)
}

// spreadInterval n means that one account in n is written to at a quiet moment.
const spreadInterval = 4

// spreadTime is the time until every instance shows a write.
const spreadTime = time.Second

// checkSpread writes a site on one instance, and reads it on all.
func (c *Customers) checkSpread(ctx context.Context, d actDetails) {
	open := c.Model.OpenReferentials(d.Account)
	if len(open) == 0 {
		return
	}
	d.Label, d.Code = fmt.Sprintf("q%06d", c.issued.Add(1)), open[0]
	written, ok := decode[foundSite](c.write(ctx, d, model.PutSite{Code: d.code(), ExternalID: d.site(), Name: d.name(0)}, "PUT "+siteEndpoint,
		message{method: "PUT", path: d.sitePath(), body: c.content(d.name(0))}))
	if !ok {
		return
	}
	time.Sleep(spreadTime)
	for i := range c.world.Instances() {
		d.Instance = i
		path := d.referentialPath() + "/sites?statut=tous&limit=1000"
		a := c.ask(ctx, d, model.Locations, "GET "+referentialEndpoint+"/sites", path, 1)
		list, _ := decode[struct{ Results []foundSite }](a)
		if c.answers(d, path, a) && !slices.Contains(list.Results, written) {
			c.world.Report(model.EverybodySeesIt, "%s of %s was written as %s, and instance %d lists %+v", d.sitePath(), d.Account, written.text(), i, list.Results)
		}
	}
}

// readPlaces lists all sites of an account, and has the model compare them. It returns false if it could not.
func (c *Customers) readPlaces(ctx context.Context, d actDetails) bool {
	referentials := c.ask(ctx, d, model.Locations, "GET /locations/referentiels", "/locations/referentiels", 1)
	list, ok := decode[struct{ Results []struct{ Code string } }](referentials)
	sites := map[string]Answer{}
	for _, r := range list.Results {
		path := "/locations/referentiels/" + r.Code + "/sites"
		a := c.ask(ctx, d, model.Locations, "GET "+referentialEndpoint+"/sites", path+"?statut=tous&limit=1000", 1)
		ok = ok && c.answers(d, path, a)
		sites[r.Code] = a
	}
	if !ok {
		c.answers(d, "/locations/referentiels", referentials)
		return false
	}
	c.Model.SettlePlaces(d.Account, referentials, sites)
	return true
}

// answers reports whether an answer is a success. It reports an answer that is neither a success nor a refusal by plan or quota.
func (c *Customers) answers(d actDetails, path string, a Answer) bool {
	if a.Status != http.StatusOK && a.Status != http.StatusForbidden && a.Status != http.StatusTooManyRequests {
		c.world.Report(model.EveryAccountAnswers, "instance %d, %s of %s: %d %s", d.Instance, path, d.Account, a.Status, a.Body)
	}
	return a.Status == http.StatusOK
}

// checkSearch searches for all sites.
func (c *Customers) checkSearch(ctx context.Context, d actDetails) {
	found := map[string]string{}
	for path := "/locations/search?statut=tous&limit=100"; path != ""; {
		a := c.ask(ctx, d, model.Locations, "GET /locations/search", path, 1)
		page, _ := decode[struct {
			Results []foundSite
			Cursor  string `json:"curseur"`
		}](a)
		if !c.answers(d, path, a) {
			return
		}
		for _, s := range page.Results {
			found[s.Referential+"/"+s.ExternalID] = s.text()
		}
		if path = ""; page.Cursor != "" {
			path = "/locations/search?statut=tous&limit=100&curseur=" + pathEscape(page.Cursor)
		}
	}
	c.compareSites(model.SearchFinds, d, found)
}

// foundSite is a site of a search, or of the changes.
type foundSite struct {
	Referential string `json:"referentiel"`
	ExternalID  string `json:"external_id"`
	Name        string `json:"nom"`
	IsActive    bool   `json:"actif"`
	Version     int    `json:"version"`
}

func (s foundSite) text() string { return fmt.Sprintf("v%d %v %q", s.Version, s.IsActive, s.Name) }

// compareSites compares sites with the listed ones.
func (c *Customers) compareSites(rule Rule, d actDetails, got map[string]string) {
	want := c.Model.Sites(d.Account)
	if maps.Equal(got, want) {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if got[id] != want[id] {
			c.world.Report(rule, "instance %d, %s: site %s is %q, want %q", d.Instance, d.Account, id, got[id], want[id])
			return
		}
	}
	c.world.Report(rule, "instance %d, %s: %d sites, want %d", d.Instance, d.Account, len(got), len(want))
}

// follower is the state of somebody who follows the changes of an account: the cursor and the sites.
type follower struct {
	cursor string
	sites  map[string]string
}

// follow asks for the changes of an account's sites since the last time. It reports whether there may be more.
func (c *Customers) follow(ctx context.Context, d actDetails) (a Answer, isMore bool) {
	c.mu.Lock()
	before := c.followers[d.Account]
	c.mu.Unlock()
	path := "/locations/changes?limit=50"
	if before.cursor != "" {
		path += "&curseur=" + pathEscape(before.cursor)
	}
	a = c.ask(ctx, d, model.Locations, "GET /locations/changes", path, 1)
	page, ok := decode[struct {
		Results []struct{ Site *foundSite }
		Cursor  string `json:"curseur"`
	}](a)
	if !ok {
		return a, false
	}
	after := follower{page.Cursor, maps.Clone(before.sites)}
	if after.sites == nil {
		after.sites = map[string]string{}
	}
	for _, r := range page.Results {
		if r.Site != nil {
			after.sites[r.Site.Referential+"/"+r.Site.ExternalID] = r.Site.text()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.followers[d.Account].cursor == before.cursor { // nobody else asked meanwhile
		c.followers[d.Account] = after
	}
	return a, len(page.Results) > 0
}

// checkChanges follows the changes to their end.
func (c *Customers) checkChanges(ctx context.Context, d actDetails) {
	for isMore := true; isMore; {
		var a Answer
		if a, isMore = c.follow(ctx, d); !c.answers(d, "/locations/changes", a) {
			return
		}
	}
	c.compareSites(model.ChangesTellAll, d, c.followers[d.Account].sites)
}

// Snapshot is everything that customers know at an instant.
type Snapshot struct {
	model     model.Snapshot
	followers map[string]follower
}

// Snapshot copies everything that customers know.
func (c *Customers) Snapshot() Snapshot {
	return Snapshot{c.Model.Snapshot(), maps.Clone(c.followers)}
}

// Restore makes a snapshot the truth again, as after the logs were restored to older copies.
func (c *Customers) Restore(s Snapshot) {
	c.Model.Restore(s.model)
	c.followers = maps.Clone(s.followers)
}

// HasErasedSince reports whether an account may have been erased since a snapshot.
func (c *Customers) HasErasedSince(s Snapshot) bool { return c.Model.HasErasedSince(s.model) }

// RebuildAll fills every read model again, as an operator does after an older copy of the log was put back.
func (c *Customers) RebuildAll(ctx context.Context) (isAccepted bool) {
	op := actDetails{}.operation("")
	op.Endpoint = "POST /projections:rebuild"
	return c.send(ctx, op, message{method: "POST", path: "/projections:rebuild", body: map[string]any{}}).Status == http.StatusAccepted
}
